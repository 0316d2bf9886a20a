package groupcommit

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// Leases is a writer's copy of the lease table. A batch works on a clone,
// which takes its place when the batch is committed.
type Leases struct {
	byName map[string]store.Lease
	// newest is the highest epoch ever given.
	newest  int64
	now     func() time.Time
	changed bool
}

// NewLeases returns the table with the leases that are stored, also those that
// were released; now is the clock by which leases expire.
func NewLeases(stored []store.Lease, now func() time.Time) *Leases {
	t := &Leases{byName: map[string]store.Lease{}, now: now}
	for _, l := range stored {
		t.byName[l.Name] = l
		t.newest = max(t.newest, l.Epoch)
	}
	return t
}

// Changed returns the leases to write: all of them if an operation changed one.
func (t *Leases) Changed() []store.Lease {
	if !t.changed {
		return nil
	}
	return slices.Collect(maps.Values(t.byName))
}

// Newest returns the highest epoch ever given.
func (t *Leases) Newest() int64 { return t.newest }

// leaseOp decides one operation on the table.
type leaseOp func(*Leases) (store.Lease, error)

func (t *Leases) clone() *Leases {
	return &Leases{byName: maps.Clone(t.byName), newest: t.newest, now: t.now}
}

func (t *Leases) set(l store.Lease) { t.byName[l.Name], t.changed = l, true }

// inForce tells whether transactions of this epoch are accepted.
func (t *Leases) inForce(epoch int64) bool {
	for _, l := range t.byName {
		if l.Epoch == epoch {
			return l.Holder != ""
		}
	}
	return false
}

// AcquireLease implements store.Store.
func (f *Front) AcquireLease(ctx context.Context, name, holder string, ttl time.Duration) (store.Lease, error) {
	l, _, err := f.acquire(ctx, name, holder, ttl)
	return l, err
}

// acquire is AcquireLease that also tells from whom the lease was taken: empty if it was
// free.
func (f *Front) acquire(ctx context.Context, name, holder string, ttl time.Duration) (l store.Lease, from string, err error) {
	if name == "" || holder == "" || ttl <= 0 {
		return l, "", fault.New(fault.Invalid, "a lease needs a name, a holder and a time to live, got %q, %q and %v", name, holder, ttl)
	}
	var had string
	l, err = f.lease(ctx, func(t *Leases) (store.Lease, error) {
		now, have := t.now(), t.byName[name]
		had = have.Holder
		if have.Holder != "" && have.Holder != holder && now.Before(have.Expires) {
			return have, fault.New(fault.Busy, "%s holds the lease %q for another %v", have.Holder, name, have.Expires.Sub(now).Round(time.Millisecond))
		}
		t.newest++
		l := store.Lease{Name: name, Holder: holder, Epoch: t.newest, Expires: expiry(now, ttl)}
		t.set(l)
		return l, nil
	})
	if err == nil && had != holder { // else the operation may still be decided
		from = had
	}
	return l, from, err
}

// SeizeLease takes a lease from the holder of an epoch although it has not
// expired, for a holder that is known to be gone, or that wants to hand it over;
// fault.Busy if another has it by now.
func (f *Front) SeizeLease(ctx context.Context, name, holder string, ttl time.Duration, epoch int64) (store.Lease, error) {
	return f.lease(ctx, func(t *Leases) (store.Lease, error) {
		have := t.byName[name]
		if have.Epoch != epoch {
			return have, fault.New(fault.Busy, "%s has taken the lease %q with epoch %d", have.Holder, name, have.Epoch)
		}
		t.newest++
		l := store.Lease{Name: name, Holder: holder, Epoch: t.newest, Expires: expiry(t.now(), ttl)}
		t.set(l)
		return l, nil
	})
}

// HandLease implements store.Shared.
func (f *Front) HandLease(ctx context.Context, lease store.Lease, to string, ttl time.Duration) error {
	_, err := f.lease(ctx, func(t *Leases) (store.Lease, error) {
		if have := t.byName[lease.Name]; have.Epoch != lease.Epoch || have.Holder == "" {
			return have, fenced(lease.Epoch)
		}
		t.newest++
		l := store.Lease{Name: lease.Name, Holder: to, Epoch: t.newest, Expires: expiry(t.now(), ttl)}
		t.set(l)
		return l, nil
	})
	return err
}

// RenewLease implements store.Store.
func (f *Front) RenewLease(ctx context.Context, lease store.Lease, ttl time.Duration) (store.Lease, error) {
	return f.lease(ctx, func(t *Leases) (store.Lease, error) {
		have := t.byName[lease.Name]
		if have.Epoch != lease.Epoch || have.Holder == "" {
			return have, fenced(lease.Epoch)
		}
		have.Expires = expiry(t.now(), ttl)
		t.set(have)
		return have, nil
	})
}

// ReleaseLease implements store.Store.
func (f *Front) ReleaseLease(ctx context.Context, lease store.Lease) error {
	_, err := f.lease(ctx, func(t *Leases) (store.Lease, error) {
		have := t.byName[lease.Name]
		if have.Epoch != lease.Epoch || have.Holder == "" {
			return have, nil
		}
		free := store.Lease{Name: have.Name, Epoch: have.Epoch, Expires: time.UnixMicro(0)}
		t.set(free)
		return free, nil
	})
	return err
}

// expiry is in whole microseconds, as the table keeps it.
func expiry(now time.Time, ttl time.Duration) time.Time {
	return time.UnixMicro(now.Add(ttl).UnixMicro())
}

func fenced(epoch int64) error {
	return fault.New(fault.Fenced, "the lease with epoch %d is no longer in force", epoch)
}
