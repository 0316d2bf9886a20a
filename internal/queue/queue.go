// Package queue takes jobs, decides with the pure cores when each may go on,
// runs their opcodes and remembers everything in the store.
//
// All decisions are made under one mutex, in update: it applies one event,
// lets dispatch draw the consequences, and hands everything that changed to
// the store as one transaction. What a decision promises to the outside (an
// answer to a client, the start of an opcode) happens after that transaction
// is durable, in committed.
//
// Invariants:
//   - Acknowledged is durable: no answer is given and no opcode begins before
//     the transaction with the decision is on disk.
//   - Readers see durable values only (publish.go), each immutable.
//   - Every live job that is not final has an entry, and the entry is in just
//     one place (place.go).
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
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/schedule"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// The kinds of objects that the queue keeps in the store.
const (
	KindJob        store.Kind = "job"
	KindArchived   store.Kind = "archived-job"
	KindFilter     store.Kind = "filter"
	KindSubmission store.Kind = "submission" // submission key -> job id
	KindQueue      store.Kind = "queue"      // drain flag, watcher pause
)

// Config is what a queue needs. All fields are required but for Patience.
type Config struct {
	Store     store.Store
	Epoch     int64 // of the leader lease; 0 where there is none
	Inventory *inventory.Keeper
	// Picture is where the queue shows what became durable.
	Picture   *picture.Picture
	Executors exec.Catalogue
	// Nodes gives executors access to the node daemons.
	Nodes exec.Nodes
	Now   func() time.Time
	// NewUUID makes a random UUID in its lower-case text form.
	NewUUID func() string
	Log     *slog.Logger
	// Patience is how long a store that fails is tried again before the queue
	// stops; zero for half a minute.
	Patience time.Duration
}

// Queue is the job queue of a cluster.
type Queue struct {
	cfg Config

	mu      sync.Mutex // guards everything below, up to outcomes
	entries map[job.ID]*entry
	// ending holds the entries of jobs whose end is not durable yet.
	ending map[job.ID]*entry
	// archiving holds jobs on their way into the archive.
	archiving map[job.ID]*job.Job
	lastID    job.ID
	// ready holds the entries that wait for a slot only, granted those that have
	// their locks and wait for a slot.
	ready   entryHeap
	granted entryHeap
	// full holds the entries that wait for a place in a bucket.
	full map[schedule.Bucket]*entryHeap
	// inFlight counts the entries in each bucket.
	inFlight map[schedule.Bucket]int
	// offered are buckets that may have places for those who wait in full.
	offered []schedule.Bucket
	// dependents are the entries that wait for a job to end, by their own ids.
	dependents map[job.ID]map[job.ID]*entry
	running    int
	// unwritten are entries with log messages that are not written yet.
	unwritten  []*entry
	locks      *lock.Table
	rules      []jobfilter.Rule
	chain      *jobfilter.Chain
	keys       map[string]job.ID // by submission key, of live jobs
	flags      state.Flags
	recovering bool  // true during the first update
	work       *work // what the present update has to make durable
	failed     error // why the queue stopped, if it did
	closing    bool

	outcomes outcomes
	// trouble is why the store failed last, nil once it works.
	trouble atomic.Pointer[error]
	writes  atomic.Uint64
	runners sync.WaitGroup
	stop    context.CancelCauseFunc
	ctx     context.Context // ends when the queue closes
}

// errStopping is the cause that ends opcodes when the queue closes.
var errStopping = fault.New(fault.Unavailable, "the controller is shutting down")

// Open loads the queue from the store, ends or requeues what a crash left
// behind, and begins to run jobs.
func Open(ctx context.Context, cfg Config) (*Queue, error) {
	q := &Queue{
		cfg:        cfg,
		entries:    map[job.ID]*entry{},
		full:       map[schedule.Bucket]*entryHeap{},
		inFlight:   map[schedule.Bucket]int{},
		dependents: map[job.ID]map[job.ID]*entry{},
		locks:      lock.NewTable(),
		ending:     map[job.ID]*entry{},
		archiving:  map[job.ID]*job.Job{},
		keys:       map[string]job.ID{},
	}
	if q.cfg.Patience == 0 {
		q.cfg.Patience = defaultPatience
	}
	q.outcomes.init()
	q.ctx, q.stop = context.WithCancelCause(context.Background())
	if err := q.load(ctx); err != nil {
		return nil, err
	}
	go q.outcomes.run(q.settle)
	q.update(q.recover)
	cfg.Inventory.OnChange(q.inventoryChanged)
	return q, nil
}

// Close stops starting opcodes, ends those that run, and waits for what is
// under way to be durable. Opcodes that were running are resumed, or marked as
// lost, when the queue is opened again.
func (q *Queue) Close() {
	q.mu.Lock()
	q.closing = true
	q.mu.Unlock()
	q.stop(errStopping)
	q.runners.Wait()
	q.writeLogs()
	q.outcomes.drain()
}

// Failed waits until the queue stops by itself, because its decisions can no
// longer be stored, and returns why. It returns nil when ctx ends first or the
// queue is closed.
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

// update applies one event under the mutex, draws the consequences, and hands
// what changed to the store.
func (q *Queue) update(event func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.work = &work{}
	event()
	q.dispatch()
	q.flush()
}

func (q *Queue) now() job.Time { return job.At(q.cfg.Now()) }

// usable answers whether the queue takes requests, as an error if not.
func (q *Queue) usable() error {
	if q.failed != nil {
		return q.failed
	}
	if q.closing {
		return errStopping
	}
	return nil
}

// inventoryChanged lets waiting jobs use slots that a new limit opens.
func (q *Queue) inventoryChanged(*cluster.Snapshot) { q.update(func() {}) }

// maxRunning is how many jobs may run at once.
func (q *Queue) maxRunning() int {
	return int(q.cfg.Inventory.Snapshot().Cluster().MaxRunningJobs)
}
