package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/store"
)

// tornStore writes transactions that all change the same three objects, and
// returns the files as they are before anything is moved out of the log: what a machine
// that loses power has on disk, if the log's end is cut anywhere.
func tornStore(t *testing.T, transactions int) (database, log []byte) {
	t.Helper()
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	for i := 1; i <= transactions; i++ {
		value := []byte(strconv.Itoa(i))
		var tx store.Tx
		for _, id := range []string{"a", "b", "c"} {
			tx.Put = append(tx.Put, store.Put{Key: store.Key{Kind: "job", ID: id}, Value: value})
		}
		if _, err := store.Commit(t.Context(), s, tx); err != nil {
			t.Fatal(err)
		}
	}
	database, err = os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	log, err = os.ReadFile(filepath.Join(dir, FileName+"-wal"))
	if err != nil {
		t.Fatal(err)
	}
	return database, written(log)
}

// checkWhole opens a directory and checks that it holds the state after some
// transaction, and the feed up to that one. The first commit of all makes the tables; without
// it the store is empty.
func checkWhole(ctx *rapid.T, dir string) (newest store.Revision, err error) {
	s, err := Open(dir, Options{})
	if err != nil {
		return 0, err
	}
	defer func() {
		if errClose := s.Close(); err == nil {
			err = errClose
		}
	}()
	if newest, err = s.Revision(ctx.Context()); err != nil {
		return 0, err
	}
	n := 0
	for o, err := range s.List(ctx.Context(), "job", store.Options{}) {
		if err != nil {
			return 0, err
		}
		if o.Revision != newest || string(o.Value) != strconv.FormatInt(int64(newest), 10) {
			return 0, fmt.Errorf("at revision %d, %s has revision %d and value %s", newest, o.ID, o.Revision, o.Value)
		}
		n++
	}
	changes, err := s.Changes(ctx.Context(), 0, 1<<20)
	if err != nil {
		return 0, err
	}
	if want := min(int(newest), 1) * 3; n != want || len(changes) != 3*int(newest) {
		return 0, fmt.Errorf("at revision %d, there are %d objects and %d changes", newest, n, len(changes))
	}
	return newest, nil
}

// TestTornLogHoldsWholeTransactions cuts the log or damages it: what is left is
// always the state after some transaction, the later the more of the log is left.
func TestTornLogHoldsWholeTransactions(t *testing.T) {
	const transactions = 60
	database, log := tornStore(t, transactions)
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		cut := rapid.IntRange(0, len(log)).Draw(rt, "cut")
		torn := append([]byte(nil), log[:cut]...)
		damaged := cut > 0 && rapid.Bool().Draw(rt, "damaged")
		if damaged {
			torn[rapid.IntRange(0, cut-1).Draw(rt, "byte")] ^= 0x40
		}
		place := filepath.Join(dir, strconv.Itoa(cut))
		defer func() { _ = os.RemoveAll(place) }()
		if err := writeFiles(place, database, torn); err != nil {
			rt.Fatal(err)
		}
		newest, err := checkWhole(rt, place)
		if err != nil {
			rt.Fatal(err)
		}
		if cut == len(log) && !damaged && newest != transactions {
			rt.Fatalf("the whole log leads to revision %d", newest)
		}
	})
}

func writeFiles(dir string, database, log []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), database, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, FileName+"-wal"), log, 0o600)
}
