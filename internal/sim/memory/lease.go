package memory

import (
	"context"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/groupcommit"
)

// Lease implements store.Shared.
func (s *Store) Lease(ctx context.Context, name string) (store.Lease, error) {
	done, err := s.look(ctx)
	if err != nil {
		return store.Lease{}, err
	}
	defer done()
	l, known := s.db.byName[name]
	if !known {
		return l, fault.New(fault.NotFound, "nobody ever had the lease %q", name)
	}
	return l, nil
}

// Clock implements store.Shared.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	done, err := s.look(ctx)
	if err != nil {
		return time.Time{}, err
	}
	defer done()
	return s.db.opts.Now(), nil
}

// AwaitLease implements store.Shared.
func (s *Store) AwaitLease(ctx context.Context, name, holder string, ttl, linger time.Duration) (store.Lease, error) {
	return s.AwaitSeat(ctx, seats{s}, name, holder, ttl, linger, groupcommit.SettleTime)
}

// seats tells of the seats of holders; it implements groupcommit.Seats.
type seats struct{ *Store }

// vacancyTime is how long after its end a lease is looked at again.
const vacancyTime = time.Second

// Vacancy waits for the seat of the holder.
func (s seats) Vacancy(ctx context.Context, name string) (epoch int64, err error) {
	l, err := s.Lease(ctx, name)
	if err != nil || l.Holder == "" {
		return 0, err
	}
	limit, cancel := context.WithTimeout(ctx, vacancyTime+l.Expires.Sub(s.db.opts.Now()))
	defer cancel()
	for {
		now, taken, moved := s.db.seat(name)
		switch {
		case now.Holder == "" || now.Epoch != l.Epoch || limit.Err() != nil:
			return 0, s.cross(ctx, Read)
		case !taken:
			return l.Epoch, s.cross(ctx, Read)
		}
		select {
		case <-moved:
		case <-limit.Done():
		}
	}
}

// seat is a lease, whether its holder is seen in its seat, and what is closed when that
// may have changed.
func (db *Database) seat(name string) (l store.Lease, taken bool, moved <-chan struct{}) {
	db.mu.Lock()
	defer db.mu.Unlock()
	l = db.byName[name]
	return l, db.seats[l.Epoch] != nil, db.moved
}

// Seated looks at the seat of an epoch.
func (s seats) Seated(ctx context.Context, epoch int64) (bool, error) {
	done, err := s.look(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	return s.db.seats[epoch] != nil, nil
}
