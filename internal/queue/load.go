package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// load reads everything from the store into memory, but for the archive.
func (q *Queue) load(ctx context.Context) error {
	revision, err := q.cfg.Store.Revision(ctx)
	if err != nil {
		return err
	}
	loaded := &state.Change{Revision: int64(revision), Flags: &q.flags}
	if loaded.Jobs, err = q.loadJobs(ctx); err != nil {
		return err
	}
	if err := q.loadRules(ctx); err != nil {
		return err
	}
	loaded.Rules = q.chain.Rules()
	if err := q.loadFlags(ctx); err != nil {
		return err
	}
	q.cfg.Picture.Committed(loaded)
	q.cfg.Picture.Publish()
	return nil
}

func (q *Queue) loadFlags(ctx context.Context) error {
	o, err := q.cfg.Store.Get(ctx, flagsKey)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(o.Value, &q.flags)
}

// loadChunk is how many jobs are decoded together.
const loadChunk = 2000

func (q *Queue) loadJobs(ctx context.Context) (all []*job.Job, err error) {
	var chunk [][]byte
	for o, err := range q.cfg.Store.List(ctx, KindJob, store.Options{}) {
		if err != nil {
			return nil, err
		}
		if chunk = append(chunk, o.Value); len(chunk) == loadChunk {
			jobs, err := q.takeUp(chunk)
			if err != nil {
				return nil, err
			}
			all = append(all, jobs...)
			chunk = chunk[:0]
		}
	}
	jobs, err := q.takeUp(chunk)
	if err != nil {
		return nil, err
	}
	for o, err := range q.cfg.Store.List(ctx, KindArchived, store.Options{Desc: true, Limit: 1}) {
		if err != nil {
			return nil, err
		}
		id, err := job.ParseID(o.ID)
		if err != nil {
			return nil, err
		}
		q.lastID = max(q.lastID, id)
	}
	return append(all, jobs...), nil
}

// takeUp takes stored jobs into memory.
func (q *Queue) takeUp(stored [][]byte) ([]*job.Job, error) {
	jobs, failures := make([]*job.Job, len(stored)), make([]error, len(stored))
	spread(len(stored), func(i int) { jobs[i], failures[i] = job.Decode(stored[i]) })
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	for _, j := range jobs {
		q.lastID = max(q.lastID, j.ID)
		if j.Key != "" {
			q.keys[j.Key] = j.ID
		}
		if !j.Final() {
			q.entries[j.ID] = newEntry(j)
		}
	}
	return jobs, nil
}

func (q *Queue) loadRules(ctx context.Context) error {
	for o, err := range q.cfg.Store.List(ctx, KindFilter, store.Options{}) {
		if err != nil {
			return err
		}
		var r jobfilter.Rule
		if err := json.Unmarshal(o.Value, &r); err != nil {
			return fault.New(fault.Internal, "the stored filter rule %s cannot be read: %w", o.ID, err)
		}
		q.rules = append(q.rules, r)
		// Refused submissions use ids up that no job has: a rule for new jobs must
		// not let one through that gets such an id again.
		q.lastID = max(q.lastID, job.ID(r.Watermark))
	}
	chain, err := jobfilter.Compile(q.rules)
	q.chain = chain
	return err
}

// recover is the first event of a queue: each job that had not ended goes to
// its place. What was in flight when the controller ended is resumed where its
// opcode is declared to be resumable, and else ends in an error that says so.
func (q *Queue) recover() {
	q.recovering = true
	defer func() { q.recovering = false }()
	for _, e := range q.inOrder() {
		e.rule = q.chain.Decide(int64(e.id()), e.inputs)
		if e.job.Busy() {
			q.recoverBusy(e)
		}
		if !e.job.Final() {
			q.sort(e)
		}
	}
}

func (q *Queue) recoverBusy(e *entry) {
	i := e.job.Next()
	op := &e.job.Ops[i]
	resumable, because := q.cfg.Executors.Resumable(op.Input.ID)
	switch {
	case op.Status != job.Running:
		e.job = e.job.Requeue(i)
	case resumable:
		e.job = e.job.Requeue(i).AddMessage(i, "The controller ended while this opcode ran; it is run again: "+because, q.now())
	default:
		why := fmt.Sprintf("The controller ended while opcode %d (%s) of job %d ran, and it is not run again: %s",
			i, op.Input.ID, e.id(), because)
		q.end(e, e.job.Lost(i, why, q.cfg.Now()))
		return
	}
	q.changed(e)
}

// inOrder returns all entries by job id.
func (q *Queue) inOrder() []*entry {
	out := make([]*entry, 0, len(q.entries))
	for _, id := range slices.Sorted(maps.Keys(q.entries)) {
		out = append(out, q.entries[id])
	}
	return out
}
