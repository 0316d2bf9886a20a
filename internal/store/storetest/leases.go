package storetest

import (
	"strconv"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

var leases = []testCase{
	{"acquire, renew, release", leaseLife},
	{"an expired lease can be taken over and is fenced", leaseTakeover},
	{"an expired lease nobody took is still in force", leaseExpiredAlone},
	{"the same holder fences its earlier life", leaseSameHolder},
	{"epochs grow over names, releases and reopens", leaseEpochs},
	{"fencing follows the order of calls", leaseOrder},
	{"of many candidates one wins", leaseRace},
	{"bad leases", leaseBad},
}

const ttl = 10 * time.Second

func (f *fixture) acquire(name, holder string) store.Lease {
	f.Helper()
	l, err := f.AcquireLease(f.ctx, name, holder, ttl)
	if err != nil {
		f.Fatalf("%s acquires %s: %v", holder, name, err)
	}
	if l.Name != name || l.Holder != holder || l.Epoch < 1 || !l.Expires.Equal(f.clock.Now().Add(ttl)) {
		f.Fatalf("%s acquires %s: got %+v", holder, name, l)
	}
	return l
}

func under(epoch int64) store.Tx {
	return store.Tx{Epoch: epoch, Put: []store.Put{put(key("job", "1"), strconv.FormatInt(epoch, 10))}}
}

func leaseLife(f *fixture) {
	f.refused(under(1), fault.Fenced)
	a := f.acquire("leader", "a")
	f.commit(under(a.Epoch))
	f.commit(under(0))
	f.refused(under(a.Epoch+1), fault.Fenced)
	f.refused(under(-1), fault.Fenced)
	if _, err := f.AcquireLease(f.ctx, "leader", "b", ttl); !fault.Is(err, fault.Busy) {
		f.Fatalf("b acquires: %v", err)
	}
	f.clock.advance(ttl / 2)
	renewed, err := f.RenewLease(f.ctx, a, ttl)
	if err != nil || renewed.Epoch != a.Epoch || !renewed.Expires.Equal(f.clock.Now().Add(ttl)) {
		f.Fatalf("renew: %+v %v", renewed, err)
	}
	f.clock.advance(ttl - time.Microsecond)
	if _, err := f.AcquireLease(f.ctx, "leader", "b", ttl); !fault.Is(err, fault.Busy) {
		f.Fatalf("b acquires a renewed lease: %v", err)
	}
	for range 2 {
		if err := f.ReleaseLease(f.ctx, a); err != nil {
			f.Fatalf("release: %v", err)
		}
	}
	f.refused(under(a.Epoch), fault.Fenced)
	if _, err := f.RenewLease(f.ctx, a, ttl); !fault.Is(err, fault.Fenced) {
		f.Fatalf("renew a released lease: %v", err)
	}
	b := f.acquire("leader", "b")
	f.commit(under(b.Epoch))
}

func leaseTakeover(f *fixture) {
	a := f.acquire("leader", "a")
	f.clock.advance(ttl)
	b := f.acquire("leader", "b")
	f.refused(under(a.Epoch), fault.Fenced)
	rev := f.commit(under(b.Epoch))
	f.wantObject(key("job", "1"), strconv.FormatInt(b.Epoch, 10), rev)
	if _, err := f.RenewLease(f.ctx, a, ttl); !fault.Is(err, fault.Fenced) {
		f.Fatalf("renew a lost lease: %v", err)
	}
	if err := f.ReleaseLease(f.ctx, a); err != nil {
		f.Fatalf("release a lost lease: %v", err)
	}
	f.commit(under(b.Epoch))
}

func leaseExpiredAlone(f *fixture) {
	a := f.acquire("leader", "a")
	f.clock.advance(100 * ttl)
	f.commit(under(a.Epoch))
	if _, err := f.RenewLease(f.ctx, a, ttl); err != nil {
		f.Fatalf("renew: %v", err)
	}
	if _, err := f.AcquireLease(f.ctx, "leader", "b", ttl); !fault.Is(err, fault.Busy) {
		f.Fatalf("b acquires: %v", err)
	}
}

func leaseSameHolder(f *fixture) {
	first := f.acquire("leader", "a")
	second := f.acquire("leader", "a")
	if second.Epoch <= first.Epoch {
		f.Errorf("epoch %d comes after %d", second.Epoch, first.Epoch)
	}
	f.refused(under(first.Epoch), fault.Fenced)
	f.commit(under(second.Epoch))
}

func leaseEpochs(f *fixture) {
	last := int64(0)
	for i, name := range []string{"leader", "outbox", "leader", "leader", "outbox"} {
		l := f.acquire(name, "holder"+strconv.Itoa(i))
		if l.Epoch <= last {
			f.Errorf("epoch %d comes after %d", l.Epoch, last)
		}
		last = l.Epoch
		f.commit(under(l.Epoch))
		if i%2 == 0 {
			f.reopen()
			f.commit(under(l.Epoch))
		}
		if err := f.ReleaseLease(f.ctx, l); err != nil {
			f.Fatal(err)
		}
		f.reopen()
		f.refused(under(l.Epoch), fault.Fenced)
	}
	a, b := f.acquire("leader", "a"), f.acquire("outbox", "b")
	f.commit(under(a.Epoch))
	f.commit(under(b.Epoch))
}

// leaseOrder takes a lease over between transactions that are enqueued without
// waiting: exactly those before it commit.
func leaseOrder(f *fixture) {
	a := f.acquire("leader", "a")
	f.clock.advance(2 * ttl)
	const n = 200
	codes := make([]fault.Code, 2*n)
	var all sync.WaitGroup
	all.Add(2 * n)
	enqueue := func(i int) {
		f.Enqueue(under(a.Epoch), func(_ store.Revision, err error) {
			codes[i] = fault.CodeOf(err)
			all.Done()
		})
	}
	for i := range n {
		enqueue(i)
	}
	f.acquire("leader", "b")
	for i := n; i < 2*n; i++ {
		enqueue(i)
	}
	all.Wait()
	for i, code := range codes {
		if want := map[bool]fault.Code{true: "", false: fault.Fenced}[i < n]; code != want {
			f.Fatalf("transaction %d: code %q, want %q", i, code, want)
		}
	}
}

func leaseRace(f *fixture) {
	const candidates = 16
	won := make([]bool, candidates)
	var all sync.WaitGroup
	for i := range candidates {
		all.Go(func() {
			_, err := f.AcquireLease(f.ctx, "leader", "candidate"+strconv.Itoa(i), ttl)
			if won[i] = err == nil; err != nil && !fault.Is(err, fault.Busy) {
				f.Error(err)
			}
		})
	}
	all.Wait()
	n := 0
	for _, w := range won {
		if w {
			n++
		}
	}
	if n != 1 {
		f.Errorf("%d candidates won", n)
	}
}

func leaseBad(f *fixture) {
	for _, tc := range []struct {
		name, holder string
		ttl          time.Duration
	}{{"", "a", ttl}, {"leader", "", ttl}, {"leader", "a", 0}, {"leader", "a", -ttl}} {
		if _, err := f.AcquireLease(f.ctx, tc.name, tc.holder, tc.ttl); !fault.Is(err, fault.Invalid) {
			f.Errorf("%+v: %v", tc, err)
		}
	}
	a := f.acquire("leader", "a")
	if _, err := f.RenewLease(f.ctx, store.Lease{Name: "other", Epoch: a.Epoch}, ttl); !fault.Is(err, fault.Fenced) {
		f.Errorf("renew under another name: %v", err)
	}
}
