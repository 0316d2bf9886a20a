package queue

import (
	"context"

	"github.com/drover-project/drover/internal/store"
)

// Flags are the switches of the queue as a whole.
type Flags struct {
	// Drained: the queue takes no new jobs.
	Drained bool `json:"drained"`
	// WatcherPause is until when watchers do nothing, in seconds since the
	// epoch; nil when they are not paused.
	WatcherPause *float64 `json:"watcher_pause,omitempty"`
}

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

// Flags returns the switches of the queue. A watcher pause that is over is
// none.
func (q *Queue) Flags() Flags {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := Flags{Drained: q.flags.Drained}
	if p := q.flags.WatcherPause; p != nil && *p > float64(q.cfg.Now().UnixNano())/1e9 {
		out.WatcherPause = p
	}
	return out
}
