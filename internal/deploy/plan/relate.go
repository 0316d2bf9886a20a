package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/yaql"
)

// relate finds out what a step requires and what it is required for.
func (b *builder) relate(ctx context.Context, s *Step) error {
	for _, f := range []struct {
		name  string
		cross bool
		to    *[]relation
	}{
		{"requires", false, &s.requires}, {"cross_depends", true, &s.requires},
		{"required_for", false, &s.requiredFor}, {"cross_depended_by", true, &s.requiredFor},
	} {
		t := s.Task.Get(f.name)
		if t == nil {
			continue
		}
		relations, shared := b.relations[t]
		if !shared {
			var err error
			if relations, err = b.relationsOf(ctx, s, t, f.name, f.cross); err != nil {
				return b.wrap(s.Task, b.nodes[s.Node].UID, f.name, t, err)
			}
		}
		*f.to = append(*f.to, relations...)
	}
	s.computed = nil
	return nil
}

// relationsOf evaluates one field. What is the same for all nodes is kept.
func (b *builder) relationsOf(ctx context.Context, s *Step, t *graph.Template, name string, cross bool) ([]relation, error) {
	v := s.computed[name]
	if t.Static {
		v = b.shards[0].constant(t)
	}
	if !cross {
		set, err := b.tasksNamed(ctx, texts(itemsOf(v)))
		if err != nil || len(set.ids) == 0 {
			return nil, err
		}
		out := []relation{{tasks: set, self: true}}
		if t.Static {
			b.relations[t] = out
		}
		return out, nil
	}
	var out []relation
	own := false
	for _, entry := range itemsOf(v) {
		if entry == nil {
			continue
		}
		r, self, err := b.cross(ctx, s, entry)
		if err != nil {
			return nil, err
		}
		own = own || self
		if len(r.steps.steps) > 0 {
			out = append(out, r)
		}
	}
	if t.Static && !own {
		b.relations[t] = out
	}
	return out, nil
}

// cross makes a relation to other nodes; self tells that it leads to the step's own one.
func (b *builder) cross(ctx context.Context, s *Step, entry any) (r relation, self bool, err error) {
	m, ok := entry.(yaql.Mapping)
	if !ok {
		return r, false, &yaql.Error{Class: yaql.TypeError, Message: fmt.Sprintf("a relation is %v, which is no map", entry), Offset: -1}
	}
	name, ok := m.Get("name")
	if !ok {
		return r, false, &yaql.Error{Class: yaql.KeyError, Message: "'name'", Hint: "every relation names tasks", Offset: -1}
	}
	text, ok := name.(string)
	if !ok {
		return r, false, &yaql.Error{Class: yaql.TypeError, Message: fmt.Sprintf("the name of a relation is %v, which is no text", name), Offset: -1}
	}
	selector, given := m.Get("tags")
	if !given {
		selector, given = m.Get("role")
	}
	if !given {
		selector = everyone
	}
	policy, _ := m.Get("policy")
	nodes, own, err := b.nodesNamed(ctx, s, selector, policy == "any")
	if err != nil {
		return r, false, err
	}
	tasks, err := b.tasksNamed(ctx, []string{text})
	if err != nil {
		return r, false, err
	}
	return relation{steps: b.stepSet(tasks, nodes), self: own}, own, nil
}

// stepSet returns the steps of tasks on nodes; for the same tasks and nodes it is the same set.
func (b *builder) stepSet(tasks *taskSet, nodes *nodeSet) *stepSet {
	key := stepsKey{tasks, nodes}
	set := b.stepSets[key]
	if set == nil {
		set = &stepSet{}
		for _, n := range nodes.nodes {
			b.plan.onNode(tasks, n, func(s int32) { set.steps = append(set.steps, s) })
		}
		slices.Sort(set.steps)
		b.stepSets[key] = set
	}
	return set
}

type stepsKey struct {
	tasks *taskSet
	nodes *nodeSet
}

// nodesNamed returns the nodes that a relation leads to; equal ones are the same set.
func (b *builder) nodesNamed(ctx context.Context, s *Step, selector any, anyOne bool) (set *nodeSet, self bool, err error) {
	switch selector {
	case itself:
		return b.nodeSet(fmt.Sprint("self ", s.Node), []int32{s.Node}), true, nil
	case nil:
		return b.nodeSet("virtual", []int32{b.plan.virtual}), true, nil
	}
	key := fmt.Sprint(anyOne, " ", state.Likeness(selector))
	if set := b.nodeSets[key]; set != nil {
		return set, false, nil
	}
	nodes, ok, err := b.resolve(ctx, selector)
	if err != nil {
		return nil, false, err
	}
	if !ok {
		b.warnf(s.Task, "a relation names %v as role; it leads nowhere", selector)
	}
	if anyOne && len(nodes) > 1 {
		nodes = nodes[:1]
	}
	return b.nodeSet(key, nodes), false, nil
}

func (b *builder) nodeSet(key string, nodes []int32) *nodeSet {
	set := b.nodeSets[key]
	if set == nil {
		set = &nodeSet{nodes}
		b.nodeSets[key] = set
	}
	return set
}

// tasksNamed returns the tasks of the graph that names and patterns fit.
func (b *builder) tasksNamed(ctx context.Context, names []string) (*taskSet, error) {
	key := strings.Join(names, "\x00")
	if set := b.taskSets[key]; set != nil {
		return set, nil
	}
	set := &taskSet{}
	for _, name := range names {
		if _, isPattern := pattern(name); !isPattern {
			if id, ok := b.idNumbers[name]; ok {
				set.ids = append(set.ids, id)
			}
			continue
		}
		for id, text := range b.plan.ids {
			fits, err := b.matcher.match(ctx, name, text)
			if err != nil {
				return nil, err
			}
			if fits {
				set.ids = append(set.ids, int32(id))
			}
		}
	}
	slices.Sort(set.ids)
	set.ids = slices.Compact(set.ids)
	b.taskSets[key] = set
	return set, nil
}
