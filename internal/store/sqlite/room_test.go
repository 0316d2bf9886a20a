package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/image"
	"github.com/drover-project/drover/internal/testkit"
)

// TestReadingAStoreDoesNotFillItsDisk: where there is no room for the copy that is read it is refused before anything is written, and not taken for damage;
// where another place has room it is made there.
func TestReadingAStoreDoesNotFillItsDisk(t *testing.T) {
	dir := filepath.Join(testkit.SmallDisk(t, "24m"), "store")
	s := mustOpen(t, dir, Options{})
	for i := range 12 {
		value := []byte(`"` + strconv.Itoa(i) + `"`)
		for len(value) < 1<<20 {
			value = append(value, rand.Text()...)
		}
		if _, err := store.Commit(t.Context(), s, store.Tx{Put: []store.Put{{Key: store.Key{Kind: "blob", ID: strconv.Itoa(i + 1)}, Value: value}}}); err != nil {
			t.Fatal(err)
		}
	}
	free := func() uint64 {
		var disk syscall.Statfs_t
		if err := syscall.Statfs(dir, &disk); err != nil {
			t.Fatal(err)
		}
		return disk.Bavail * uint64(disk.Bsize)
	}
	before := free()
	count := 0
	use := func(img *image.Image) error {
		for _, err := range img.Objects {
			if err != nil {
				return err
			}
			count++
		}
		if left := free(); left < before {
			t.Errorf("%d bytes were free beside the store, and %d are while it is read", before, left)
		}
		return nil
	}
	if err := Image(t.Context(), dir, []string{dir}, use); !fault.Is(err, fault.Exhausted) || count > 0 || free() < before {
		t.Errorf("without room: %v, with %d objects, and %d bytes of %d free", err, count, free(), before)
	}
	if found, err := Check(t.Context(), dir, []string{dir, filepath.Join(dir, "nosuch")}); !fault.Is(err, fault.Exhausted) {
		t.Errorf("without room it is found %+v, %v", found, err)
	}
	if err := Image(t.Context(), dir, []string{dir, t.TempDir()}, use); err != nil || count < 12 {
		t.Errorf("with room elsewhere: %v, with %d objects", err, count)
	}
}

// TestWhyAStoreCannotBeRead: a backup is what helps where the store is damaged, and nowhere else.
func TestWhyAStoreCannotBeRead(t *testing.T) {
	sqliteError := func(file, statement string) error {
		db, err := sql.Open("sqlite", dsn(file))
		if err == nil {
			_, err = db.ExecContext(t.Context(), statement)
			_ = db.Close() // it was not opened
		}
		return err
	}
	noDatabase := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(noDatabase, make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		err  error
		code fault.Code
	}{
		{syscall.ENOSPC, fault.Exhausted},
		{fault.New(fault.Unsupported, "newer"), fault.Unsupported},
		{context.Canceled, fault.Internal},
		{errors.New("a row that is none"), fault.WrongState},
		{sqliteError(filepath.Join(noDatabase, "nosuch"), "SELECT 1 FROM sqlite_schema"), fault.Environment},
		{sqliteError(noDatabase, "SELECT nosuch FROM nosuch"), fault.WrongState},
	} {
		if err := unreadable(c.err); c.err == nil || !fault.Is(err, c.code) {
			t.Errorf("%v: %v", c.err, err)
		}
	}
	if problems, err := notRead(nil, syscall.ENOSPC); !fault.Is(err, fault.Exhausted) || problems != nil {
		t.Errorf("no room is a problem of the store: %v, %v", problems, err)
	}
}

// TestWhatAKilledReadingLeftGoes with the next one, also where that finds no room, for it may be what that is missing for.
func TestWhatAKilledReadingLeftGoes(t *testing.T) {
	dir := t.TempDir()
	mustClose(t, mustOpen(t, dir, Options{}))
	for _, places := range [][]string{{dir}, {testkit.SmallDisk(t, "4m")}} {
		left := filepath.Join(places[0], ".drover-image-1")
		if err := os.MkdirAll(filepath.Join(left, "below"), 0o700); err != nil {
			t.Fatal(err)
		}
		err := Image(t.Context(), dir, places, func(*image.Image) error { return nil })
		if (err == nil) != (places[0] == dir) {
			t.Errorf("in %s: %v", places[0], err)
		}
		if still, err := filepath.Glob(filepath.Join(places[0], ".drover-image-*")); err != nil || len(still) > 0 {
			t.Errorf("there are %v, %v", still, err)
		}
	}
}
