package plan

import (
	"slices"

	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/graph"
)

// Plan says what a deployment does. It is immutable.
type Plan struct {
	Nodes    []string   // by index: the nodes in order, then the master and the virtual node
	Tags     [][]string // roles and tags of each node
	Steps    []Step     // by node, and for each node in the order of the graph
	Groups   []Group
	Warnings []string
	Roles    []string // that nodes have, and their tags, sorted

	mostRelations int

	virtual int32
	ids     []string          // of tasks
	at      []map[int32]int32 // for each node: the step of a task
}

// Step is a task on a node.
type Step struct {
	Task *graph.Task
	Node int32 // index in the plan's nodes
	// Type is the type of the task, and "skipped" if it does not run.
	Type string
	Run  bool
	Why  Reason
	// Parameters are those of a task that runs.
	Parameters any
	// FailOnError tells whether a failure is one of the node.
	FailOnError any
	// Question is how a task that does not run is compared with what is on the machine; nil of all others, and where nobody asks.
	Question *Question

	computed              map[string]any // relations, until they are resolved
	requires, requiredFor []relation
}

// relation leads to the steps of some tasks on some nodes.
type relation struct {
	tasks *taskSet // on the step's own node and the virtual one, if there are no steps
	steps *stepSet // shared by all relations to the same steps
	self  bool     // the step itself is not left out
}

type taskSet struct{ ids []int32 }

type nodeSet struct{ nodes []int32 }

// stepSet are steps in their order.
type stepSet struct{ steps []int32 }

func (s *stepSet) has(step int32) bool {
	_, found := slices.BinarySearch(s.steps, step)
	return found
}

// Reason says why a task runs on a node or does not.
type Reason struct {
	// Kind is one of the constants below.
	Kind string
	// Condition is the text of the condition that decided, if there is one.
	Condition string
	// Value is what the condition came to.
	Value any
	// Decisions are the comparisons that the condition made, in order.
	Decisions []*expression.Decision
	// Event is what made the task run, if its condition did not decide; of drift, what differs.
	Event string
}

// Question asks whether what a task brings about is on a machine still. It is asked of tasks that are wanted there: they would run in a first
// deployment, and their conditions find nothing new.
type Question struct {
	Type       string
	Parameters any
	// Check is the field of that name; nil if the task has none.
	Check any
}

// The kinds of reasons.
const (
	Unconditional = "unconditional" // the task has no condition
	ByCondition   = "condition"     // the condition decided
	Internal      = "internal"      // stages and skipped tasks never run; they hold others together
	NotSelected   = "not selected"  // the deployment was asked for other tasks
	ByEvent       = "event"         // the task is executed again on an event that the deployment was told of
	ByRefresh     = "refresh"       // it is for a resource of the configuration that changed
	ByDrift       = "drift"         // what is on the machine differs from what the task brings about
)

// Group is a group of nodes of which some may fail.
type Group struct {
	Name      string
	Nodes     []string
	Tolerance int // how many may fail
}

// ID returns the id of the step's task.
func (s *Step) ID() string { return s.Task.ID }

// Len returns the number of steps that run.
func (p *Plan) Len() int {
	n := 0
	for i := range p.Steps {
		if p.Steps[i].Run {
			n++
		}
	}
	return n
}

// Parameters are those of all steps that run, and what is asked of others, as one value; none of a plan that is nil.
func (p *Plan) Parameters() []any {
	if p == nil {
		return nil
	}
	out := make([]any, 0, len(p.Steps))
	for i := range p.Steps {
		out = append(out, p.Steps[i].Parameters)
		if q := p.Steps[i].Question; q != nil {
			out = append(out, q.Parameters, q.Check)
		}
	}
	return out
}

// Name returns node and task of a step, as in "1/hosts".
func (p *Plan) Name(step int32) string {
	s := &p.Steps[step]
	return p.Nodes[s.Node] + "/" + s.Task.ID
}

// Walker spells out the relations of a plan. It belongs to one goroutine.
type Walker struct {
	plan  *Plan
	seen  []uint32 // for each step the last round in which it was met
	round uint32
}

// Walker returns a walker of the plan.
func (p *Plan) Walker() *Walker { return &Walker{plan: p, seen: make([]uint32, len(p.Steps))} }

// Edges calls f for each step that a step requires, or is required for, once each, in no particular order.
func (w *Walker) Edges(step int32, required bool, f func(other int32)) {
	s := &w.plan.Steps[step]
	relations := s.requires
	if required {
		relations = s.requiredFor
	}
	w.round++
	for _, r := range relations {
		w.plan.members(r, s.Node, func(other int32) {
			if (other != step || r.self) && w.seen[other] != w.round {
				w.seen[other] = w.round
				f(other)
			}
		})
	}
}

// members calls f for the steps that a relation leads to from a node, its own included.
func (p *Plan) members(r relation, node int32, f func(step int32)) {
	if r.steps != nil {
		for _, s := range r.steps.steps {
			f(s)
		}
		return
	}
	p.onNode(r.tasks, node, f)
	if node != p.virtual {
		p.onNode(r.tasks, p.virtual, f)
	}
}

func (p *Plan) onNode(tasks *taskSet, node int32, f func(step int32)) {
	steps := p.at[node]
	for _, id := range tasks.ids {
		if s, ok := steps[id]; ok {
			f(s)
		}
	}
}

// Find returns the step of a task on a node.
func (p *Plan) Find(task, node string) (int32, bool) {
	for n, uid := range p.Nodes {
		if uid != node {
			continue
		}
		for _, s := range p.at[n] {
			if p.Steps[s].Task.ID == task {
				return s, true
			}
		}
	}
	return 0, false
}
