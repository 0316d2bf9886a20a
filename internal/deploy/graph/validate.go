package graph

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/drover-project/drover/internal/deploy/document"
	"github.com/drover-project/drover/internal/fault"
)

const schemaName = "task-graph.json"

// schema is compiled at its first use.
var schema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	text, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(schemaName, text); err != nil {
		return nil, err
	}
	return c.Compile(schemaName)
})

// validate checks the form of a graph, and names the places that are wrong, the clearest one first.
func validate(root *document.Node) []*refusal {
	s, err := schema()
	if err != nil {
		return []*refusal{refused(ruleForm, root.Position, fault.New(fault.Internal, "the schema of task graphs: %w", err))}
	}
	err = s.Validate(instance(root))
	wrong, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return nil
	}
	out := []*refusal{misshapen(root, clearest(wrong))}
	for _, leaf := range each(wrong) {
		if r := misshapen(root, leaf); r.err.Error() != out[0].err.Error() {
			out = append(out, r)
		}
	}
	return out
}

// each returns the clearest error of each place that is wrong by itself.
func each(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf: // the alternative that was meant, most likely
		meant := clearest(e)
		for _, c := range e.Causes {
			if clearest(c) == meant {
				return each(c)
			}
		}
	}
	var out []*jsonschema.ValidationError
	for _, c := range e.Causes {
		out = append(out, each(c)...)
	}
	return out
}

// misshapen says which place of a graph is wrong, and how.
func misshapen(root *document.Node, leaf *jsonschema.ValidationError) *refusal {
	at := root
	path := strings.Builder{}
	task := ""
	for _, step := range leaf.InstanceLocation {
		next, name := walker{at}.step(step)
		if next == nil {
			break
		}
		if id := next.Get("id"); id != nil && next.Kind == document.Map && task == "" {
			if text, ok := id.Scalar.(string); ok {
				task = "task " + text + ": "
				path.Reset()
				at = next
				continue
			}
		}
		path.WriteString(name)
		at = next
	}
	what := leaf.ErrorKind.LocalizedString(message.NewPrinter(language.English))
	where := strings.TrimPrefix(path.String(), ".")
	if where != "" {
		where = "field " + where + ": "
	}
	return refused(ruleForm, at.Position, fault.New(fault.Invalid, "%s: %s%s%s", at.Position, task, where, what).At(strings.TrimSuffix(where, ": ")))
}

// step goes to the part of a node that a step of a JSON pointer names.
func (w walker) step(s string) (*document.Node, string) {
	if w.Kind == document.List {
		i, err := strconv.Atoi(s)
		if err != nil || i >= len(w.Items) {
			return nil, ""
		}
		return w.Items[i], fmt.Sprintf("[%d]", i)
	}
	return w.Get(s), "." + s
}

type walker struct{ *document.Node }

// clearest returns the innermost of the errors that together make the first one up: alternatives that fail already
// by their type say nothing about what was meant.
func clearest(e *jsonschema.ValidationError) *jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return e
	}
	leaves := make([]*jsonschema.ValidationError, 0, len(e.Causes))
	for _, c := range e.Causes {
		leaves = append(leaves, clearest(c))
	}
	slices.SortStableFunc(leaves, func(a, b *jsonschema.ValidationError) int {
		if c := cmp.Compare(len(b.InstanceLocation), len(a.InstanceLocation)); c != 0 {
			return c
		}
		return cmp.Compare(vagueness(a), vagueness(b))
	})
	return leaves[0]
}

func vagueness(e *jsonschema.ValidationError) int {
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		if slices.Contains(k.Missing, computedKey) {
			return 3 // it was not meant to be computed
		}
		return 1
	case *kind.Type:
		return 2
	}
	return 0
}

// instance returns the value of a node in the form that the schema is applied to.
func instance(n *document.Node) any {
	switch n.Kind {
	case document.List:
		out := make([]any, len(n.Items))
		for i, x := range n.Items {
			out[i] = instance(x)
		}
		return out
	case document.Map:
		out := make(map[string]any, len(n.Keys))
		for i, k := range n.Keys {
			out[k.Name] = instance(n.Items[i])
		}
		return out
	}
	return n.Scalar
}

// knownFields are the fields that mean something, and those that the reference's graphs carry along.
var knownFields = []string{"id", "type", "version", "role", "roles", "tags", "groups", "tasks", "requires", "required_for",
	"cross-depends", "cross_depends", "cross-depended-by", "cross_depended_by", "condition", "parameters", "fault_tolerance",
	"fail_on_error", "check", "reexecute_on", "refresh_on", "strategy", "stage", "description", "test_pre", "test_post", "task_name"}

// unknownFields warns of fields that mean nothing, which are kept.
func unknownFields(n *document.Node) []document.Warning {
	var out []document.Warning
	for _, k := range n.Keys {
		if k.Name == "stage" {
			out = append(out, document.Warning{Position: k.Position, Rule: ruleNoEffect,
				Message: "the field \"stage\" has no effect: tasks of plugins' stages are not put into place; name what the task requires"})
		}
		if slices.Contains(knownFields, k.Name) {
			continue
		}
		out = append(out, document.Warning{Position: k.Position, Rule: ruleField, Message: fmt.Sprintf("the field %q of a task means nothing", k.Name)})
	}
	return out
}
