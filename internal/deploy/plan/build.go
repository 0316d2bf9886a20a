package plan

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/drover-project/drover/internal/deploy/document"
	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/deploy/legacy"
	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/yaql"
)

// Input is what a plan is computed from.
type Input struct {
	Tasks []*graph.Task
	// Space is that of all parts below.
	Space  *state.Space
	Common *state.Part
	Parts  map[string]*state.Part // of nodes, by UID
	Nodes  []Node                 // without the master
	// Old returns the parts of the state of the last success of a task on a node; ok is false if there was none.
	// A nil function means that no task ever ran. It is called by one goroutine at a time.
	Old func(task, uid string) (common, node *state.Part, ok bool)
	// OldCommon is the common part of the latest of these states, which fields of whole tasks are compared with.
	OldCommon *state.Part
	// Settings are what the placeholder SETTINGS in texts means.
	Settings any
	// CheckVersions refuses tasks whose version knows no relations between nodes.
	CheckVersions bool
	// Only are the tasks that may run; all if it is nil.
	Only []string
	// Events are what tasks may be executed again on, whatever their conditions say: those that name one in reexecute_on run.
	Events []string
	// Refreshed are resources of the configuration that changed. If there are any, the tasks run that name one, or "*", in
	// refresh_on, whatever their conditions say, and no others.
	Refreshed []string
	// Asks has the plan tell how tasks that do not run are compared with what is on their machines: Step.Question.
	Asks bool
	// Differs tells what of a task is found to differ on the machine of a node. It runs there, if it would in a first deployment. Nil if nothing was
	// compared. It is called by many goroutines.
	Differs func(task, uid string) (what string, found bool)
}

// Build computes a plan. One that would have more than MostSteps, MostBytes or MostRelations is refused with fault.TooLarge, by Build or by
// Order.
func Build(ctx context.Context, language *expression.Language, in Input) (*Plan, error) {
	return build(ctx, language, in, usualBounds())
}

func build(ctx context.Context, language *expression.Language, in Input, most bounds) (*Plan, error) {
	b, err := newBuilder(language, in)
	if err != nil {
		return nil, err
	}
	b.most, b.plan.mostRelations = most, most.relations
	if err := b.expand(ctx); err != nil {
		return nil, err
	}
	for i := range b.plan.Steps {
		if err := b.relate(ctx, &b.plan.Steps[i]); err != nil {
			return nil, err
		}
	}
	return b.plan, nil
}

type builder struct {
	in      Input
	matcher *matcher
	plan    *Plan
	nodes   []Node
	master  int32
	only    map[string]bool
	shards  []*shard // the first one evaluates what is the same for all nodes, too

	prepared   map[*graph.Task]*prepared
	placements []placement
	byNode     [][]Step
	idNumbers  map[string]int32
	taskSets   map[string]*taskSet
	nodeSets   map[string]*nodeSet
	stepSets   map[stepsKey]*stepSet
	related    map[relatedKey]*related
	ownNodes   []*nodeSet
	asking     sync.Mutex // held while in.Old is asked

	most    bounds
	bytes   atomic.Int64 // that were computed, by all shards
	members int          // of all step sets
}

// placement puts a task on nodes.
type placement struct {
	task  *graph.Task
	id    int32 // of the task
	nodes []int32
}

func newBuilder(language *expression.Language, in Input) (*builder, error) {
	m, err := newMatcher()
	if err != nil {
		return nil, err
	}
	b := &builder{in: in, matcher: m, nodes: slices.Clone(in.Nodes), prepared: map[*graph.Task]*prepared{},
		idNumbers: map[string]int32{}, taskSets: map[string]*taskSet{}, nodeSets: map[string]*nodeSet{},
		stepSets: map[stepsKey]*stepSet{}, related: map[relatedKey]*related{}, plan: &Plan{}}
	slices.SortFunc(b.nodes, func(x, y Node) int { return CompareUIDs(x.UID, y.UID) })
	b.master = int32(len(b.nodes))
	b.nodes = append(b.nodes, Node{UID: Master, Tags: []string{Master}}, Node{UID: Virtual})
	b.plan.virtual = b.master + 1
	for _, n := range b.nodes {
		b.plan.Nodes = append(b.plan.Nodes, n.UID)
		b.plan.Tags = append(b.plan.Tags, n.Tags)
	}
	for _, n := range in.Nodes {
		b.plan.Roles = append(b.plan.Roles, n.Tags...)
	}
	slices.Sort(b.plan.Roles)
	b.plan.Roles = slices.Compact(b.plan.Roles)
	b.byNode, b.ownNodes = make([][]Step, len(b.nodes)), make([]*nodeSet, len(b.nodes))
	b.plan.at = make([]map[int32]int32, len(b.nodes))
	if in.Only != nil {
		b.only = map[string]bool{}
		for _, id := range in.Only {
			b.only[id] = true
		}
	}
	return b, b.split(language)
}

// prepared is what is known of a task before any node is.
type prepared struct {
	kind    string
	dynamic []graph.Field // that are computed for each node
}

// The types of tasks that never run.
const (
	typeGroup   = "group"
	typeStage   = "stage"
	typeSkipped = "skipped"
)

// expand puts each task on its nodes, first those that say themselves where, then those of groups.
func (b *builder) expand(ctx context.Context) error {
	byID := map[string]*graph.Task{}
	for _, t := range b.in.Tasks {
		p, err := b.prepare(ctx, t)
		if err != nil {
			return err
		}
		b.prepared[t] = p
		if p.kind != typeGroup {
			byID[t.ID] = t
		}
	}
	for _, t := range b.in.Tasks {
		if b.prepared[t].kind == typeGroup {
			continue
		}
		nodes, err := b.nodesOf(ctx, t)
		if err != nil {
			return err
		}
		b.place(t, nodes)
	}
	for _, t := range b.in.Tasks {
		if b.prepared[t].kind == typeGroup {
			if err := b.group(ctx, t, byID); err != nil {
				return err
			}
		}
	}
	if err := b.checkPlaced(); err != nil {
		return err
	}
	if err := b.evaluate(ctx); err != nil {
		return err
	}
	b.number()
	return nil
}

func (b *builder) place(t *graph.Task, nodes []int32) {
	b.placements = append(b.placements, placement{t, b.idNumber(t.ID), nodes})
}

// number gives every step its place in the plan.
func (b *builder) number() {
	total := 0
	for _, steps := range b.byNode {
		total += len(steps)
	}
	b.plan.Steps = make([]Step, 0, total)
	for n, steps := range b.byNode {
		for id := range b.plan.at[n] {
			b.plan.at[n][id] += int32(len(b.plan.Steps))
		}
		b.plan.Steps = append(b.plan.Steps, steps...)
		b.byNode[n] = nil
	}
}

func (b *builder) idNumber(id string) int32 {
	n, ok := b.idNumbers[id]
	if !ok {
		n = int32(len(b.plan.ids))
		b.idNumbers[id] = n
		b.plan.ids = append(b.plan.ids, id)
	}
	return n
}

// prepare evaluates what a task is as a whole.
func (b *builder) prepare(ctx context.Context, t *graph.Task) (*prepared, error) {
	p := &prepared{}
	kind, err := b.whole(ctx, t, "type")
	if err != nil {
		return nil, err
	}
	if t.Get("type") == nil {
		return nil, b.fail(t, "", "type", yaql.KeyError, "'type'", "every task has a type")
	}
	p.kind, _ = kind.(string)
	if p.kind == "" {
		return nil, b.fail(t, "", "type", yaql.TypeError, "the type is "+told(kind)+", which is no name", "")
	}
	if err := b.version(ctx, t, p.kind); err != nil {
		return nil, err
	}
	for _, f := range t.Fields {
		switch f.Name {
		case "id", "type", "version", "roles", "tags", "groups", "tasks", "fault_tolerance":
		default:
			if !f.Static {
				p.dynamic = append(p.dynamic, f)
			}
		}
	}
	return p, nil
}

// whole evaluates a field that is the same for all nodes, in the state of the environment.
func (b *builder) whole(ctx context.Context, t *graph.Task, name string) (any, error) {
	f := t.Get(name)
	if f == nil {
		return nil, nil
	}
	s := b.shards[0]
	if f.Static {
		return s.filler.constant(f), nil
	}
	v, err := s.value(ctx, f, expression.Surroundings{New: s.view(b.in.Common, nil), Old: s.view(b.in.OldCommon, nil),
		Node: s.view(nil, nil), Common: s.view(b.in.Common, nil)}, s.filler, nil)
	if err != nil {
		return nil, b.wrap(t, "", name, f, err)
	}
	return v, nil
}

// nodesOf returns the nodes that a task names.
func (b *builder) nodesOf(ctx context.Context, t *graph.Task) ([]int32, error) {
	if b.prepared[t].kind == typeStage {
		return []int32{b.plan.virtual}, nil
	}
	for _, name := range []string{"tags", "roles", "groups"} {
		if t.Get(name) == nil {
			continue
		}
		selector, err := b.whole(ctx, t, name)
		if err != nil {
			return nil, err
		}
		nodes, ok, err := b.resolve(ctx, selector)
		if err != nil {
			return nil, b.wrap(t, "", name, t.Get(name), err)
		}
		if !ok {
			b.warnf(t, "the field %s is neither a name nor a list of names; the task has no node", name)
		}
		if !t.Get(name).Static && slices.Contains(itemsOf(selector), any(everyone)) {
			b.warnf(t, "the field %s came to a list with a star, which means no node there; by itself it is all nodes", name)
		}
		return nodes, nil
	}
	return nil, nil
}

func (b *builder) warnf(t *graph.Task, format string, args ...any) {
	b.plan.Warnings = append(b.plan.Warnings, fmt.Sprintf("%s: task %s: %s", t.Position, t.ID, fmt.Sprintf(format, args...)))
}

// group runs the tasks of a group on its nodes as well.
func (b *builder) group(ctx context.Context, t *graph.Task, byID map[string]*graph.Task) error {
	nodes, err := b.nodesOf(ctx, t)
	if err != nil || len(nodes) == 0 {
		return err
	}
	list, err := b.whole(ctx, t, "tasks")
	if err != nil {
		return err
	}
	tolerance, err := b.whole(ctx, t, "fault_tolerance")
	if err != nil {
		return err
	}
	allowed, ok := Tolerance(tolerance, len(nodes))
	if !ok {
		b.warnf(t, "the fault tolerance %s says nothing", told(tolerance))
	}
	g := Group{Name: t.ID, Tolerance: allowed}
	for _, n := range nodes {
		g.Nodes = append(g.Nodes, b.nodes[n].UID)
	}
	b.plan.Groups = append(b.plan.Groups, g)
	if itemsOf(list) == nil && legacy.Truth(list) {
		return b.fail(t, "", "tasks", "InvalidData", "the tasks are "+told(list)+", which is no list", "")
	}
	for _, id := range itemsOf(list) {
		name, _ := id.(string)
		sub := byID[name]
		if sub == nil {
			return b.fail(t, "", "tasks", "InvalidData", "Task "+told(id)+" cannot be resolved", "a group names tasks of the graph that are no groups")
		}
		b.place(sub, nodes)
	}
	return nil
}

func itemsOf(v any) []any {
	switch x := v.(type) {
	case []any:
		return x
	case *yaql.List:
		return x.Items
	}
	return nil
}

// fail makes an error about a field of a task on a node.
func (b *builder) fail(t *graph.Task, node, field, class, message, hint string) error {
	return b.wrap(t, node, field, t.Get(field), &yaql.Error{Class: class, Message: message, Hint: hint, Offset: -1})
}

// wrap says where an error belongs.
func (b *builder) wrap(t *graph.Task, node, field string, at *graph.Template, err error) error {
	place := t.Position
	if at != nil {
		if at.Line > 0 {
			place = at.Position
		}
		if located := at.Located(err); located != err { //nolint:errorlint // whether it was placed
			err = located
			place = document.Position{}
		}
	}
	where := "task " + t.ID
	if node != "" {
		where += ", node " + node
	}
	if field != "" {
		where += ", field " + field
	}
	if place.Line > 0 {
		where = place.String() + ": " + where
	}
	code := fault.CodeOf(err)
	if code == fault.Internal {
		code = fault.Invalid
	}
	return fault.New(code, "%s: %w", where, err).At(field)
}
