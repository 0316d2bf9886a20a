// Package report writes plans for people and programs: as JSON, YAML, a tree, and pictures for Graphviz and Mermaid.
//
// The same plan always gives the same text.
package report

import (
	"bufio"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/yaql"
)

// longest is the size of the JSON of a value above which a reason tells only its kind and size.
const longest = 1024

// JSON writes a plan: nodes with the tasks that run and those that are skipped, all relations in the form
// NODE/TASK -> NODE/TASK, groups, and each task on each node with why it runs and its parameters.
func JSON(w io.Writer, p *plan.Plan) error {
	j := &writer{w: bufio.NewWriterSize(w, 1<<16), plan: p}
	j.names()
	j.raw("{\n\"nodes\": ")
	j.nodes()
	j.raw(",\n\"requires\": ")
	j.edges(false)
	j.raw(",\n\"required_for\": ")
	j.edges(true)
	j.raw(",\n\"fault_tolerance_groups\": ")
	j.groups()
	j.raw(",\n\"warnings\": [")
	for i, text := range p.Warnings {
		j.comma(i)
		j.value(text)
	}
	j.raw("],\n\"tasks\": [")
	j.steps((*piece).step)
	j.raw("\n]\n}\n")
	return j.w.Flush()
}

// writer writes to a buffer, whose first error comes to light when it is flushed.
type writer struct {
	w      *bufio.Writer
	plan   *plan.Plan
	sorted []int32  // the steps by name
	quoted []string // NODE/TASK, escaped as in JSON but without quotes
	ranks  []int32  // of each step among the sorted ones
}

// names finds the order of steps that their names give.
func (j *writer) names() {
	n := len(j.plan.Steps)
	j.quoted, j.ranks, j.sorted = make([]string, n), make([]int32, n), make([]int32, n)
	for i := range n {
		q := plan.Canonical(j.plan.Name(int32(i)))
		j.quoted[i] = q[1 : len(q)-1]
		j.sorted[i] = int32(i)
	}
	slices.SortFunc(j.sorted, func(a, b int32) int { return strings.Compare(j.quoted[a], j.quoted[b]) })
	for rank, s := range j.sorted {
		j.ranks[s] = int32(rank)
	}
}

func (j *writer) raw(s string) { _, _ = j.w.WriteString(s) }

func (j *writer) value(v any) { j.raw(plan.Canonical(v)) }

func (j *writer) comma(i int) {
	if i > 0 {
		_ = j.w.WriteByte(',')
	}
}

func (j *writer) nodes() {
	type lists struct{ run, skipped []string }
	byNode := map[string]*lists{plan.Virtual: {}}
	for _, s := range j.sorted {
		step := &j.plan.Steps[s]
		uid := j.plan.Nodes[step.Node]
		l := byNode[uid]
		if l == nil {
			l = &lists{}
			byNode[uid] = l
		}
		if step.Run {
			l.run = append(l.run, step.ID())
		} else {
			l.skipped = append(l.skipped, step.ID())
		}
	}
	uids := make([]string, 0, len(byNode))
	for uid := range byNode {
		uids = append(uids, uid)
	}
	slices.Sort(uids)
	j.raw("{")
	for i, uid := range uids {
		j.comma(i)
		j.raw("\n")
		j.value(uid)
		j.raw(`: {"run": `)
		j.texts(byNode[uid].run)
		j.raw(`, "skipped": `)
		j.texts(byNode[uid].skipped)
		j.raw("}")
	}
	j.raw("\n}")
}

func (j *writer) texts(items []string) {
	slices.Sort(items)
	j.raw("[")
	for i, x := range items {
		j.comma(i)
		j.value(x)
	}
	j.raw("]")
}

// edges writes all relations of one direction, sorted.
func (j *writer) edges(required bool) {
	j.raw("[")
	j.steps(func(p *piece, step int32) { p.edges(step, required) })
	j.raw("\n]")
}

func (j *writer) groups() {
	j.raw("[")
	for i, g := range j.plan.Groups {
		j.comma(i)
		j.raw("\n{\"fault_tolerance\": " + strconv.Itoa(g.Tolerance) + `, "name": `)
		j.value(g.Name)
		j.raw(`, "node_ids": `)
		j.texts(slices.Clone(g.Nodes))
		j.raw("}")
	}
	j.raw("\n]")
}

func appendDecision(b []byte, d *expression.Decision) []byte {
	b = append(b, `{"function": `...)
	b = append(b, plan.Canonical(d.Function)...)
	b = append(b, `, "expression": `...)
	b = append(b, plan.Canonical(d.Expression)...)
	b = strconv.AppendBool(append(b, `, "changed": `...), d.Changed)
	if !d.Changed {
		return append(b, '}')
	}
	b = append(append(b, `, "new": `...), bounded(d.New)...)
	if expression.IsUndefined(d.Old) {
		return append(b, `, "old": null, "old_is_undefined": true}`...)
	}
	b = append(append(b, `, "old": `...), bounded(d.Old)...)
	found, more := plan.Differences(d.Old, d.New)
	b = append(b, `, "paths": [`...)
	for i, x := range found {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(append(b, `{"path": `...), plan.Canonical(x.Path)...)
		if !x.Came {
			b = append(append(b, `, "old": `...), bounded(x.Old)...)
		}
		if !x.Gone {
			b = append(append(b, `, "new": `...), bounded(x.New)...)
		}
		b = append(b, '}')
	}
	b = append(b, ']')
	if more {
		b = append(b, `, "more": true`...)
	}
	return append(b, '}')
}

// bounded is the JSON of a value, or of what kind it is and how many items it has.
func bounded(v any) []byte {
	text, ok := plan.CanonicalWithin(v, longest)
	if ok {
		return text
	}
	kind, items := "text", 0
	switch x := v.(type) {
	case string:
		items = len(x)
	case yaql.Mapping:
		kind, items = "map", x.Len()
	case []any:
		kind, items = "list", len(x)
	case *yaql.List:
		kind, items = "list", len(x.Items)
	case *yaql.Set:
		kind, items = "set", x.Len()
	}
	return []byte(`{"$large": "` + kind + `", "$size": ` + strconv.Itoa(items) + `}`)
}
