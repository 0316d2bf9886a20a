package sqlite

import (
	"context"
	"database/sql/driver"
	"maps"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// leases is the writer's copy of the lease table. A batch works on a clone,
// which takes its place when the batch is committed.
type leases struct {
	byName map[string]store.Lease
	// newest is the highest epoch ever given.
	newest  int64
	now     func() time.Time
	changed bool
}

// leaseOp decides one operation on the table.
type leaseOp func(*leases) (store.Lease, error)

func (t *leases) clone() *leases {
	return &leases{byName: maps.Clone(t.byName), newest: t.newest, now: t.now}
}

func (t *leases) set(l store.Lease) { t.byName[l.Name], t.changed = l, true }

// inForce tells whether transactions of this epoch are accepted.
func (t *leases) inForce(epoch int64) bool {
	for _, l := range t.byName {
		if l.Epoch == epoch {
			return l.Holder != ""
		}
	}
	return false
}

// AcquireLease implements store.Store.
func (s *Store) AcquireLease(ctx context.Context, name, holder string, ttl time.Duration) (store.Lease, error) {
	if name == "" || holder == "" || ttl <= 0 {
		return store.Lease{}, fault.New(fault.Invalid, "a lease needs a name, a holder and a time to live, got %q, %q and %v", name, holder, ttl)
	}
	return s.lease(ctx, func(t *leases) (store.Lease, error) {
		now := t.now()
		if have := t.byName[name]; have.Holder != "" && have.Holder != holder && now.Before(have.Expires) {
			return have, fault.New(fault.Busy, "%s holds the lease %q for another %v", have.Holder, name, have.Expires.Sub(now).Round(time.Millisecond))
		}
		t.newest++
		l := store.Lease{Name: name, Holder: holder, Epoch: t.newest, Expires: expiry(now, ttl)}
		t.set(l)
		return l, nil
	})
}

// RenewLease implements store.Store.
func (s *Store) RenewLease(ctx context.Context, lease store.Lease, ttl time.Duration) (store.Lease, error) {
	return s.lease(ctx, func(t *leases) (store.Lease, error) {
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
func (s *Store) ReleaseLease(ctx context.Context, lease store.Lease) error {
	_, err := s.lease(ctx, func(t *leases) (store.Lease, error) {
		if have := t.byName[lease.Name]; have.Epoch == lease.Epoch && have.Holder != "" {
			t.set(store.Lease{Name: have.Name, Epoch: have.Epoch, Expires: time.UnixMicro(0)})
		}
		return store.Lease{}, nil
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

// loadLeases reads the table.
func loadLeases(c *conn, now func() time.Time) (*leases, error) {
	t := &leases{byName: map[string]store.Lease{}, now: now}
	s, err := c.prepare("SELECT name, holder, epoch, expires FROM lease")
	if err != nil {
		return nil, err
	}
	err = s.rows(func(row []driver.Value) {
		l := store.Lease{Name: row[0].(string), Holder: row[1].(string), Epoch: row[2].(int64), Expires: time.UnixMicro(row[3].(int64))}
		t.byName[l.Name] = l
		t.newest = max(t.newest, l.Epoch)
	})
	if err != nil {
		return nil, err
	}
	return t, s.raw.Close()
}

// save writes the table if an operation changed it.
func (t *leases) save(upsert *stmt) error {
	if !t.changed {
		return nil
	}
	for _, l := range t.byName {
		if err := upsert.exec(l.Name, l.Holder, l.Epoch, l.Expires.UnixMicro()); err != nil {
			return err
		}
	}
	return nil
}
