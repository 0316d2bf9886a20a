// Package queue takes jobs, runs their opcodes and remembers everything in the
// store. What is decided, and why, is package machine's; the queue is the engine
// around it: it has the mutex, the clock, the store and the goroutines.
//
// Everything goes one way. Something happens (a request, the end of an opcode);
// under the mutex it becomes an event of the machine (update), and what follows
// from it goes to the store as one transaction (flush). When that is durable,
// readers see it and what was promised happens: answers are given, opcodes
// begin (settle).
//
// Invariants:
//   - Acknowledged is durable: no answer is given and no opcode begins before
//     the transaction with the decision is on disk.
//   - Readers see durable values only (publish.go), each immutable.
//   - Under the mutex nobody reads the store, and nobody walks all jobs.
//   - Nothing polls: a job moves when an event concerns it.
//   - Only the queue writes jobs and filter rules.
package queue

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/inventory"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/queue/machine"
	"github.com/drover-project/drover/internal/schedule"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
)

// The kinds of objects that the queue keeps in the store.
const (
	KindJob        store.Kind = "job" // its head; see job.Part
	KindArchived   store.Kind = "archived-job"
	KindPart       store.Kind = "job-part" // the rest of a job, archived or not: id/name
	KindFilter     store.Kind = "filter"
	KindSubmission store.Kind = "submission" // submission key -> job id
	KindQueue      store.Kind = "queue"      // drain flag, watcher pause
	KindEvent      store.Kind = "event"      // what was done that is no job
)

// What opcodes do that have begun is in objects of the kinds exec.KindWork, which the queue writes, and exec.KindStep, which
// the inventory does; the queue removes both with the end of the opcode.

// Config is what a queue needs. All fields are required but for the times.
type Config struct {
	Store store.Store
	Epoch int64 // of the leader lease; 0 where there is none
	// Life is that of the store (package store/life), which orders to nodes have beside the job's id.
	Life      string
	Inventory *inventory.Keeper
	// Picture is where the queue shows what became durable.
	Picture   *picture.Picture
	Executors exec.Catalogue
	// Nodes gives executors access to the node daemons.
	Nodes exec.Nodes
	// Uploads are the files of images that users brought; nil where there are none.
	Uploads exec.Uploads
	Now     func() time.Time
	// NewUUID makes a random UUID in its lower-case text form.
	NewUUID func() string
	// Format tells the format of the store, which decides whether what opcodes do is kept; nil for the newest.
	Format func() int
	Log    *slog.Logger
	// Patience is how long requests wait for a store that fails before they are told that
	// nobody knows whether they took effect; those that come then are refused. Zero for
	// half a minute. What was decided is written again until the store works.
	Patience time.Duration
	// Told is the revision of the store up to which others were told how jobs ended; nil where nobody is. What went into the archive
	// later is not pruned.
	Told func() store.Revision
	// EventsByAge says that events go by their age alone (PruneEvents), however many there are.
	EventsByAge bool
	// LeftBehind is told what of a job could not be taken back, and why; nil for nobody.
	LeftBehind func(id job.ID, what string, err error)
	// Grace is how long opcodes that run may go on when the queue closes; zero
	// ends them at once.
	Grace time.Duration
}

// Queue is the job queue of a cluster.
type Queue struct {
	cfg Config
	// Stored reads the store, as often as it takes while that fails.
	*Stored

	mu sync.Mutex // guards everything below, up to planning
	m  *machine.Machine
	// world is the inventory that the machine knows, and stepwise what it knows of the format.
	world    *cluster.Snapshot
	stepwise bool
	// away are the nodes that opcodes wait for.
	away map[string]*schedule.Absence
	// works are the steps of opcodes that run, as they are stored, by the ids of their records; found is what the
	// controller before kept of those that go on.
	works map[string][]byte
	found map[job.ID]*exec.Kept
	// stale are records of what had ended already.
	stale []store.Key
	// kills end running opcodes, by job.
	kills map[job.ID]context.CancelCauseFunc
	// archiving holds jobs on their way into the archive; archivals counts those
	// that arrived.
	archiving map[job.ID]leaving
	archivals uint64
	// pruning are jobs of the archive on their way out of the store, pruned is the greatest id of one that went or goes.
	pruning map[job.ID]bool
	pruned  job.ID
	// prunes is held by the one who prunes.
	prunes sync.Mutex
	handed handed
	// unsettled are works that are on their way to the store, or will be again.
	unsettled map[*work]bool
	unread    []string // what could not be read from the store, or not be written
	// lost are the jobs that were never taken, because the store refused them for good.
	lost      map[job.ID]error
	lastEvent int64 // number of the newest event
	phase     phase
	failed    error // why the queue stopped, if it did

	// planning is held while a change of rules is worked out, which takes long.
	planning sync.Mutex
	expiring bell // rings when rules changed
	outcomes outcomes
	// trouble is why the store failed last, nil once it works. It is changed under mu.
	trouble atomic.Pointer[trouble]
	writes  atomic.Uint64
	runners sync.WaitGroup
	// quiet: nothing begins any more, though requests are taken. opcodes are those of the runners that carry out one.
	quiet   bool
	opcodes sync.WaitGroup
	crew    crew
	stop    context.CancelCauseFunc
	ctx     context.Context // ends when running opcodes are to end
	// expiries ends when rules are no longer to end by themselves.
	expiries     context.Context
	stopExpiries context.CancelFunc
}

// phase is how far a queue is in its life.
type phase uint8

const (
	loaded  phase = iota // shows what it has, takes nothing
	open                 // takes requests, runs jobs
	closing              // begins nothing more; what runs may go on
	closed
)

// errStopping is the cause that ends opcodes when the queue closes.
var errStopping = fault.New(fault.Unavailable, "the controller is shutting down")

// errNotOpen refuses requests that come before Run.
var errNotOpen = fault.New(fault.Unavailable, "the controller is starting")

// Open loads the queue from the store and shows what it has. It takes requests
// and runs jobs from Run on, so that what opcodes need can be built from it.
func Open(ctx context.Context, cfg Config) (*Queue, error) {
	q := &Queue{cfg: cfg, crew: newCrew(), kills: map[job.ID]context.CancelCauseFunc{}, archiving: map[job.ID]leaving{}, pruning: map[job.ID]bool{}, handed: handed{}, works: map[string][]byte{}, found: map[job.ID]*exec.Kept{}, unsettled: map[*work]bool{}, expiring: make(bell, 1), lost: map[job.ID]error{}}
	if q.cfg.Patience == 0 {
		q.cfg.Patience = defaultPatience
	}
	q.Stored = &Stored{cfg.Store, q.persist}
	q.outcomes.init()
	q.ctx, q.stop = context.WithCancelCause(context.Background())
	q.expiries, q.stopExpiries = context.WithCancel(q.ctx)
	if err := q.load(ctx); err != nil {
		return nil, err
	}
	if err := q.loadEvents(ctx); err != nil {
		return nil, err
	}
	go q.outcomes.run(q.settle)
	return q, nil
}

// Run ends or requeues what a crash left behind, and begins to take requests and
// to run jobs. It returns at once; Close ends what it began.
func (q *Queue) Run() {
	q.update(func(w *work) {
		q.phase = open
		q.apply(w, machine.Recover{})
		for _, key := range q.stale {
			w.touch(key)
		}
		q.stale = nil
	})
	q.cfg.Inventory.OnChange(q.inventoryChanged)
	q.runners.Go(func() { q.expireRules(q.expiries) })
}

// Quiesce has nothing begin any more, while requests are taken as before, and returns when what runs has ended, or ctx has. It is
// for a queue that is about to be closed, and not taken back.
func (q *Queue) Quiesce(ctx context.Context) {
	q.update(func(w *work) {
		q.quiet = true
		q.apply(w, machine.Stop{})
	})
	ended := make(chan struct{})
	go func() {
		q.opcodes.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// Close ends the queue in two steps. First nothing begins any more and no
// request is taken, but opcodes that run may go on for the grace of the
// configuration. Then they are told to end; they are resumed, or marked as lost,
// when the queue is opened again. Jobs that were to begin and had not are queued
// then as they were before; what was to be resumed still is. It returns when all is durable.
func (q *Queue) Close() {
	q.update(func(w *work) {
		q.phase = closing
		q.apply(w, machine.Stop{})
	})
	q.stopExpiries()
	q.outcomes.settled() // what was to begin is running or queued again
	ended := make(chan struct{})
	go func() {
		q.runners.Wait()
		close(ended)
	}()
	if q.cfg.Grace > 0 && q.ctx.Err() == nil {
		grace := time.NewTimer(q.cfg.Grace)
		defer grace.Stop()
		select {
		case <-ended:
		case <-grace.C:
		}
	}
	q.stop(errStopping)
	<-ended
	q.mu.Lock()
	q.phase = closed
	q.mu.Unlock()
	q.outcomes.drain()
}

// Failed waits until the queue stops by itself, because another controller leads, and
// returns why: fault.Fenced. It returns nil when ctx ends first or the queue is closed.
func (q *Queue) Failed(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-q.ctx.Done():
		if cause := context.Cause(q.ctx); !errors.Is(cause, errStopping) {
			return cause
		}
	}
	return nil
}

// Writes returns how often something was handed to the store to be made durable,
// since the queue was opened: while it grows, jobs are on the move.
func (q *Queue) Writes() uint64 { return q.writes.Load() }

// update lets something happen under the mutex and hands what changed to the
// store.
func (q *Queue) update(happens func(*work)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := &work{}
	q.lookAround(w)
	happens(w)
	q.flush(w)
}

// apply lets an event happen to the machine, and takes over what follows.
func (q *Queue) apply(w *work, e machine.Event) *machine.Ready {
	r := q.m.Apply(e, q.cfg.Now())
	w.add(r)
	for _, s := range r.Starts {
		ctx, kill := context.WithCancelCause(q.ctx)
		q.kills[s.Job] = kill
		w.begins = append(w.begins, begin{s.Job, func() { q.start(ctx, s) }})
	}
	for _, id := range r.Kills {
		q.kills[id](errKilled)
	}
	return r
}

// lookAround tells the machine of the newest inventory.
func (q *Queue) lookAround(w *work) {
	snap, stepwise := q.cfg.Inventory.Snapshot(), q.keepsSteps()
	if snap == q.world && stepwise == q.stepwise {
		return
	}
	q.world, q.stepwise = snap, stepwise
	q.apply(w, q.worldOf(snap))
}

// worldOf is what the inventory means for the machine.
func (q *Queue) worldOf(snap *cluster.Snapshot) machine.World {
	w := machine.World{Stepwise: q.stepwise, LockName: snap.LockName, Away: q.away, Nodes: func(op *opcode.Opcode) []string { return q.cfg.Executors.Nodes(op, snap) }, Locks: func(op *opcode.Opcode) lock.Request {
		request, err := q.cfg.Executors.Locks(op, snap)
		if err != nil {
			return nil
		}
		return request
	}}
	if c := snap.Cluster(); c != nil {
		w.MaxRunning = int(c.MaxRunningJobs)
	}
	return w
}

// Await has opcodes that work with certain nodes, by UUID, wait for their agents, in no slot and without locks, until it is called again
// without them. Nobody changes what is handed over.
func (q *Queue) Await(away map[string]*schedule.Absence) {
	q.update(func(w *work) {
		if len(away) == 0 && len(q.away) == 0 {
			return
		}
		q.away = away
		q.apply(w, q.worldOf(q.world))
	})
}

// keepsSteps reports whether what opcodes do is kept: programs of before a format would not know what to do with it.
func (q *Queue) keepsSteps() bool { return q.format() >= format.Steps }

// format is the present one of the store.
func (q *Queue) format() int {
	if q.cfg.Format == nil {
		return format.Newest
	}
	return q.cfg.Format()
}

// inventoryChanged lets waiting jobs use slots that a new limit opens.
func (q *Queue) inventoryChanged(*cluster.Snapshot) { q.update(func(*work) {}) }

// usable answers whether the queue takes requests, as an error if not.
func (q *Queue) usable() error {
	switch {
	case q.failed != nil:
		return q.failed
	case q.phase == loaded:
		return errNotOpen
	case q.phase > open:
		return errStopping
	}
	if t := q.trouble.Load(); t != nil && q.cfg.Now().Sub(t.since) >= q.cfg.Patience {
		return t.told()
	}
	return nil
}

// look returns the machine as it is now, for whoever wants to know what it
// thinks, or would.
func (q *Queue) look() *machine.Machine {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.m.Clone()
}
