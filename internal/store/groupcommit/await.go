package groupcommit

import (
	"context"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// Seats is how the adapter of a shared store knows of the holders of leases, sooner
// than by the end of a lease: each has a seat, which it loses with its connection.
type Seats interface {
	// Lease is that of store.Shared.
	Lease(ctx context.Context, name string) (store.Lease, error)

	// Vacancy waits until the lease is worth another look: its holder's seat is free
	// although it did not give the lease up, and then it returns the holder's epoch; or it
	// was released, may have expired or was acquired anew, and then it returns zero. An error
	// says that nothing was learned.
	Vacancy(ctx context.Context, name string) (epoch int64, err error)

	// Seated tells whether the holder of an epoch is seen in its seat.
	Seated(ctx context.Context, epoch int64) (bool, error)
}

const (
	// SettleTime is how long a store has to have worked, after an outage that a waiter has
	// met, before that takes a lease from a holder: the holder is likely to have met the
	// same outage, and is given the time to sit down again and to renew.
	SettleTime = 10 * time.Second
	// lookPause is how often a waiter looks meanwhile.
	lookPause = 200 * time.Millisecond
)

// AwaitSeat implements store.Shared's AwaitLease for an adapter; settle is SettleTime, but
// in tests.
func (f *Front) AwaitSeat(ctx context.Context, seats Seats, name, holder string, ttl, linger, settle time.Duration) (store.Lease, error) {
	// An attempt whose outcome is not known may have taken the lease: then it is this
	// holder's, and from whom it was taken is not seen any more.
	doubt := false
	for {
		l, from, err := f.acquire(ctx, name, holder, ttl)
		if err == nil && (doubt || from != "") {
			Pause(ctx, linger)
		}
		if fault.Is(err, fault.Busy) && ctx.Err() == nil {
			l, err = f.awaitVacancy(ctx, seats, name, holder, ttl, linger)
		}
		switch {
		case err == nil:
			return l, nil
		case ctx.Err() != nil:
			return store.Lease{}, context.Cause(ctx)
		case fault.Is(err, fault.Unavailable), fault.Is(err, fault.Exhausted):
			doubt = true
			f.outlast(ctx, seats, name, holder, settle)
		case !fault.Is(err, fault.Busy):
			return l, err
		}
	}
}

// awaitVacancy waits until the lease of another is worth another look, and seizes it if that
// one is gone; fault.Busy if it is to be acquired in the usual way.
func (f *Front) awaitVacancy(ctx context.Context, seats Seats, name, holder string, ttl, linger time.Duration) (store.Lease, error) {
	epoch, err := seats.Vacancy(ctx, name)
	if err == nil && epoch == 0 {
		err = fault.New(fault.Busy, "the lease %q is worth another look", name)
	}
	if err != nil {
		return store.Lease{}, err
	}
	l, err := f.SeizeLease(ctx, name, holder, ttl, epoch)
	if err == nil {
		Pause(ctx, linger)
	}
	return l, err
}

// outlast waits until the store has worked for as long as it takes to settle; or the
// lease is free, was handed over to this very holder, or its holder has come through.
func (f *Front) outlast(ctx context.Context, seats Seats, name, holder string, settle time.Duration) {
	for working := time.Now(); ctx.Err() == nil && time.Since(working) < settle; {
		Pause(ctx, lookPause)
		l, err := seats.Lease(ctx, name)
		seated := false
		if err == nil {
			seated, err = seats.Seated(ctx, l.Epoch)
		}
		if err == nil { // nobody's lease: the answer tells only whether the store takes changes
			_, err = f.RenewLease(ctx, store.Lease{Name: name, Epoch: -1}, time.Second)
		}
		switch {
		case fault.Is(err, fault.NotFound):
			return
		case !fault.Is(err, fault.Fenced):
			working = time.Now()
		case l.Holder == "", l.Holder == holder, seated && time.Now().Before(l.Expires):
			return
		}
	}
}

// Pause waits for a time, or until ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
