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

// vacancyTime is how often a waiter looks at the lease by itself.
const vacancyTime = time.Second

// AwaitLease implements store.Shared.
func (s *Store) AwaitLease(ctx context.Context, name, holder string, ttl, linger time.Duration) (store.Lease, error) {
	return s.AwaitSeat(ctx, seats{s}, name, holder, ttl, linger, s.settle)
}

// seats tells of the seats of holders; it implements groupcommit.Seats.
type seats struct{ *Store }

// Seated looks for the lock of the seat.
func (s seats) Seated(ctx context.Context, epoch int64) (seated bool, err error) {
	if err = s.points.QueryRow(ctx, seatTaken, epoch).Scan(&seated); err != nil {
		err = s.readError(ctx, err)
	}
	return seated, err
}

// Lease implements store.Shared.
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

// Vacancy waits for the seat of the holder, on a connection of its own.
func (s seats) Vacancy(ctx context.Context, name string) (epoch int64, err error) {
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
