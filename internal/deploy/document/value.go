package document

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/drover-project/drover/yaql"
)

// Value returns the value of a node as expressions take it, with maps in the order of the document.
func (n *Node) Value() any {
	switch n.Kind {
	case List:
		items := make([]any, len(n.Items))
		for i, x := range n.Items {
			items[i] = x.Value()
		}
		return items
	case Map:
		d := yaql.NewDict(len(n.Keys))
		for i, k := range n.Keys {
			_ = d.Set(k.Name, n.Items[i].Value()) // texts can be keys
		}
		return d
	}
	return n.Scalar
}

// Sorted returns a value with all its maps in the order of their keys, which is the order that states have. The value
// itself must not be used any more: what is in order already is kept as it is.
func Sorted(v any) any {
	switch x := v.(type) {
	case []any:
		for i := range x {
			x[i] = Sorted(x[i])
		}
	case *yaql.Dict:
		return sortedMap(x)
	}
	return v
}

func sortedMap(x *yaql.Dict) *yaql.Dict {
	ordered, previous := true, ""
	x.Range(func(k, e any) bool {
		key, _ := k.(string)
		ordered = ordered && previous <= key
		previous = key
		if inner, ok := e.(*yaql.Dict); ok {
			if better := sortedMap(inner); better != inner {
				_ = x.Set(k, better) // it is a key
			}
			return true
		}
		Sorted(e) // lists stay what they are
		return true
	})
	if ordered {
		return x
	}
	type entry struct {
		key   string
		value any
	}
	entries := make([]entry, 0, x.Len())
	x.Range(func(k, e any) bool {
		key, _ := k.(string)
		entries = append(entries, entry{key, e})
		return true
	})
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	d := yaql.NewDict(len(entries))
	for _, e := range entries {
		_ = d.Set(e.key, e.value) // texts can be keys
	}
	return d
}

// Inside returns the place of a byte offset within the text of a scalar: the line and column of the file, also where
// the text is folded over lines. Characters that are not white space are the same in text and file, in the same order.
func (n *Node) Inside(offset int) Position {
	text, ok := n.Scalar.(string)
	if !ok || offset < 0 || n.source == nil {
		return n.Position
	}
	offset = min(offset, len(text))
	before := solid(text[:offset])
	rest, line, column := n.source.from(n.Line, n.Column)
	if n.written&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		if end := bytes.IndexByte(rest, '\n'); end >= 0 {
			rest, line, column = rest[end+1:], line+1, 1
		}
	}
	quote := byte(0)
	if n.written&yaml.SingleQuotedStyle != 0 {
		quote = '\''
	}
	if n.written&yaml.DoubleQuotedStyle != 0 {
		quote = '"'
	}
	if quote != 0 && len(rest) > 0 {
		rest, column = rest[1:], column+1
	}
	for len(rest) > 0 {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == '\n':
			rest, line, column = rest[1:], line+1, 1
			continue
		case unicode.IsSpace(r):
		case before == 0:
			return Position{n.File, line, column}
		case quote == '\'' && r == '\'' || quote == '"' && r == '\\':
			escaped, next := utf8.DecodeRune(rest[size:])
			if !strings.ContainsRune("nt \n", escaped) { // which stand for white space
				before--
			}
			rest, column = rest[min(size+next, len(rest)):], column+2
			continue
		default:
			before--
		}
		rest, column = rest[size:], column+1
	}
	return Position{n.File, line, column}
}

// solid counts the characters that are not white space.
func solid(s string) int {
	n := 0
	for _, r := range s {
		if !unicode.IsSpace(r) {
			n++
		}
	}
	return n
}

// from returns the text from a place on.
func (s *source) from(line, column int) (rest []byte, sameLine, sameColumn int) {
	s.split.Do(func() {
		s.lines = []int{0}
		for i, b := range s.text {
			if b == '\n' {
				s.lines = append(s.lines, i+1)
			}
		}
	})
	if line < 1 || line > len(s.lines) {
		return nil, line, column
	}
	rest = s.text[s.lines[line-1]:]
	for range column - 1 {
		_, size := utf8.DecodeRune(rest)
		rest = rest[size:]
	}
	return rest, line, column
}
