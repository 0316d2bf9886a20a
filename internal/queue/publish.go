package queue

import (
	"context"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// changeOf tells what the picture gains by a work that becomes durable: the
// present state of its keys, and what follows from it that is not stored.
func (q *Queue) changeOf(w *work) *state.Change {
	c := &state.Change{Locks: w.locks, Events: w.events}
	for _, key := range w.keys {
		q.tell(c, key)
	}
	if w.pruned != nil {
		c.Pruned = w.pruned.jobs
	}
	c.Holds = slices.Grow(c.Holds, len(w.held))
	for _, id := range w.held {
		if j := q.m.Job(id); j != nil {
			c.Holds = append(c.Holds, state.Hold{Job: id, By: j.Hold})
		}
	}
	return c
}

// tell adds the present state of a key.
func (q *Queue) tell(c *state.Change, key store.Key) {
	switch key.Kind {
	case KindJob:
		id, _ := job.ParseID(key.ID)
		if j := q.newest(id); j != nil && j.Brief() == nil {
			c.Jobs = append(c.Jobs, j)
		}
	case KindArchived:
		id, _ := job.ParseID(key.ID)
		last := *q.archiving[id].Job
		last.Archived = true
		c.Archived = append(c.Archived, &last)
	case KindFilter:
		for _, r := range q.m.Chain().Rules() {
			if r.UUID == key.ID {
				c.Rules = append(c.Rules, r)
				return
			}
		}
		c.RulesRemoved = append(c.RulesRemoved, key.ID)
	case KindQueue:
		if key == FlagsKey {
			flags := q.m.Flags()
			c.Flags = &flags
		}
	}
}

// CatchUp brings the picture to a revision after all that is stored by now: what
// others store (that a controller runs, a user's token) is not shown, and
// moves no picture by itself.
func (q *Queue) CatchUp(ctx context.Context) error {
	durable := make(chan error, 1)
	q.cfg.Store.Enqueue(store.Tx{Epoch: q.cfg.Epoch}, func(revision store.Revision, err error) {
		if err == nil {
			q.cfg.Picture.Committed(&state.Change{Revision: int64(revision)})
		}
		durable <- err
	})
	select {
	case err := <-durable:
		q.cfg.Picture.Publish()
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// nothing reports whether a change leaves the picture as it is.
func nothing(c *state.Change) bool {
	return len(c.Jobs)+len(c.Holds)+len(c.Archived)+len(c.Pruned)+len(c.Rules)+len(c.RulesRemoved)+len(c.Locks)+len(c.Events) == 0 && c.Flags == nil
}

// Jobs returns all jobs that are not archived, as they are now.
func (q *Queue) Jobs() *job.Table { return q.cfg.Picture.Load().Jobs }

// live returns the newest durable value of a job that is not archived, nil if
// there is none. It may be brief if the job has ended.
func (q *Queue) live(id job.ID) *job.Job { return q.Jobs().Get(id) }

// readingTime is how long a job that has ended may take to be read for somebody whose
// own time is over.
const readingTime = 10 * time.Second

// Wait returns the job, whole, as soon as until holds for it, and as it is when ctx
// ends, also if it had ended before. It looks at live jobs only; fault.NotFound for any other.
func (q *Queue) Wait(ctx context.Context, id job.ID, until func(*job.Job) bool) (*job.Job, error) {
	var failed error
	whole := func(j *job.Job) *job.Job {
		if j.Brief() != nil {
			reading, done := context.WithTimeout(context.WithoutCancel(ctx), readingTime)
			defer done()
			j, failed = q.Job(reading, id)
		}
		return j
	}
	var last *job.Job
	j := q.cfg.Picture.WaitJob(ctx, id, func(j *job.Job) bool {
		last = whole(j)
		return failed != nil || until(last)
	})
	switch {
	case failed != nil:
		return nil, failed
	case j == nil:
		return nil, notFound(id)
	case j.Brief() != nil:
		return last, nil
	}
	return j, nil
}
