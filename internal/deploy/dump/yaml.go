package dump

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/drover-project/drover/yaql"
)

const (
	width         = 80  // lines are broken at spaces beyond it
	step          = 2   // of indentation
	longestSimple = 128 // bytes of a key that stands before its colon
)

// YAML writes a value as one document.
func YAML(v any) (string, error) {
	e := &emitter{}
	if err := e.node(v, context{indent: -1, root: true}, 0); err != nil {
		return "", err
	}
	if e.column > 0 {
		e.newline()
	}
	return e.out.String(), nil
}

// emitter keeps where the next character goes.
type emitter struct {
	out     strings.Builder
	column  int
	blank   bool // the last character was white space
	indents bool // only indentation and indicators are on the line
}

// context is what surrounds a node.
type context struct {
	indent int
	root   bool
	value  bool // of a map, whose lists are not indented
	key    bool // of a map, before its colon
}

func (e *emitter) put(r rune) {
	e.out.WriteRune(r)
	e.column++
}

func (e *emitter) text(s string) {
	e.out.WriteString(s)
	e.column += utf8.RuneCountInString(s)
}

func (e *emitter) newline() {
	e.out.WriteByte('\n')
	e.column = 0
	e.blank, e.indents = true, true
}

// indent begins a line at that column, unless nothing but indentation is on this one.
func (e *emitter) indent(n int) {
	n = max(n, 0)
	if !e.indents || e.column > n || e.column == n && !e.blank {
		if e.out.Len() > 0 {
			e.newline()
		}
	}
	const spaces = "                                "
	for e.column < n {
		e.text(spaces[:min(n-e.column, len(spaces))])
	}
	e.blank, e.indents = true, true
}

// indicator writes a mark of the syntax, after a space where one is needed.
func (e *emitter) indicator(s string, space, indents bool) {
	if space && !e.blank && e.out.Len() > 0 {
		e.put(' ')
	}
	e.text(s)
	e.blank = false
	e.indents = e.indents && indents
}

// deeper is the indentation of what is nested in c.
func deeper(indent int) int {
	if indent < 0 {
		return 0
	}
	return indent + step
}

func (e *emitter) node(v any, c context, depth int) error {
	if depth > maxDepth {
		return tooDeep()
	}
	switch x := v.(type) {
	case *yaql.Dict:
		return e.mapping(x, c, depth)
	case *yaql.List:
		return e.sequence(x.Items, c, depth)
	case []any:
		return e.sequence(x, c, depth)
	case string:
		e.scalar(analyze(x), c, true)
		return nil
	case float64:
		text, err := float(x, yamlWords)
		if !strings.Contains(text, ".") {
			text = strings.Replace(text, "e", ".0e", 1)
		}
		e.scalar(analyze(text), c, false)
		return err
	}
	if t, ok := v.(yaql.DateTime); ok {
		e.scalar(analyze(strings.Replace(t.ISOFormat(), "T", " ", 1)), c, false)
		return nil
	}
	text, err := scalar(v, yamlWords)
	e.scalar(analyze(text), c, false)
	return err
}

func (e *emitter) sequence(items []any, c context, depth int) error {
	if len(items) == 0 {
		e.indicator("[", true, false)
		e.indicator("]", false, false)
		return nil
	}
	indent := deeper(c.indent)
	if c.value && !e.indents {
		indent = c.indent
	}
	for _, item := range items {
		e.indent(indent)
		e.indicator("-", true, true)
		if err := e.node(item, context{indent: indent}, depth+1); err != nil {
			return err
		}
	}
	return nil
}

type entry struct {
	key   any
	value any
}

// entries returns the contents of a map, sorted if all keys are texts or all are numbers.
func entries(d *yaql.Dict) []entry {
	out := make([]entry, 0, d.Len())
	texts := true
	d.Range(func(k, v any) bool {
		_, ok := k.(string)
		texts = texts && ok
		out = append(out, entry{k, v})
		return true
	})
	if texts {
		slices.SortFunc(out, func(a, b entry) int { return strings.Compare(a.key.(string), b.key.(string)) })
		return out
	}
	for i := range out {
		if _, ok := out[i].key.(int64); !ok {
			return out
		}
	}
	slices.SortFunc(out, func(a, b entry) int {
		if a.key.(int64) < b.key.(int64) {
			return -1
		}
		return 1
	})
	return out
}

func (e *emitter) mapping(d *yaql.Dict, c context, depth int) error {
	if d.Len() == 0 {
		e.indicator("{", true, false)
		e.indicator("}", false, false)
		return nil
	}
	indent := deeper(c.indent)
	for _, x := range entries(d) {
		e.indent(indent)
		if simpleKey(x.key) {
			if err := e.node(x.key, context{indent: indent, key: true}, depth+1); err != nil {
				return err
			}
			e.indicator(":", false, false)
		} else {
			e.indicator("?", true, true)
			if err := e.node(x.key, context{indent: indent}, depth+1); err != nil {
				return err
			}
			e.indent(indent)
			e.indicator(":", true, true)
		}
		if err := e.node(x.value, context{indent: indent, value: true}, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// simpleKey tells whether a key can stand before its colon on one line.
func simpleKey(k any) bool {
	s, ok := k.(string)
	return !ok || len(s) <= longestSimple && !analyze(s).multiline
}
