package tagsync

import (
	"context"
	"time"

	"github.com/drover-project/drover/internal/backoff"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/store/format"
)

// worker is what is going on about one server.
type worker struct {
	// changing is held while a change of the server is decided and handed to the
	// store, which takes them in that order. last is the newest of them; nil while
	// there was none.
	changing baton
	last     *pending

	// The rest is guarded by Engine.mu. busy: a goroutine is at it; again: something
	// happened meanwhile; refusals count how often its cluster could not be
	// reached in a row.
	busy, again bool
	refusals    int
	alarm       *time.Timer
	// waiting are told how the next turn went that begins.
	waiting []chan<- error
}

// baton is held by one at a time. Whoever holds it may wait for the store, so it is no
// mutex: waiting for one of these is not idle, and where time is pretended it would stand
// still.
type baton chan struct{}

// Lock waits for it.
func (b baton) Lock() { b <- struct{}{} }

// Unlock hands it on.
func (b baton) Unlock() { <-b }

// pending is a change that was handed to the store.
type pending struct {
	server  *server.Server // as it is then; nil if it is removed
	durable chan struct{}  // closed when err is known
	err     error
}

// settle takes in what became of it.
func (p *pending) settle(err error) {
	p.err = err
	close(p.durable)
}

// failed reports whether it is known not to be acknowledged; no change at all is
// no failure.
func (p *pending) failed() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.durable:
		return p.err != nil
	default:
		return false
	}
}

func (e *Engine) workerOf(id string) *worker {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.workers[id]
	if w == nil {
		w = &worker{changing: make(baton, 1)}
		e.workers[id] = w
	}
	return w
}

// forget drops the worker of a server that is no more.
func (e *Engine) forget(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w := e.workers[id]; w != nil && !w.busy {
		if w.alarm != nil {
			w.alarm.Stop()
		}
		delete(e.workers, id)
	}
}

// kick has a server looked at soon, and once more if it is being looked at.
func (e *Engine) kick(id string) {
	w := e.workerOf(id)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	if w.busy {
		w.again = true
		return
	}
	w.busy = true
	e.running.Go(func() { e.work(id, w) })
}

// work looks at a server until nothing happens about it any more.
func (e *Engine) work(id string, w *worker) {
	places := e.places[""]
	if s := e.Servers().Get(id); s != nil && e.places[s.Backend] != nil {
		places = e.places[s.Backend]
	}
	places <- struct{}{}
	defer func() { <-places }()
	for {
		told := e.takeWaiting(w)
		wake, err := e.turn(id)
		if err != nil { // the next turn may be far away
			told = append(told, e.takeWaiting(w)...)
		}
		for _, c := range told {
			c <- err
		}
		if e.rest(id, w, wake, err) {
			return
		}
	}
}

func (e *Engine) takeWaiting(w *worker) []chan<- error {
	e.mu.Lock()
	defer e.mu.Unlock()
	told := w.waiting
	w.waiting = nil
	return told
}

// Attend has a server looked at, and returns when that is done: what its cluster
// showed after the call is durable then, and the jobs are submitted that follow
// from it. The error is why the cluster could not be asked; that is tried again
// in any case. A server that is not there needs nothing.
func (e *Engine) Attend(ctx context.Context, id string) error {
	if e.Servers().Get(id) == nil {
		return nil
	}
	done := make(chan error, 1)
	w := e.workerOf(id)
	e.mu.Lock()
	w.waiting = append(w.waiting, done)
	e.mu.Unlock()
	e.kick(id)
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-e.ctx.Done():
		return fault.New(fault.Unavailable, "the controller is stopping")
	}
}

// rest ends the work on a server, unless there is more to do at once. When its cluster
// could not be reached it is tried again, ever more rarely.
func (e *Engine) rest(id string, w *worker, wake job.Time, err error) (over bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err == nil:
		w.refusals = 0
	case e.ctx.Err() == nil:
		w.refusals++
		wake = e.Now() + job.Time(pauses().After(w.refusals).Microseconds())
		e.cfg.Log.Warn("a server cannot be brought in line with its cluster now", "server", id, "error", err, "tries", w.refusals)
	}
	if e.closed {
		w.busy = false
		return true
	}
	if w.again && err == nil {
		w.again = false
		return false
	}
	w.busy, w.again = false, false
	if w.alarm != nil {
		w.alarm.Stop()
	}
	if wake != 0 {
		w.alarm = time.AfterFunc(time.Duration(wake-e.Now())*time.Microsecond, func() { e.kick(id) })
	}
	if e.Servers().Get(id) == nil {
		delete(e.workers, id)
	}
	return true
}

// pauses are how long a cluster that cannot be reached is left alone.
func pauses() backoff.Pauses {
	return backoff.Pauses{First: 100 * time.Millisecond, Longest: 10 * time.Second}
}

// turn takes in what a server's cluster shows, begins what is to be done next,
// and submits it. It returns when something is to be tried again.
func (e *Engine) turn(id string) (wake job.Time, err error) {
	s := e.Servers().Get(id)
	if s == nil {
		return 0, nil
	}
	b := e.cfg.Backends[s.Backend]
	if b == nil {
		return 0, nil // its cluster is not configured any more
	}
	sight, err := e.look(e.ctx, b, s)
	if err != nil {
		return 0, err
	}
	sight.Now = e.Now()
	var past *server.Past
	s, err = e.changeBeside(id, func(s *server.Server) (*server.Server, error) {
		sight := s.Own(sight)
		next := s.Settle(e.cfg.Policy, sight)
		if next == nil {
			past = s.Past(sight)
		}
		if next == nil || next.Deleting() || next.Deleted != 0 {
			return next, nil
		}
		left := e.leaving(next)
		tags, again := left.Tags.Turn(e.cfg.Policy, sight.Sight)
		wake = again
		return left.WithTags(tags), nil
	}, keeping(&past))
	if fault.Is(err, fault.NotFound) || s == nil {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return wake, e.submit(e.ctx, b, s)
}

// look asks a cluster what there is of a server; of one whose record does not say which instance it is, also how its
// creation ended.
func (e *Engine) look(ctx context.Context, b Backend, s *server.Server) (server.Sight, error) {
	sight, err := b.Look(ctx, s.Ref(), s.Jobs())
	if err == nil && sight.Instance && s.Unknown() {
		sight.Creation, _, err = b.Creation(ctx, keyOf(s, "task", creationSerial), s)
	}
	return sight, err
}

// creationSerial is that of the first task of a server.
const creationSerial = 1

// submit hands in the jobs that were begun.
func (e *Engine) submit(ctx context.Context, b Backend, s *server.Server) error {
	if task := s.Doing(); task != nil && task.Job == 0 {
		if err := e.submitTask(ctx, b, s, task); err != nil {
			return err
		}
	}
	for _, j := range s.Tags.Unsubmitted() {
		op, err := e.asStored(s.TagOpcode(&j))
		err = e.submitOne(ctx, b, s, keyOf(s, "tags", j.Serial), op, err, func(set servertag.Set, id job.ID, refused string) servertag.Set {
			if refused != "" {
				return set.Refused(j.Serial, refused, e.Now())
			}
			return set.Submitted(j.Serial, id, e.Now())
		})
		if err != nil {
			return err
		}
	}
	if a := s.Tags.UnsubmittedEffect(); a != nil {
		op, err := e.asStored(s.EffectOpcode(a))
		return e.submitOne(ctx, b, s, keyOf(s, "effect", a.Serial), op, err, func(set servertag.Set, id job.ID, refused string) servertag.Set {
			if refused != "" {
				return set.EffectRefused(a.Serial, refused, e.Now())
			}
			return set.EffectSubmitted(a.Serial, id)
		})
	}
	return nil
}

// asStored leaves out of an opcode what jobs may not hold before the store's format lets them: programs of before would not
// read them.
func (e *Engine) asStored(op *opcode.Opcode, err error) (*opcode.Opcode, error) {
	if err == nil && e.format() < format.Identities && op.Has("kind") {
		delete(op.Params, "instance_uuid")
	}
	return op, err
}

// submitOne hands in a job about tags, unless it could not be made, and writes
// down what became of that: its id, or why it is refused.
func (e *Engine) submitOne(ctx context.Context, b Backend, s *server.Server, key string, op *opcode.Opcode, bad error,
	write func(set servertag.Set, id job.ID, refused string) servertag.Set,
) error {
	var id job.ID
	if bad == nil {
		id, bad = b.Submit(ctx, key, op)
	}
	if temporary(bad) {
		return bad
	}
	_, err := e.Change(s.ID, func(s *server.Server) (*server.Server, error) {
		return s.WithTags(write(s.Tags, id, textOf(bad))), nil
	})
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// textOf is what an error says; nothing if there is none.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// missed takes in that a deletion was not taken, since there is nothing to delete. If the cluster was seen to lack the instance before that,
// the server is done with; else the instance may just have another name, and is looked for again.
func (e *Engine) missed(s *server.Server, err error) error {
	if s.Deleted == 0 {
		return fault.New(fault.Unavailable, "the instance of server %s was not found to be deleted: %w", s.ID, err)
	}
	var past *server.Past
	_, err = e.changeBeside(s.ID, func(s *server.Server) (*server.Server, error) {
		if s.Deleted == 0 {
			return s, nil
		}
		past = s.Past(server.Sight{Sight: servertag.Sight{Now: e.Now()}})
		return nil, nil
	}, keeping(&past))
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

func (e *Engine) submitTask(ctx context.Context, b Backend, s *server.Server, task *server.Task) error {
	ops, err := s.Opcodes(task)
	var id job.ID
	switch {
	case err != nil:
	case task.Anew != nil:
		id, err = e.submitOnce(ctx, b, s, task, ops)
	default:
		id, err = b.Submit(ctx, keyOf(s, "task", task.Serial), ops...)
	}
	if missed := fault.Is(err, fault.NotFound) || fault.Is(err, fault.Exists); missed && task.Do == server.Delete {
		return e.missed(s, err)
	}
	if temporary(err) {
		return err
	}
	refused := textOf(err)
	_, err = e.Change(s.ID, func(s *server.Server) (*server.Server, error) {
		if refused != "" {
			return s.Refused(task.Serial, refused, e.Now()), nil
		}
		return s.Submitted(task.Serial, id), nil
	})
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}
