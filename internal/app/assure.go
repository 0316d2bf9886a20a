package app

import (
	"context"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// A leader that was paused, or cut off from the store, does not know by itself
// that another leads by now; what it commits is refused, but its picture would
// still be shown. So a controller of a group answers from its picture only while it
// has heard from the store, not longer ago than assurance, that it holds the
// lease; and whoever took the lease from a holder that did not give it up
// waits as long before it begins (store.Shared). Both measure with clocks
// that nobody sets.
const (
	assurance   = 300 * time.Millisecond
	assureEvery = assurance / 3
	// assureLimit bounds how long a request waits for the store to say so.
	assureLimit = 10 * time.Second
)

// assured returns when this controller is certain that it leads. When it learns
// that it does not, the term ends; fault.Unavailable when the store does not
// tell in time.
func (c *controller) assured(ctx context.Context) error {
	if c.group == nil || c.isSure() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, assureLimit)
	defer cancel()
	defer context.AfterFunc(c.term, cancel)()
	for {
		err := c.hear(ctx)
		switch {
		case err == nil && c.isSure():
			return nil
		case fault.Is(err, fault.Fenced):
			c.endTerm(err)
			return errNotLeading
		case c.term.Err() != nil:
			return errNotLeading
		case ctx.Err() != nil:
			return fault.New(fault.Unavailable, "the store does not tell whether this controller still leads: %w", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(assureEvery):
		}
	}
}

// isSure tells whether it is not too long ago that the store said who leads.
func (c *controller) isSure() bool { return time.Now().Before(c.sureUntil()) }

// sureUntil is when that will be too long ago; the beginning of the term if it said
// nothing yet.
func (c *controller) sureUntil() time.Time {
	heard := c.heard.Load()
	if heard == 0 {
		return c.begun
	}
	return c.begun.Add(time.Duration(heard) + assurance)
}

// hear asks the store who leads; fault.Fenced when it is another.
func (c *controller) hear(ctx context.Context) error {
	asked := time.Since(c.begun)
	l, err := c.shared.Lease(ctx, leaseName)
	if err != nil {
		return err
	}
	if l.Epoch != c.lease.Epoch || l.Holder == "" {
		return fault.New(fault.Fenced, "another controller leads with epoch %d", l.Epoch)
	}
	for before := c.heard.Load(); before < int64(asked) && !c.heard.CompareAndSwap(before, int64(asked)); {
		before = c.heard.Load()
	}
	return nil
}

// keepAssured hears who leads until ctx ends, and returns an error when it is
// another.
func (c *controller) keepAssured(ctx context.Context) error {
	tick := time.NewTicker(assureEvery)
	defer tick.Stop()
	for {
		if err := c.hear(ctx); fault.Is(err, fault.Fenced) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
