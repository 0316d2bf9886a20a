// Package reference writes the page about YAQL's functions from the table that registers them, so that the page
// cannot tell of others.
package reference

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/drover-project/drover/yaql"
)

const introduction = `# Functions

Every function, method and operator of the language, by module. This page is written from the table that registers
them: ` + "`go test ./yaql/internal/reference -update`" + ` writes it anew, and a test runs every example.

A signature of the form ` + "`<receiver>.name(...)`" + ` is a method, ` + "`name(...)`" + ` a function; what is called either way says so. A
parameter with ` + "`*`" + ` takes any number of arguments. ` + "`expression of $`" + ` is evaluated by the function itself, with ` + "`$`" + ` for
the item at hand.
`

// titles say what the modules are about, in the order of the page. Modules that are not named come last.
var titles = []struct{ module, title string }{
	{"system", "Contexts and calls"}, {"core", "Reading results"}, {"common", "Any values"}, {"boolean", "Booleans"}, {"branching", "Choices"},
	{"math", "Numbers"}, {"strings", "Strings"}, {"regex", "Patterns"}, {"collections", "Lists, maps and sets"},
	{"queries", "Queries"}, {"date_time", "Dates and spans of time"}, {"objects", "Objects of the host"}, {"legacy", "The first version of the language"},
}

// Write writes the page about the functions.
func Write(out io.Writer, functions []*yaql.Function) error {
	p := &page{out: out}
	p.printf("%s", introduction)
	for _, section := range sections(functions) {
		p.section(section)
	}
	return p.err
}

// section is a module with its functions by name.
type section struct {
	title  string
	module string
	names  []string
	byName map[string][]*yaql.Function
}

func sections(functions []*yaql.Function) []*section {
	byModule := map[string]*section{}
	var order []*section
	for _, t := range titles {
		s := &section{title: t.title, module: t.module, byName: map[string][]*yaql.Function{}}
		byModule[t.module] = s
		order = append(order, s)
	}
	for _, f := range functions {
		s := byModule[f.Module()]
		if s == nil {
			s = &section{title: f.Module(), module: f.Module(), byName: map[string][]*yaql.Function{}}
			byModule[f.Module()] = s
			order = append(order, s)
		}
		if _, known := s.byName[f.Name()]; !known {
			s.names = append(s.names, f.Name())
		}
		s.byName[f.Name()] = append(s.byName[f.Name()], f)
	}
	order = slices.DeleteFunc(order, func(s *section) bool { return len(s.names) == 0 })
	for _, s := range order {
		slices.Sort(s.names)
	}
	return order
}

// page remembers the first error of writing.
type page struct {
	out io.Writer
	err error
}

func (p *page) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format, args...)
	}
}

func (p *page) section(s *section) {
	p.printf("\n## %s\n\nModule `%s`.\n", s.title, s.module)
	for _, name := range s.names {
		p.printf("\n### %s\n", shownName(name))
		for _, f := range s.byName[name] {
			p.overload(f)
		}
	}
}

func (p *page) overload(f *yaql.Function) {
	also := ""
	if f.Kind() == yaql.ExtensionKind {
		also = " (function or method)"
	}
	p.printf("\n`%s`%s\n", signature(f), also)
	if f.Doc() != "" {
		p.printf("\n%s\n", f.Doc())
	}
	if expression, result := f.Example(); expression != "" {
		p.printf("\n```yaql\n%s ==> %s\n```\n", expression, result)
	}
}

// shownName is how a name is written in expressions.
func shownName(name string) string {
	for prefix, form := range map[string]string{"#operator_": "a %s b", "#unary_operator_": "%s a", "#property#": "a.%s"} {
		if sign, ok := strings.CutPrefix(name, prefix); ok {
			return "`" + fmt.Sprintf(form, sign) + "`"
		}
	}
	switch name {
	case "*equal":
		return "`a = b`"
	case "*not_equal":
		return "`a != b`"
	case "#indexer":
		return "`a[b]`"
	case "#list":
		return "`[a, b]`"
	case "#map":
		return "`{a => b}`"
	case "#get_context_data":
		return "`$name`"
	case "#call":
		return "`f(a)` of a value"
	}
	return strings.ReplaceAll(name, "#", `\#`)
}

// signature shows operators with their operands' kinds in their places.
func signature(f *yaql.Function) string {
	text := f.Signature()
	for _, prefix := range []string{"#operator_", "#unary_operator_", "#property#"} {
		if sign, ok := strings.CutPrefix(f.Name(), prefix); ok {
			arguments := strings.TrimSuffix(strings.TrimPrefix(text, f.Name()+"("), ")")
			parts := strings.Split(arguments, ", ")
			switch {
			case prefix == "#property#":
				return "<" + arguments + ">." + sign
			case len(parts) == 1:
				return strings.TrimSpace(sign + " " + arguments)
			case len(parts) == 2:
				return parts[0] + " " + sign + " " + parts[1]
			}
		}
	}
	return text
}
