package sqlite

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/groupcommit"
)

func TestRowsOfRecentChangesReadBack(t *testing.T) {
	text := rapid.StringMatching(`[ -~é世]{1,8}`)
	rapid.Check(t, func(t *rapid.T) {
		want := commit{first: store.Revision(rapid.Int64Range(1, 1<<40).Draw(t, "first"))}
		want.last = want.first
		for range rapid.IntRange(0, 6).Draw(t, "writes") {
			want.last += store.Revision(rapid.Int64Range(0, 3).Draw(t, "step"))
			w := groupcommit.Write{Key: store.Key{Kind: store.Kind(text.Draw(t, "kind")), ID: text.Draw(t, "id")}, Revision: want.last}
			if w.Deleted = rapid.Bool().Draw(t, "deleted"); !w.Deleted {
				w.At = rapid.Int64().Draw(t, "at")
				w.Value = rapid.SliceOfN(rapid.Byte(), 1, 100).Draw(t, "value")
			}
			want.writes = append(want.writes, w)
			want.changes = append(want.changes, store.Change{Revision: w.Revision, Key: w.Key, Deleted: w.Deleted})
		}
		data, ok := want.encode(make([]byte, 0, 16))
		if !ok || len(data) != slotSize {
			t.Fatalf("a row of %d bytes", len(data))
		}
		if got, ok := decodeCommit(data); !ok || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v (%v), want %+v", got, ok, want)
		}
		bit := rapid.IntRange(0, slotSize*8-1).Draw(t, "bit")
		data[bit/8] ^= 1 << (bit % 8)
		if _, ok := decodeCommit(data); ok {
			t.Fatalf("a row with bit %d flipped is read", bit)
		}
	})
}

// TestTransactionsShareRows: a commit of many transactions is split between them, and
// nothing of it is lost or changes its place.
func TestTransactionsShareRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		front := groupcommit.NewFront(7, nil)
		for range rapid.IntRange(1, 40).Draw(t, "transactions") {
			var tx store.Tx
			for i := range rapid.IntRange(0, 3).Draw(t, "objects") {
				key := store.Key{Kind: "job", ID: strconv.Itoa(3*rapid.IntRange(0, 9).Draw(t, "id") + i)}
				if rapid.IntRange(0, 4).Draw(t, "delete") == 0 {
					tx.Delete = append(tx.Delete, key)
					continue
				}
				tx.Put = append(tx.Put, store.Put{Key: key, Value: make([]byte, rapid.IntRange(1, 1200).Draw(t, "size"))})
			}
			front.Enqueue(tx, nil)
		}
		requests, _ := front.Take(nil)
		b := groupcommit.Decide(requests, 7, groupcommit.NewLeases(nil, time.Now), func(store.Key) (store.Revision, error) { return 0, nil })
		writes, changes := []groupcommit.Write{}, []store.Change{}
		next := b.First
		for _, c := range split(b) {
			if _, ok := c.encode(nil); !ok || c.first != next || c.last < c.first {
				t.Fatalf("a row for revisions %d to %d after %d (%v)", c.first, c.last, next-1, ok)
			}
			next = c.last + 1
			for _, w := range c.writes {
				if w.Revision < c.first || w.Revision > c.last {
					t.Fatalf("revision %d in the row of %d to %d", w.Revision, c.first, c.last)
				}
			}
			writes, changes = append(writes, c.writes...), append(changes, c.changes...)
		}
		slices.SortStableFunc(b.Writes, byRevision)
		if next != b.Revision+1 || !reflect.DeepEqual(writes, b.Writes) || !reflect.DeepEqual(changes, b.Changes()) {
			t.Fatalf("the rows do not come to the batch")
		}
	})
}

// FuzzRowsOfRecentChanges: whatever a row holds, with a sum that fits, it is read or refused.
func FuzzRowsOfRecentChanges(f *testing.F) {
	c := commit{first: 5, last: 6, writes: []groupcommit.Write{{Key: store.Key{Kind: "job", ID: "1"}, Revision: 5, At: -1, Value: []byte("1")}}}
	row, _ := c.encode(nil)
	f.Add(row[4:60])
	f.Add([]byte("\x01\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		d := decoder{rest: data}
		d.commit()
	})
}

// TestEmptyRowOfRecentChangesIsRefused: zeros are not a row, though their sum might have been.
func TestEmptyRowOfRecentChangesIsRefused(t *testing.T) {
	if _, ok := decodeCommit(make([]byte, slotSize)); ok {
		t.Error("a row of zeros is read")
	}
}

// reopenedAfter ends a store, changes its database by a script, and opens it again.
func reopenedAfter(t *testing.T, s *Store, dir, script string) error {
	t.Helper()
	if err := errors.Join(s.writer.held.end(), s.writer.conn.script(script)); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	again, err := Open(dir, Options{})
	if err == nil {
		mustClose(t, again)
	}
	return err
}

func TestLostRecentChangesAreNoticed(t *testing.T) {
	for script, lost := range map[string]bool{
		"SELECT 1":                                                   false,
		"DELETE FROM recent WHERE slot = 0":                          true,
		"DELETE FROM recent WHERE slot = 3":                          true,
		"DELETE FROM recent WHERE slot = 9":                          true, // the newest, which the mark knows
		"DELETE FROM recent":                                         true,
		"DROP TABLE recent":                                          true,
		"UPDATE recent SET data = zeroblob(4000) WHERE slot = 3":     true,
		"UPDATE recent SET data = 'x' WHERE slot = 3":                true,
		"UPDATE recent SET data = CAST(data AS TEXT) WHERE slot = 3": true,
		"UPDATE recent SET data = (SELECT data FROM recent WHERE slot = 2) WHERE slot = 3": true,
	} {
		dir := t.TempDir()
		s := mustOpen(t, dir, Options{})
		commitJobs(t, s, 10)
		if err := reopenedAfter(t, s, dir, script); (err != nil) != lost || err != nil && !strings.Contains(script, "DROP") && !fault.Is(err, fault.WrongState) {
			t.Errorf("%s: opened with %v", script, err)
		}
	}
}

// TestRecentChangesOutliveTheProcess: what was committed and not taken in by the
// tables is there after a start, and is taken in later, whatever the number of commits.
func TestRecentChangesOutliveTheProcess(t *testing.T) {
	dir := t.TempDir()
	total := 0
	for _, commits := range []int{1, slots - 1, slots, slots + 1, 2*slots + 7, 0, 2} {
		s := mustOpen(t, dir, Options{})
		for i := range commits {
			tx := job(strconv.Itoa(total), strconv.Itoa(i))
			tx.Put = append(tx.Put, store.Put{Key: store.Key{Kind: "note", ID: "last"}, At: int64(total) + 1, Value: []byte(strconv.Itoa(total))})
			if total > 0 && total%3 == 0 {
				tx.Delete = []store.Key{{Kind: "job", ID: strconv.Itoa(total - 1)}}
			}
			if _, err := store.Commit(t.Context(), s, tx); err != nil {
				t.Fatal(err)
			}
			total++
		}
		mustClose(t, s)
		s = mustOpen(t, dir, Options{})
		if got := newestOf(t, s); got != store.Revision(total) {
			t.Fatalf("revision %d of %d", got, total)
		}
		jobs := 0
		for o, err := range s.List(t.Context(), "job", store.Options{}) {
			if err != nil {
				t.Fatal(err)
			}
			id, _ := strconv.Atoi(o.ID)
			if id%3 == 2 && id != total-1 {
				t.Fatalf("job %s was deleted and is there", o.ID)
			}
			jobs++
		}
		if want := total - (total-1)/3; jobs != want {
			t.Fatalf("%d jobs after %d commits, want %d", jobs, total, want)
		}
		if o, err := s.Get(t.Context(), store.Key{Kind: "note", ID: "last"}); err != nil || string(o.Value) != strconv.Itoa(total-1) || o.At != int64(total) {
			t.Fatalf("the last note is %s of %d, %v", o.Value, o.At, err)
		}
		mustClose(t, s)
		if found, err := Check(t.Context(), dir, []string{dir}); err != nil || len(found.Problems) != 0 {
			t.Fatalf("after %d commits the check finds %v, %v", total, found, err)
		}
	}
}

// TestReadersNeverGoBack has readers look at two objects that change together, in small
// commits and large ones, so that the tables take in what is recent while they read. Each
// reads one moment, and none that is older than what it has read in any other way.
func TestReadersNeverGoBack(t *testing.T) {
	s := mustOpen(t, t.TempDir(), Options{})
	const commits, readers = 1500, 4
	keys := []store.Key{{Kind: "job", ID: "1"}, {Kind: "job", ID: "2"}}
	var acknowledged atomic.Int64
	write := func(i int) error {
		var tx store.Tx
		for _, key := range keys {
			value := fmt.Sprintf("%q", strconv.Itoa(i)+" "+strings.Repeat("x", i%7/6*slotSize))
			tx.Put = append(tx.Put, store.Put{Key: key, Value: []byte(value)})
		}
		rev, err := store.Commit(t.Context(), s, tx)
		acknowledged.Store(int64(rev))
		return err
	}
	if err := write(0); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var all sync.WaitGroup
	for n := range readers {
		all.Go(func() {
			seen := store.Revision(0)
			for i := n; ; i++ {
				select {
				case <-ended:
					return
				default:
				}
				before := store.Revision(acknowledged.Load())
				rev, err := readAs(t.Context(), s, keys, i)
				if err != nil || rev < seen || rev < before {
					t.Errorf("read %d of reader %d: revision %d after %d was read and %d acknowledged, %v", i, n, rev, seen, before, err)
					return
				}
				seen = rev
			}
		})
	}
	for i := 1; i < commits; i++ {
		if err := write(i); err != nil {
			t.Error(err)
		}
	}
	close(ended)
	all.Wait()
}

// readAs reads the objects in one of several ways, and returns the revision that it saw.
func readAs(ctx context.Context, s *Store, keys []store.Key, way int) (store.Revision, error) {
	switch way % 5 {
	case 0:
		o, err := s.Get(ctx, keys[way%2])
		return o.Revision, err
	case 1:
		return s.Revision(ctx)
	case 2:
		rev, err := s.Revision(ctx)
		if err != nil {
			return 0, err
		}
		changes, err := s.Changes(ctx, rev-1, 1000)
		if err == nil && len(changes) == 0 {
			err = fmt.Errorf("no changes after %d", rev-1)
		}
		if err != nil {
			return 0, err
		}
		newest := changes[len(changes)-1]
		var n store.Revision
		if _, err := fmt.Sscanf(string(newest.Value), `"%d `, &n); err != nil || n+1 < newest.Revision {
			return 0, errors.Join(fmt.Errorf("a change of revision %d has the value of %d", newest.Revision, n+1), err)
		}
		return newest.Revision, nil
	default:
		var revs []store.Revision
		for o, err := range s.List(ctx, keys[0].Kind, store.Options{Desc: way%2 == 0}) {
			if err != nil {
				return 0, err
			}
			revs = append(revs, o.Revision)
		}
		if len(revs) != len(keys) || revs[0] != revs[1] {
			return 0, fmt.Errorf("a listing shows revisions %d", revs)
		}
		return revs[0], nil
	}
}
