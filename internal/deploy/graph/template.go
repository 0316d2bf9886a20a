package graph

import (
	"errors"

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

// compiler makes templates. It goes on behind what it refuses, as if a null stood there.
type compiler struct {
	language *expression.Language
	count    int
	warnings []document.Warning
	refusals []*refusal
	found    *[]Finding // of Lint; nil where nobody asks
}

func (c *compiler) refuse(rule string, at document.Position, err error) {
	c.refusals = append(c.refusals, refused(rule, at, err))
}

// template compiles a value of a document.
func (c *compiler) template(n *document.Node) *Template {
	t := &Template{Position: n.Position}
	switch n.Kind {
	case document.Scalar:
		t.Constant, t.Static = n.Scalar, true
		return t
	case document.Map:
		if x := n.Get(computedKey); x != nil {
			c.computed(t, x, n)
			return t
		}
		for _, k := range n.Keys {
			t.Keys = append(t.Keys, k.Name)
			if c.found != nil {
				*c.found = append(*c.found, nearly(k)...)
			}
		}
	}
	t.Static = true
	for i, item := range n.Items {
		part := &Template{Static: true, Constant: item.Value(), Position: item.Position}
		if n.Kind != document.Map || n.Keys[i].Name != "regex" { // texts below regex are left as they are
			part = c.template(item)
		}
		t.Items = append(t.Items, part)
		t.Static = t.Static && part.Static
		t.Expressions += part.Expressions
	}
	if t.Static {
		t.Constant, t.Items, t.Keys = n.Value(), nil, nil
	}
	return t
}

func (c *compiler) computed(t *Template, x, whole *document.Node) {
	text, ok := x.Scalar.(string)
	if x.Kind != document.Scalar || !ok {
		c.refuse(ruleForm, x.Position, fault.New(fault.Invalid, "%s: %s must be the text of an expression", x.Position, computedKey))
		t.Static = true
		return
	}
	if arg := whole.Get("yaql_exp_arg"); arg != nil {
		c.refuse(ruleForm, arg.Position, fault.New(fault.Invalid, "%s: expressions take no yaql_exp_arg", arg.Position))
		t.Static = true
		return
	}
	code, err := c.language.Compile(text)
	if err != nil {
		c.refuse(ruleExpression, placeOf(x, err), Located(x, err))
		t.Static = true
		return
	}
	if c.found != nil {
		*c.found = append(*c.found, doubts(c.language, code, x)...)
	}
	t.Computed, t.Expressions, t.node = code, 1, x
	for _, d := range code.Doubts() {
		c.warnings = append(c.warnings, document.Warning{Position: x.Inside(d.Offset), Message: d.Text, Rule: ruleConstant})
	}
}

// placeOf is where in a file an error in the text of a node is.
func placeOf(n *document.Node, err error) document.Position {
	if e, ok := errors.AsType[*yaql.Error](err); ok {
		return n.Inside(e.Offset)
	}
	return n.Position
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
