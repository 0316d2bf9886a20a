// Package rollout keeps environments, task graphs and deployments, computes plans of what is stored, and carries them
// out: each task of a plan on each node becomes a job of the queue.
//
// What may begin, and what the end of a task means for the others, is decided by the machine of package course; the
// engine hands jobs to the queue, hears how they ended, and keeps what became of them.
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
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/backoff"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/library"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/inventory"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/sealed"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// The kinds of objects that the engine keeps in the store.
const (
	KindEnvironment store.Kind = "environment"
	KindGraph       store.Kind = "task-graph"
	KindPart        store.Kind = "state-part"      // digest -> JSON of the common part of a state, or of a node's
	KindDeployment  store.Kind = "deployment"      //
	KindPlan        store.Kind = "deployment-plan" // deployment/number -> a piece of its course
	KindRecord      store.Kind = "deployment-task" // deployment/step -> what became of it
	KindSuccess     store.Kind = "task-success"    // environment/node/task -> deployment
)

// By is who wants something and why.
type By = audit.By

// Config is what an engine needs. All fields but Functions and Digest are required.
type Config struct {
	Store     store.Store
	Epoch     int64
	Picture   *picture.Picture
	Inventory *inventory.Keeper
	Now       func() time.Time
	Log       *slog.Logger
	// Digest names a text by what it holds, so that only who has its key can tell whether a text that he guesses is the one;
	// nil for a key that ends with the engine.
	Digest func(text []byte) string
	// Functions holds files of the operator's own functions; nil for none.
	Functions fs.FS
}

// Engine is safe for concurrent use.
type Engine struct {
	cfg      Config
	language *expression.Language
	// functions are the versions of the operator's own functions.
	functions []string
	queue     *queue.Queue

	changing  baton // held while environments, graphs or deployments are changed, until that is stored: one after the other
	computing turns // for what is computed from them: plans, and expressions that somebody tries

	mu           sync.Mutex // guards what follows
	environments map[string]*course.Environment
	graphs       map[string]*course.Graph
	deployments  map[int64]*course.Deployment
	latest       int64 // number of the newest deployment
	successes    map[place]int64
	runs         map[int64]*run // of deployments that are under way
	byJob        map[job.ID]origin

	acts   chan func()
	stop   context.CancelFunc
	ending <-chan struct{} // closed when Close begins: nothing is looked up any more
	done   chan struct{}
}

// place is a task on a node of an environment.
type place struct{ environment, node, task string }

// origin says what a job is for.
type origin struct {
	deployment int64
	step       int32
}

// CheckFunctions says what is wrong with the operator's own functions.
func CheckFunctions(dir fs.FS) error {
	_, _, err := languageOf(dir)
	return err
}

func languageOf(dir fs.FS) (*library.Library, *expression.Language, error) {
	own, err := library.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	language, err := expression.NewLanguage(own.Functions...)
	return own, language, err
}

// Open reads what is stored. Tasks can be carried out from now on; Run lets deployments go on.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	own, language, err := languageOf(cfg.Functions)
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
	e := &Engine{cfg: cfg, language: language, functions: own.Versions, environments: map[string]*course.Environment{}, graphs: map[string]*course.Graph{},
		deployments: map[int64]*course.Deployment{}, successes: map[place]int64{}, runs: map[int64]*run{}, byJob: map[job.ID]origin{},
		changing: make(baton, 1), computing: make(turns, mostComputing), acts: make(chan func()), done: make(chan struct{})}
	err = each(ctx, e, KindEnvironment, func(x *course.Environment) { e.environments[x.Name] = x })
	if err == nil {
		err = each(ctx, e, KindGraph, func(x *course.Graph) { e.graphs[x.Name] = x })
	}
	if err == nil {
		err = each(ctx, e, KindDeployment, func(x *course.Deployment) {
			e.deployments[x.ID] = x
			e.latest = max(e.latest, x.ID)
		})
	}
	if err == nil {
		err = each(ctx, e, KindSuccess, func(x *course.Success) { e.successes[place{x.Environment, x.Node, x.Task}] = x.Deployment })
	}
	if err == nil {
		err = e.rename(ctx)
	}
	for _, d := range e.deployments {
		if err == nil && d.Status.Active() {
			e.runs[d.ID], err = e.load(ctx, d)
		}
	}
	return e, err
}

// each reads the objects of a kind. One that cannot be read is told and left alone.
func each[T any](ctx context.Context, e *Engine, kind store.Kind, take func(*T)) error {
	for o, err := range e.cfg.Store.List(ctx, kind, store.Options{}) {
		if err != nil {
			return err
		}
		x := new(T)
		if err := json.Unmarshal(o.Value, x); err != nil {
			e.cfg.Log.Error("a stored object cannot be read and is set aside; restore it from a backup", "kind", kind, "id", o.ID, "error", err)
			continue
		}
		take(x)
	}
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

// mostComputing is how many plans and expressions are computed at a time; each may take a processor and some hundred megabytes.
const mostComputing = 2

// turns lets so many do something at a time as there is room in the channel.
type turns chan struct{}

// begin waits for a turn, until ctx ends. end must follow.
func (t turns) begin(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turns) end() { <-t }

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

// commit makes a transaction durable, with the events that tell of it. show takes over what it changed; it is called with
// mu held, before the picture tells anybody that something changed: who is woken by it sees the change.
//
// What came of it is never guessed: when the store cannot say, it is written again until that is known, for nobody else writes what is in it.
// Only the end of the engine leaves it unknown, as fault.Unavailable; whoever leads next reads what there is.
func (e *Engine) commit(tx store.Tx, show func(), told ...audit.Event) error {
	return e.commitUntil(e.ending, tx, show, told...)
}

// commitUntil is commit for who waits no longer than until over is closed.
func (e *Engine) commitUntil(over <-chan struct{}, tx store.Tx, show func(), told ...audit.Event) error {
	tx.Epoch = e.cfg.Epoch
	change := &state.Change{}
	for _, event := range told {
		change.Events = append(change.Events, e.queue.Note(&tx, event))
	}
	for tries := 1; ; tries++ {
		err := e.write(tx, show, change)
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
func (e *Engine) write(tx store.Tx, show func(), change *state.Change) error {
	durable := make(chan error, 1)
	e.cfg.Store.Enqueue(tx, func(revision store.Revision, err error) {
		if err == nil {
			e.mu.Lock()
			show()
			e.mu.Unlock()
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
// waits no longer than confirmTime: f goes on, and those behind it wait for their turn.
func (e *Engine) patiently(f func() error) error {
	over := make(chan error, 1)
	go func() {
		e.changing.Lock()
		defer e.changing.Unlock()
		over <- f()
	}()
	select {
	case err := <-over:
		return err
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

// load reads the course of a deployment and what became of its tasks.
func (e *Engine) load(ctx context.Context, d *course.Deployment) (*run, error) {
	r := &run{d: d, nodes: byUID(d), course: &course.Course{}, records: map[int32]*course.Record{}, jobs: map[int32]job.ID{}}
	for i := range d.Chunks {
		o, err := e.cfg.Store.Get(ctx, store.Key{Kind: KindPlan, ID: chunkKey(d.ID, i)})
		if err != nil {
			return nil, err
		}
		if err := r.course.Add(o.Value); err != nil {
			return nil, err
		}
	}
	err := e.recordsOf(ctx, d, func(x *course.Record) { r.records[x.Step] = x })
	return r, err
}

// recordsOf reads what became of the tasks of a deployment.
func (e *Engine) recordsOf(ctx context.Context, d *course.Deployment, take func(*course.Record)) error {
	prefix := d.Key() + "/"
	for o, err := range e.cfg.Store.List(ctx, KindRecord, store.Options{After: prefix}) {
		if err != nil {
			return err
		}
		if !strings.HasPrefix(o.ID, prefix) {
			break
		}
		x := &course.Record{}
		if err := json.Unmarshal(o.Value, x); err != nil {
			return fault.New(fault.Internal, "the record %s of a task cannot be read: %w", o.ID, err)
		}
		take(x)
	}
	return nil
}
