package effect

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// Margin is how long before the end of its lease a controller ends what cannot be joined.
const Margin = 3 * time.Second

// Lead is how long a controller may be sure that it leads, by its own clock alone: when it cannot renew its lease in time, it ends what it
// began before the lease can be another's, whether or not anybody told it. The zero Lead has no end. It is safe for
// concurrent use, and so is nil, which never ends.
type Lead struct {
	mu    sync.Mutex
	until time.Time // zero: no end
	lost  error     // why it has ended for good
	timer *time.Timer
	now   context.Context //nolint:containedctx // it is the lead's own: who began something under it is told its end
	end   context.CancelCauseFunc
	news  chan struct{} // closed when the lead is extended or lost; nil if nobody waits for that
	// later are the nodes that follow a controller of a later epoch, with that.
	later map[string]int64
}

// ErrUnsure is why effects end that a controller began, and none begins. It may be sure again a moment later.
var ErrUnsure error = fault.New(fault.Unavailable, "this controller could not renew its lease in time, and cannot be sure that it leads")

// Extend says that the lease was renewed, and ends at a time at the earliest.
func (l *Lead) Extend(end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	until := end.Add(-Margin)
	if until.Before(l.until) {
		return
	}
	l.until = until
	if l.timer == nil {
		l.timer = time.AfterFunc(time.Until(until), l.expire)
	}
	l.timer.Reset(time.Until(until))
	l.tell()
}

// tell wakes those who wait until the lead is sure again. Who calls it holds mu.
func (l *Lead) tell() {
	if l.news != nil {
		close(l.news)
		l.news = nil
	}
}

// Await waits while the controller is not sure that it leads. It returns nil when it is, the reason when the lead is lost for
// good, and that of ctx when that ends.
func (l *Lead) Await(ctx context.Context) error {
	for {
		news, err := l.awaited()
		if !errors.Is(err, ErrUnsure) {
			return err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// awaited is why nothing may be begun, and what is closed when that changes.
func (l *Lead) awaited() (<-chan struct{}, error) {
	if l == nil {
		return nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.news == nil {
		l.news = make(chan struct{})
	}
	return l.news, l.ended()
}

// expire ends what was begun, unless the lead was extended meanwhile.
func (l *Lead) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Until(l.until) <= 0 {
		l.endAll(ErrUnsure)
	}
}

// Lose says that the lead has ended for good.
func (l *Lead) Lose(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == nil {
		l.lost = why
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	l.endAll(why)
	l.tell()
}

func (l *Lead) endAll(why error) {
	if l.end != nil {
		l.end(why)
		l.now, l.end = nil, nil
	}
}

// sure returns why nothing may be begun; nil while it may.
func (l *Lead) sure() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended()
}

// ended is sure for who holds mu.
func (l *Lead) ended() error {
	switch {
	case l.lost != nil:
		return l.lost
	case !l.until.IsZero() && time.Until(l.until) <= 0:
		return ErrUnsure
	}
	return nil
}

// overtaken notes that a node follows a controller of a later epoch; false if that was known, or nobody wants to know.
func (l *Lead) overtaken(node string, epoch int64) (news bool) {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.later[node] >= epoch {
		return false
	}
	if l.later == nil {
		l.later = map[string]int64{}
	}
	l.later[node] = epoch
	return true
}

// Overtaken are the nodes that refused an order because they follow a controller of a later epoch, with that. A controller that leads
// all the same has a store that was put back.
func (l *Lead) Overtaken() map[string]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.later)
}

// bind returns a context that ends with another, or with the lead.
func (l *Lead) bind(ctx context.Context) (bound context.Context, stop func()) {
	if l == nil {
		return ctx, func() {}
	}
	bound, cancel := context.WithCancelCause(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.ended(); err != nil {
		cancel(err)
		return bound, func() {}
	}
	if l.now == nil {
		l.now, l.end = context.WithCancelCause(context.Background())
	}
	lead := l.now
	release := context.AfterFunc(lead, func() { cancel(context.Cause(lead)) })
	return bound, func() {
		release()
		cancel(nil)
	}
}
