package queue

import (
	"context"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
)

// PreviewFilter tells what a rule would do to each job that is in the queue now,
// and would have done to the jobs that ended in the last days, without adding
// it. A rule with the UUID of an existing one is seen as its replacement.
func (q *Queue) PreviewFilter(ctx context.Context, r jobfilter.Rule, days int) (*jobfilter.Forecast, error) {
	q.mu.Lock()
	rules := slices.Clone(q.rules)
	r.Watermark = int64(q.lastID)
	q.mu.Unlock()
	jobs := q.Jobs()
	past, err := q.past(ctx, jobs, days)
	if err != nil {
		return nil, err
	}
	return jobfilter.Preview(rules, r, jobs.Unfinished(), slices.Values(past))
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
