package storetest

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/readlease"
	"github.com/drover-project/drover/internal/store"
)

// OpenShared opens a handle of the store that a name stands for, or fails the test. The
// same name is the same store, also while other handles of it are open. The store uses
// its own clock, and is not asked to keep anything.
type OpenShared func(tb testing.TB, name string) store.Shared

// RunShared runs the suite of store.Shared: what several handles of one store promise.
// Each by itself passes Run.
func RunShared(t *testing.T, open OpenShared) {
	for _, c := range []struct {
		name string
		run  func(*sharing)
	}{
		{"what one commits all see", commitsAreSeen},
		{"followers hear of what changes nothing", followed},
		{"a lease is shown as it is", leaseShown},
		{"the clock is that of leases", clockOfLeases},
		{"a lease that is released is had without lingering", awaitReleased},
		{"a lease whose holder goes is had before it expires", awaitGone},
		{"an expired lease is had although its holder is there", awaitExpired},
		{"a lease is handed to one that is named", awaitHanded},
		{"waiting for a lease ends with its context", awaitEnds},
		{"nothing is committed while a read lease runs", lent},
		{"no read lease is of what is not answered yet", lentBehindAnswers},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			name := t.TempDir()
			c.run(&sharing{T: t, ctx: ctx, open: func() store.Shared { return open(t, name) }})
		})
	}
}

// sharing is a test of several handles of one store.
type sharing struct {
	*testing.T

	ctx  context.Context
	open func() store.Shared
}

// long is a time to live that no test outlives: what comes earlier does not come because
// a lease has expired. It is also a time to linger that no test waits for.
const long = time.Hour

// handle opens a handle that is closed with the test.
func (f *sharing) handle() store.Shared {
	f.Helper()
	s := f.open()
	f.Cleanup(func() {
		if err := s.Close(); err != nil {
			f.Errorf("close: %v", err)
		}
	})
	return s
}

func (f *sharing) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *sharing) wantCode(what string, err error, code fault.Code) {
	f.Helper()
	if !fault.Is(err, code) {
		f.Errorf("%s: %v, want %s", what, err, code)
	}
}

// await has the lease acquired by who waits for it.
func (f *sharing) await(s store.Shared, holder string, ttl, linger time.Duration) store.Lease {
	f.Helper()
	l, err := s.AwaitLease(f.ctx, "leader", holder, ttl, linger)
	if err != nil || l.Name != "leader" || l.Holder != holder {
		f.Fatalf("%s waits for the lease and has %+v, %v", holder, l, err)
	}
	return l
}

// waits begins to wait for the lease and returns where it will come.
func (f *sharing) waits(s store.Shared, holder string, linger time.Duration) <-chan store.Lease {
	got := make(chan store.Lease, 1)
	go func() {
		if l, err := s.AwaitLease(f.ctx, "leader", holder, long, linger); err == nil {
			got <- l
		}
	}()
	return got
}

// comes receives a lease that is to come.
func (f *sharing) comes(got <-chan store.Lease) store.Lease {
	f.Helper()
	select {
	case l := <-got:
		return l
	case <-f.ctx.Done():
		f.Fatal("the lease does not come")
		return store.Lease{}
	}
}

func jobTx(id int) store.Tx { return puts(put(key("job", strconv.Itoa(id)), strconv.Itoa(id))) }

func commitsAreSeen(f *sharing) {
	a, b := f.handle(), f.handle()
	lease, err := a.AcquireLease(f.ctx, "leader", "a", long)
	f.must(err)
	_, err = b.AcquireLease(f.ctx, "leader", "b", long)
	f.wantCode("two hold the lease", err, fault.Busy)
	const jobs = 50
	go func() {
		for i := range jobs {
			tx := jobTx(i)
			tx.Epoch = lease.Epoch
			a.Enqueue(tx, nil)
		}
	}()
	heard := 0
	for changes, err := range b.Watch(f.ctx, 0) {
		f.must(err)
		for _, c := range changes {
			if c.ID != strconv.Itoa(heard) || string(c.Value) != c.ID {
				f.Fatalf("change %d is of job %s, %q", heard, c.ID, c.Value)
			}
			heard++
		}
		if heard == jobs {
			break
		}
	}
	f.must(a.ReleaseLease(f.ctx, lease))
	_, err = b.AcquireLease(f.ctx, "leader", "b", long)
	f.must(err)
	late := jobTx(jobs)
	late.Epoch = lease.Epoch
	_, err = store.Commit(f.ctx, a, late)
	f.wantCode("the former leader commits", err, fault.Fenced)
	_, err = store.Commit(f.ctx, b, jobTx(jobs))
	f.must(err)
	_, err = store.Commit(f.ctx, a, store.Tx{Expect: []store.Expect{{Key: key("job", strconv.Itoa(jobs))}}})
	f.wantCode("a does not see what b wrote", err, fault.Conflict)
}

func followed(f *sharing) {
	a, b := f.handle(), f.handle()
	var told []store.Progress
	last := store.Revision(0)
	for _, tx := range []store.Tx{jobTx(1), {}, jobTx(2), {}} {
		rev, err := store.Commit(f.ctx, a, tx)
		f.must(err)
		last = rev
		for p, err := range b.Follow(f.ctx, max(0, rev-1)) {
			f.must(err)
			told = append(told, p)
			if p.Revision >= rev {
				break
			}
		}
	}
	seen := 0
	for _, p := range told {
		seen += len(p.Changes)
	}
	if end := told[len(told)-1]; end.Revision != last || len(end.Changes) != 0 || seen != 2 {
		f.Errorf("a follower was told %+v, the newest revision is %d", told, last)
	}
}

func leaseShown(f *sharing) {
	a, b := f.handle(), f.handle()
	_, err := b.Lease(f.ctx, "leader")
	f.wantCode("a lease that nobody had", err, fault.NotFound)
	held := f.await(a, "a", long, long) // never held, so taken from nobody
	if got, err := b.Lease(f.ctx, "leader"); err != nil || got.Holder != "a" || got.Epoch != held.Epoch || !got.Expires.Equal(held.Expires) {
		f.Errorf("it is shown as %+v, %v and is %+v", got, err, held)
	}
	f.must(a.ReleaseLease(f.ctx, held))
	if got, err := b.Lease(f.ctx, "leader"); err != nil || got.Holder != "" || got.Epoch != held.Epoch {
		f.Errorf("once released it is shown as %+v, %v", got, err)
	}
}

func clockOfLeases(f *sharing) {
	a, b := f.handle(), f.handle()
	before, err := b.Clock(f.ctx)
	f.must(err)
	held := f.await(a, "a", long, long)
	after, err := b.Clock(f.ctx)
	f.must(err)
	if held.Expires.Before(before.Add(long)) || held.Expires.After(after.Add(long+time.Second)) { // which may be rounded up
		f.Errorf("a lease of %v from between %v and %v on ends at %v", long, before, after, held.Expires)
	}
}

func awaitReleased(f *sharing) {
	a, b := f.handle(), f.handle()
	held := f.await(a, "a", long, long)
	got := f.waits(b, "b", long)
	f.must(a.ReleaseLease(f.ctx, held))
	if l := f.comes(got); l.Holder != "b" || l.Epoch <= held.Epoch {
		f.Errorf("the lease is now %+v", l)
	}
}

func awaitGone(f *sharing) {
	a, b, c := f.open(), f.handle(), f.handle()
	held := f.await(a, "a", long, 0)
	const linger = 100 * time.Millisecond
	got, begun := f.waits(b, "b", linger), time.Now()
	f.must(a.Close()) // with the lease
	l := f.comes(got)
	if l.Holder != "b" || l.Epoch <= held.Epoch {
		f.Errorf("the lease is now %+v", l)
	}
	if took := time.Since(begun); took < linger {
		f.Errorf("it was taken from one that did not give it up, and returned after %v", took)
	}
	tx := jobTx(1)
	tx.Epoch = held.Epoch
	_, err := store.Commit(f.ctx, c, tx)
	f.wantCode("the former holder commits", err, fault.Fenced)
	_, err = c.RenewLease(f.ctx, held, long)
	f.wantCode("the former holder renews", err, fault.Fenced)
}

func awaitExpired(f *sharing) {
	a, b := f.handle(), f.handle()
	const short, linger = 50 * time.Millisecond, 100 * time.Millisecond
	begun := time.Now()
	held := f.await(a, "a", short, 0)
	l := f.await(b, "b", long, linger)
	if took := time.Since(begun); l.Epoch <= held.Epoch || took < short+linger {
		f.Errorf("it was returned after %v as %+v", took, l)
	}
	_, err := a.RenewLease(f.ctx, held, long)
	f.wantCode("the former holder renews", err, fault.Fenced)
}

func awaitHanded(f *sharing) {
	a, b, c := f.handle(), f.handle(), f.open()
	held := f.await(a, "a", long, 0)
	stranger := f.waits(b, "b", 0)
	f.must(a.HandLease(f.ctx, held, "c", long))
	_, err := b.AcquireLease(f.ctx, "leader", "b", long)
	f.wantCode("somebody else acquires it", err, fault.Busy)
	f.wantCode("it is handed over twice", a.HandLease(f.ctx, held, "a", long), fault.Fenced)
	taken := f.await(c, "c", long, long) // it was given up in its favour
	if taken.Epoch <= held.Epoch {
		f.Errorf("who was named has %+v after %+v", taken, held)
	}
	select {
	case l := <-stranger:
		f.Errorf("somebody else got %+v", l)
	default:
	}
	// When the new holder dies the stranger notices, although it began to wait for another's end.
	f.must(c.Close())
	if l := f.comes(stranger); l.Holder != "b" || l.Epoch <= taken.Epoch {
		f.Errorf("after the death of who was named the lease is %+v", l)
	}
}

func awaitEnds(f *sharing) {
	a, b := f.handle(), f.handle()
	held := f.await(a, "a", long, 0)
	ctx, cancel := context.WithCancel(f.ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := b.AwaitLease(ctx, "leader", "b", long, 0)
		ended <- err
	}()
	cancel()
	if err := <-ended; err == nil {
		f.Error("who gave up got the lease")
	}
	if l, err := a.Lease(f.ctx, "leader"); err != nil || l.Epoch != held.Epoch || l.Holder != "a" {
		f.Errorf("the lease is now %+v, %v", l, err)
	}
}

// lentBehindAnswers asks for a read lease while the answer to a transaction is given. Who leads shows a transaction when it is
// answered, and not before: a lease of its revision would let another show more than the leader does.
func lentBehindAnswers(f *sharing) {
	s := f.handle()
	lessor := readlease.NewLessor(func() time.Time { return time.Now().Add(long) }, func() {})
	s.Lend(lessor)
	_, err := store.Commit(f.ctx, s, jobTx(1))
	f.must(err)
	granted := make(chan readlease.Answer, 1)
	s.Enqueue(jobTx(2), func(store.Revision, error) {
		// Who says that it holds one is answered at once while a batch is on its way.
		granted <- lessor.Answer(f.ctx, readlease.Request{Holder: "a", Serial: 1, Holds: true})
	})
	if a := <-granted; a.For > 0 {
		f.Errorf("while it is answered a read lease is granted: %+v", a)
	}
}

// lent has a transaction wait for the holder of a read lease who is not heard of any
// more.
func lent(f *sharing) {
	s := f.handle()
	lessor := readlease.NewLessor(func() time.Time { return time.Now().Add(long) }, func() {})
	s.Lend(lessor)
	revision, err := store.Commit(f.ctx, s, jobTx(1))
	f.must(err)
	lessee, sent := readlease.NewLessee("a"), time.Now()
	lessee.Take(lessor.Answer(f.ctx, lessee.Request(sent)), sent)
	if !lessee.Covers(int64(revision)) {
		f.Fatal("no lease was granted")
	}
	done := make(chan error, 1)
	s.Enqueue(jobTx(2), func(_ store.Revision, err error) { done <- err })
	for {
		now, err := s.Revision(f.ctx)
		f.must(err)
		if !lessee.Covers(int64(revision)) {
			break // it has ended
		}
		if now != revision {
			f.Fatalf("the store is at %d, and the lease of %d runs", now, revision)
		}
	}
	f.must(<-done)
	s.Lend(nil)
	_, err = store.Commit(f.ctx, s, jobTx(3))
	f.must(err)
}
