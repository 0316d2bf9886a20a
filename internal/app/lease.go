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
	return regularly(ctx, leaseRenew, func() error { return c.renew(ctx) })
}

// renew renews the leader's lease. Its error is that the lease is lost.
func (c *controller) renew(ctx context.Context) error {
	asked := time.Now()
	_, err := c.store.RenewLease(ctx, c.lease, leaseTime)
	if err == nil {
		c.extendLead(asked.Add(leaseTime))
	}
	if ctx.Err() == nil && fault.Is(err, fault.Fenced) {
		return fault.New(fault.Fenced, "another controller has taken the lead: %w", err)
	}
	if ctx.Err() == nil && err != nil {
		c.log.Warn("the leader's lease could not be renewed", "error", err)
	}
	return nil
}

// extendLead says that the lease is this controller's until a time at least. That of an embedded store cannot become another's while it is
// open.
func (c *controller) extendLead(until time.Time) {
	if c.shared != nil {
		c.lead.Extend(until)
	}
}

// assume begins the term: what nobody could join may run on nodes until the lease that was renewed just now ends, by a
// clock that nobody sets. How long ago it was granted cannot be told.
func (c *controller) assume(ctx context.Context) error {
	if c.shared == nil {
		return nil
	}
	c.extendLead(c.begun) // until it was renewed once
	return c.renew(ctx)
}

// keepOn renews the lease while the controller closes, for as long as what runs takes to end. The result ends that.
func (c *controller) keepOn() (stop func()) {
	if c.shared == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := c.keepLease(ctx); err != nil {
			c.lead.Lose(err)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
