package live

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/query/items"
	"github.com/drover-project/drover/internal/store"
)

// windowEvery is how far behind an answer may be whose filter has distances from now (-1h): it is the one of a moment that is so old at most.
const windowEvery = 30 * time.Second

// Show yields the whole answer of a query, its rows in their order: as it is, and then each time something in it is new, but not before a rest is over, which
// several changes share. It ends with ctx, which is no error. What Follow says of values that only nodes know counts here, too. What distances in its filter
// mean moves with time.
func (q *Querier) Show(ctx context.Context, r query.Request, rest time.Duration) iter.Seq2[*Update, error] {
	return func(yield func(*Update, error) bool) {
		var last *Update
		for ctx.Err() == nil {
			now := time.Now()
			at, moves, err := items.All.AsOf(r, now.Truncate(windowEvery))
			if err != nil {
				yield(nil, err)
				return
			}
			window, end := ctx, func() {}
			if moves {
				window, end = context.WithDeadline(ctx, now.Truncate(windowEvery).Add(windowEvery))
			}
			for u, err := range q.showAt(window, at, rest) {
				if err == nil && last != nil && sameRows(last.Events, u.Events) {
					continue
				}
				if last = u; !yield(u, err) || err != nil {
					end()
					return
				}
			}
			end()
		}
	}
}

// showAt is Show of a request that has no distances, until ctx ends.
func (q *Querier) showAt(ctx context.Context, r query.Request, rest time.Duration) iter.Seq2[*Update, error] {
	return func(yield func(*Update, error) bool) {
		s, err := q.open(ctx, r)
		if err != nil {
			yield(nil, err)
			return
		}
		defer q.release(s)
		f := &follower{shared: s}
		u, err := f.resume(ctx, 0)
		for err == nil {
			if !yield(u, nil) || pause(ctx, nil, time.Now().Add(rest)) != nil {
				return
			}
			if _, err = f.wait(ctx); err == nil {
				f.mu.Lock()
				u = f.everything()
				f.mu.Unlock()
			}
		}
		if ctx.Err() == nil {
			yield(nil, err)
		}
	}
}

// ShowGroups is Show for a query by groups (Group). It is run anew after changes, and rests four times as long as that took, at least as long as it is told.
func (q *Querier) ShowGroups(ctx context.Context, r query.Request, by []string, figures []query.Calc, rest time.Duration) iter.Seq2[*Update, error] {
	return func(yield func(*Update, error) bool) {
		var last *Update
		for {
			changed, begun := q.Picture.Changed(), time.Now()
			u, err := q.groups(ctx, r, by, figures)
			if err != nil {
				if ctx.Err() == nil {
					yield(nil, err)
				}
				return
			}
			if (last == nil || !sameRows(last.Events, u.Events)) && !yield(u, nil) {
				return
			}
			last = u
			var again time.Time
			if _, moves, err := items.All.AsOf(r, begun); err == nil && moves {
				again = begun.Add(windowEvery)
			}
			if pause(ctx, nil, time.Now().Add(max(rest, restParts*time.Since(begun)))) != nil || pause(ctx, changed, again) != nil {
				return
			}
		}
	}
}

// groups is the whole answer of a query by groups, as an update.
func (q *Querier) groups(ctx context.Context, r query.Request, by []string, figures []query.Calc) (*Update, error) {
	if q.Stored != nil {
		return nil, ErrLed
	}
	now := q.Picture.Load()
	result, err := items.All.Group(q.source(ctx, now), r, by, figures)
	if err != nil {
		return nil, err
	}
	u := &Update{Revision: store.Revision(now.Revision), Reset: true, Fields: result.Fields, Events: make([]query.Event, result.Len())}
	for i := range u.Events {
		u.Events[i] = query.Event{Type: "enter", ID: result.Identity(i), Row: result.AppendRow(nil, i)}
	}
	return u, nil
}

func sameRows(a, b []query.Event) bool {
	return slices.EqualFunc(a, b, func(x, y query.Event) bool { return x.ID == y.ID && bytes.Equal(x.Row, y.Row) })
}
