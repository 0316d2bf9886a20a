package sqlite

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/schema"
)

// ofSchema is a store as a program left it that knew no later schema: each has jobs 1 to 40.
func ofSchema(t *testing.T, version int) (dir string) {
	t.Helper()
	packed, err := os.Open(filepath.Join("testdata", fmt.Sprintf("schema-%d.db.gz", version)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = packed.Close() }() // it was read only
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "store")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// schemaAt is the version of the schema in a database that nobody opens as a store, which would move it.
func schemaAt(t *testing.T, dir string) int64 {
	t.Helper()
	c, err := openConn(dsn(filepath.Join(dir, FileName), "query_only(1)"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := c.integer(schemaVersion)
	if err = errors.Join(err, c.raw.Close()); err != nil {
		t.Fatal(err)
	}
	return n
}

// wantJobs looks for the jobs of a store of an earlier schema, with what is in them.
func wantJobs(t *testing.T, dir string) {
	t.Helper()
	s := mustOpen(t, dir, Options{})
	for i := range 40 {
		id := strconv.Itoa(i + 1)
		if o, err := s.Get(t.Context(), store.Key{Kind: "job", ID: id}); err != nil || string(o.Value) != `{"of":`+id+`}` {
			t.Errorf("job %s: %s, %v", id, o.Value, err)
		}
	}
	mustClose(t, s)
	if found, err := Check(t.Context(), dir, []string{dir}); err != nil || len(found.Problems) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestStoresOfEarlierSchemas opens a store of each, as its program left it: all of it is there, and a copy that is made in that moment
// has the schema of before. Where that is refused, nothing is moved.
func TestStoresOfEarlierSchemas(t *testing.T) {
	steps, err := schema.Steps(migrationFiles)
	if err != nil {
		t.Fatal(err)
	}
	opened := schema.Version(steps, 1)
	for version := range opened {
		version++
		t.Run(strconv.FormatInt(version, 10), func(t *testing.T) {
			dir := ofSchema(t, int(version))
			place := filepath.Join(filepath.Dir(dir), "before")
			refused := fault.New(fault.Exhausted, "no room")
			moves := version < opened
			if s, err := Open(dir, Options{BeforeMove: func(int64) error { return refused }}); moves && !errors.Is(err, refused) {
				t.Fatalf("opened: %v, %v", s, err)
			} else if !moves {
				mustClose(t, s)
			}
			if got := schemaAt(t, dir); got != version {
				t.Fatalf("it was moved to %d", got)
			}
			asked := false
			s := mustOpen(t, dir, Options{BeforeMove: func(to int64) error {
				if asked = true; to != opened {
					t.Errorf("it is moved to %d, not %d", to, opened)
				}
				return Copy(t.Context(), dir, place)
			}})
			mustClose(t, s)
			if asked != moves {
				t.Errorf("asked: %v", asked)
			}
			wantJobs(t, dir)
			if !moves {
				return
			}
			if got := schemaAt(t, filepath.Join(place, "store")); got != version {
				t.Errorf("the copy has schema %d", got)
			}
			wantJobs(t, filepath.Join(place, "store")) // a program that opens it moves it, too
		})
	}
}

// TestANewStoreIsNotCopied: nothing is in it.
func TestANewStoreIsNotCopied(t *testing.T) {
	mustClose(t, mustOpen(t, t.TempDir(), Options{BeforeMove: func(int64) error { return errors.New("asked") }}))
}

// TestACopyIsWholeOrNotThere: of one that was cut off nothing is taken for a copy, and the next one is made all the same, also over
// one that is there.
func TestACopyIsWholeOrNotThere(t *testing.T) {
	dir := ofSchema(t, 4)
	data := filepath.Dir(dir)
	place := filepath.Join(data, "before-format-2")
	ended, end := context.WithCancel(t.Context())
	end()
	if err := Copy(ended, dir, place); err == nil || exists(place) {
		t.Fatalf("an ended context: %v", err)
	}
	// As a kill leaves it: half of the file, under the name that it has until it is whole.
	half := filepath.Join(beside(place, ".part"), "store")
	if err := os.MkdirAll(half, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(half, FileName), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Copy(t.Context(), dir, place); err != nil {
			t.Fatal(err)
		}
		there, err := os.ReadDir(data)
		if err != nil || len(there) != 2 {
			t.Errorf("beside the store is more than the copy: %v, %v", there, err)
		}
		files, err := os.ReadDir(filepath.Join(place, "store"))
		if err != nil || len(files) != 1 {
			t.Errorf("the copy is not one file: %v, %v", files, err)
		}
		if info, err := os.Stat(filepath.Join(place, "store", FileName)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("others may read it: %v, %v", info, err)
		}
		wantJobs(t, filepath.Join(place, "store")) // which leaves files beside it that the next copy must not have
	}
}

// TestACopyNeedsRoom: it is refused with both figures, before anything is written.
func TestACopyNeedsRoom(t *testing.T) {
	if err := roomFor(100<<20, 108<<20, "/d"); err != nil {
		t.Error(err)
	}
	err := roomFor(100<<20, 108<<20-1, "/d")
	if !fault.Is(err, fault.Exhausted) || !strings.Contains(err.Error(), "it needs up to 108.0 MiB, and 108.0 MiB are free in /d") {
		t.Error(err)
	}
}
