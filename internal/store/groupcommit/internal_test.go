package groupcommit

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
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

// TestARaiseIsCommittedAlone: what may fail it fails nobody else.
func TestARaiseIsCommittedAlone(t *testing.T) {
	f := NewFront(0, nil)
	for _, key := range []store.Key{{Kind: "job", ID: "1"}, {Kind: "job", ID: "2"}, store.FormatKey, {Kind: "job", ID: "3"}} {
		f.Enqueue(store.Tx{Put: []store.Put{{Key: key, Value: format.Encode(format.Newest)}}}, nil)
	}
	f.CloseQueue()
	var sizes, formats []int
	for {
		batch, more := f.Take(nil)
		if !more {
			break
		}
		b := Decide(batch, 0, NewLeases(nil, nil), func(store.Key) (store.Revision, error) { return 0, nil })
		sizes, formats = append(sizes, len(batch)), append(formats, b.Format)
	}
	if !slices.Equal(sizes, []int{2, 1, 1}) || !slices.Equal(formats, []int{0, format.Newest, 0}) {
		t.Errorf("batches of %v raise to %v", sizes, formats)
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

// TestTheEndOfTheFeedNeverGoesBack: another's commit may be heard of before one's own, and
// smaller, one is answered. A follower who has read both waits then.
func TestTheEndOfTheFeedNeverGoesBack(t *testing.T) {
	f := newFeed(9)
	f.advance(11)
	f.publish(Span{first: 10, last: 10, changes: []store.Change{{Revision: 10}}})
	if p, err := f.after(11); err != nil || p.wait == nil {
		t.Errorf("after 11: %+v, %v; want to wait", p, err)
	}
	if p, err := f.after(9); err != nil || !p.stored {
		t.Errorf("after 9: %+v, %v; want both read from the database", p, err)
	}
	f.publish(Span{first: 12, last: 12, changes: []store.Change{{Revision: 12}}})
	if p, err := f.after(11); err != nil || p.last != 12 || len(p.changes) != 1 {
		t.Errorf("after 11: %+v, %v; want what came then", p, err)
	}
}

// forgetful is a front beneath which a lease is taken, and the answer lost, at the first
// attempt: the holder is another then.
type forgetful struct {
	f    *Front
	held store.Lease
}

func (s *forgetful) Lease(context.Context, string) (store.Lease, error) { return s.held, nil }

func (s *forgetful) Vacancy(context.Context, string) (int64, error) {
	return 0, fault.New(fault.Unavailable, "no connection")
}

func (s *forgetful) Seated(context.Context, int64) (bool, error) { return false, nil }

// serve answers the first request with a loss, after it took effect, and the second as it is.
func (s *forgetful) serve(now time.Time) {
	leases := NewLeases([]store.Lease{s.held}, func() time.Time { return now })
	for n := 0; ; n++ {
		requests, more := s.f.Take(nil)
		if !more {
			return
		}
		leases = Decide(requests, 0, leases, nil).Leases
		for _, l := range leases.Changed() {
			s.held = l
		}
		if n == 0 {
			Refuse(requests, fault.New(fault.Unavailable, "the connection was lost"))
		}
		requests[0].Answer()
	}
}

// TestALeaseTakenUnawaresIsLingeredOn: the attempt that took the lease from another was
// not answered, so the next one finds it with the holder itself. The other may still
// think that it has it.
func TestALeaseTakenUnawaresIsLingeredOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const linger = time.Second
		now := time.Now()
		s := &forgetful{f: NewFront(0, nil), held: store.Lease{Name: "leader", Holder: "a", Epoch: 1, Expires: now}}
		go s.serve(now)
		l, err := s.f.AwaitSeat(t.Context(), s, "leader", "b", time.Minute, linger, SettleTime)
		if err != nil || l.Holder != "b" || l.Epoch != 3 {
			t.Errorf("the lease is %+v, %v", l, err)
		}
		if took := time.Since(now); took < linger {
			t.Errorf("it was returned after %v", took)
		}
		s.f.CloseQueue()
	})
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

// outage is a store that refuses changes for a time, and a lease in it.
type outage struct {
	f      *Front
	lease  store.Lease
	seated bool
	over   time.Time // until then changes are refused
	err    error
}

func (o *outage) Lease(context.Context, string) (store.Lease, error) { return o.lease, o.err }
func (o *outage) Vacancy(context.Context, string) (int64, error)     { return 0, o.err }
func (o *outage) Seated(context.Context, int64) (bool, error)        { return o.seated, o.err }

func (o *outage) serve() {
	for {
		requests, more := o.f.Take(nil)
		if !more {
			return
		}
		Decide(requests, 0, NewLeases([]store.Lease{o.lease}, time.Now), nil)
		if time.Now().Before(o.over) {
			Refuse(requests, fault.New(fault.Exhausted, "no room"))
		}
		for _, r := range requests {
			r.Answer()
		}
	}
}

// TestAHolderIsGivenTimeAfterAnOutage: whoever waits for a lease leaves it alone until the
// store has taken changes for the time to settle, however long it took none.
func TestAHolderIsGivenTimeAfterAnOutage(t *testing.T) {
	const settle, lasts = 10 * time.Second, 25 * time.Second
	for name, tc := range map[string]struct {
		holder  string
		expires time.Duration
		seated  bool
		want    time.Duration
	}{
		"it has expired":                    {"a", -time.Hour, false, lasts + settle},
		"it has expired, its holder sits":   {"a", -time.Hour, true, lasts + settle},
		"it is in force, its holder stands": {"a", time.Hour, false, lasts + settle},
		"it is in force, its holder sits":   {"a", time.Hour, true, lasts},
		"it is free":                        {"", 0, false, lasts},
		"it is meant for the one who waits": {"b", time.Hour, false, lasts},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				o := &outage{f: NewFront(0, nil), lease: store.Lease{Name: "leader", Holder: tc.holder, Epoch: 1, Expires: begun.Add(tc.expires)},
					seated: tc.seated, over: begun.Add(lasts)}
				go o.serve()
				o.f.outlast(t.Context(), o, "leader", "b", settle)
				if took := time.Since(begun); took < tc.want-2*lookPause || took > tc.want+2*lookPause {
					t.Errorf("it was left alone for %v, want %v", took, tc.want)
				}
				o.f.CloseQueue()
			})
		})
	}
}
