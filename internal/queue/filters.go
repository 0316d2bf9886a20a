package queue

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/queue/machine"
	"github.com/drover-project/drover/internal/reason"
)

// reasonSource marks the queue's own hop in the trail of a filter rule, under
// the name that clients know.
const reasonSource = "luxid"

// MaxRule is the greatest size of a filter rule as JSON, in bytes.
const MaxRule = 256 << 10

// PutFilter adds a rule under a new UUID, or under the given one; a rule that
// has it already is replaced. Watermark and the end of the reason trail are set
// here. It takes effect on every job before it is acknowledged. The warnings
// are about rules that are valid but hardly mean what they say.
func (q *Queue) PutFilter(ctx context.Context, uuid string, r jobfilter.Rule) (string, []jobfilter.Warning, error) {
	if uuid == "" {
		uuid = q.cfg.NewUUID()
	}
	if err := jobfilter.CheckUUID(uuid); err != nil {
		return "", nil, err
	}
	r.UUID = uuid
	r.Reason = r.Reason.Append(reason.Entry{Source: reasonSource, Time: q.cfg.Now().UnixNano()})
	if size := len(encode(r)); size > MaxRule {
		return "", nil, fault.New(fault.TooLarge, "a filter rule may have at most %d bytes, this one has %d", MaxRule, size)
	}
	return uuid, jobfilter.Check(&r), q.setRules(ctx, put(r))
}

// put adds a rule or replaces it.
func put(r jobfilter.Rule) machine.Edit {
	return func(rules []jobfilter.Rule, lastID job.ID) ([]jobfilter.Rule, []string, error) {
		r.Watermark = int64(lastID)
		rules = append(without(rules, r.UUID), r)
		return rules, []string{r.UUID}, jobfilter.CheckSize(rules)
	}
}

// DeleteFilter removes a rule; fault.NotFound if there is none.
func (q *Queue) DeleteFilter(ctx context.Context, uuid string) error {
	return q.setRules(ctx, func(rules []jobfilter.Rule, _ job.ID) ([]jobfilter.Rule, []string, error) {
		rest := without(rules, uuid)
		if len(rest) == len(rules) {
			return nil, nil, fault.New(fault.NotFound, "Filter rule with UUID %s does not exist", uuid)
		}
		return rest, []string{uuid}, nil
	})
}

func without(rules []jobfilter.Rule, uuid string) []jobfilter.Rule {
	return slices.DeleteFunc(slices.Clone(rules), func(r jobfilter.Rule) bool { return r.UUID == uuid })
}

// setRules changes the rules. What that means for each job is worked out beside
// the queue, which goes on meanwhile, by one change at a time.
func (q *Queue) setRules(ctx context.Context, edit machine.Edit) error {
	q.planning.Lock()
	durable, err := q.planRules(edit)
	q.planning.Unlock()
	if err != nil {
		return err
	}
	select {
	case err := <-durable:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (q *Queue) planRules(edit machine.Edit) (durable <-chan error, err error) {
	for {
		plan, err := q.look().PlanRules(edit, spread)
		if err != nil {
			return nil, err
		}
		q.update(func(w *work) {
			if err = q.usable(); err != nil {
				return
			}
			if err = q.apply(w, plan).Refused; err == nil {
				durable = w.answer()
			}
		})
		if !errors.Is(err, machine.ErrStale) {
			return durable, err
		}
	}
}

// spread calls f with each number below n, on all processors.
func spread(n int, f func(int)) {
	share := n/runtime.GOMAXPROCS(0) + 1
	var all sync.WaitGroup
	for from := 0; from < n; from += share {
		all.Go(func() {
			for i := from; i < min(from+share, n); i++ {
				f(i)
			}
		})
	}
	all.Wait()
}

// PreviewFilter tells what a rule would do to each job that is in the queue now,
// and would have done to the jobs that ended in the last days, without adding
// it. A rule with the UUID of an existing one is seen as its replacement.
func (q *Queue) PreviewFilter(ctx context.Context, r jobfilter.Rule, days int) (*jobfilter.Forecast, error) {
	m := q.look()
	r.Watermark = int64(m.LastID())
	plan, err := m.PlanRules(put(r), spread)
	if err != nil {
		return nil, err
	}
	past, err := q.past(ctx, q.Jobs(), days)
	if err != nil {
		return nil, err
	}
	effects, unaffected := m.Forecast(plan, q.cfg.Now())
	return jobfilter.Preview(m.Rules(), r, effects, unaffected, slices.Values(past))
}

// past returns the jobs that ended in the last days, archived or not.
func (q *Queue) past(ctx context.Context, jobs *job.Table, days int) ([]*job.Job, error) {
	if days <= 0 {
		return nil, nil
	}
	since := max(job.At(q.cfg.Now().Add(-time.Duration(days)*24*time.Hour)), 1) // 0 is the end of what has not ended
	out := slices.Collect(jobs.Between(job.ByEnded, since, job.Never))
	for j, err := range q.Archived(ctx, since, job.Never) {
		if err != nil {
			return nil, err
		}
		out = append(out, j)
	}
	return out, nil
}
