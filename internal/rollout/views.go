package rollout

import (
	"context"
	"iter"
	"slices"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/internal/fault"
)

// AllTasks yields the tasks of all deployments, the oldest first.
func (e *Engine) AllTasks(ctx context.Context) iter.Seq2[*course.Task, error] {
	return func(yield func(*course.Task, error) bool) {
		for _, d := range e.Deployments() {
			tasks, err := e.Tasks(ctx, d.ID)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range tasks {
				if !yield(&tasks[i], nil) {
					return
				}
			}
		}
	}
}

// At names a state: that of a deployment, or the one to be reached of an environment if Deployment is 0.
type At struct {
	Environment string `json:"environment"`
	Deployment  int64  `json:"deployment,omitempty"`
}

// Latest returns the latest deployment in earnest of an environment; NotFound if there was none.
func (e *Engine) Latest(name string) (*course.Deployment, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	env, err := e.environment(name)
	if err != nil {
		return nil, err
	}
	d := e.deployments[e.basis(env, nil).Latest]
	if d == nil {
		return nil, fault.New(fault.NotFound, "the environment %s was never deployed", name)
	}
	return d, nil
}

// stored are the digests of a state.
type stored struct {
	environment string
	common      course.Digest
	nodes       []course.Node
}

func (e *Engine) at(a At) (*stored, error) {
	if a.Deployment == 0 {
		x, err := e.Environment(a.Environment)
		if err != nil {
			return nil, err
		}
		return &stored{x.Name, x.Common, x.Nodes}, nil
	}
	d, err := e.Deployment(a.Deployment)
	if err != nil {
		return nil, err
	}
	if a.Environment != "" && d.Environment != a.Environment {
		return nil, fault.New(fault.Invalid, "deployment %d is one of the environment %s, not of %s", d.ID, d.Environment, a.Environment)
	}
	return &stored{d.Environment, d.Common, d.Nodes}, nil
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
	Gone bool `json:"gone,omitempty"`
}

// Diff compares two states, and returns the first differences of each part.
func (e *Engine) Diff(ctx context.Context, before, after At) ([]Difference, error) {
	old, err := e.at(before)
	if err != nil {
		return nil, err
	}
	now, err := e.at(after)
	if err != nil {
		return nil, err
	}
	r := &reader{e: e, ctx: ctx, space: state.NewSpace(), known: map[course.Digest]*state.Part{}}
	out := []Difference{}
	compare := func(node string, x, y course.Digest) {
		if x == y {
			return
		}
		found, _ := plan.Differences(r.part(x).Data(), r.part(y).Data())
		for _, f := range found {
			out = append(out, Difference{Node: node, Path: f.Path, Old: plain(f.Old), New: plain(f.New), Came: f.Came, Gone: f.Gone})
		}
	}
	compare("", old.common, now.common)
	var uids []string
	for _, n := range slices.Concat(old.nodes, now.nodes) {
		uids = append(uids, n.UID)
	}
	slices.Sort(uids)
	for _, uid := range slices.Compact(uids) {
		x, y := old.node(uid), now.node(uid)
		switch {
		case x == nil:
			out = append(out, Difference{Node: uid, New: plain(r.part(y.Part).Data()), Came: true})
		case y == nil:
			out = append(out, Difference{Node: uid, Old: plain(r.part(x.Part).Data()), Gone: true})
		default:
			compare(uid, x.Part, y.Part)
		}
	}
	return out, r.failed
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

// Eval evaluates an expression as tasks have theirs evaluated.
func (e *Engine) Eval(ctx context.Context, q Question) (*Answer, error) {
	if err := e.computing.begin(ctx); err != nil {
		return nil, err
	}
	defer e.computing.end()
	now, err := e.at(q.New)
	if err != nil {
		return nil, err
	}
	if q.Old == nil {
		if latest, err := e.Latest(now.environment); err == nil {
			q.Old = &At{Deployment: latest.ID}
		}
	}
	r := &reader{e: e, ctx: ctx, space: state.NewSpace(), known: map[course.Digest]*state.Part{}}
	common, node, err := r.of(now, q.Node)
	if err != nil {
		return nil, err
	}
	in := expression.Surroundings{New: r.space.View(common, node), Node: r.space.View(nil, node), Common: r.space.View(common, nil), Old: r.space.View(nil, nil)}
	if q.Old != nil {
		before, err := e.at(*q.Old)
		if err != nil {
			return nil, err
		}
		if common, node, err := r.of(before, q.Node); err == nil {
			in.Old = r.space.View(common, node)
		}
	}
	if r.failed != nil {
		return nil, r.failed
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
		return nil, fault.New(fault.Invalid, "%w", err)
	}
	a := &Answer{Value: plain(got.Value), Compared: []Compared{}}
	for _, d := range got.Decisions {
		a.Compared = append(a.Compared, Compared{d.Function, d.Expression, d.Changed})
	}
	return a, nil
}

// of returns the parts of a state that a node sees.
func (r *reader) of(s *stored, uid string) (common, node *state.Part, err error) {
	if uid == "" {
		return r.part(s.common), r.space.NewPart(nil), nil
	}
	n := s.node(uid)
	if n == nil {
		return nil, nil, fault.New(fault.NotFound, "the state has no node %q", uid)
	}
	return r.part(s.common), r.part(n.Part), nil
}

// State returns the state to be reached of an environment as a value: common, and nodes by UID.
func (e *Engine) State(ctx context.Context, name string) (any, error) {
	x, err := e.Environment(name)
	if err != nil {
		return nil, err
	}
	r := &reader{e: e, ctx: ctx, space: state.NewSpace(), known: map[course.Digest]*state.Part{}}
	nodes, hosts := map[string]raw{}, map[string]string{}
	for _, n := range x.Nodes {
		nodes[n.UID] = plain(r.part(n.Part).Data())
		if n.Host != "" {
			hosts[n.UID] = n.Host
		}
	}
	return map[string]any{"name": x.Name, "status": x.Status, "graphs": x.Graphs, "common": plain(r.part(x.Common).Data()), "nodes": nodes, "hosts": hosts}, r.failed
}
