package app

import (
	"context"
	"time"

	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/reason"
)

// controllerItself is who does what nobody asked for.
var controllerItself = queue.By{Account: reason.Account{Surface: "controller", Name: "drover"}}

const (
	// archiveEvery is how often it is looked for jobs to archive.
	archiveEvery = 5 * time.Minute
	// archiveLimit is how long that may take each time.
	archiveLimit = time.Minute
)

// keepTidy does what a cluster's watcher does elsewhere, until ctx ends: it
// archives jobs that ended long ago.
func (c *controller) keepTidy(ctx context.Context, after time.Duration) error {
	return regularly(ctx, archiveEvery, func() error {
		if _, _, err := c.queue.AutoArchive(ctx, after, archiveLimit, controllerItself); err != nil && ctx.Err() == nil {
			c.log.Warn("old jobs could not be archived", "error", err)
		}
		return nil
	})
}

// regularly does something at each interval, until ctx ends, which is no error, or
// it returns one.
func regularly(ctx context.Context, every time.Duration, do func() error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := do(); err != nil {
			return err
		}
	}
}
