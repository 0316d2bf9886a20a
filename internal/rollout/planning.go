package rollout

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/deploy/document"
	"github.com/drover-project/drover/internal/deploy/environment"
	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/deploy/report"
	"github.com/drover-project/drover/internal/deploy/secret"
	deploystate "github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/yaql"
	"github.com/drover-project/drover/yaql/yaqljson"
)

// Wish says what a deployment is to do.
type Wish struct {
	Environment string      `json:"environment"`
	Graphs      []string    `json:"graphs,omitempty"` // those of the environment if there are none
	Mode        course.Mode `json:"mode,omitempty"`
	// Force evaluates conditions as in a first deployment.
	Force bool `json:"force,omitempty"`
	// Only are the tasks that may run; all if there are none. Nodes are the UIDs of those that take part; all if there
	// are none.
	Only  []string `json:"only,omitempty"`
	Nodes []string `json:"nodes,omitempty"`
	// Type chooses among the graphs of the environment; empty for those of no type.
	Type string `json:"type,omitempty"`
	// Events and Refreshed are those of plan.Input.
	Events    []string `json:"events,omitempty"`
	Refreshed []string `json:"refreshed,omitempty"`
	// Drift asks the machines about tasks that would not run; those of which something differs there run as well.
	Drift bool `json:"drift,omitempty"`
	// Basis is that of a plan that somebody was shown, who wants this one; nil for whatever there is.
	Basis *course.Basis `json:"basis,omitempty"`
}

// Preview is what a plan would be, which is not stored.
type Preview struct {
	Deployment *course.Deployment `json:"deployment"` // without a number
	Tasks      []course.Task      `json:"tasks"`
	Warnings   []string           `json:"warnings"`
	// Drift is what the machines told; nil if they were not asked.
	Drift *course.Drift `json:"drift,omitempty"`

	course *course.Course // nil of a plan that was stored
}

// Outline is the plan by its tasks, and what comes after what. One that was stored has it by its number.
func (p *Preview) Outline() *course.Outline { return course.OutlineOf(p.course, p.Tasks) }

// check refuses a wish that means nothing, and fills in what it leaves out.
func (w *Wish) check() error {
	if w.Environment == "" {
		return fault.New(fault.Invalid, "a deployment is of an environment: name it").At("environment")
	}
	if w.Mode == "" {
		w.Mode = course.Earnest
	}
	if !slices.Contains([]course.Mode{course.Earnest, course.Noop, course.DryRun}, w.Mode) {
		return fault.New(fault.Invalid, "the mode of a deployment is run, noop or dry-run, not %q", w.Mode).At("mode")
	}
	return w.checkDrift()
}

func chunkKey(deployment int64, i int) string { return planPrefix(deployment) + strconv.Itoa(i) }

// planPrefix is what the names of the pieces of a plan begin with.
func planPrefix(deployment int64) string { return strconv.FormatInt(deployment, 10) + "/" }

// mostPlanned is how often a plan is computed while what it is computed from changes.
const mostPlanned = 3

// Plan computes what a deployment would do, and stores it. It can be run as long as nothing it was computed from changes.
//
// It is computed of what there is at its beginning, and holds up nobody who changes that meanwhile: then it is computed anew, and in the end
// refused with fault.Conflict.
func (e *Engine) Plan(ctx context.Context, w Wish, by By) (*course.Deployment, []string, error) {
	p, err := e.PlanAndTell(ctx, w, by)
	if err != nil {
		return nil, nil, err
	}
	return p.Deployment, p.Warnings, nil
}

// PlanAndTell is Plan that tells all of the plan but its tasks.
func (e *Engine) PlanAndTell(ctx context.Context, w Wish, by By) (*Preview, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	found, err := e.askMachines(ctx, w)
	if err != nil {
		return nil, err
	}
	if err := e.planning.begin(ctx); err != nil {
		return nil, err
	}
	defer e.planning.end()
	for tries := 1; ; tries++ {
		from, err := e.groundOf(ctx, w)
		if err != nil {
			return nil, err
		}
		p, err := e.draft(ctx, w, by, from, found)
		if err != nil {
			return nil, err
		}
		pieces, err := p.course.Encode()
		if err != nil {
			return nil, err
		}
		err = waitFor(ctx, func(ctx context.Context) error { return e.storePlan(ctx, p.deployment, pieces) })
		if fault.Is(err, fault.Conflict) && tries < mostPlanned {
			continue
		}
		if err != nil { // and leave alone what may still be at work
			return nil, err
		}
		return &Preview{Deployment: p.deployment.Shown(), Warnings: p.warnings, Drift: found.told()}, nil
	}
}

// Preview reads what a deployment would be planned from. What is returned computes what it would do, which takes longer, and reads nothing that
// may change meanwhile. Nothing is stored.
func (e *Reader) Preview(ctx context.Context, w Wish, by By) (compute func() (*Preview, error), err error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	if w.Drift { // commands are run for it, so it is for who may change something
		return nil, fault.New(fault.Invalid, "a preview asks no machines; CompareDeployment does").At("drift")
	}
	if err := e.asLeader(ctx); err != nil {
		return nil, err
	}
	from, err := e.groundOf(ctx, w)
	if err != nil {
		return nil, err
	}
	return func() (*Preview, error) {
		if err := e.planning.begin(ctx); err != nil {
			return nil, err
		}
		defer e.planning.end()
		p, err := e.draft(ctx, w, by, from, nil)
		if err != nil {
			return nil, err
		}
		return p.preview(), nil
	}, nil
}

// preview is what is shown of the draft.
func (p *draft) preview() *Preview {
	d := p.deployment
	return &Preview{Deployment: d.Shown(), Tasks: p.course.Tasks(d, func(int32) course.Known { return course.Known{} }), Warnings: p.warnings, course: p.course}
}

// draft is a plan that is not stored.
type draft struct {
	deployment *course.Deployment // without a number
	course     *course.Course
	warnings   []string
}

// draft computes a plan of what was read, and of what the machines told; nil if they were not asked.
func (e *Reader) draft(ctx context.Context, w Wish, by By, from *ground, found *found) (*draft, error) {
	d := &course.Deployment{Environment: w.Environment, Mode: w.Mode, Force: w.Force, Drift: w.Drift, Only: w.Only,
		Events: w.Events, Refreshed: w.Refreshed, Status: course.Planned,
		Created: e.cfg.Now().UnixNano(), By: who(by), Trail: by.Trail}
	if err := found.still(from); err != nil {
		return nil, err
	}
	p, order, hide, err := e.compute(ctx, d, w, from, func(in *plan.Input) { in.Differs = found.differs() })
	if err != nil {
		return nil, err
	}
	if w.Basis != nil && !d.Basis.Equal(*w.Basis) {
		return nil, fault.New(fault.Conflict, "the plan that was shown was computed from a state that has moved on: %s", moved(*w.Basis, d.Basis)).
			WithHint("look at what it would be now: drover deploy plan %s", w.Environment)
	}
	c := course.Of(p, order, report.Why(p, hide))
	c.Hidden = hide.Texts()
	d.Steps, d.Runs = len(p.Steps), p.Len()
	if err := checkHosts(d, c, from.hosts); err != nil {
		return nil, err
	}
	out := &draft{deployment: d, course: c, warnings: make([]string, len(p.Warnings))}
	for i, text := range p.Warnings {
		out.warnings[i] = hide.Text(text)
	}
	if len(from.replaced) > 0 && !w.Force {
		out.warnings = append(out.warnings, replaced(from.replaced))
	}
	return out, nil
}

// storePlan makes a plan durable, with a number of its own: first its pieces, in portions, so that others write between them, plans of their own as well;
// then, if what it was computed from is what there still is, the deployment, with which all of it counts.
func (e *Engine) storePlan(ctx context.Context, d *course.Deployment, pieces [][]byte) error {
	id, free := e.number()
	defer free()
	d.ID, d.Chunks = id, len(pieces)
	if err := e.clearPlan(ctx, d.ID); err != nil {
		return err
	}
	tx, size := store.Tx{}, 0
	for i, text := range pieces {
		tx.Put = append(tx.Put, store.Put{Key: store.Key{Kind: KindPlan, ID: chunkKey(d.ID, i)}, Value: text})
		if size += len(text); size < portion && i < len(pieces)-1 {
			continue
		}
		if err := e.commit(tx, &state.Change{}); err != nil {
			return err
		}
		tx, size = store.Tx{}, 0
	}
	err := e.storeDeployment(d)
	if err != nil && !fault.Is(err, fault.Unavailable) {
		if clearing := e.clearPlan(ctx, d.ID); clearing != nil {
			e.cfg.Log.Warn("a plan that was refused stays in the store until the next one", "error", clearing)
		}
	}
	return err
}

// number gives a plan its number, the lowest that no deployment and no other plan has that is stored at this moment, and is higher than those of all
// deployments. It is given when all that the plan is computed from has been read, so of the deployments of an environment the one that is begun later has
// the higher number. Who is told it calls free when the plan is stored, or is not.
func (e *Engine) number() (id int64, free func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	id = e.known().Newest() + 1
	for e.storing[id] {
		id++
	}
	e.storing[id] = true
	return id, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.storing, id)
	}
}

// portion is about how many bytes of a plan are written at once. Whoever writes something else waits for one of them.
const portion = 256 << 10

// storeDeployment makes a deployment durable whose plan is stored, unless what that was computed from has changed.
func (e *Engine) storeDeployment(d *course.Deployment) error {
	e.changing.Lock()
	defer e.changing.Unlock()
	env, err := environmentOf(e.known(), d.Environment)
	if err != nil {
		return err
	}
	if now := e.known().BasisOf(env, d.Graphs, e.functions); !now.Equal(d.Basis) {
		return fault.New(fault.Conflict, "the environment %s cannot be planned, for it changes meanwhile: %s", d.Environment, moved(d.Basis, now)).
			WithHint("plan again when others have made their changes")
	}
	return e.commit(store.Tx{Put: []store.Put{put(KindDeployment, d.Key(), d)}}, &state.Change{Deployments: []*course.Deployment{d}})
}

// clearPlan removes pieces of a plan of which no deployment tells: it was refused, or its controller died before.
func (e *Engine) clearPlan(ctx context.Context, id int64) error {
	prefix, tx := planPrefix(id), store.Tx{}
	for o, err := range e.cfg.Store.List(ctx, KindPlan, store.Options{After: prefix}) {
		if err != nil {
			return err
		}
		if !strings.HasPrefix(o.ID, prefix) {
			break
		}
		tx.Delete = append(tx.Delete, store.Key{Kind: KindPlan, ID: o.ID})
	}
	if len(tx.Delete) == 0 {
		return nil
	}
	return e.commit(tx, &state.Change{})
}

// ground is what a plan is computed from.
type ground struct {
	env    *course.Environment
	hosts  *cluster.Snapshot // what there was of the cluster
	names  []string          // of the graphs
	graphs []*course.Graph
	basis  course.Basis
	// last tells of each task on each node in which deployment it last succeeded; latest is the latest of these.
	last   map[place]*course.Deployment
	latest *course.Deployment
	status environment.Status // of the environment
	// replaced are nodes of which a success does not count: it was on another machine.
	replaced []string
}

// place is a task on a node of an environment.
type place struct{ node, task string }

// groundOf reads what there is for a plan to be computed from. What changes meanwhile is newer than the basis, with which the plan is
// refused when it is to be carried out.
func (e *Reader) groundOf(ctx context.Context, w Wish) (*ground, error) {
	shown := e.cfg.Picture.Load()
	now := shown.Deployments
	env, err := e.environment(ctx, w.Environment)
	if err != nil {
		return nil, err
	}
	g := &ground{env: env, hosts: shown.Inventory, names: w.Graphs, last: map[place]*course.Deployment{}}
	if len(g.names) == 0 {
		g.names = env.GraphsOf(w.Type)
	}
	if len(g.names) == 0 {
		return nil, noGraph(env, w.Type)
	}
	g.basis = now.BasisOf(env, nil, e.functions)
	for _, name := range g.names {
		x, err := e.Graph(ctx, name)
		if err != nil {
			return nil, err
		}
		g.graphs = append(g.graphs, x)
		g.basis.Graphs = append(g.basis.Graphs, x.Generation)
	}
	err = g.readSuccesses(ctx, e, now)
	if g.status = environment.New; g.latest != nil {
		g.status = now.StatusOf(env)
	}
	return g, err
}

// readSuccesses finds the deployments in which tasks last succeeded.
func (g *ground) readSuccesses(ctx context.Context, e *Reader, now *course.Table) error {
	in := map[int64]*course.Deployment{}
	for s, err := range e.successes(ctx, g.env.Name) {
		if err != nil {
			return err
		}
		d, read := in[s.Deployment]
		if known := now.Deployment(s.Deployment); !read && known != nil {
			if d, err = e.whole(ctx, known); err != nil {
				return err
			}
		}
		if in[s.Deployment] = d; d == nil {
			continue
		}
		if !counts(g.hosts, s, d, g.env.Node(s.Node)) {
			g.replaced = append(g.replaced, s.Node)
			continue
		}
		g.last[place{s.Node, s.Task}] = d
		if g.latest == nil || d.ID > g.latest.ID {
			g.latest = d
		}
	}
	return nil
}

// compute makes the plan of a deployment, with what hides its secrets, and notes in the deployment what the plan was computed
// from. What drift has to do with it says with. Nothing waits for it.
func (e *Reader) compute(ctx context.Context, d *course.Deployment, w Wish, from *ground, with func(*plan.Input)) (*plan.Plan, []int32, *secret.Veil, error) {
	env := from.env
	d.Graphs, d.Common, d.Settings, d.Secrets, d.Basis = from.names, env.Common, env.Settings, env.Secrets, from.basis
	settings, err := decode(env.Settings)
	if err != nil {
		return nil, nil, nil, err
	}
	r := e.states(ctx)
	p, order, err := e.planFrom(r, from, d, w, settings, with)
	hide, wrong := r.veil(env.Secrets, map[string]any{"settings": settings}, p.Parameters()) // a graph may hold secrets of its own
	if wrong != nil {
		return nil, nil, nil, wrong
	}
	return p, order, hide, hide.Error(err)
}

// planFrom makes a plan and its order.
func (e *Reader) planFrom(r *stateReader, from *ground, d *course.Deployment, w Wish, settings any, with func(*plan.Input)) (*plan.Plan, []int32, error) {
	ctx, env := r.ctx, from.env
	whole, err := e.compile(from.graphs)
	if err != nil {
		return nil, nil, err
	}
	if err := knownTasks(whole, w.Only); err != nil {
		return nil, nil, err
	}
	in := plan.Input{Tasks: whole.Tasks, Space: r.space, Parts: map[string]*deploystate.Part{},
		Settings: settings, Events: w.Events, Refreshed: w.Refreshed}
	if len(w.Only) > 0 {
		in.Only = w.Only
	}
	if d.Nodes, d.Absent, err = takingPart(env, w.Nodes); err != nil {
		return nil, nil, err
	}
	d.Some, d.EnvironmentStatus = len(d.Absent) > 0, from.status
	in.Common = r.common(before(d))
	for i := range d.Nodes {
		m := machineOf(from.hosts, d.Nodes[i].Host)
		d.Nodes[i].Machine = &m
	}
	for _, n := range d.Nodes {
		in.Parts[n.UID] = r.part(n.Part)
		if n.UID != plan.Master {
			in.Nodes = append(in.Nodes, plan.Node{UID: n.UID, Tags: n.Roles})
		}
	}
	if in.Nodes, err = e.filtered(ctx, whole, in); err != nil {
		return nil, nil, err
	}
	if !w.Force {
		from.old(r, &in)
	}
	with(&in)
	p, err := plan.Build(ctx, e.language, in)
	if err == nil {
		err = r.failed
	}
	if err != nil {
		return nil, nil, err
	}
	order, err := p.Order()
	return p, order, err
}

// takingPart are the nodes of an environment that a deployment is for, all or those that were named, and the others.
func takingPart(env *course.Environment, uids []string) (taking, absent []course.Node, err error) {
	for _, uid := range uids {
		if env.Node(uid) == nil {
			return nil, nil, fault.New(fault.NotFound, "the environment %s has no node %q", env.Name, uid).At("nodes")
		}
	}
	for _, n := range env.Nodes {
		if len(uids) == 0 || slices.Contains(uids, n.UID) {
			taking = append(taking, n)
		} else {
			absent = append(absent, n)
		}
	}
	return taking, absent, nil
}

func noGraph(env *course.Environment, kind string) error {
	if kind != "" {
		return fault.New(fault.Invalid, "the environment %s has no task graph of the type %s; it has %v", env.Name, kind, env.Graphs).At("type")
	}
	return fault.New(fault.Invalid, "the environment %s has no task graph, and none was named", env.Name).At("graphs")
}

func knownTasks(g *graph.Graph, ids []string) error {
	for _, id := range ids {
		if !slices.ContainsFunc(g.Tasks, func(t *graph.Task) bool { return t.ID == id }) {
			return fault.New(fault.NotFound, "the graph has no task %q", id).At("only")
		}
	}
	return nil
}

// filtered leaves out the nodes that the graph's filter is not for.
func (e *Reader) filtered(ctx context.Context, g *graph.Graph, in plan.Input) ([]plan.Node, error) {
	if g.NodeFilter == "" {
		return in.Nodes, nil
	}
	fits, err := e.language.Predicate(g.NodeFilter)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the node_filter of the graph: %w", err)
	}
	var out []plan.Node
	for _, n := range in.Nodes {
		yes, err := fits(ctx, in.Parts[n.UID].Data())
		if err != nil {
			return nil, fault.New(fault.Invalid, "the node_filter of the graph, on node %s: %w", n.UID, err)
		}
		if yes {
			out = append(out, n)
		}
	}
	return out, nil
}

// old tells the plan of the state of each task's last success on each node.
func (g *ground) old(r *stateReader, in *plan.Input) {
	if g.latest == nil {
		return
	}
	in.OldCommon = r.common(before(g.latest))
	commons := map[int64]*deploystate.Part{g.latest.ID: in.OldCommon}
	in.Old = func(task, uid string) (common, node *deploystate.Part, ok bool) {
		d := g.last[place{uid, task}]
		if d == nil {
			return nil, nil, false
		}
		if common = commons[d.ID]; common == nil {
			common = r.common(before(d))
			commons[d.ID] = common
		}
		n := d.Node(uid)
		if n == nil { // the master has no data of its own, unless the environment says so
			empty := yaql.NewDict(1)
			_ = empty.Set("uid", uid) // texts can be keys
			return common, r.space.NewPart(empty), uid == plan.Master
		}
		return common, r.part(n.Part), true
	}
}

// stateReader reads parts of states, each once.
type stateReader struct {
	whose  *Reader
	ctx    context.Context
	space  *deploystate.Space
	known  map[course.Digest]*deploystate.Part
	failed error // the first error
}

func (e *Reader) states(ctx context.Context) *stateReader {
	return &stateReader{whose: e, ctx: ctx, space: deploystate.NewSpace(), known: map[course.Digest]*deploystate.Part{}}
}

func (r *stateReader) part(d course.Digest) *deploystate.Part {
	if p := r.known[d]; p != nil {
		return p
	}
	o, err := r.whose.cfg.Store.Get(r.ctx, store.Key{Kind: KindPart, ID: string(d)})
	var v any
	if err == nil {
		v, err = decode(o.Value)
	}
	if err != nil && r.failed == nil {
		r.failed = fault.New(fault.Unavailable, "a part of a state cannot be read: %w", err)
	}
	p := r.space.NewPart(document.Sorted(v))
	r.known[d] = p
	return p
}

// common returns the common part of a state, beside which expressions find all nodes and the environment itself.
func (r *stateReader) common(s *stored) *deploystate.Part {
	members := make([]environment.Member, 0, len(s.nodes)+len(s.absent))
	for _, n := range slices.Concat(s.nodes, s.absent) {
		members = append(members, environment.Member{UID: n.UID, Roles: n.Roles, Part: r.part(n.Part)})
	}
	return r.part(s.common).Beside(environment.About(s.environment, s.status, members))
}

func decode(text json.RawMessage) (any, error) {
	if len(text) == 0 {
		return nil, nil
	}
	return yaqljson.Decode(text)
}

// masterOf is the name of the master node of a cluster.
func masterOf(snap *cluster.Snapshot) string {
	c := snap.Cluster()
	if c == nil {
		return ""
	}
	if n := snap.Node(c.MasterNode); n != nil {
		return n.Name
	}
	return ""
}

// checkHosts refuses plans with tasks on nodes that no node of the cluster stands for.
func checkHosts(d *course.Deployment, c *course.Course, in *cluster.Snapshot) error {
	master := masterOf(in)
	nodes := byUID(d)
	for i := range c.Steps {
		s := &c.Steps[i]
		host := hostOf(nodes[s.Node], s, master)
		if s.Run && host != "" && !hasHost(in, host) {
			return fault.New(fault.Invalid, "task %s is to run on node %s, for which hosts names %s, which is no node of the cluster", s.Task, s.Node, host).
				WithHint("mend hosts in the file of the environment, or add the node to the cluster; they are: drover node list")
		}
		if s.Run && host == "" {
			return fault.New(fault.Invalid, "task %s is to run on node %s, which no node of the cluster stands for", s.Task, s.Node).
				WithHint("name one below hosts in the file of the environment: hosts: {%q: node1.example}", s.Node)
		}
	}
	return nil
}

// byUID returns the nodes of a deployment.
func byUID(d *course.Deployment) map[string]*course.Node {
	nodes := make(map[string]*course.Node, len(d.Nodes))
	for i := range d.Nodes {
		nodes[d.Nodes[i].UID] = &d.Nodes[i]
	}
	return nodes
}

// hostOf returns the node of the cluster that carries a step out, of which the deployment may know the node. What a master
// shell does is done on the master.
func hostOf(n *course.Node, s *course.Step, master string) string {
	if s.Type == "master_shell" {
		return master
	}
	if n != nil && n.Host != "" {
		return n.Host
	}
	if s.Node == plan.Master {
		return master
	}
	return ""
}
