// Package live answers queries from the running system: it takes one
// picture of the inventory, the jobs, the rules and the locks, and the newest
// state that the nodes reported. What is asked and what the answers mean is
// decided in package query.
//
// Invariants:
//   - A query reads one immutable picture; it neither waits for writers nor
//     makes them wait.
//   - A node that does not answer in time costs its own rows only.
//   - A query whose context has ended ends soon, with an error.
package live

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/query/items"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/rollout"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// nodeTimeout is how long a query waits for a node.
const nodeTimeout = 5 * time.Second

// Querier answers queries.
type Querier struct {
	Queue *queue.Queue
	// Stored is set instead of Queue where another controller leads, whose changes
	// the picture follows: then only what is stored is answered, and all else is
	// ErrLed.
	Stored  *queue.Stored
	Picture *picture.Picture
	// Store is what the state is kept in; its feed tells clients that were away
	// what changed.
	Store store.Store
	// Deployments answers about environments, task graphs and deployments; nil where nobody keeps any.
	Deployments *rollout.Reader
	Nodes       Nodes
	Runtime     query.Runtime
	Log         *slog.Logger

	watches watches
	nodes   bell
}

// Source returns the state that a query is answered from, as it is now. The end
// of ctx ends the query: nobody waits for its answer any more.
func (q *Querier) Source(ctx context.Context) *query.Source { return q.source(ctx, q.Picture.Load()) }

// source returns a state as queries see it.
func (q *Querier) source(ctx context.Context, now *state.State) *query.Source {
	jobs, ended := now.Jobs, newReadAhead(q.kept())
	runtime := q.Runtime
	runtime.Drained = now.Flags.Drained
	if until := now.Flags.PausedUntil(time.Now()); until != nil {
		runtime.WatcherPause = *until
	}
	src := &query.Source{
		Inventory: now.Inventory,
		Jobs:      func(archived bool) iter.Seq2[*job.Job, error] { return q.jobs(ctx, jobs, archived) },
		JobTable:  jobs,
		Archived:  func(from, until job.Time) iter.Seq2[*job.Job, error] { return q.archived(ctx, from, until) },
		Job: func(id job.ID) (*job.Job, error) {
			if j := jobs.Get(id); j != nil && j.Brief() == nil {
				return j, nil
			}
			return ended.job(ctx, id)
		},
		Rules:   func() []*jobfilter.Rule { return now.Rules },
		Locks:   func() []lock.State { return slices.Collect(now.Locks.All()) },
		Events:  func() iter.Seq2[*audit.Event, error] { return q.kept().Events(ctx) },
		Servers: now.Servers,
		Runtime: runtime,
		Now:     time.Now(),
		Live: func(need query.Need, nodes []string) map[string]query.NodeState {
			return q.live(ctx, now.Inventory, need, nodes)
		},
		Interrupted: q.newPacer().pacing(func() error {
			if ctx.Err() == nil {
				return nil
			}
			return fault.New(fault.Canceled, "the query was given up: %w", context.Cause(ctx))
		}),
	}
	src.Deployments = now.Deployments
	src.Plan = func(d *course.Deployment) (*course.Course, error) {
		c, err := q.Deployments.Plans.Course(ctx, d)
		return c, err
	}
	src.Tasks = func(d *course.Deployment) ([]course.Task, error) {
		tasks, err := q.Deployments.Plans.Tasks(ctx, now.Deployments, d)
		return tasks, err
	}
	return src
}

// ErrLed refuses what only the controller that leads can answer.
var ErrLed = rollout.ErrLed

// kept is what the store has of jobs.
func (q *Querier) kept() *queue.Stored {
	if q.Stored != nil {
		return q.Stored
	}
	return q.Queue.Stored
}

// led returns ErrLed for what this controller cannot answer.
func (q *Querier) led(r query.Request) error {
	if q.Stored == nil {
		return nil
	}
	stored, err := items.All.Stored(r, time.Now())
	if err == nil && !stored {
		err = ErrLed
	}
	return err
}

// Query answers a query of any item.
func (q *Querier) Query(ctx context.Context, r query.Request) (*query.Result, error) {
	if err := q.led(r); err != nil {
		return nil, err
	}
	return items.All.Run(q.Source(ctx), r.What, r.Fields, r.Filter, r.Options)
}

// Group answers a query by groups; see query.Group.
func (q *Querier) Group(ctx context.Context, r query.Request, by []string, figures []query.Calc) (*query.Result, error) {
	grouped := r
	grouped.Fields = slices.Concat(r.Fields, by)
	for _, f := range figures {
		grouped.Fields = append(grouped.Fields, f.Field)
	}
	if err := q.led(grouped); err != nil {
		return nil, err
	}
	return items.All.Group(q.Source(ctx), r, by, figures)
}

// Explain tells how a query is carried out; see query.Explain.
func (q *Querier) Explain(ctx context.Context, r query.Request) (query.Explanation, error) {
	if err := q.led(r); err != nil {
		return query.Explanation{}, err
	}
	return items.All.Explain(q.Source(ctx), r)
}

// Old answers an old list request; see items.Old.
func (q *Querier) Old(ctx context.Context, what string, names, fields []string) (*query.Result, error) {
	if err := q.led(query.Request{What: what, Fields: fields}); err != nil {
		return nil, err
	}
	return items.Old(q.Source(ctx), what, names, fields)
}

// patience is how long a request waits for the state to become as new as it
// wants it.
const patience = 10 * time.Second

// Reach waits until the state is not older than a revision: whoever was told of
// one reads what it wrote. fault.Unavailable if that takes too long, ErrLed where
// another controller may have it.
func (q *Querier) Reach(ctx context.Context, revision int64) error {
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if q.Stored != nil {
		_, err := q.Picture.Wait(limit, revision)
		if err != nil && ctx.Err() == nil {
			return ErrLed
		}
		return err
	}
	if q.Picture.Load().Revision < revision {
		// Who asks was told of it by a controller that follows the store.
		if newest, err := q.Store.Revision(limit); err == nil && int64(newest) >= revision {
			if err := q.Queue.CatchUp(limit); err != nil {
				return err
			}
		}
	}
	_, err := q.Picture.Wait(limit, revision)
	return err
}

// jobs yields archived and live jobs in the order of their ids.
func (q *Querier) jobs(ctx context.Context, live *job.Table, archived bool) iter.Seq2[*job.Job, error] {
	if !archived {
		return func(yield func(*job.Job, error) bool) {
			for j := range live.All() {
				if !yield(j, nil) {
					return
				}
			}
		}
	}
	return func(yield func(*job.Job, error) bool) {
		next, stop := iter.Pull(live.All())
		defer stop()
		current, more := next()
		for old, err := range q.archived(ctx, 0, job.Never) {
			id, known := idOf(old, err)
			for known && more && current.ID < id {
				if !yield(current, nil) {
					return
				}
				current, more = next()
			}
			if known && more && current.ID == id { // archived after the picture was taken
				current, more = next()
			}
			if !yield(old, err) || !known {
				return
			}
		}
		for ; more; current, more = next() {
			if !yield(current, nil) {
				return
			}
		}
	}
}

// idOf is the id of a job, also of one that cannot be read; an error of another
// kind is about none.
func idOf(j *job.Job, err error) (id job.ID, known bool) {
	if d, ok := errors.AsType[*job.DamageError](err); ok {
		return d.ID, true
	}
	if err != nil {
		return 0, false
	}
	return j.ID, true
}

// archived yields the archived jobs with from <= end < until. One that cannot be
// read is told to the log, too.
func (q *Querier) archived(ctx context.Context, from, until job.Time) iter.Seq2[*job.Job, error] {
	return func(yield func(*job.Job, error) bool) {
		for j, err := range q.kept().Archived(ctx, from, until) {
			if err != nil {
				q.Log.Error("cannot read the job archive", "error", err)
			}
			if !yield(j, err) {
				return
			}
		}
	}
}

// live takes the states of all nodes at the same time.
func (q *Querier) live(ctx context.Context, snap *cluster.Snapshot, need query.Need, nodes []string) map[string]query.NodeState {
	answers := make([]query.NodeState, len(nodes))
	var all sync.WaitGroup
	for i, uuid := range nodes {
		node := snap.Node(uuid)
		if node == nil {
			answers[i].Failed = "the node was removed"
			continue
		}
		all.Go(func() {
			answers[i] = q.ask(ctx, need, node.Name)
			if need&query.NeedConsole != 0 {
				answers[i].Consoles = consoles(snap, uuid)
			}
		})
	}
	all.Wait()
	out := make(map[string]query.NodeState, len(nodes))
	for i, uuid := range nodes {
		out[uuid] = answers[i]
	}
	return out
}

// consoles tells of the instances of a node how to reach their consoles. No
// driver has one to reach yet.
func consoles(snap *cluster.Snapshot, node string) map[string]map[string]any {
	out := map[string]map[string]any{}
	for i := range snap.PrimariesOn(node) {
		out[i.UUID] = items.NoConsole(i)
	}
	return out
}

// ask takes the state of one node; operating systems, storage providers and exports are not in it and asked for.
func (q *Querier) ask(ctx context.Context, need query.Need, name string) query.NodeState {
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	var state query.NodeState
	a, err := q.Nodes(name)
	if err == nil && need&reported != 0 {
		err = takeReport(ctx, a, need&query.NeedFresh != 0, &state)
	}
	if err == nil && need&query.NeedOS != 0 {
		err = askOS(ctx, a, &state)
	}
	if err == nil && need&query.NeedExtStorage != 0 {
		err = askProviders(ctx, a, &state)
	}
	if err == nil && need&query.NeedExports != 0 {
		state.Exports, err = a.Exports(ctx)
		if state.AsOf == 0 {
			state.AsOf = time.Now().UnixNano()
		}
	}
	if err != nil {
		state.Failed = err.Error()
	}
	return state
}

// reported are the needs that nodes report without being asked.
const reported = query.NeedNode | query.NeedHypervisor | query.NeedStorage | query.NeedInstances | query.NeedConsole

func takeReport(ctx context.Context, a Node, fresh bool, state *query.NodeState) error {
	s, err := a.State(ctx, fresh)
	if err == nil {
		err = s.Err
	}
	if !s.At.IsZero() {
		state.AsOf = s.At.UnixNano()
	}
	state.Instances = instancesIn(&s)
	if err != nil {
		return err
	}
	n := s.Node
	state.BootID = n.BootID
	state.Hypervisor = &query.HypervisorState{
		MemoryTotal: int64(n.MemoryTotal), MemoryNode: int64(n.MemoryNode), MemoryFree: int64(n.MemoryFree),
		CPUs: int64(n.CPUs), CPUNodes: int64(n.CPUNodes), CPUSockets: int64(n.CPUSockets), CPUsReserved: int64(n.CPUReserved),
	}
	state.Storage = &query.Space{Total: int64(n.DiskTotal), Free: int64(n.DiskFree)}
	return nil
}

func instancesIn(s *agent.State) map[string]query.InstanceState {
	out := make(map[string]query.InstanceState, len(s.Instances))
	for _, i := range s.Instances {
		if i.State != hypervisor.Stopped || i.EndedItself {
			out[i.UUID] = query.InstanceState{Memory: int64(i.Memory), VCPUs: int64(i.VCPUs), Shutdown: i.EndedItself}
		}
	}
	return out
}

func askOS(ctx context.Context, a Node, state *query.NodeState) error {
	list, err := a.OSes(ctx)
	if err != nil {
		return err
	}
	if state.AsOf == 0 {
		state.AsOf = time.Now().UnixNano()
	}
	state.OS = make(map[string]query.OSState, len(list))
	for _, o := range list {
		s := query.OSState{Path: o.Path, Valid: o.Problem == "", Diagnose: o.Problem, Variants: o.Variants, Trusted: true}
		for _, p := range o.Parameters {
			s.Parameters = append(s.Parameters, [2]string{p.Name, p.Doc})
		}
		for _, v := range o.APIVersions {
			s.APIVersions = append(s.APIVersions, int64(v))
		}
		state.OS[o.Name] = s
	}
	return nil
}

func askProviders(ctx context.Context, a Node, state *query.NodeState) error {
	list, err := a.Providers(ctx)
	if err != nil {
		return err
	}
	if state.AsOf == 0 {
		state.AsOf = time.Now().UnixNano()
	}
	state.ExtStorage = make(map[string]query.ExtStorageState, len(list))
	for _, p := range list {
		state.ExtStorage[p.Name] = query.ExtStorageState{Path: p.Path, Valid: p.Problem == "", Diagnose: p.Problem, Parameters: p.Parameters}
	}
	return nil
}
