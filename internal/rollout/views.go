package rollout

import (
	"context"
	"slices"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/deploy/environment"
	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/deploy/secret"
	deploystate "github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// At names a state: that of a deployment, or the one to be reached of an environment if Deployment is 0.
type At struct {
	Environment string `json:"environment"`
	Deployment  int64  `json:"deployment,omitempty"`
}

// Latest returns the latest deployment in earnest of an environment; NotFound if there was none.
func (e *Reader) Latest(ctx context.Context, name string) (*course.Deployment, error) {
	now := e.known()
	if _, err := environmentOf(now, name); err != nil {
		return nil, err
	}
	known := now.LatestIn(name)
	if known == nil {
		return nil, fault.New(fault.NotFound, "the environment %s was never deployed", name)
	}
	d, err := e.whole(ctx, known)
	if err != nil {
		return nil, err
	}
	return d.Shown(), nil
}

// stored are the digests of a state.
type stored struct {
	environment string
	status      environment.Status
	common      course.Digest
	nodes       []course.Node
	absent      []course.Node
	secrets     []string
}

func (e *Reader) at(ctx context.Context, a At) (*stored, error) {
	if a.Deployment == 0 {
		x, err := e.environment(ctx, a.Environment)
		if err != nil {
			return nil, err
		}
		return &stored{x.Name, e.known().StatusOf(x), x.Common, x.Nodes, nil, x.Secrets}, nil
	}
	d, err := e.Deployment(ctx, a.Deployment)
	if err != nil {
		return nil, err
	}
	if a.Environment != "" && d.Environment != a.Environment {
		return nil, fault.New(fault.Invalid, "deployment %d is one of the environment %s, not of %s", d.ID, d.Environment, a.Environment)
	}
	return before(d), nil
}

// before is the state that a deployment brings its environment to.
func before(d *course.Deployment) *stored {
	return &stored{d.Environment, d.EnvironmentStatus, d.Common, d.Nodes, d.Absent, d.Secrets}
}

func (s *stored) node(uid string) *course.Node {
	for i := range s.nodes {
		if s.nodes[i].UID == uid {
			return &s.nodes[i]
		}
	}
	return nil
}

// Difference is a place where two states differ.
type Difference struct {
	// Node is the UID of the node whose own data it is about; empty for what all see.
	Node string `json:"node,omitempty"`
	Path string `json:"path"`
	Old  any    `json:"old"`
	New  any    `json:"new"`
	// Came and Gone: only the new state, only the old one has it.
	Came bool `json:"came,omitempty"`
	// Host: it is about the node of the cluster that is the node's host, and no value of the state.
	Host bool `json:"host,omitempty"`
	Gone bool `json:"gone,omitempty"`
}

// Diff compares two states, and returns the first differences of each part, without secrets.
func (e *Reader) Diff(ctx context.Context, before, after At) ([]Difference, error) {
	old, err := e.at(ctx, before)
	if err != nil {
		return nil, err
	}
	now, err := e.at(ctx, after)
	if err != nil {
		return nil, err
	}
	r := e.states(ctx)
	r.part(old.common) // for its secrets, which what is the nodes' own may hold, too
	r.part(now.common)
	out := []Difference{}
	compare := func(node string, x, y course.Digest) {
		if x == y {
			return
		}
		found, _ := plan.Differences(r.part(x).Data(), r.part(y).Data())
		for _, f := range found {
			out = append(out, Difference{Node: node, Path: f.Path, Old: f.Old, New: f.New, Came: f.Came, Gone: f.Gone})
		}
	}
	compare("", old.common, now.common)
	var uids []string
	for _, n := range slices.Concat(old.nodes, now.nodes) {
		uids = append(uids, n.UID)
	}
	slices.Sort(uids)
	var hosts []Difference // of which nothing is secret
	for _, uid := range slices.Compact(uids) {
		x, y := old.node(uid), now.node(uid)
		switch {
		case x == nil:
			out = append(out, Difference{Node: uid, New: r.part(y.Part).Data(), Came: true})
		case y == nil:
			out = append(out, Difference{Node: uid, Old: r.part(x.Part).Data(), Gone: true})
		default:
			if x.Host != y.Host {
				hosts = append(hosts, Difference{Node: uid, Old: x.Host, New: y.Host, Host: true})
			}
			compare(uid, x.Part, y.Part)
		}
	}
	hide, err := r.veil(slices.Concat(old.secrets, now.secrets))
	if err != nil {
		return nil, err
	}
	for i, d := range out {
		out[i].Old, out[i].New = plain(hide.Found("$", d.Path, d.Old)), plain(hide.Found("$", d.Path, d.New))
	}
	return append(out, hosts...), r.failed
}

// plain is a value as JSON.
func plain(v any) raw { return raw(plan.Canonical(v)) }

// raw is JSON.
type raw []byte

// MarshalJSON returns it as it is.
func (r raw) MarshalJSON() ([]byte, error) { return r, nil }

// Question is an expression to be evaluated as on a node.
type Question struct {
	Expression string `json:"expression"`
	New        At     `json:"new"`
	// Old is the state to compare with; nil compares with that of the latest deployment in earnest, if there was one.
	Old  *At    `json:"old,omitempty"`
	Node string `json:"node"`
}

// Answer is the value of an expression.
type Answer struct {
	Value raw `json:"value"`
	// Compared are the comparisons that it made.
	Compared []Compared `json:"compared"`
}

// Compared is a comparison between the two states.
type Compared struct {
	Function   string `json:"function"`
	Expression string `json:"expression"`
	Changed    bool   `json:"changed"`
}

// Eval evaluates an expression as tasks have theirs evaluated. It tells no secret as it is; what an expression makes of one can be
// anything.
func (e *Reader) Eval(ctx context.Context, q Question) (*Answer, error) {
	if err := e.trying.begin(ctx); err != nil {
		return nil, err
	}
	defer e.trying.end()
	if err := e.asLeader(ctx); err != nil {
		return nil, err
	}
	now, err := e.at(ctx, q.New)
	if err != nil {
		return nil, err
	}
	if q.Old == nil {
		if latest, err := e.Latest(ctx, now.environment); err == nil {
			q.Old = &At{Deployment: latest.ID}
		}
	}
	r := e.states(ctx)
	common, node, err := r.of(now, q.Node)
	if err != nil {
		return nil, err
	}
	in := expression.Surroundings{New: r.space.View(common, node), Node: r.space.View(nil, node), Common: r.space.View(common, nil), Old: r.space.View(nil, nil)}
	secrets := now.secrets
	if q.Old != nil {
		before, err := e.at(ctx, *q.Old)
		if err != nil {
			return nil, err
		}
		secrets = slices.Concat(before.secrets, secrets)
		if common, node, err := r.of(before, q.Node); err == nil {
			in.Old = r.space.View(common, node)
		}
	}
	if r.failed != nil {
		return nil, r.failed
	}
	hide, err := r.veil(secrets)
	if err != nil {
		return nil, err
	}
	x, err := e.language.Compile(q.Expression)
	if err != nil {
		return nil, fault.New(fault.Invalid, "%w", err)
	}
	evaluator, err := e.language.Evaluator(r.space)
	if err != nil {
		return nil, err
	}
	got, err := evaluator.Eval(ctx, x, in)
	if err != nil {
		return nil, hide.Error(fault.New(fault.Invalid, "%w", err))
	}
	a := &Answer{Value: plain(hide.Found(q.Expression, "", got.Value)), Compared: []Compared{}}
	for _, d := range got.Decisions {
		a.Compared = append(a.Compared, Compared{d.Function, d.Expression, d.Changed})
	}
	return a, nil
}

// of returns the parts of a state that a node sees.
func (r *stateReader) of(s *stored, uid string) (common, node *deploystate.Part, err error) {
	if uid == "" {
		return r.common(s), r.space.NewPart(nil), nil
	}
	n := s.node(uid)
	if n == nil {
		return nil, nil, fault.New(fault.NotFound, "the state has no node %q", uid)
	}
	return r.common(s), r.part(n.Part), nil
}

// State returns the state to be reached of an environment as a value that can be put again: common, and nodes by UID.
func (e *Reader) State(ctx context.Context, name string) (any, error) {
	return e.state(ctx, name, func(r *stateReader, x *course.Environment, settings any) (*secret.Veil, error) {
		return r.veil(x.Secrets, map[string]any{"settings": settings})
	})
}

// Reveal is State with secrets. That it was asked for is an event.
func (e *Engine) Reveal(ctx context.Context, name string, by By) (any, error) {
	v, err := e.state(ctx, name, func(*stateReader, *course.Environment, any) (*secret.Veil, error) { return nil, nil })
	if err != nil {
		return nil, err
	}
	err = e.patiently(ctx, func(context.Context) error {
		return e.commit(store.Tx{}, &state.Change{}, audit.New(audit.EnvironmentReveal, name, by))
	})
	if err != nil { // nobody sees secrets without its being told
		return nil, err
	}
	return v, nil
}

// state returns the state of an environment, of which something is hidden.
func (e *Reader) state(ctx context.Context, name string, hidden func(*stateReader, *course.Environment, any) (*secret.Veil, error)) (any, error) {
	x, err := e.environment(ctx, name)
	if err != nil {
		return nil, err
	}
	r := e.states(ctx)
	parts, hosts := map[string]*deploystate.Part{}, map[string]string{}
	for _, n := range x.Nodes {
		parts[n.UID] = r.part(n.Part)
		if n.Host != "" {
			hosts[n.UID] = n.Host
		}
	}
	settings, err := decode(x.Settings)
	if err != nil {
		return nil, err
	}
	common := r.part(x.Common) // all parts are read before what they hide is known
	hide, err := hidden(r, x, settings)
	if err != nil {
		return nil, err
	}
	nodes := make(map[string]raw, len(parts))
	for uid, part := range parts {
		nodes[uid] = plain(hide.Value(nil, part.Data()))
	}
	out := map[string]any{"name": x.Name, "status": x.Status, "graphs": x.Graphs, "common": plain(hide.Value(nil, common.Data())), "nodes": nodes, "hosts": hosts}
	if settings != nil {
		out["settings"] = plain(hide.Value([]string{"settings"}, settings))
	}
	if len(x.Secrets) > 0 {
		out["secrets"] = x.Secrets
	}
	return out, r.failed
}
