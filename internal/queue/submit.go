package queue

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/store"
)

// Limits of a submission. Those of its jobs are in package job.
const (
	// MaxKey is the greatest length of a submission key in bytes.
	MaxKey = 256
	// MaxJobs is how many jobs a submission may have.
	MaxJobs = 5_000
)

// Submission is a job as a client hands it in.
type Submission struct {
	Ops []*opcode.Opcode
	// Key makes the submission idempotent: as long as the job is known, live or
	// archived, another submission with the same key makes no new job and answers
	// with its id, also while the queue is drained. Printable text in UTF-8; empty
	// for none.
	Key string
	// IgnoreDrain submits also while the queue is drained.
	IgnoreDrain bool
	// Refused is why the job is not to be taken, if its sender knows already. Among
	// several jobs it keeps its place, so that relative ids count it.
	Refused error
}

// Outcome is what became of one submission: an id, or an error.
type Outcome struct {
	ID  job.ID
	Err error
}

// Submit takes a job and returns its id once it is durable. A job that a filter
// rule rejects gets an id too: it is canceled, and its result names the rule.
// Errors: fault.Drained, fault.Invalid for dependencies that make no sense,
// fault.TooLarge, fault.Unavailable.
func (q *Queue) Submit(ctx context.Context, s Submission) (job.ID, error) {
	out, err := q.SubmitMany(ctx, []Submission{s})
	if err != nil {
		return 0, err
	}
	return out[0].ID, out[0].Err
}

// SubmitMany takes several jobs with ascending ids, all made durable together.
// A job that cannot be taken has an error as its outcome and does not keep the
// others from being taken. Relative ids count places in the submission, and go
// on before it with the jobs that were submitted last: -1 means the job that
// the place before is answered with, which is an old one if its key is known.
// What depends on a refused job fails, and says so.
func (q *Queue) SubmitMany(ctx context.Context, subs []Submission) ([]Outcome, error) {
	if err := checkSize(subs); err != nil {
		return nil, err
	}
	b := newBatch(subs)
	var out []Outcome
	var durable <-chan error
	var refused error
	q.update(func() {
		if refused = q.usable(); refused != nil {
			return
		}
		durable = q.work.answer()
		out = q.takeAll(ctx, b)
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

// checkSize refuses a submission that is more than the queue takes at once, for
// others wait meanwhile.
func checkSize(subs []Submission) error {
	if len(subs) > MaxJobs {
		return fault.New(fault.TooLarge, "a submission may have at most %d jobs, this one has %d", MaxJobs, len(subs)).
			At("jobs").WithHint("submit them in several parts")
	}
	ops, dependencies := 0, 0
	for _, s := range subs {
		ops += len(s.Ops)
		for _, op := range s.Ops {
			dependencies += len(op.Depends)
		}
	}
	if ops > job.MaxOpcodes {
		return fault.New(fault.TooLarge, "a submission may have at most %d opcodes, this one has %d", job.MaxOpcodes, ops).At("ops")
	}
	if dependencies > job.MaxDependencies {
		return fault.New(fault.TooLarge, "a submission may have at most %d dependencies, this one has %d", job.MaxDependencies, dependencies).At("depends")
	}
	return nil
}

// CheckKey tells what is wrong with a submission key.
func CheckKey(key string) error {
	if len(key) > MaxKey {
		return fault.New(fault.TooLarge, "a submission key may have at most %d bytes, this one has %d", MaxKey, len(key)).At("key")
	}
	if !utf8.ValidString(key) {
		return fault.New(fault.Invalid, "the submission key %q is not UTF-8", key).At("key")
	}
	for i, r := range key {
		if !unicode.IsPrint(r) {
			return fault.New(fault.Invalid, "the submission key %q has a character at byte %d that cannot be printed", key, i).At("key")
		}
	}
	return nil
}

// batch is one submission on its way in.
type batch struct {
	jobs []candidate
	// first is the first new id.
	first job.ID
	// keys are those of this submission's new jobs, refused why the others are
	// not taken.
	keys    map[string]job.ID
	refused map[job.ID]error
}

// candidate is one job of a submission on its way in.
type candidate struct {
	Submission
	id    job.ID
	isNew bool // not an old job, nor one of this submission, whose key came again
}

func newBatch(subs []Submission) *batch {
	b := &batch{jobs: make([]candidate, len(subs)), keys: map[string]job.ID{}, refused: map[job.ID]error{}}
	for i, s := range subs {
		if s.Refused == nil {
			s.Refused = CheckKey(s.Key)
		}
		if s.Refused == nil {
			s.Refused = job.CheckInput(s.Ops)
		}
		b.jobs[i].Submission = s
	}
	return b
}

// takeAll makes jobs of a batch and lets them go on: ids first, since jobs of
// one submission can name one another, then what they depend on.
func (q *Queue) takeAll(ctx context.Context, b *batch) []Outcome {
	b.first = q.lastID + 1
	for i := range b.jobs {
		q.number(ctx, b, &b.jobs[i])
	}
	for i := range b.jobs {
		b.resolve(i)
	}
	b.refuseCircles()
	out := make([]Outcome, len(b.jobs))
	var taken []*entry
	for i := range b.jobs {
		p := &b.jobs[i]
		if err := b.refused[p.id]; err != nil {
			out[i].Err = err
			continue
		}
		if out[i].ID = p.id; p.isNew {
			e := newEntry(q.newJob(b, p))
			q.entries[p.id] = e
			taken = append(taken, e)
		}
	}
	for _, e := range taken {
		q.enqueue(e)
	}
	return out
}

// number gives a job its id. One that is refused gets one too: it has to be
// counted.
func (q *Queue) number(ctx context.Context, b *batch, p *candidate) {
	err := p.Refused
	if err == nil && p.Key != "" {
		if p.id = b.keys[p.Key]; p.id == 0 {
			p.id, err = q.known(ctx, p.Key)
		}
		if p.id != 0 {
			return
		}
	}
	q.lastID++
	p.id, p.isNew = q.lastID, true
	if err == nil && q.flags.Drained && !p.IgnoreDrain {
		err = fault.New(fault.Drained, "Queue drained").WithHint("see `drover job drain`")
	}
	if err != nil {
		b.refused[p.id] = err
	} else if p.Key != "" {
		b.keys[p.Key] = p.id
	}
}

// taken tells whether there will be a new job, as far as is known.
func (b *batch) taken(p *candidate) bool { return p.isNew && b.refused[p.id] == nil }

// resolve makes the dependencies of the job at a place of the batch absolute.
func (b *batch) resolve(i int) {
	p := &b.jobs[i]
	if !b.taken(p) {
		return
	}
	ops, err := job.ResolveDependencies(p.id, p.Ops, func(relative int64) job.ID {
		if at := int64(i) + relative; at >= 0 {
			return b.jobs[at].id
		}
		return b.first + job.ID(int64(i)+relative)
	})
	if err != nil {
		b.refused[p.id] = err
		return
	}
	p.Ops = ops
}

// refuseCircles refuses the jobs that would wait for themselves. Only jobs of one
// submission can: what names an id that was not given yet fails at once.
func (b *batch) refuseCircles() {
	graph := map[job.ID][]job.ID{}
	for i := range b.jobs {
		if p := &b.jobs[i]; b.taken(p) {
			if d := job.DependenciesOf(p.Ops); len(d) > 0 {
				graph[p.id] = d
			}
		}
	}
	for id, circle := range job.Circles(graph) {
		b.refused[id] = fault.New(fault.Invalid, "the job would wait for itself: %s wait for one another", describe(circle)).At("depends")
	}
}

// describe lists jobs, the first few of them if they are many.
func describe(ids []job.ID) string {
	const few = 8
	names := make([]string, min(len(ids), few))
	for i := range names {
		names[i] = "job " + ids[i].String()
	}
	text := strings.Join(names, ", ")
	if more := len(ids) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// newJob makes the job of a candidate. One that depends on a refused job, or on an
// id that was not given yet, can never succeed and fails at once.
func (q *Queue) newJob(b *batch, p *candidate) *job.Job {
	j := job.New(p.id, p.Ops, p.Key, q.cfg.Now())
	for _, id := range j.Dependencies() {
		if why := b.refused[id]; why != nil {
			return j.Fail(0, fault.New(fault.Failed, "Dependency error: Job %d not found: it was refused (%s)", id, why.Error()), j.Received)
		}
		if id > q.lastID {
			return j.Fail(0, fault.New(fault.Failed, "Dependency error: Job %d not found", id), j.Received)
		}
	}
	return j
}

// enqueue lets a new job go on.
func (q *Queue) enqueue(e *entry) {
	q.changed(e)
	if key := e.job.Key; key != "" {
		q.keys[key] = e.id()
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
