package app

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

const (
	leaseName  = "leader"
	leaseTime  = 15 * time.Second
	leaseRenew = 5 * time.Second
	// leaseWait is how long a start waits for the lease of another to expire. One
	// that is not renewed expires within a minute, whatever the clocks say.
	leaseWait = 75 * time.Second
	leaseTry  = time.Second
)

// acquire takes the leader's lease for a controller that is alone.
func (m *member) acquire(ctx context.Context, o Options) (store.Lease, error) {
	host, err := hostName()
	if err != nil {
		return store.Lease{}, err
	}
	if m.shared == nil {
		// Two controllers with an embedded store are kept apart by the lock of the
		// store, so the machine is the holder, by whichever path the data is named, and
		// takes the lease over from an earlier life of itself.
		return acquireLease(ctx, m.store, host, o.Log)
	}
	limit, cancel := context.WithTimeout(ctx, leaseWait)
	defer cancel()
	// No two lives of controllers have the same name: machines may be clones.
	lease, err := m.shared.AwaitLease(limit, leaseName, host+" ("+newUUID()+")", leaseTime, 0)
	if err != nil && limit.Err() != nil && ctx.Err() == nil {
		return lease, fault.New(fault.Busy, "another controller leads, and renews its lease").
			WithHint("give each controller a peer address, so that they stand by for each other")
	}
	return lease, err
}

func hostName() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fault.New(fault.Environment, "cannot tell this machine's name: %w", err)
	}
	return host, nil
}

// acquireLease takes the leader's lease. That of another holder is waited for:
// Busy when it is renewed on and on.
func acquireLease(ctx context.Context, s store.Store, holder string, log *slog.Logger) (store.Lease, error) {
	limit, cancel := context.WithTimeout(ctx, leaseWait)
	defer cancel()
	for told := false; ; told = true {
		lease, err := s.AcquireLease(ctx, leaseName, holder, leaseTime)
		if err == nil || !fault.Is(err, fault.Busy) {
			return lease, err
		}
		if !told {
			log.Warn("another controller leads; waiting for its lease to expire", "error", err)
		}
		select {
		case <-limit.Done():
			if ctx.Err() != nil {
				return store.Lease{}, context.Cause(ctx)
			}
			return store.Lease{}, err
		case <-time.After(leaseTry):
		}
	}
}

// keepLease renews the leader's lease until ctx ends, and returns an error when
// the lease is lost. A renewal that merely fails is tried again: as long as
// nobody else took the lease, its epoch stays in force.
func (c *controller) keepLease(ctx context.Context) error {
	return regularly(ctx, leaseRenew, func() error {
		_, err := c.store.RenewLease(ctx, c.lease, leaseTime)
		if ctx.Err() == nil && fault.Is(err, fault.Fenced) {
			return fault.New(fault.Fenced, "another controller has taken the lead: %w", err)
		}
		if ctx.Err() == nil && err != nil {
			c.log.Warn("the leader's lease could not be renewed", "error", err)
		}
		return nil
	})
}
