package groupcommit

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

func TestPlaceKeepsTheOrderOfIDs(t *testing.T) {
	id := rapid.OneOf(rapid.StringMatching(`[0-9]{1,22}`), rapid.StringMatching(`[ -~é世]{1,5}`))
	rapid.Check(t, func(t *rapid.T) {
		a, b := id.Draw(t, "a"), id.Draw(t, "b")
		if PlaceID(Place(a)) != a {
			t.Fatalf("place of %q leads back to %q", a, PlaceID(Place(a)))
		}
		if got, want := strings.Compare(Place(a), Place(b)), store.CompareIDs(a, b); got != want {
			t.Fatalf("%q and %q: places compare as %d, ids as %d", a, b, got, want)
		}
	})
}

func TestEntriesReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := store.Revision(rapid.Int64Range(1, 1<<40).Draw(t, "first"))
		var want []store.Change
		var text []byte
		rev := first
		for range rapid.IntRange(0, 20).Draw(t, "n") {
			rev += store.Revision(rapid.Int64Range(0, 3).Draw(t, "step"))
			c := store.Change{Revision: rev, Deleted: rapid.Bool().Draw(t, "deleted"), Key: store.Key{
				Kind: store.Kind(rapid.StringMatching(`[a-zé -]{1,8}`).Draw(t, "kind")),
				ID:   rapid.StringMatching(`[ -~世]{1,8}`).Draw(t, "id"),
			}}
			want = append(want, c)
			text = appendEntry(text, first, &c)
		}
		after := first - 1 + store.Revision(rapid.Int64Range(0, 10).Draw(t, "after"))
		want = slices.DeleteFunc(want, func(c store.Change) bool { return c.Revision <= after })
		got, err := ParseEntries(nil, string(text), first, after)
		if err != nil || !slices.EqualFunc(got, want, func(a, b store.Change) bool {
			return a.Revision == b.Revision && a.Key == b.Key && a.Deleted == b.Deleted
		}) {
			t.Fatalf("%v: got %v, want %v", err, got, want)
		}
	})
}

func TestEntriesThatCannotBeRead(t *testing.T) {
	for _, text := range []string{"x\tjob\t1\tP\n", "1\tjob\n", "\n"} {
		if got, err := ParseEntries(nil, text, 1, 0); !fault.Is(err, fault.Internal) {
			t.Errorf("%q: %v and %v", text, got, err)
		}
	}
}

func TestQueueBatches(t *testing.T) {
	q := newQueue()
	for i := range MaxBatch + 3 {
		size := 1
		if i == 1 {
			size = MaxBatchBytes + 1
		}
		q.add(&Request{size: size})
	}
	q.close()
	if q.add(&Request{}) {
		t.Error("a closed queue takes requests")
	}
	var sizes []int
	for {
		batch, more := q.take(nil)
		if !more {
			break
		}
		sizes = append(sizes, len(batch))
	}
	if want := []int{1, 1, MaxBatch, 1}; !slices.Equal(sizes, want) {
		t.Errorf("batches of %v, want %v", sizes, want)
	}
}

// TestEndOfTheFeedInMemoryIsBounded publishes commits that are many, or large.
// Who lags behind what is kept is sent to the database.
func TestEndOfTheFeedInMemoryIsBounded(t *testing.T) {
	for _, tc := range []struct{ commits, size, kept int }{
		{maxSpans + 10, 1, maxSpans},
		{10, maxSpanBytes / 4, 4},
		{3, maxSpanBytes + 1, 0},
	} {
		f := newFeed(0)
		value := make([]byte, tc.size)
		for i := range tc.commits {
			rev := store.Revision(i + 1)
			f.publish(Span{first: rev, last: rev, changes: []store.Change{{Revision: rev, Value: value}}})
		}
		if len(f.spans) != tc.kept || f.bytes != tc.kept*tc.size {
			t.Errorf("of %d commits of %d bytes, %d with %d bytes are kept, want %d", tc.commits, tc.size, len(f.spans), f.bytes, tc.kept)
		}
		for rev := range store.Revision(tc.commits) {
			p, err := f.after(rev)
			if want := int(rev) < tc.commits-tc.kept; err != nil || p.stored != want {
				t.Errorf("after %d of %d: from the database %v (%v), want %v", rev, tc.commits, p.stored, err, want)
			}
		}
	}
}

// TestLargeBatchesWaitForTheNext has as many requests come as the batch before
// had, one by one: they are one batch. After a small batch nothing is waited for.
func TestLargeBatchesWaitForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		for range largeBatch {
			q.add(&Request{})
		}
		batch, _ := q.take(nil)
		<-time.After(time.Millisecond) // it is committed
		go func() {
			for range largeBatch {
				<-time.After(time.Microsecond)
				q.add(&Request{})
			}
		}()
		if next, _ := q.take(nil); len(batch) != largeBatch || len(next) != largeBatch {
			t.Errorf("batches of %d and %d, want %d each", len(batch), len(next), largeBatch)
		}
		q.add(&Request{})
		before := time.Now()
		if next, _ := q.take(nil); len(next) != 1 || time.Since(before) > longestWait {
			t.Errorf("a batch of %d after %v", len(next), time.Since(before))
		}
		q.add(&Request{})
		before = time.Now()
		if q.take(nil); time.Since(before) != 0 {
			t.Errorf("waited %v after a small batch", time.Since(before))
		}
	})
}
