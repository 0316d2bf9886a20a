// Package graph reads task graphs: files of tasks, whose fields may be computed by expressions, merged from several
// sources by the ids of tasks.
//
// Invariants:
//   - A graph that was read is whole: its form is that of the published schema (schema.json), every expression in it
//     is compiled, and what is wrong is said with file, line and column.
//   - Tasks and templates are immutable and may be shared.
package graph

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"

	"github.com/drover-project/drover/internal/deploy/document"
	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/yaql"
)

// maxTasks bounds the number of tasks of a graph.
const maxTasks = 50_000

// Task is one task of a graph.
type Task struct {
	ID     string
	Fields []Field
	document.Position
}

// Field is a field of a task, under its own name: role is roles, and dashes are underscores.
type Field struct {
	Name string
	*Template
}

// Get returns a field, or nil.
func (t *Task) Get(name string) *Template {
	for i := range t.Fields {
		if t.Fields[i].Name == name {
			return t.Fields[i].Template
		}
	}
	return nil
}

// Graph is a list of tasks, and what goes for all of them.
type Graph struct {
	Tasks []*Task
	// NodeFilter is the expression that says for which nodes a graph is, empty for the default.
	NodeFilter string
	// Outcomes are the attributes that nodes get on_success, on_error and on_stop.
	Outcomes map[string]any
	// Expressions is the number of expressions in the tasks.
	Expressions int
	Warnings    []document.Warning
}

// renamed are the fields that have another name in files.
var renamed = map[string]string{"role": "roles", "cross-depends": "cross_depends", "cross-depended-by": "cross_depended_by"}

// Read reads a graph: a list of tasks, or a map with tasks in it. Its error is the first of all that Lint refuses in the file.
func Read(language *expression.Language, file string, text []byte) (*Graph, error) {
	c := &compiler{language: language}
	g := c.graph(file, text)
	if len(c.refusals) > 0 {
		return nil, c.refusals[0].err
	}
	return g, nil
}

// graph reads a graph, without what is refused in it.
func (c *compiler) graph(file string, text []byte) *Graph {
	g := &Graph{}
	if n := listed(text); n > maxTasks { // which takes no reading
		c.tooMany(file, n)
		return g
	}
	root, warnings, err := document.Parse(file, text)
	if err != nil {
		c.refuse(ruleYAML, placed(file, err), err)
		return g
	}
	g.Warnings = warnings
	tasks := root
	if root.Kind == document.Map {
		c.refusals = append(c.refusals, validate(root)...)
		c.properties(g, root)
		tasks = root.Get("tasks")
	}
	switch {
	case tasks == nil || tasks.Kind == document.Scalar && tasks.Scalar == nil:
		return g
	case tasks.Kind != document.List && len(c.refusals) > 0:
		return g
	case tasks.Kind != document.List:
		c.refuse(ruleForm, tasks.Position, fault.New(fault.Invalid, "%s: a graph is a list of tasks", tasks.Position))
		return g
	case len(tasks.Items) > maxTasks:
		c.tooMany(file, len(tasks.Items))
		return g
	}
	if root.Kind == document.List {
		c.refusals = append(c.refusals, validate(root)...)
	}
	for _, n := range tasks.Items {
		if id := n.Get("id"); id == nil || id.Kind != document.Scalar {
			continue // its form was refused
		}
		t := c.task(n)
		g.Tasks = append(g.Tasks, t)
		g.Warnings = append(append(g.Warnings, unknownFields(n)...), stars(t)...)
	}
	g.Expressions, g.Warnings = c.count, append(g.Warnings, c.warnings...)
	c.unique(g)
	return g
}

func (c *compiler) tooMany(file string, n int) {
	c.refuse(ruleForm, document.Position{File: file}, fault.New(fault.TooLarge, "%s: the graph has %d tasks; %d are the limit", file, n, maxTasks))
}

// listed counts the items of the first list of a text, if it is written with one to a line: those that are indented as its
// first one is.
func listed(text []byte) int {
	n, mark := 0, []byte(nil)
	for line := range bytes.Lines(text) {
		item := bytes.TrimLeft(line, " ")
		switch {
		case !bytes.HasPrefix(item, []byte("- ")):
		case mark == nil:
			n, mark = 1, line[:len(line)-len(item)+len("- ")]
		case bytes.HasPrefix(line, mark):
			n++
		}
	}
	return n
}

// properties reads what goes for all tasks of a graph.
func (c *compiler) properties(g *Graph, root *document.Node) {
	if f := root.Get("node_filter"); f != nil {
		g.NodeFilter, _ = f.Scalar.(string)
		if _, err := c.language.Predicate(g.NodeFilter); g.NodeFilter != "" && err != nil {
			c.refuse(ruleExpression, placeOf(f, err), fault.New(fault.Invalid, "node_filter of the graph: %w", Located(f, err)).At("node_filter"))
		}
	}
	g.Outcomes = map[string]any{}
	for _, name := range []string{"on_success", "on_error", "on_stop"} {
		if n := root.Get(name); n != nil {
			g.Outcomes[name] = n.Value()
			g.Warnings = append(g.Warnings, document.Warning{Position: n.Position, Rule: ruleNoEffect, Message: name + " has no effect: nodes get no status of a graph"})
		}
	}
}

// unique refuses graphs that hold a task twice.
func (c *compiler) unique(g *Graph) {
	first := map[string]*Task{}
	for _, t := range g.Tasks {
		if other := first[t.ID]; other != nil {
			c.refuse(ruleTwice, t.Position, fault.New(fault.Invalid, "%s: Tasks duplication found: %s, first at %s", t.Position, t.ID, other.Position))
			continue
		}
		first[t.ID] = t
	}
}

// task compiles a task of a file.
func (c *compiler) task(n *document.Node) *Task {
	id, _ := n.Get("id").Scalar.(string)
	t := &Task{ID: id, Position: n.Position}
	for i, k := range n.Keys {
		name := k.Name
		if short, ok := renamed[name]; ok {
			name = short
		}
		if t.Get(name) != nil {
			c.refuse(ruleTwice, k.Position, fault.New(fault.Invalid, "%s: the field is there twice, under two names", k.Position).At(field(id, k.Name)))
			continue
		}
		value := c.field(id, k.Name, n.Items[i])
		c.count += value.Expressions
		value, there := asRecord(name, value)
		if there {
			t.Fields = append(t.Fields, Field{name, value})
		}
	}
	return t
}

// field compiles the value of a field.
func (c *compiler) field(task, name string, n *document.Node) *Template {
	before := len(c.refusals)
	t := c.template(n)
	for _, r := range c.refusals[before:] {
		r.err = inTask(task, name, r.err)
	}
	return t
}

// Record compiles a task in the form that stored tasks have: fields are called as expressions know them, roles and
// cross_depends, and are taken as they are. Its form is not checked.
func Record(language *expression.Language, n *document.Node) (*Task, error) {
	c := &compiler{language: language}
	id := n.Get("id")
	if id == nil || id.Kind != document.Scalar {
		err := &yaql.Error{Class: yaql.TypeError, Message: "the id of a task is no text", Offset: -1}
		return nil, fault.New(fault.Invalid, "%s: %w", n.Position, err)
	}
	t := &Task{ID: fmt.Sprint(id.Scalar), Position: n.Position}
	for i, k := range n.Keys {
		value := c.field(t.ID, k.Name, n.Items[i])
		if len(c.refusals) > 0 {
			return nil, c.refusals[0].err
		}
		t.Fields = append(t.Fields, Field{k.Name, value})
	}
	return t, nil
}

func inTask(id, name string, err error) error {
	f := fault.New(fault.CodeOf(err), "%s: %w", field(id, name), err)
	return f.At(field(id, name))
}

// asRecord gives a field the form that tasks have after they are stored: empty lists of places and relations are as
// if they were not there, as are empty conditions, and of roles and groups one text stands for a list of it. A list of roles with nothing but
// a star is that star.
func asRecord(name string, t *Template) (*Template, bool) {
	if !t.Static {
		return t, true
	}
	v := t.Constant
	switch name {
	case "roles":
		if items, ok := v.([]any); ok && len(items) == 1 && (items[0] == star || items[0] == "master" || items[0] == "self") {
			return t.with(items[0]), true
		}
		fallthrough
	case "groups", "tags", "requires", "required_for", "cross_depends", "cross_depended_by", "tasks":
		if items, ok := v.([]any); v == nil || ok && len(items) == 0 {
			return nil, false
		}
		if name == "groups" && v == star {
			return t.with([]any{v}), true
		}
	case "parameters":
		return t, v != nil
	case "condition":
		return t, v != nil && v != ""
	}
	return t, true
}

func (t *Template) with(v any) *Template {
	c := *t
	c.Constant = v
	return &c
}

// Merge adds the tasks of a later graph: those with an id that is there replace the earlier ones in their place.
func (g *Graph) Merge(later *Graph) *Graph {
	out := &Graph{NodeFilter: g.NodeFilter, Outcomes: map[string]any{}, Tasks: append([]*Task(nil), g.Tasks...),
		Warnings: append(append([]document.Warning(nil), g.Warnings...), later.Warnings...)}
	if later.NodeFilter != "" {
		out.NodeFilter = later.NodeFilter
	}
	for _, from := range []*Graph{g, later} {
		maps.Copy(out.Outcomes, from.Outcomes)
	}
	places := map[string]int{}
	for i, t := range out.Tasks {
		places[t.ID] = i
	}
	for _, t := range later.Tasks {
		if i, there := places[t.ID]; there {
			out.Tasks[i] = t
			continue
		}
		places[t.ID] = len(out.Tasks)
		out.Tasks = append(out.Tasks, t)
	}
	for _, t := range out.Tasks {
		for _, f := range t.Fields {
			out.Expressions += f.Expressions
		}
	}
	return out
}

// Schema is the published form of task graphs, a JSON Schema.
//
//go:embed schema.json
var Schema []byte
