package app

import (
	"context"
	"time"

	"github.com/drover-project/drover/internal/health"
)

// clockEvery is how often it is looked whether the machine's clock is that of the store.
const clockEvery = time.Minute

// clockAhead is how far the clock of this machine is ahead of the one by which leases expire, negative if it is behind. It is not known for
// an embedded store, which has none of its own, nor while the store does not tell.
func (m *member) clockAhead(ctx context.Context) (d time.Duration, known bool) {
	if m.shared == nil {
		return 0, false
	}
	limit, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	asked := m.now()
	at, err := m.shared.Clock(limit)
	if err != nil {
		return 0, false
	}
	return -ahead(at, asked, m.now()), true
}

// keepClock has the log say that the clock is off, and that it is not any more, until ctx ends.
func (m *member) keepClock(ctx context.Context) error {
	off := false
	look := func() error {
		d, known := m.clockAhead(ctx)
		switch is := d.Abs() > health.ClockLimit; {
		case !known || is == off:
			return nil
		case is:
			m.log.Warn("the clock of this machine is not that of the database", "ahead_seconds", d.Round(time.Millisecond).Seconds())
		default:
			m.log.Info("the clock of this machine is that of the database again")
		}
		off = !off
		return nil
	}
	_ = look()
	return regularly(ctx, clockEvery, look)
}
