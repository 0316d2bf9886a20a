package items

import (
	"errors"
	"iter"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/query"
)

// memo is what items work out once for all rows of a query.
type memo struct {
	// nameless is the way to the instances without a name, once it was needed.
	nameless *query.Path[instance]
	// waits is what jobs wait for, once it was needed.
	waits map[job.ID]wait
	// decided is what the rules say of the jobs, once it was needed.
	decided *verdicts
	// loaded is the job that was read last because it was brief.
	loaded *job.Job
}

func memoOf(v *query.View) *memo {
	m, ok := v.Memo.(*memo)
	if !ok {
		m = &memo{}
		v.Memo = m
	}
	return m
}

// reading yields jobs that may fail to be read: the first error ends them, and is
// kept for interrupted.
func reading(v *query.View, jobs iter.Seq2[*job.Job, error]) iter.Seq[*job.Job] {
	return func(yield func(*job.Job) bool) {
		for j, err := range jobs {
			if j, err = despite(j, err); err != nil {
				v.Failed = err
				return
			}
			if !yield(j) {
				return
			}
		}
	}
}

// whole returns all of a job that is brief. A row mostly asks for several parts of
// it.
func whole(v *query.View, j *job.Job) *job.Job {
	if j.Brief() == nil {
		return j
	}
	return readJob(v, j.ID)
}

// readJob returns a job as it is stored, or what stands for one that cannot be read.
func readJob(v *query.View, id job.ID) *job.Job {
	m := memoOf(v)
	if m.loaded == nil || m.loaded.ID != id {
		read, err := oneJob(v, id)
		if err != nil {
			v.Failed = err
		}
		if read == nil {
			read = unreadable(id)
		}
		m.loaded = read
	}
	return m.loaded
}

// wholes yields all of each job.
func wholes(v *query.View, jobs iter.Seq[*job.Job]) iter.Seq[*job.Job] {
	return func(yield func(*job.Job) bool) {
		for j := range jobs {
			if !yield(whole(v, j)) || v.Failed != nil {
				return
			}
		}
	}
}

// despite puts a job in the place of one that cannot be read; see damaged.
func despite(j *job.Job, err error) (*job.Job, error) {
	if d, ok := errors.AsType[*job.DamageError](err); ok {
		return unreadable(d.ID), nil
	}
	return j, err
}

// unreadable stands for a job that cannot be read.
func unreadable(id job.ID) *job.Job { return &job.Job{ID: id, Archived: true} }

// damaged reports whether a job stands for one that cannot be read: any other was
// received.
func damaged(j *job.Job) bool {
	return j.Archived && len(j.Ops) == 0 && j.Received == 0 && j.Brief() == nil
}
