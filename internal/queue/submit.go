package queue

import (
	"context"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/store"
)

// MaxKey is the greatest length of a submission key in bytes.
const MaxKey = 256

// Submission is a job as a client hands it in.
type Submission struct {
	Ops []*opcode.Opcode
	// Key makes the submission idempotent: as long as the job is known, live or
	// archived, another submission with the same key makes no new job and answers
	// with its id. Empty for none.
	Key string
	// IgnoreDrain submits also while the queue is drained.
	IgnoreDrain bool
}

// Outcome is what became of one submission: an id, or an error.
type Outcome struct {
	ID  job.ID
	Err error
}

// Submit takes a job and returns its id once it is durable. A job that a filter
// rule rejects gets an id too: it is canceled, and its result names the rule.
// Errors: fault.Drained, fault.Invalid for dependencies that make no sense,
// fault.Unavailable.
func (q *Queue) Submit(ctx context.Context, s Submission) (job.ID, error) {
	out, err := q.SubmitMany(ctx, []Submission{s})
	if err != nil {
		return 0, err
	}
	return out[0].ID, out[0].Err
}

// SubmitMany takes several jobs with ascending ids, all made durable together.
// A job that cannot be taken has an error as its outcome and does not keep the
// others from being taken; it uses up its id, so that the relative ids of the
// others keep their meaning.
func (q *Queue) SubmitMany(ctx context.Context, subs []Submission) ([]Outcome, error) {
	var out []Outcome
	var durable <-chan error
	var refused error
	q.update(func() {
		if refused = q.usable(); refused != nil {
			return
		}
		durable = q.work.answer()
		out = q.takeAll(ctx, subs)
	})
	if refused != nil {
		return nil, refused
	}
	select {
	case err := <-durable:
		return out, err
	case <-ctx.Done():
		return nil, fault.New(fault.Unavailable, "the submission was not confirmed in time: %w", context.Cause(ctx)).
			WithHint("it may have been taken; a submission key makes it safe to repeat")
	}
}

// takeAll makes jobs of submissions and lets them go on. Circles of
// dependencies are looked for when all jobs have their ids, since jobs of one
// submission can name one another.
func (q *Queue) takeAll(ctx context.Context, subs []Submission) []Outcome {
	out := make([]Outcome, len(subs))
	taken := make([]*entry, len(subs))
	for i, s := range subs {
		out[i].ID, taken[i], out[i].Err = q.take(ctx, s)
	}
	q.refuseCircles(out, taken)
	for i, e := range taken {
		if e != nil && out[i].Err == nil {
			q.enqueue(e)
		}
	}
	return out
}

// refuseCircles forgets the jobs of a submission that would wait for
// themselves, before any other is decided upon: what depends on one of them
// depends on nothing.
func (q *Queue) refuseCircles(out []Outcome, taken []*entry) {
	refused := map[job.ID]error{}
	for _, e := range taken {
		if e == nil {
			continue
		}
		if circle := job.FindCycle(e.job, q.dependsOn); circle != nil {
			refused[e.id()] = fault.New(fault.Invalid, "the job would wait for itself: %s", describeCircle(circle)).At("depends")
		}
	}
	for i := range out {
		err := refused[out[i].ID]
		if err == nil {
			continue
		}
		if e := taken[i]; e != nil {
			delete(q.entries, e.id())
			delete(q.keys, e.job.Key)
		}
		out[i] = Outcome{Err: err}
	}
}

// take makes a job of a submission, with an entry, unless there is one for its
// key already.
func (q *Queue) take(ctx context.Context, s Submission) (job.ID, *entry, error) {
	if q.flags.Drained && !s.IgnoreDrain {
		return 0, nil, fault.New(fault.Drained, "Queue drained").WithHint("see `drover job drain`")
	}
	if len(s.Key) > MaxKey {
		return 0, nil, fault.New(fault.TooLarge, "a submission key may have at most %d bytes", MaxKey).At("key")
	}
	if id, err := q.known(ctx, s.Key); id != 0 || err != nil {
		return id, nil, err
	}
	q.lastID++
	id := q.lastID
	ops, err := job.ResolveDependencies(id, s.Ops)
	if err != nil {
		return 0, nil, err
	}
	e := newEntry(job.New(id, ops, s.Key, q.cfg.Now()))
	q.entries[id] = e
	if s.Key != "" {
		q.keys[s.Key] = id
	}
	return id, e, nil
}

// enqueue lets a new job go on.
func (q *Queue) enqueue(e *entry) {
	q.changed(e)
	if key := e.job.Key; key != "" {
		q.work.touch(submissionKey(key))
	}
	if e.job.Final() {
		q.end(e, e.job)
		return
	}
	e.rule = q.chain.Decide(int64(e.id()), e.inputs)
	q.sort(e)
}

func submissionKey(key string) store.Key { return store.Key{Kind: KindSubmission, ID: key} }

// known returns the job that was submitted with a key before, 0 if there is
// none. A job that is not durable yet is written again, so that this answer
// waits for it too.
func (q *Queue) known(ctx context.Context, key string) (job.ID, error) {
	if key == "" {
		return 0, nil
	}
	if id, ok := q.keys[key]; ok {
		if q.live(id) == nil {
			q.work.touch(jobKey(id))
			q.work.touch(submissionKey(key))
		}
		return id, nil
	}
	o, err := q.cfg.Store.Get(ctx, submissionKey(key))
	if fault.Is(err, fault.NotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fault.New(fault.Unavailable, "the store cannot tell whether the submission key is known: %w", err)
	}
	return job.ParseID(string(o.Value))
}

// dependsOn returns what a job that has not ended waits for.
func (q *Queue) dependsOn(id job.ID) []job.ID {
	if e := q.entries[id]; e != nil {
		return e.job.Dependencies()
	}
	return nil
}

func describeCircle(ids []job.ID) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = "job " + id.String()
	}
	return strings.Join(names, " depends on ")
}
