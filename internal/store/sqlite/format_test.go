package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/store/image"
	"github.com/drover-project/drover/internal/store/schema"
)

// raising is the transaction that raises a store to a format, and does something else.
func raising(n int) store.Tx {
	return store.Tx{Put: []store.Put{{Key: store.FormatKey, Value: format.Encode(n)}, {Key: store.Key{Kind: "job", ID: "raise"}, Value: []byte("1")}}}
}

// versionOf is the version of a store's schema.
func versionOf(t testing.TB, s *Store) int64 {
	t.Helper()
	have, err := s.writer.conn.integer(schemaVersion)
	if err != nil {
		t.Fatal(err)
	}
	return have
}

// versions are those of the schema, by format.
func versions(t testing.TB) (of map[int]int64) {
	t.Helper()
	steps, err := schema.Steps(migrationFiles)
	if err != nil {
		t.Fatal(err)
	}
	of = map[int]int64{}
	for n := format.First; n <= format.Newest; n++ {
		of[n] = schema.Version(steps, n)
	}
	if of[format.First] == of[format.Identities] {
		t.Fatal("programs that know of no formats are not kept out by the first raise")
	}
	return of
}

// TestOpeningDoesNotRaise: a store that was made or opened by this program can be used by one of before, until it is raised.
func TestOpeningDoesNotRaise(t *testing.T) {
	of, dir := versions(t), t.TempDir()
	for range 2 {
		s := mustOpen(t, dir, Options{})
		if got := versionOf(t, s); got != of[format.First] {
			t.Errorf("opened, it has version %d, not %d", got, of[format.First])
		}
		commitJobs(t, s, 2)
		mustClose(t, s)
	}
}

// TestARaiseMovesTheSchema by itself, by a kill behind it, in what is told of it and over an image.
func TestARaiseMovesTheSchema(t *testing.T) {
	of, dir := versions(t), t.TempDir()
	s := mustOpen(t, dir, Options{})
	commitJobs(t, s, 3)
	if _, err := store.Commit(t.Context(), s, raising(format.Newest)); err != nil {
		t.Fatal(err)
	}
	if got := versionOf(t, s); got != of[format.Newest] {
		t.Errorf("raised, it has version %d, not %d", got, of[format.Newest])
	}
	commitJobs(t, s, 3) // the writer goes on
	mustClose(t, s)
	elsewhere := filepath.Join(t.TempDir(), "store")
	err := Image(t.Context(), dir, []string{dir}, func(img *image.Image) error {
		if img.Format != format.Newest || img.Unfit != nil {
			t.Errorf("the image is of format %d: %v", img.Format, img.Unfit)
		}
		_, err := Load(elsewhere, img, unproved)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{dir, elsewhere} {
		s := mustOpen(t, place, Options{})
		if got := versionOf(t, s); got != of[format.Newest] {
			t.Errorf("%s has version %d, not %d", place, got, of[format.Newest])
		}
		if o, err := s.Get(t.Context(), store.FormatKey); err != nil || string(o.Value) != string(format.Encode(format.Newest)) {
			t.Errorf("%s has %s, %v", place, o.Value, err)
		}
		mustClose(t, s)
		if found, err := Check(t.Context(), place, []string{place}); err != nil || len(found.Problems) > 0 {
			t.Errorf("%s: %+v, %v", place, found, err)
		}
	}
}

// TestCheckComparesFormatAndSchema: neither may be what it is without the other.
func TestCheckComparesFormatAndSchema(t *testing.T) {
	of := versions(t)
	for what, spoil := range map[string]struct {
		raised bool
		sql    string
		want   string
	}{
		"a schema that was not raised": {true, "UPDATE schema_version SET version = " + strconv.FormatInt(of[format.First], 10), fmt.Sprintf("the store has format %d, and its schema version", format.Newest)},
		"one that was raised alone":    {false, "UPDATE schema_version SET version = " + strconv.FormatInt(of[format.Newest], 10), "the store has format 1, and its schema version"},
	} {
		dir := t.TempDir()
		s := mustOpen(t, dir, Options{})
		commitJobs(t, s, 2)
		if spoil.raised {
			if _, err := store.Commit(t.Context(), s, raising(format.Newest)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.writer.conn.script(spoil.sql); err != nil {
			t.Fatal(err)
		}
		mustClose(t, s)
		if found, err := Check(t.Context(), dir, []string{dir}); err != nil || !strings.Contains(strings.Join(found.Problems, "\n"), spoil.want) {
			t.Errorf("%s: %+v, %v", what, found, err)
		}
	}
}

// TestAnImageOfLaterIsRefused: nothing is made of it.
func TestAnImageOfLaterIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	img := &image.Image{Revision: 7, Objects: func(yield func(store.Object, error) bool) {
		yield(store.Object{Key: store.FormatKey, Revision: 5, Value: format.Encode(format.Newest + 1)}, nil)
	}}
	if _, err := Load(dir, img, unproved); !fault.Is(err, fault.Unsupported) {
		t.Errorf("loaded: %v", err)
	}
	if exists(filepath.Join(dir, FileName)) {
		t.Error("there is a store")
	}
}

// TestARaiseIsWholeOrNothing cuts the log behind a raise anywhere, as a kill or a power cut does: where the store has the
// format it has the schema, and where it has neither it has nothing else of the transaction.
func TestARaiseIsWholeOrNothing(t *testing.T) {
	of, dir := versions(t), t.TempDir()
	s := mustOpen(t, dir, Options{})
	commitJobs(t, s, 3)
	if _, err := store.Commit(t.Context(), s, raising(format.Newest)); err != nil {
		t.Fatal(err)
	}
	commitJobs(t, s, 1)
	database, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(dir, FileName+"-wal"))
	if err != nil {
		t.Fatal(err)
	}
	log = written(log)
	whole := t.TempDir()
	formatAt := func(cut int) (int, error) {
		place := filepath.Join(whole, strconv.Itoa(cut))
		defer func() { _ = os.RemoveAll(place) }()
		if err := writeFiles(place, database, log[:cut]); err != nil {
			return 0, err
		}
		return formatIn(t, place, of)
	}
	// The ends are asked by name: few cuts that are drawn may all lie on one side of the raise.
	for cut, want := range map[int]int{0: format.First, len(log): format.Newest} {
		if n, err := formatAt(cut); err != nil || n != want {
			t.Errorf("cut at %d: format %d, %v; want %d", cut, n, err, want)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		if _, err := formatAt(rapid.IntRange(0, len(log)).Draw(rt, "cut")); err != nil {
			rt.Fatal(err)
		}
	})
}

// formatIn opens a store and returns its format, if all of it agrees.
func formatIn(t *testing.T, dir string, of map[int]int64) (n int, err error) {
	t.Helper()
	s, err := Open(dir, Options{})
	if err != nil {
		return 0, err
	}
	defer func() { _ = s.Close() }() // it was read only
	n = format.First
	o, err := s.Get(t.Context(), store.FormatKey)
	if err == nil {
		n, err = format.Parse(o.Value)
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return 0, err
	}
	_, err = s.Get(t.Context(), store.Key{Kind: "job", ID: "raise"})
	if have := versionOf(t, s); have != of[n] || (err == nil) != (n == format.Newest) {
		return 0, fmt.Errorf("format %d, version %d, what else was written: %w", n, have, err)
	}
	return n, nil
}
