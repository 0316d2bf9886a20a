package queue

import (
	"context"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/reason"
)

// longestLook is how long rules that end by themselves go unlooked at. Their end is a time of day and a timer a length:
// a clock that is set, or a machine that slept, would have a rule in force long after its end.
const longestLook = time.Minute

// bell wakes one goroutine that waits.
type bell chan struct{}

func (b bell) signal() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// expireRules ends the rules whose time is over, each at its time, until ctx
// ends. It is woken when the rules change and when the next one is due.
func (q *Queue) expireRules(ctx context.Context) {
	for {
		now := q.cfg.Now()
		due, next := overdue(q.rules(), now)
		if len(due) > 0 {
			err := q.expire(ctx, due)
			if err == nil || fault.Is(err, fault.NotFound) {
				continue
			}
			q.cfg.Log.Error("a filter rule whose time is over cannot be ended", "error", err)
			select { // whatever the bell says: that the rule is back rings it, too
			case <-ctx.Done():
				return
			case <-time.After(longestPause):
			}
			continue
		}
		if !q.awaitExpiry(ctx, now, next) {
			return
		}
	}
}

func (q *Queue) rules() []jobfilter.Rule {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.m.Rules()
}

// awaitExpiry returns when it is time to look at the rules again: they changed,
// the next one is due, or a while has passed; false when ctx has ended.
func (q *Queue) awaitExpiry(ctx context.Context, now, next time.Time) bool {
	var due <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(min(next.Sub(now), longestLook))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-q.expiring:
	case <-due:
	}
	return true
}

// overdue returns the rules whose time is over, and when the next one's is; zero
// if there is none.
func overdue(rules []jobfilter.Rule, now time.Time) (due []jobfilter.Rule, next time.Time) {
	for _, r := range rules {
		switch {
		case r.Expired(now):
			due = append(due, r)
		case !r.Until.IsZero() && (next.IsZero() || r.Until.Before(next)):
			next = r.Until
		}
	}
	return slices.Clip(due), next
}

func (q *Queue) expire(ctx context.Context, due []jobfilter.Rule) error {
	c := FilterChange{expiry: true, By: By{Account: reason.Account{Surface: "controller", Name: "drover"}}}
	for _, r := range due {
		c.Edits = append(c.Edits, jobfilter.Edit{Verb: jobfilter.Delete, Rule: r.UUID})
	}
	_, err := q.ChangeFilters(ctx, c)
	return err
}
