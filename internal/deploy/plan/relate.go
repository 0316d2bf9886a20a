package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/deploy/legacy"
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
		relations, err := b.relationsOf(ctx, s, t, f.name, f.cross)
		if err == nil && b.members > b.most.relations {
			return tooLarge(b.most.relations, "relations")
		}
		if err != nil {
			return b.wrap(s.Task, b.nodes[s.Node].UID, f.name, t, err)
		}
		if *f.to == nil {
			*f.to = slices.Clip(relations)
		} else {
			*f.to = append(*f.to, relations...)
		}
	}
	s.computed = nil
	return nil
}

// related are the relations that the value of a field stands for. Those to a step's own node are found for each node.
type related struct {
	value []any // kept, so that no later one is at its place in memory
	fixed []relation
	own   []*taskSet
}

// relatedKey tells values apart by their place in memory: what nodes share is the same one.
type relatedKey struct {
	first *any
	n     int
	cross bool
}

// relationsOf returns the relations that one field of a step stands for. The same value means the same on all nodes.
func (b *builder) relationsOf(ctx context.Context, s *Step, t *graph.Template, name string, cross bool) ([]relation, error) {
	v := s.computed[name]
	if t.Static {
		v = b.shards[0].fillerOf(s.Node).constant(t)
	}
	items := itemsOf(v)
	if len(items) == 0 {
		return nil, noRelations(v)
	}
	key := relatedKey{&items[0], len(items), cross}
	r := b.related[key]
	if r == nil {
		r = &related{value: items}
		if err := b.find(ctx, s, cross, r); err != nil {
			return nil, err
		}
		b.related[key] = r
	}
	if len(r.own) == 0 {
		return r.fixed, nil
	}
	out := slices.Clone(r.fixed)
	for _, tasks := range r.own {
		if set := b.stepSet(tasks, b.ownNode(s.Node)); len(set.steps) > 0 {
			out = append(out, relation{steps: set, self: true})
		}
	}
	return out, nil
}

// noRelations is an error about a value that is no list, unless it is nothing.
func noRelations(v any) error {
	if !legacy.Truth(v) {
		return nil
	}
	class := yaql.TypeError
	switch v.(type) {
	case string, yaql.Mapping:
		class = yaql.AttributeError
	}
	return &yaql.Error{Class: class, Message: "the relations are " + told(v) + ", which is no list", Offset: -1}
}

// find finds the relations that a value stands for.
func (b *builder) find(ctx context.Context, s *Step, cross bool, r *related) error {
	if !cross {
		names, err := namesIn(r.value, "the name of a task")
		if err != nil {
			return err
		}
		set, err := b.tasksNamed(ctx, names)
		if err == nil && len(set.ids) > 0 {
			r.fixed = []relation{{tasks: set, self: true}}
		}
		return err
	}
	for _, entry := range r.value {
		if !legacy.Truth(entry) {
			continue
		}
		if err := b.cross(ctx, s, entry, r); err != nil {
			return err
		}
	}
	return nil
}

// cross adds a relation to other nodes.
func (b *builder) cross(ctx context.Context, s *Step, entry any, to *related) error {
	m, ok := entry.(yaql.Mapping)
	if !ok {
		return noAttribute("a relation is " + told(entry) + ", which is no map")
	}
	name, ok := m.Get("name")
	if !ok {
		return &yaql.Error{Class: yaql.KeyError, Message: "'name'", Hint: "every relation names tasks", Offset: -1}
	}
	text, ok := name.(string)
	if !ok {
		return noAttribute("the name of a relation is " + told(name) + ", which is no text")
	}
	tasks, err := b.tasksNamed(ctx, []string{text})
	if err != nil {
		return err
	}
	selector, given := m.Get("tags")
	if !given {
		selector, given = m.Get("role")
	}
	if !given {
		selector = everyone
	}
	if selector == itself {
		to.own = append(to.own, tasks)
		return nil
	}
	policy, _ := m.Get("policy")
	nodes, err := b.nodesNamed(ctx, s, selector, policy == "any")
	if err != nil {
		return err
	}
	if set := b.stepSet(tasks, nodes); len(set.steps) > 0 {
		to.fixed = append(to.fixed, relation{steps: set, self: selector == nil}) // a stage that names itself waits for itself
	}
	return nil
}

// ownNode returns the set of one node.
func (b *builder) ownNode(n int32) *nodeSet {
	if b.ownNodes[n] == nil {
		b.ownNodes[n] = &nodeSet{[]int32{n}}
	}
	return b.ownNodes[n]
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
		b.members += len(set.steps)
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
func (b *builder) nodesNamed(ctx context.Context, s *Step, selector any, anyOne bool) (*nodeSet, error) {
	if selector == nil {
		return b.ownNode(b.plan.virtual), nil
	}
	key := fmt.Sprint(anyOne, " ", state.Likeness(selector))
	if set := b.nodeSets[key]; set != nil {
		return set, nil
	}
	nodes, ok, err := b.resolve(ctx, selector)
	if err != nil {
		return nil, err
	}
	if !ok {
		b.warnf(s.Task, "a relation names %s as role; it leads nowhere", told(selector))
	}
	if anyOne && len(nodes) > 1 {
		nodes = nodes[:1]
	}
	b.nodeSets[key] = &nodeSet{nodes}
	return b.nodeSets[key], nil
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
