package app

import (
	"context"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

const (
	leaseName  = "leader"
	leaseTime  = 15 * time.Second
	leaseRenew = 5 * time.Second
)

// keepLease renews the leader's lease until ctx ends, and returns an error when
// the lease is lost. A renewal that merely fails is tried again: as long as
// nobody else took the lease, its epoch stays in force.
func (c *controller) keepLease(ctx context.Context) error {
	tick := time.NewTicker(leaseRenew)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		_, err := c.store.RenewLease(ctx, c.lease, leaseTime)
		switch {
		case err == nil || ctx.Err() != nil:
		case fault.Is(err, fault.Fenced):
			return fault.New(fault.Fenced, "another controller has taken the lead: %w", err)
		default:
			c.log.Warn("the leader's lease could not be renewed", "error", err)
		}
	}
}

// The housekeeping that a cluster's watcher does elsewhere: jobs that ended
// long ago move to the archive.
const (
	archiveEvery = 5 * time.Minute
	archiveAge   = 6 * time.Hour
	archiveLimit = time.Minute
)

// keepTidy archives old jobs until ctx ends.
func (c *controller) keepTidy(ctx context.Context) error {
	tick := time.NewTicker(archiveEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if _, _, err := c.queue.AutoArchive(ctx, archiveAge, archiveLimit); err != nil && ctx.Err() == nil {
			c.log.Warn("old jobs could not be archived", "error", err)
		}
	}
}
