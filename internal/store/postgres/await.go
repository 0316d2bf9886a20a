package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// Whoever acquires a lease also takes an advisory lock of the server, on the
// connection that writes: its seat. The server gives the seat up when that
// connection ends, so those who wait for it hear of a holder's death at once. The
// seat is a hint alone: a holder may lose it and live, and be fenced by its epoch
// when another has taken the lease for that reason. Who hands a lease over sits on it
// in place of the one it is meant for, so that those who wait leave it alone; when that
// one has taken it, under an epoch of its own, they are told to wait for its seat.

// seatLock takes the seat of an epoch without waiting, seatWait waits for it, seatFree
// gives it up; seatTaken tells whether anybody has it.
const (
	seatOf   = "hashtext('drover ' || current_schema()), ($1::bigint % 2147483647)::int"
	seatLock = "SELECT pg_try_advisory_lock(" + seatOf + ")"
	seatWait = "SELECT pg_advisory_lock(" + seatOf + ")"
	seatFree = "SELECT pg_advisory_unlock(" + seatOf + ")"

	seatTaken = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2 " +
		"AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) " +
		"AND classid = hashtext('drover ' || current_schema())::oid AND objid = ($1::bigint % 2147483647)::oid)"
)

const (
	// settleTime is how long at the most a waiter whose own connection broke leaves the
	// holder alone, for the holder's is likely to have broken too and comes back with its
	// next renewal.
	settleTime = 10 * time.Second
	// vacancyTime is how often a waiter looks at the lease by itself.
	vacancyTime = time.Second
)

// AwaitLease waits until a lease can be acquired, and acquires it: when it is
// released or has expired, or as soon as the connection of its holder ends.
// One that was taken from a holder who did not give it up is returned after a
// time to linger, in which that holder may still think that it has it.
func (s *Store) AwaitLease(ctx context.Context, name, holder string, ttl, linger time.Duration) (store.Lease, error) {
	for {
		was, _ := s.Lease(ctx, name) // none, and one that cannot be read, count as taken from somebody
		l, err := s.AcquireLease(ctx, name, holder, ttl)
		if err == nil && was.Holder != holder && (was.Holder != "" || l.Epoch != was.Epoch+1) {
			pause(ctx, linger)
		}
		if err == nil || ctx.Err() != nil || !fault.Is(err, fault.Busy) && !fault.Is(err, fault.Unavailable) {
			return l, err
		}
		epoch, err := s.vacancy(ctx, name)
		switch {
		case ctx.Err() != nil:
			return store.Lease{}, context.Cause(ctx)
		case err != nil:
			s.leaveAlone(ctx, name, holder)
		case epoch != 0:
			l, err := s.SeizeLease(ctx, name, holder, ttl, epoch)
			if err == nil {
				pause(ctx, linger)
			}
			if err == nil || !fault.Is(err, fault.Busy) {
				return l, err
			}
		}
	}
}

// leaveAlone waits for settleTime, or until the lease is free, has expired, was
// handed over to this very holder, or its holder is seen in its seat.
func (s *Store) leaveAlone(ctx context.Context, name, holder string) {
	limit, cancel := context.WithTimeout(ctx, s.settle)
	defer cancel()
	for limit.Err() == nil {
		pause(limit, retryPause)
		l, err := s.Lease(limit, name)
		var seated bool
		if err == nil {
			err = s.points.QueryRow(limit, seatTaken, l.Epoch).Scan(&seated)
		}
		if err == nil && (seated || l.Holder == "" || l.Holder == holder || time.Now().After(l.Expires)) {
			return
		}
	}
}

// Lease returns a lease as it is: without a holder when it was released;
// fault.NotFound if nobody ever had it.
func (s *Store) Lease(ctx context.Context, name string) (store.Lease, error) {
	rows, err := s.points.Query(ctx, "SELECT name, holder, epoch, expires FROM lease WHERE name = $1", name)
	if err != nil {
		return store.Lease{}, s.readError(ctx, err)
	}
	l, err := pgx.CollectExactlyOneRow(rows, scanLease)
	if errors.Is(err, pgx.ErrNoRows) {
		return l, fault.New(fault.NotFound, "nobody ever had the lease %q", name)
	}
	if err != nil {
		return l, s.readError(ctx, err)
	}
	return l, nil
}

// vacancy waits until the lease is worth another look: its holder's seat is
// free although it did not give the lease up, and then it returns the holder's
// epoch; or it was released, may have expired or was acquired anew, and then it returns zero. An error says that nothing was learned.
func (s *Store) vacancy(ctx context.Context, name string) (epoch int64, err error) {
	acquired := s.listener.acquired.wait()
	l, err := s.Lease(ctx, name)
	if err != nil || l.Holder == "" {
		return 0, err
	}
	conn, err := pgx.ConnectConfig(ctx, s.writer.cfg)
	if err != nil {
		return 0, unreachable(err)
	}
	defer func() { _ = conn.Close(context.Background()) }() // with it goes the seat
	limit, cancel := context.WithTimeout(ctx, vacancyTime+time.Until(l.Expires))
	defer cancel()
	go func() {
		select {
		case <-acquired: // the seat may be one that nobody leaves
			cancel()
		case <-limit.Done():
		}
	}()
	_, err = conn.Exec(limit, seatWait, l.Epoch)
	switch {
	case err == nil:
		if now, err := s.Lease(ctx, name); err != nil || now.Holder == "" {
			return 0, err // it was released, and can be acquired
		}
		return l.Epoch, nil
	case limit.Err() != nil:
		return 0, nil // the time of the lease is over, or its epoch
	}
	return 0, unreachable(err)
}

// sit takes the seats of the leases that this writer holds, on a connection
// that is new. What it does not get is missing from its speed alone.
func (w *writer) sit(ctx context.Context, conn *pgx.Conn) error {
	var all []error
	for epoch := range w.seats {
		_, err := conn.Exec(ctx, seatLock, epoch)
		all = append(all, err)
	}
	return errors.Join(all...)
}
