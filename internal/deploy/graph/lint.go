package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/deploy/document"
	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/legacy"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/yaql"
)

// Source is a file of a graph.
type Source struct {
	File string
	Text []byte
}

// Finding is something in a graph that is wrong, or probably not meant.
type Finding struct {
	// Rule is the name of one of Rules.
	Rule string
	document.Position
	Message string
}

// Lint finds all that is wrong or probably not meant in a graph, whose later files override earlier ones, in the order of files and
// places. Roles are those that the nodes of an environment have; nil where no environment is known.
func Lint(language *expression.Language, sources []Source, roles []string) []Finding {
	var all []Finding
	add := func(warnings []document.Warning) {
		for _, w := range warnings {
			all = append(all, Finding{w.Rule, w.Position, w.Message})
		}
	}
	whole := &Graph{}
	for _, s := range sources {
		c := &compiler{language: language, found: &all}
		g := c.graph(s.File, s.Text)
		for _, r := range c.refusals {
			all = append(all, r.finding())
		}
		for _, t := range g.Tasks {
			all = append(all, t.lint()...)
		}
		whole = whole.Merge(g)
	}
	add(whole.Warnings)
	add(Dangling(whole))
	if r := circle(whole); r != nil {
		all = append(all, r.finding())
	}
	if roles != nil {
		add(UnknownRoles(whole, roles))
	}
	return inOrder(all, sources)
}

// inOrder sorts findings by file, as given, and place.
func inOrder(all []Finding, sources []Source) []Finding {
	files := map[string]int{}
	for i := range slices.Backward(sources) {
		files[sources[i].File] = i
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(files[a.File], files[b.File]), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(all)
}

// classes are the rules of errors of expressions.
var classes = map[string]string{yaql.NoFunctionRegisteredException: ruleFunction, yaql.NoMethodRegisteredException: ruleMethod}

// doubts are what an expression cannot do, and what is probably not meant in it; what is a warning wherever graphs are read is not among that.
func doubts(language *expression.Language, x *expression.Expression, n *document.Node) []Finding {
	var out []Finding
	for _, e := range language.Impossible(x) {
		message := e.Plain()
		if e.Hint != "" {
			message += " (" + e.Hint + ")"
		}
		out = append(out, Finding{cmp.Or(classes[e.Class], ruleArguments), n.Inside(e.Offset), message})
	}
	for _, d := range x.Likened() {
		out = append(out, Finding{ruleConstant, n.Inside(d.Offset), d.Text})
	}
	return out
}

// needed are the parameters that tasks need of the types which nodes know by themselves (package agent).
var needed = map[string][]string{"shell": {"cmd"}, "master_shell": {"cmd"}, "puppet": {"puppet_manifest"}, "sync": {"src", "dst"},
	"upload_file": {"path", "data"}}

// Needed are the parameters that a task of a type needs, as far as that is known here.
func Needed(kind string) []string { return needed[kind] }

// lint finds what is wrong or probably not meant in a task by itself.
func (t *Task) lint() []Finding {
	var out []Finding
	find := func(rule string, at document.Position, format string, args ...any) {
		out = append(out, Finding{rule, at, "task " + t.ID + ": " + fmt.Sprintf(format, args...)})
	}
	kind, _ := t.text("type")
	if c := t.Get("condition"); c != nil {
		if text, ok := c.Constant.(string); ok {
			if _, err := legacy.Parse(text); err != nil {
				find(ruleCondition, c.Position, "the condition cannot be read: %v", err)
			}
			if strings.Contains(text, "$") {
				find(ruleDollar, c.Position, "the condition holds a $, and is of the old language; an expression is {%s: ...}", computedKey)
			}
		}
	}
	if c := t.Get("check"); c != nil {
		switch {
		case grouping[kind]:
			find(ruleNoEffect, c.Position, "the check has no effect: what is of type %s does nothing on a machine", kind)
		case t.Get("condition") == nil:
			find(ruleNoEffect, c.Position, "the check has no effect: without a condition the task runs always, and only of tasks that do not run it is asked what differs")
		case t.Get("condition").Static:
			find(ruleNoEffect, c.Position, "the check has no effect: the condition compares nothing with the state before, and only of tasks that run again when something changes it is asked what differs")
		}
	}
	for _, name := range needed[kind] {
		if p := t.Get("parameters"); p.lacks(name) {
			at := t.Position
			if p != nil {
				at = p.Position
			}
			find(ruleParameter, at, "a task of type %s needs the parameter %s", kind, name)
		}
	}
	if !grouping[kind] && kind != "" && t.Get("roles") == nil && t.Get("tags") == nil && t.Get("groups") == nil {
		find(ruleNobody, t.Position, "no node runs it, for it names no role, tag or group")
	}
	return out
}

// grouping are the types of tasks that run nowhere by themselves.
var grouping = map[string]bool{"group": true, "stage": true, "skipped": true}

// text is the value of a field that is a text.
func (t *Task) text(name string) (string, bool) {
	f := t.Get(name)
	if f == nil {
		return "", false
	}
	s, ok := f.Constant.(string)
	return s, ok
}

// lacks tells whether a map surely has no such key; one that is computed may have any.
func (t *Template) lacks(key string) bool {
	switch {
	case t == nil:
		return true
	case t.Static:
		d, ok := t.Constant.(yaql.Mapping)
		if !ok {
			return t.Constant == nil
		}
		_, there := d.Get(key)
		return !there
	}
	return t.Computed == nil && t.Keys != nil && !slices.Contains(t.Keys, key)
}

// nearly finds keys that are almost that of an expression.
func nearly(k document.Key) []Finding {
	if k.Name == computedKey || qlang.Suggest(strings.ReplaceAll(strings.ToLower(k.Name), "-", "_"), slices.Values([]string{computedKey})) == "" {
		return nil
	}
	return []Finding{{ruleComputed, k.Position, fmt.Sprintf("the key %q is almost %s", k.Name, computedKey)}}
}
