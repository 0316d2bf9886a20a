package graph

import (
	"fmt"
	"strings"

	"github.com/drover-project/drover/internal/deploy/document"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/yaql"
)

// Dangling warns of names in relations that no task of a graph has. They are no errors: plugins relate to tasks that
// may be there or not, and relations that lead nowhere mean nothing.
func Dangling(g *Graph) []document.Warning {
	ids := map[string]bool{}
	for _, t := range g.Tasks {
		ids[t.ID] = true
	}
	var out []document.Warning
	for _, t := range g.Tasks {
		for _, f := range t.Fields {
			for _, name := range f.names() {
				if ids[name] || strings.HasPrefix(name, "/") {
					continue
				}
				out = append(out, document.Warning{Position: f.Position, Rule: ruleDangling,
					Message: fmt.Sprintf("task %s: %s names the task %q, which the graph lacks", t.ID, f.Name, name)})
			}
		}
	}
	return out
}

// names returns the names of tasks that a field holds in plain words.
func (f *Field) names() []string {
	items, ok := f.Constant.([]any)
	if !ok || !f.Static {
		return nil
	}
	var out []string
	for _, x := range items {
		switch f.Name {
		case "requires", "required_for", "tasks":
			if s, ok := x.(string); ok {
				out = append(out, s)
			}
		case "cross_depends", "cross_depended_by":
			if d, ok := x.(*yaql.Dict); ok {
				name, _ := d.Get("name")
				if s, ok := name.(string); ok {
					out = append(out, s)
				}
			}
		}
	}
	return out
}

// Circles refuses graphs in which tasks wait for one another on the same node, whatever nodes there are.
func Circles(g *Graph) error {
	if r := circle(g); r != nil {
		return r.err
	}
	return nil
}

// circle is what Circles refuses.
func circle(g *Graph) *refusal {
	before := map[string][]string{}
	tasks := map[string]*Task{}
	for _, t := range g.Tasks {
		tasks[t.ID] = t
		for _, f := range t.Fields {
			for _, name := range f.names() {
				switch f.Name {
				case "requires":
					before[t.ID] = append(before[t.ID], name)
				case "required_for":
					before[name] = append(before[name], t.ID)
				}
			}
		}
	}
	s := &search{before: before, tasks: tasks, done: map[string]bool{}, on: map[string]int{}}
	for _, t := range g.Tasks {
		if found := s.from(t.ID); found != nil {
			return refused(ruleCircle, tasks[found[0]].Position, Circle(tasks[found[0]].Position, found, s.stuck()-len(found)+1))
		}
	}
	return nil
}

// Circle is the error that tasks wait for one another in a circle: each name is of one that waits for the next, and the last is
// the first. So many more wait for these, or in further circles.
func Circle(at document.Position, names []string, more int) error {
	text := strings.Join(names, " waits for ")
	if more > 0 {
		text += fmt.Sprintf("; %d more wait for these, or in further circles", more)
	}
	return fault.New(fault.Invalid, "%s: the tasks wait for one another in a circle: %s", at, text).
		WithHint("remove one of the relations")
}

type search struct {
	before map[string][]string
	tasks  map[string]*Task
	done   map[string]bool
	on     map[string]int // place in the way, from 1
	way    []string
}

// stuck returns how many tasks can never begin: those that are left when all are taken away that wait for none that is left.
func (s *search) stuck() int {
	waits, next := map[string]int{}, map[string][]string{}
	var free []string
	for id := range s.tasks {
		for _, other := range s.before[id] {
			if s.tasks[other] != nil {
				waits[id]++
				next[other] = append(next[other], id)
			}
		}
		if waits[id] == 0 {
			free = append(free, id)
		}
	}
	left := len(s.tasks)
	for ; len(free) > 0; left-- {
		id := free[0]
		free = free[1:]
		for _, x := range next[id] {
			if waits[x]--; waits[x] == 0 {
				free = append(free, x)
			}
		}
	}
	return left
}

// from looks for a circle that can be reached from a task. It keeps its own stack: chains may be long.
func (s *search) from(start string) []string {
	type frame struct {
		id   string
		next int
	}
	if s.done[start] {
		return nil
	}
	stack := []frame{{id: start}}
	s.way, s.on[start] = append(s.way[:0], start), 1
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.next == len(s.before[top.id]) {
			s.done[top.id] = true
			delete(s.on, top.id)
			s.way = s.way[:len(s.way)-1]
			stack = stack[:len(stack)-1]
			continue
		}
		id := s.before[top.id][top.next]
		top.next++
		if at := s.on[id]; at > 0 {
			return append(append([]string(nil), s.way[at-1:]...), id)
		}
		if s.done[id] || s.tasks[id] == nil {
			continue
		}
		s.way = append(s.way, id)
		s.on[id] = len(s.way)
		stack = append(stack, frame{id: id})
	}
	return nil
}
