package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/rollout"
)

// controllerItself is who does what nobody asked for.
var controllerItself = queue.By{Account: reason.Account{Surface: "controller", Name: "drover"}}

const (
	// archiveEvery is how often it is looked for jobs to archive.
	archiveEvery = 5 * time.Minute
	// archiveLimit is how long that may take each time.
	archiveLimit = time.Minute
)

// keepTidy archives jobs that ended long ago, until ctx ends. Elsewhere a cluster's
// watcher does that, too; ours is in watch.go.
func (c *controller) keepTidy(ctx context.Context, after time.Duration) error {
	return regularly(ctx, archiveEvery, func() error {
		if _, _, err := c.queue.AutoArchive(ctx, after, archiveLimit, controllerItself); err != nil && ctx.Err() == nil {
			c.log.Warn("old jobs could not be archived", "error", err)
		}
		return nil
	})
}

const (
	// pruneEvery is how often it is looked for jobs that the archive need not keep.
	pruneEvery = 15 * time.Minute
	// pruneLimit is how long they may be removed for each time.
	pruneLimit = 5 * time.Minute
)

// keepWithin removes the jobs that the archive need not keep, until ctx ends.
func keepWithin(ctx context.Context, keep Keep, log *slog.Logger, prune func(context.Context, queue.Retention, time.Duration, queue.By) (queue.Pruning, error)) error {
	if !keep.ofJobs() {
		return nil
	}
	return regularly(ctx, pruneEvery, func() error {
		p, err := prune(ctx, keep.from(time.Now()), pruneLimit, controllerItself)
		switch {
		case err != nil && ctx.Err() == nil && !fault.Is(err, fault.Busy):
			log.Warn("the archive could not be pruned", "error", err)
		case p.Jobs > 0:
			log.Info("jobs of the archive were removed", "jobs", p.Jobs, "ended_from", time.UnixMicro(int64(p.First)), "ended_until", time.UnixMicro(int64(p.Last)), "bytes", p.Bytes)
		}
		return nil
	})
}

// keepEvents removes events that are older than they need be, until ctx ends. Only one prunes at a time, and who comes second gives up: events have their turn
// between those of jobs, or the same ones would give up each time.
func keepEvents(ctx context.Context, keep Keep, log *slog.Logger, prune func(context.Context, time.Time, time.Duration, *queue.By) (queue.EventPruning, error)) error {
	return regularlyFrom(ctx, pruneEvery/2, pruneEvery, func() error {
		var before time.Time
		if keep.Events > 0 {
			before = time.Now().Add(-keep.Events)
		}
		p, err := prune(ctx, before, pruneLimit, nil)
		switch {
		case err != nil && ctx.Err() == nil && !fault.Is(err, fault.Busy):
			log.Warn("old events could not be removed", "error", err)
		case p.Events > 0:
			log.Info("old events were removed", "events", p.Events, "from", p.First.UTC(), "until", p.Last.UTC(), "bytes", p.Bytes)
		}
		return nil
	})
}

// keepDeployments removes deployments that are older than they need be, until ctx ends.
func keepDeployments(ctx context.Context, keep Keep, log *slog.Logger, prune func(context.Context, time.Time, time.Duration, bool, rollout.By) (*rollout.Removal, error)) error {
	if keep.Deployments == 0 {
		return nil
	}
	return regularly(ctx, pruneEvery, func() error {
		r, err := prune(ctx, time.Now().Add(-keep.Deployments), pruneLimit, false, controllerItself)
		switch {
		case err != nil && ctx.Err() == nil:
			log.Warn("old deployments could not be removed", "error", err)
		case err == nil && len(r.Deployments) > 0:
			log.Info("old deployments were removed", "deployments", len(r.Deployments), "first", r.Deployments[0].ID, "last", r.Deployments[len(r.Deployments)-1].ID)
		}
		return nil
	})
}

// regularly does something at each interval, until ctx ends, which is no error, or
// it returns one.
func regularly(ctx context.Context, every time.Duration, do func() error) error {
	return regularlyFrom(ctx, every, every, do)
}

// regularlyFrom is regularly with another time until the first.
func regularlyFrom(ctx context.Context, first, every time.Duration, do func() error) error {
	tick := time.NewTicker(first)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			tick.Reset(every)
		}
		if err := do(); err != nil {
			return err
		}
	}
}
