package queue

import (
	"iter"

	"github.com/tidwall/btree"

	"github.com/drover-project/drover/internal/job"
)

// Jobs is an immutable picture of all live jobs.
type Jobs struct{ tree *btree.Map[job.ID, *job.Job] }

// Jobs returns all jobs that are not archived, as they are now.
func (q *Queue) Jobs() Jobs { return Jobs{q.published.snapshot()} }

// Get returns one job, nil if it is not among the live ones.
func (j Jobs) Get(id job.ID) *job.Job {
	found, _ := j.tree.Get(id)
	return found
}

// Len is the number of jobs.
func (j Jobs) Len() int { return j.tree.Len() }

// All yields the jobs in the order of their ids.
func (j Jobs) All() iter.Seq[*job.Job] {
	return func(yield func(*job.Job) bool) {
		j.tree.Scan(func(_ job.ID, one *job.Job) bool { return yield(one) })
	}
}
