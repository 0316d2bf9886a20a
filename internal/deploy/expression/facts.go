package expression

import (
	"fmt"
	"strings"
)

// facts are what can be said of a piece of an expression from its syntax alone.
type facts struct {
	calls     map[string]bool
	variables map[string]bool
}

// inspect collects the names that a syntax tree uses.
func (l *Language) inspect(tree []any) facts {
	f := facts{calls: map[string]bool{}, variables: map[string]bool{}}
	f.collect(tree)
	return f
}

func (f facts) collect(tree []any) {
	if len(tree) == 0 {
		return
	}
	head, _ := tree[0].(string)
	rest := tree[1:]
	switch head {
	case "const", "kw":
		return
	case "var":
		if name, ok := rest[0].(string); ok {
			f.variables[name] = true
		}
		return
	case "call":
		if name, ok := rest[0].(string); ok {
			f.calls[strings.TrimRight(name, "_")] = true
		}
	}
	for _, part := range rest {
		if sub, ok := part.([]any); ok {
			f.collect(sub)
		}
	}
}

// repeatable tells whether the piece gives the same for the same states, whatever surrounds it.
func (f facts) repeatable(known map[string]bool) bool {
	for name := range f.variables {
		switch name {
		case "$", "$1", "$node", "$common":
		default:
			return false
		}
	}
	for name := range f.calls {
		if !known[name] {
			return false
		}
	}
	return true
}

// looksAround tells whether the piece looks at the new or old state by itself, by functions that do, and not at $ alone.
func (f facts) looksAround(compares map[string]bool) bool {
	for name := range f.calls {
		if compares[name] {
			return true
		}
	}
	return false
}

// text writes a syntax tree as an expression again; equal texts mean equal pieces.
func text(tree []any) string {
	b := &strings.Builder{}
	write(b, tree)
	return b.String()
}

func write(b *strings.Builder, tree []any) {
	if len(tree) == 0 {
		return
	}
	head, _ := tree[0].(string)
	switch head {
	case "const":
		constant(b, tree[1])
	case "kw", "var":
		fmt.Fprint(b, tree[1])
	case "call":
		fmt.Fprint(b, tree[1])
		list(b, "(", tree[2:], ")")
	case "bin":
		binary(b, tree)
	case "un":
		fmt.Fprint(b, tree[1])
		if tree[1] == "not" {
			b.WriteByte(' ')
		}
		part(b, tree[2])
	case "index":
		part(b, tree[1])
		list(b, "[", tree[2:], "]")
	case "list":
		list(b, "[", tree[1:], "]")
	case "dict":
		list(b, "{", tree[1:], "}")
	case "map":
		part(b, tree[1])
		b.WriteString(" => ")
		part(b, tree[2])
	case "wrap":
		list(b, "(", tree[1:], ")")
	}
}

func binary(b *strings.Builder, tree []any) {
	part(b, tree[2])
	if op := fmt.Sprint(tree[1]); op == "." || op == "?." {
		b.WriteString(op)
	} else {
		b.WriteString(" " + op + " ")
	}
	part(b, tree[3])
}

func part(b *strings.Builder, p any) {
	if sub, ok := p.([]any); ok {
		write(b, sub)
	}
}

func list(b *strings.Builder, open string, parts []any, end string) {
	b.WriteString(open)
	for i, p := range parts {
		if i > 0 {
			b.WriteString(", ")
		}
		part(b, p)
	}
	b.WriteString(end)
}

func constant(b *strings.Builder, v any) {
	switch x := v.(type) {
	case nil:
		b.WriteString("null")
	case string:
		b.WriteString("'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(x) + "'")
	case float64:
		s := fmt.Sprintf("%v", x)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		b.WriteString(s)
	default:
		fmt.Fprint(b, v)
	}
}
