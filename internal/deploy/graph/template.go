package graph

import (
	"errors"
	"fmt"

	"github.com/drover-project/drover/internal/deploy/document"
	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/yaql"
)

// computedKey marks a map that stands for the value of an expression.
const computedKey = "yaql_exp"

// Template is a value of a task in which expressions may stand at any depth. It is immutable.
type Template struct {
	// Computed is set if the whole value is computed.
	Computed *expression.Expression
	// Constant is the value if nothing in it is computed.
	Constant any
	// Items are the parts of a list or a map that holds something computed.
	Items []*Template
	// Keys are the keys of a map; nil for lists.
	Keys []string
	// Static tells whether Constant is the value.
	Static bool
	// Expressions is the number of expressions inside.
	Expressions int
	document.Position
	node *document.Node // of the text of the expression
}

// compiler makes templates.
type compiler struct {
	language *expression.Language
	count    int
	warnings []document.Warning
}

// template compiles a value of a document.
func (c *compiler) template(n *document.Node) (*Template, error) {
	t := &Template{Position: n.Position}
	switch n.Kind {
	case document.Scalar:
		t.Constant, t.Static = n.Scalar, true
		return t, nil
	case document.Map:
		if x := n.Get(computedKey); x != nil {
			return t, c.computed(t, x, n)
		}
		for _, k := range n.Keys {
			t.Keys = append(t.Keys, k.Name)
		}
	}
	t.Static = true
	for i, item := range n.Items {
		part := &Template{Static: true, Constant: item.Value(), Position: item.Position}
		if n.Kind != document.Map || n.Keys[i].Name != "regex" { // texts below regex are left as they are
			var err error
			if part, err = c.template(item); err != nil {
				return nil, err
			}
		}
		t.Items = append(t.Items, part)
		t.Static = t.Static && part.Static
		t.Expressions += part.Expressions
	}
	if t.Static {
		t.Constant, t.Items, t.Keys = n.Value(), nil, nil
	}
	return t, nil
}

func (c *compiler) computed(t *Template, x, whole *document.Node) error {
	text, ok := x.Scalar.(string)
	if x.Kind != document.Scalar || !ok {
		return fault.New(fault.Invalid, "%s: %s must be the text of an expression", x.Position, computedKey)
	}
	if arg := whole.Get("yaql_exp_arg"); arg != nil {
		return fault.New(fault.Invalid, "%s: expressions take no yaql_exp_arg", arg.Position)
	}
	code, err := c.language.Compile(text)
	if err != nil {
		return Located(x, err)
	}
	t.Computed, t.Expressions, t.node = code, 1, x
	for _, d := range code.Doubts() {
		c.warnings = append(c.warnings, document.Warning{Position: x.Inside(d.Offset), Message: d.Text})
	}
	return nil
}

// Located says where in a file an error in the text of a node is.
func Located(n *document.Node, err error) error {
	e, ok := errors.AsType[*yaql.Error](err)
	if !ok {
		return err
	}
	message := e.Plain()
	if message == "" {
		message = e.Class
	} else {
		message = e.Class + ": " + message
	}
	f := fault.New(fault.Invalid, "%s: %s", n.Inside(e.Offset), message)
	f.Hint, f.Cause = e.Hint, err
	return f
}

// Located says where in the file an error in the expression of a template is.
func (t *Template) Located(err error) error {
	if t.node == nil {
		return err
	}
	return Located(t.node, err)
}

// field describes a field for messages.
func field(task, name string) string { return fmt.Sprintf("task %s: field %s", task, name) }
