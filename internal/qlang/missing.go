package qlang

// Missing holds if the field has no value: nobody knows it, or there is no such
// thing. It is the one test that a missing value is asked for by name; the
// reference has none.
//
// As text it is FIELD is missing, and its negation FIELD is not missing; as JSON
// ["missing", FIELD].
type Missing struct {
	Span

	Field string
}

func (*Missing) isNode() {}

// Strict returns the filter for which a value that is missing meets no test, and
// no negation of one: it holds where n holds by values that are there, as a
// comparison with null chooses nothing in SQL. Where a row lacks a value, only
// Missing holds. In the reference what is missing meets every test.
//
// Of a filter without tests of fields nothing changes.
func Strict(n Node) Node { return strict(n, false) }

// strict is Strict of n, or of its negation: negations go down to the tests, so
// that the value is asked for beside each.
func strict(n Node, negated bool) Node {
	switch x := n.(type) {
	case *And:
		return joined(x.Span, strictAll(x.Args, negated), !negated)
	case *Or:
		return joined(x.Span, strictAll(x.Args, negated), negated)
	case *Not:
		return strict(x.Arg, !negated)
	case *Missing, *All, nil:
		return negatedIf(n, negated)
	}
	field, _ := Field(n)
	there := &Not{Span: n.Source(), Arg: &Missing{Span: n.Source(), Field: field}}
	return &And{Span: n.Source(), Args: []Node{there, negatedIf(n, negated)}}
}

func strictAll(args []Node, negated bool) []Node {
	out := make([]Node, len(args))
	for i, arg := range args {
		out[i] = strict(arg, negated)
	}
	return out
}

// joined is an And or an Or. Tests that an And joins already stand among the
// others, so that a filter does not get deeper by them.
func joined(s Span, args []Node, and bool) Node {
	if !and {
		return &Or{Span: s, Args: args}
	}
	var flat []Node
	for _, arg := range args {
		if inner, ok := arg.(*And); ok {
			flat = append(flat, inner.Args...)
			continue
		}
		flat = append(flat, arg)
	}
	return &And{Span: s, Args: flat}
}

func negatedIf(n Node, negated bool) Node {
	if n == nil {
		n = &All{}
	}
	if negated {
		return &Not{Span: n.Source(), Arg: n}
	}
	return n
}
