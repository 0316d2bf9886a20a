package queue

import (
	"context"

	"github.com/drover-project/drover/internal/store"
)

var flagsKey = store.Key{Kind: KindQueue, ID: "flags"}

// SetDrained makes the queue refuse new jobs, or take them again.
func (q *Queue) SetDrained(ctx context.Context, drained bool) error {
	return q.change(ctx, func() error {
		q.flags.Drained = drained
		q.work.touch(flagsKey)
		return nil
	})
}

// SetWatcherPause asks watchers to do nothing until a time, in seconds since
// the epoch; nil ends the pause.
func (q *Queue) SetWatcherPause(ctx context.Context, until *float64) error {
	return q.change(ctx, func() error {
		q.flags.WatcherPause = until
		q.work.touch(flagsKey)
		return nil
	})
}
