package queue

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/queue/machine"
	"github.com/drover-project/drover/internal/requestid"
	"github.com/drover-project/drover/internal/store"
)

// Submission is a job as a client hands it in.
type Submission = machine.Submission

// Outcome is what became of one submission: an id, or an error.
type Outcome = machine.Outcome

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
	subs = slices.Clone(subs)
	for i := range subs {
		if subs[i].Refused == nil {
			subs[i].Refused = q.tooNew(subs[i].Ops)
		}
		if strings.HasPrefix(subs[i].Key, childKeys) && subs[i].Refused == nil {
			subs[i].Refused = fault.New(fault.Invalid, "submission keys that begin with %q are those of jobs that opcodes submit", childKeys).At("key")
		}
	}
	return q.submit(ctx, subs, q.usable)
}

// tooNew refuses opcodes that programs of before, which may lead next, could not read.
func (q *Queue) tooNew(ops []*opcode.Opcode) error {
	for _, op := range ops {
		if d := op.Definition(); d != nil && d.Since > q.format() {
			return fault.New(fault.WrongState, "%s needs format %d of the store, which has %d", op.ID, d.Since, q.format()).
				WithHint("drover cluster format info says who keeps the group from it")
		}
	}
	return nil
}

// submit takes jobs as long as the queue is usable.
func (q *Queue) submit(ctx context.Context, subs []Submission, usable func() error) ([]Outcome, error) {
	s := machine.Submit{Jobs: slices.Clone(subs)}
	if err := machine.CheckSubmissions(s.Jobs); err != nil {
		return nil, err
	}
	for known := newPast(); ; {
		var missing machine.Missing
		var r *machine.Ready
		var durable <-chan error
		var refused error
		q.update(func(w *work) {
			if refused = usable(); refused != nil {
				return
			}
			if s, missing = q.prepare(known.of(s, q.archivals)); len(missing.Keys)+len(missing.Jobs) > 0 {
				return
			}
			r = q.apply(w, s)
			q.repeat(w, r.Repeated)
			durable = w.answer()
		})
		switch {
		case refused != nil:
			return nil, refused
		case durable == nil:
			if err := q.recall(ctx, known, missing); err != nil {
				return nil, err
			}
			continue
		}
		select {
		case err := <-durable:
			out, err := q.withRefused(r.Outcomes, err)
			q.tellTaken(ctx, out)
			return q.refuseOthers(ctx, subs, r.Repeated, out), err
		case <-ctx.Done():
			return nil, fault.New(fault.Unavailable, "the submission was not confirmed in time: %w", context.Cause(ctx)).
				WithHint("it may have been taken; a submission key makes it safe to repeat")
		}
	}
}

// tellTaken logs which jobs a request made.
func (q *Queue) tellTaken(ctx context.Context, outcomes []Outcome) {
	if requestid.From(ctx) == "" || !q.cfg.Log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	for _, o := range outcomes {
		if o.Err == nil {
			q.cfg.Log.LogAttrs(ctx, slog.LevelDebug, "a request handed in a job", slog.Any("job", o.ID))
		}
	}
}

// refuseOthers makes errors of the answers to submissions whose key came before
// with something else.
func (q *Queue) refuseOthers(ctx context.Context, subs []Submission, repeated []job.ID, out []Outcome) []Outcome {
	if len(repeated) == 0 {
		return out
	}
	out = slices.Clone(out)
	for i := range out {
		o := &out[i]
		if subs[i].Key == "" || o.Err != nil || !slices.Contains(repeated, o.ID) {
			continue
		}
		switch j, err := q.Job(ctx, o.ID); {
		case fault.Is(err, fault.NotFound):
			o.Err = fault.New(fault.Conflict, "the submission key %q belongs to job %d, which is not kept any more: whether it was the same cannot be told", subs[i].Key, o.ID).
				At("key").WithHint("take a new key if it is to be done again")
		case err != nil: // who asks for a stop must not be told of a start
			o.Err = fault.New(fault.Unavailable, "the submission key belongs to job %d, and the store cannot tell whether that is what is asked for: %w", o.ID, err).
				WithHint("try again, or look at the job: drover job info %d", o.ID)
		case !j.MadeOf(subs[i].Ops):
			o.Err = machine.KeyTaken(j)
		}
	}
	return out
}

// past is what a submission had to be told of archived jobs.
type past struct {
	archivals uint64 // when the keys were looked up
	keys      map[string]job.ID
	ended     map[job.ID]job.Status
}

func newPast() *past {
	return &past{keys: map[string]job.ID{}, ended: map[job.ID]job.Status{}}
}

// of tells a submission what is known. A job may have come, gone and been
// archived since its key was looked up: then that has to be done again.
func (p *past) of(s machine.Submit, archivals uint64) machine.Submit {
	if p.archivals != archivals {
		p.archivals = archivals
		clear(p.keys)
		clear(p.ended) // jobs of the archive may have been pruned
	}
	s.Known, s.Ended = p.keys, p.ended
	return s
}

// prepare works out what a submission comes to, and what is missing for it that
// only the store can tell.
func (q *Queue) prepare(s machine.Submit) (machine.Submit, machine.Missing) {
	prepared, missing := q.m.Prepare(s)
	if len(missing.Jobs) == 0 {
		return prepared, missing
	}
	missing.Jobs = slices.DeleteFunc(missing.Jobs, func(id job.ID) bool {
		if q.pruning[id] {
			s.Ended[id] = ""
			return true
		}
		j := q.live(id)
		if j != nil {
			s.Ended[id] = j.Status()
		}
		return j != nil
	})
	return prepared, missing
}

// repeat has old jobs written again that are not durable yet, so that their
// second answer waits for that too.
func (q *Queue) repeat(w *work, ids []job.ID) {
	for _, id := range ids {
		if j := q.m.Job(id); j != nil && q.live(id) == nil {
			w.touch(jobKey(id))
			w.touch(submissionKey(j.Key))
		}
	}
}

// recall looks up in the store what a submission has to know.
func (q *Queue) recall(ctx context.Context, p *past, missing machine.Missing) error {
	for _, key := range missing.Keys {
		o, err := q.read(ctx, submissionKey(key))
		id := job.ID(0)
		if err == nil {
			id, err = job.ParseID(string(o.Value))
		}
		if err == nil {
			id, err = q.taken(ctx, id)
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			return fault.New(fault.Unavailable, "the store cannot tell whether the submission key is known: %w", err)
		}
		p.keys[key] = id
	}
	for _, id := range missing.Jobs {
		j, err := q.archived(ctx, id)
		switch {
		case err == nil:
			p.ended[id] = j.Status()
		case fault.Is(err, fault.NotFound):
			p.ended[id] = ""
		default:
			return fault.New(fault.Unavailable, "the store cannot tell how job %d, on which this one depends, ended: %w", id, err)
		}
	}
	return nil
}

// taken returns the id of a job that was taken, and 0 for one that was not: it was
// refused by the store, and may have left its key behind for a moment.
func (q *Queue) taken(ctx context.Context, id job.ID) (job.ID, error) {
	q.mu.Lock()
	unread, pruned := q.m.Unread(id), q.pruned
	q.mu.Unlock()
	if unread || id <= pruned || q.live(id) != nil {
		return id, nil
	}
	if _, err := q.read(ctx, store.Key{Kind: KindArchived, ID: id.String()}); err != nil {
		return 0, err
	}
	return id, nil
}

// damaged tells an error of the store that comes again however often it is asked, until somebody restores a backup.
func damaged(err error) bool { return fault.Is(err, fault.WrongState) }

// persist reads an object, as often as it takes while the store fails.
func (q *Queue) persist(ctx context.Context, key store.Key) (store.Object, error) {
	begun := q.cfg.Now()
	for attempt := 0; ; attempt++ {
		o, err := q.cfg.Store.Get(ctx, key)
		if err == nil || fault.Is(err, fault.NotFound) || damaged(err) || ctx.Err() != nil || q.cfg.Now().Sub(begun) >= q.cfg.Patience {
			return o, err
		}
		select {
		case <-time.After(pause(attempt)):
		case <-ctx.Done():
		case <-q.ctx.Done():
			return o, err
		}
	}
}

func submissionKey(key string) store.Key { return store.Key{Kind: KindSubmission, ID: key} }
