package queue

import "github.com/drover-project/drover/internal/job"

// Jobs returns all jobs that are not archived, as they are now: a table that
// never changes.
func (q *Queue) Jobs() *job.Table { return q.published.snapshot() }
