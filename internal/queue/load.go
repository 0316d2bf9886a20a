package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/queue/machine"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// load reads everything from the store into memory, but for the archive, and
// shows it.
func (q *Queue) load(ctx context.Context) error {
	revision, err := q.cfg.Store.Revision(ctx)
	if err != nil {
		return err
	}
	l := &loader{q: q, Loaded: machine.Loaded{
		Keys: map[string]job.ID{}, Ended: map[job.ID]job.Status{}, Unread: map[job.ID]bool{}, Begun: map[job.ID]machine.Begun{}, Resumable: q.cfg.Executors.Resumable,
	}}
	for _, step := range []func(context.Context) error{l.jobs, l.works, l.floor, l.pruned, l.rules, l.flags, l.dependencies} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	q.world, q.stepwise = q.cfg.Inventory.Snapshot(), q.keepsSteps()
	l.World = q.worldOf(q.world)
	if q.m, err = machine.New(l.Loaded); err != nil {
		return err
	}
	q.cfg.Picture.Committed(&state.Change{
		Revision: int64(revision), Rules: q.m.Chain().Rules(), Flags: &l.Flags,
	})
	q.cfg.Picture.Publish()
	if q.Jobs().Len() >= manyJobs {
		debug.FreeOSMemory()
	}
	return nil
}

// manyJobs is how many jobs leave so much garbage when they are read (more than what is kept of
// them) that it is given back to the system at once: a controller that does little has no need
// to collect it for hours.
const manyJobs = 100_000

// loader gathers what a machine begins with.
type loader struct {
	machine.Loaded

	q *Queue
}

// unreadable notes an object that cannot be read. It is left where it is; what
// can be read is served.
func (l *loader) unreadable(o store.Object, err error) {
	what := fmt.Sprintf("%s %s: %v", o.Kind, o.ID, err)
	l.q.unread = append(l.q.unread, what)
	l.q.cfg.Log.Error("a stored object cannot be read and is left out", "kind", o.Kind, "id", o.ID, "error", err)
}

// loadChunk is how many jobs are decoded together.
const loadChunk = 2000

// chunk is a number of stored jobs, decoded.
type chunk struct {
	stored   []store.Object
	jobs     []*job.Job
	failures []error
}

// jobs takes all jobs up that are not archived. While it does so with a chunk, the
// next one is read and decoded.
func (l *loader) jobs(ctx context.Context) (err error) {
	reading, stop := context.WithCancel(ctx)
	chunks, read := make(chan *chunk, 1), make(chan error, 1)
	go func() {
		defer close(chunks)
		read <- l.q.decodeAll(reading, chunks)
	}()
	for c := range chunks {
		if err == nil {
			if err = l.takeUp(c); err != nil {
				stop()
			}
		}
	}
	stop()
	if err = cmp.Or(err, <-read); err != nil {
		return err
	}
	return l.newestArchived(ctx)
}

// newestArchived keeps the ids of archived jobs from being given again. What is
// among them and is no job comes behind all of them, and does not hide them.
func (l *loader) newestArchived(ctx context.Context) error {
	for last := (store.Options{Desc: true, Limit: 1}); ; {
		found := false
		for o, err := range l.q.cfg.Store.List(ctx, KindArchived, last) {
			if err != nil {
				return err
			}
			if l.countID(o) {
				return nil
			}
			last.After, found = o.ID, true
		}
		if !found {
			return nil
		}
	}
}

// decodeAll reads and decodes all jobs that are not archived, in their order.
func (q *Queue) decodeAll(ctx context.Context, to chan<- *chunk) error {
	c := &chunk{}
	send := func() error {
		c.jobs, c.failures = make([]*job.Job, len(c.stored)), make([]error, len(c.stored))
		spread(len(c.stored), func(i int) { c.jobs[i], c.failures[i] = q.Decode(ctx, c.stored[i]) })
		select {
		case to <- c:
			c = &chunk{}
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for o, err := range q.cfg.Store.List(ctx, KindJob, store.Options{}) {
		if err != nil {
			return err
		}
		if c.stored = append(c.stored, o); len(c.stored) == loadChunk {
			if err := send(); err != nil {
				return err
			}
		}
	}
	return send()
}

// countID keeps the id of a stored job from being given again. An object that has
// none is no job, and left out.
func (l *loader) countID(o store.Object) bool {
	id, err := job.ParseID(o.ID)
	if err != nil {
		l.unreadable(o, err)
	}
	l.LastID = max(l.LastID, id)
	return err == nil
}

// takeUp takes stored jobs into memory.
func (l *loader) takeUp(c *chunk) error {
	read := &state.Change{}
	for i, o := range c.stored {
		if !l.countID(o) {
			continue
		}
		if err := c.failures[i]; err != nil {
			damage, ok := errors.AsType[*job.DamageError](err)
			if !ok {
				return err
			}
			l.unreadable(o, damage)
			l.Unread[damage.ID] = true
			continue
		}
		j := c.jobs[i]
		read.Jobs = append(read.Jobs, j)
		if j.Key != "" {
			l.Keys[j.Key] = j.ID
		}
		if !j.Final() {
			l.Jobs = append(l.Jobs, j)
		}
	}
	// Shown at once, and with no revision yet: of those that have ended only
	// little stays in memory.
	l.q.cfg.Picture.Committed(read)
	l.q.cfg.Picture.Publish()
	return nil
}

func (l *loader) rules(ctx context.Context) error {
	for o, err := range l.q.cfg.Store.List(ctx, KindFilter, store.Options{}) {
		if err != nil {
			return err
		}
		var r jobfilter.Rule
		err := json.Unmarshal(o.Value, &r)
		if err == nil {
			_, err = jobfilter.Compile([]jobfilter.Rule{r})
		}
		if err != nil {
			l.unreadable(o, err)
			r = inPlaceOf(o.ID)
		}
		l.Rules = append(l.Rules, r)
		// Refused submissions use ids up that no job has: a rule for new jobs must
		// not let one through that gets such an id again.
		l.LastID = max(l.LastID, job.ID(r.Watermark))
	}
	return nil
}

// inPlaceOf is the rule that holds everything in place of one that cannot be
// read: nobody knows what that one was to prevent.
func inPlaceOf(uuid string) jobfilter.Rule {
	return jobfilter.Rule{
		UUID: uuid, Action: jobfilter.Action{Kind: jobfilter.Pause},
		Reason: reason.Trail{{Source: reason.SourceQueue, Reason: "the stored rule cannot be read; delete this one to let jobs go on"}},
	}
}

// Floor is the object that keeps job ids from being given again that a cluster
// gave out which was restored from a backup: new ones are greater than Job.
type Floor struct {
	Job job.ID `json:"job"`
}

// FloorKey is where the Floor is, if there is one.
var FloorKey = store.Key{Kind: KindQueue, ID: "floor"}

// Jump is how many ids are passed over where nobody knows which were given.
const Jump = 1_000_000

// floor keeps the ids up to the floor from being given.
func (l *loader) floor(ctx context.Context) error {
	o, err := l.q.read(ctx, FloorKey)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var f Floor
	if err := json.Unmarshal(o.Value, &f); err != nil {
		l.unreadable(o, err)
		f.Job = l.LastID + Jump
	}
	l.LastID = max(l.LastID, f.Job)
	return nil
}

// pruned finds out up to which id jobs were pruned.
func (l *loader) pruned(ctx context.Context) error {
	id, err := l.q.prunedUpTo(ctx)
	if fault.Is(err, fault.Internal) {
		l.unreadable(store.Object{Key: PrunedKey}, err)
		err = nil
	}
	l.q.pruned, l.LastID = id, max(l.LastID, id)
	return err
}

func (l *loader) flags(ctx context.Context) error {
	o, err := l.q.read(ctx, FlagsKey)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(o.Value, &l.Flags); err != nil {
		// Nobody knows whether the queue was drained: it is, until somebody looks.
		l.unreadable(o, err)
		l.Flags = state.Flags{Drained: true, Drain: &state.Drain{Who: "the controller", At: l.q.cfg.Now().UnixNano(),
			Why: "the stored flags of the queue cannot be read, so nobody knows whether it was drained"}}
	}
	return nil
}

// dependencies finds out what became of the jobs that those in the queue depend
// on. One that cannot be read counts as not ended: nothing is decided upon a guess.
func (l *loader) dependencies(ctx context.Context) error {
	known := l.q.Jobs()
	for _, j := range l.Jobs {
		for _, id := range j.Dependencies() {
			if other := known.Get(id); other != nil {
				if other.Final() {
					l.Ended[id] = other.Status()
				}
				continue
			}
			if _, asked := l.Ended[id]; asked || l.Unread[id] {
				continue
			}
			old, err := l.q.archived(ctx, id)
			switch {
			case err == nil:
				l.Ended[id] = old.Status()
			case fault.Is(err, fault.NotFound):
				l.Ended[id] = ""
			default:
				return err
			}
		}
	}
	return nil
}
