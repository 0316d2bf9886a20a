// Package rollout keeps environments, task graphs and deployments, computes plans of what is stored, and carries them
// out: each task of a plan on each node becomes a job of the queue.
//
// What may begin, and what the end of a task means for the others, is decided by the machine of package course; the
// engine hands jobs to the queue, hears how they ended, and keeps what became of them. What is known of them at once is in the picture
// (state.State), which every controller has; the rest is read from the store when it is needed.
//
// Invariants:
//   - What is told is durable. A plan is stored as a whole or not at all.
//   - Jobs have submission keys that name deployment, attempt and step: whoever leads next asks for the same jobs again,
//     and gets those that there are.
//   - A success and the state that it makes the task's old state are one transaction, before the job ends.
//   - At most one deployment of an environment is under way.
package rollout

import (
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/backoff"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/sealed"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// The kinds of objects that the engine keeps in the store. The picture has environments, graphs and deployments in brief (course.Table).
const (
	KindEnvironment store.Kind = "environment"
	KindGraph       store.Kind = "task-graph"
	KindPart        store.Kind = "state-part"          // digest -> JSON of the common part of a state, or of a node's
	KindDeployment  store.Kind = "deployment"          //
	KindPlan        store.Kind = "deployment-plan"     // deployment/number -> a piece of its course
	KindRecord      store.Kind = "deployment-task"     // deployment/step -> what became of it
	KindSuccess     store.Kind = "task-success"        // environment/node/task -> deployment
	KindCleared     store.Kind = "deployments-cleared" // below -> a number: of deployments with lower ones nothing is left
)

// By is who wants something and why.
type By = audit.By

// Config is what an engine needs. All fields but Functions, Nodes and Digest are required.
type Config struct {
	Store   store.Store
	Epoch   int64
	Picture *picture.Picture
	Now     func() time.Time
	Log     *slog.Logger
	// Digest names a text by what it holds, so that only who has its key can tell whether a text that he guesses is the one;
	// nil for a key that ends with the engine.
	Digest func(text []byte) string
	// Functions holds files of the operator's own functions; nil for none.
	Functions fs.FS
	// Nodes finds the nodes that are asked whether what was deployed is there still; nil where none can be.
	Nodes exec.Nodes
}

// Engine is safe for concurrent use.
type Engine struct {
	// Reader answers questions.
	*Reader

	cfg   Config
	queue *queue.Queue

	changing baton // held while environments, graphs or deployments are changed, until that is stored: one after the other

	asking turns // for those who have machines asked

	removing sync.Mutex // held while deployments are removed: who counts what refers to a part sees what another removes

	mu      sync.Mutex
	runs    map[int64]*run // of deployments that are under way; guarded by mu
	storing map[int64]bool // the numbers of plans that are stored at this moment; guarded by mu

	byJob  map[job.ID]origin // belongs to the driving goroutine
	acts   chan func()
	stop   context.CancelFunc
	ending <-chan struct{} // closed when Close begins: nothing is looked up any more
	done   chan struct{}
}

// origin says what a job is for.
type origin struct {
	deployment int64
	step       int32
}

// Open reads what is stored. Tasks can be carried out from now on; Run lets deployments go on.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	reader, err := NewReader(ReaderConfig{Store: cfg.Store, Picture: cfg.Picture, Now: cfg.Now, Log: cfg.Log, Functions: cfg.Functions})
	if err != nil {
		return nil, err
	}
	if cfg.Digest == nil {
		ring, err := sealed.NewRing()
		if err != nil {
			return nil, err
		}
		cfg.Digest = ring.Digest
	}
	e := &Engine{Reader: reader, cfg: cfg, runs: map[int64]*run{}, storing: map[int64]bool{}, byJob: map[job.ID]origin{},
		changing: make(baton, 1), asking: make(turns, mostAsking), acts: make(chan func()), done: make(chan struct{})}
	if err := e.rename(ctx); err != nil {
		return nil, err
	}
	if err := e.show(ctx); err != nil {
		return nil, err
	}
	return e, e.clearGaps(ctx)
}

// show puts what is stored into the picture, and makes runs of the deployments that are under way.
func (e *Engine) show(ctx context.Context) error {
	c := &state.Change{}
	for x, err := range all[course.Environment](ctx, e.Reader, KindEnvironment) {
		if err != nil {
			return err
		}
		c.Environments = append(c.Environments, x)
	}
	for x, err := range all[course.Graph](ctx, e.Reader, KindGraph) {
		if err != nil {
			return err
		}
		c.Graphs = append(c.Graphs, x.Brief())
	}
	var active []*course.Deployment
	for x, err := range all[course.Deployment](ctx, e.Reader, KindDeployment) {
		if err != nil {
			return err
		}
		c.Deployments = append(c.Deployments, x.Brief())
		if x.Status.Active() {
			active = append(active, x)
		}
	}
	for _, d := range active {
		var err error
		if e.runs[d.ID], err = e.load(ctx, d); err != nil {
			return err
		}
		if err := e.Plans.Records(ctx, d.ID, func(x *course.Record) { c.Records = append(c.Records, x) }); err != nil {
			return err
		}
	}
	e.cfg.Picture.Committed(c)
	e.cfg.Picture.Publish()
	return nil
}

// Run lets the deployments go on that were under way. The queue takes requests already. Close ends what it begins.
func (e *Engine) Run(q *queue.Queue) {
	e.queue = q
	var ctx context.Context
	ctx, e.stop = context.WithCancel(context.Background())
	e.ending = ctx.Done()
	go e.drive(ctx)
}

// Close ends the engine. What runs comes to its end in the queue, and is looked at when the engine is opened again.
func (e *Engine) Close() {
	if e.stop == nil {
		return
	}
	e.stop()
	<-e.done
}

// baton is held by one at a time. Whoever holds it waits for the store, so it is no mutex:
// waiting for one of these is not idle, and where time is pretended it would stand still.
type baton chan struct{}

// Lock waits for it.
func (b baton) Lock() { b <- struct{}{} }

// Unlock hands it on.
func (b baton) Unlock() { <-b }

// errClosing is the answer to requests that come too late.
var errClosing = fault.New(fault.Unavailable, "the controller is shutting down")

// act has something done by the goroutine that drives the deployments, and waits for it. A context that ends before its turn
// has come means that it is not done at all; afterwards it ends the waiting alone.
func (e *Engine) act(ctx context.Context, f func() error) error {
	answer := make(chan error, 1)
	select {
	case e.acts <- func() { answer <- f() }:
	case <-e.done:
		return errClosing
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// commit makes a transaction durable, with the events that tell of it, and shows what it changed.
//
// What came of it is never guessed: when the store cannot say, it is written again until that is known, for nobody else writes what is in it.
// Only the end of the engine leaves it unknown, as fault.Unavailable; whoever leads next reads what there is.
func (e *Engine) commit(tx store.Tx, change *state.Change, told ...audit.Event) error {
	return e.commitUntil(e.ending, tx, change, told...)
}

// commitUntil is commit for who waits no longer than until over is closed.
func (e *Engine) commitUntil(over <-chan struct{}, tx store.Tx, change *state.Change, told ...audit.Event) error {
	tx.Epoch = e.cfg.Epoch
	for _, event := range told {
		change.Events = append(change.Events, e.queue.Note(&tx, event))
	}
	for tries := 1; ; tries++ {
		err := e.write(tx, change)
		if err == nil || store.Refused(err) || fault.Is(err, fault.WrongState) { // damage is not mended by asking again
			return err
		}
		select {
		case <-time.After(pauses().After(tries)):
		case <-over:
			return fault.New(fault.Unavailable, "it is not known whether the change was stored: %w", err)
		}
	}
}

// pauses are those between tries to store what is to be stored.
func pauses() backoff.Pauses {
	return backoff.Pauses{First: 10 * time.Millisecond, Longest: time.Second}
}

// write hands a transaction to the store, and shows it once it is durable.
func (e *Engine) write(tx store.Tx, change *state.Change) error {
	durable := make(chan error, 1)
	e.cfg.Store.Enqueue(tx, func(revision store.Revision, err error) {
		if err == nil {
			change.Revision = int64(revision)
			e.cfg.Picture.Committed(change)
		}
		durable <- err
	})
	err := <-durable
	if err == nil {
		e.cfg.Picture.Publish()
	}
	return err
}

// confirmTime is how long a client waits for a change while the store cannot say what came of it.
const confirmTime = 30 * time.Second

// patiently has what is kept changed by f, while nobody else changes anything, and waits for it. When the store does not answer it
// waits no longer than confirmTime, nor than ctx: f goes on, and those behind it wait for their turn.
func (e *Engine) patiently(ctx context.Context, f func(context.Context) error) error {
	return waitFor(ctx, func(ctx context.Context) error {
		e.changing.Lock()
		defer e.changing.Unlock()
		return f(ctx)
	})
}

// waitFor has f done, and waits for it as patiently says.
func waitFor(ctx context.Context, f func(context.Context) error) error {
	over := make(chan error, 1)
	doing := context.WithoutCancel(ctx) // who leaves ends the waiting
	go func() { over <- f(doing) }()
	select {
	case err := <-over:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(confirmTime):
		return fault.New(fault.Unavailable, "the change was not confirmed in time").
			WithHint("it may take effect when the store works again; look before you repeat it")
	}
}

// put is the write of a value of our own, which cannot fail to encode.
func put(kind store.Kind, id string, v any) store.Put {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fault.New(fault.Internal, "rollout: a value that cannot be encoded: %w", err))
	}
	return store.Put{Key: store.Key{Kind: kind, ID: id}, Value: text}
}

// load prepares a deployment to be carried out.
func (e *Engine) load(ctx context.Context, d *course.Deployment) (*run, error) {
	c, err := e.Plans.Course(ctx, d)
	return &run{d: d, nodes: byUID(d), course: c, jobs: map[int32]job.ID{}}, err
}
