package yaql

import (
	"errors"
	"strconv"
	"sync"

	"github.com/drover-project/drover/yaql/internal/pyre"
	"github.com/drover-project/drover/yaql/internal/syntax"
)

// Regex is a compiled regular expression in Python's dialect.
type Regex = pyre.Regexp

// The flags of regular expressions.
const (
	IgnoreCase = pyre.IgnoreCase
	MultiLine  = pyre.MultiLine
	DotAll     = pyre.DotAll
)

func regexModule() module {
	return module{"regex", []definition{
		{"#operator_!~", FunctionKind, "string: string, pattern: string", matchPattern(0, 1, false), "Tells whether the pattern matches nowhere in the string.", "abc !~ \"^b\" ⇒ true", 0},
		{"#operator_!~", FunctionKind, "string: string, regexp: regex", matchRegex(0, 1, false), "Tells whether the regular expression matches nowhere in the string.", "abc !~ regex(x) ⇒ true", 0},
		{"#operator_=~", FunctionKind, "string: string, pattern: string", matchPattern(0, 1, true), "Tells whether the pattern matches somewhere in the string.", "abc =~ \"b.\" ⇒ true", 0},
		{"#operator_=~", FunctionKind, "string: string, regexp: regex", matchRegex(0, 1, true), "Tells whether the regular expression matches somewhere in the string.", "abc =~ regex(b) ⇒ true", 0},
		{"escapeRegex", FunctionKind, "string: string", onText(func(s string) any { return pyre.Escape(s) }), "Gives a pattern that matches just that string.", "escapeRegex(\"a.b\") ⇒ \"a\\\\.b\"", 0},
		{"isRegex", FunctionKind, "value: any?", isOf(func(v any) bool { _, ok := v.(*Regex); return ok }), "Tells whether the value is a regular expression.", "isRegex(regex(a)) ⇒ true", 0},
		{"matches", MethodKind, "regexp: regex, string: string", matchRegex(1, 0, true), "Tells whether the regular expression matches somewhere in the string.", "regex(\"b.\").matches(abc) ⇒ true", 0},
		{"matches", MethodKind, "string: string, regexp: string", matchPattern(0, 1, true), "Tells whether the pattern matches somewhere in the string.", "abc.matches(\"b.\") ⇒ true", 0},
		{"regex", FunctionKind, "pattern: string, ignoreCase: bool? = false, multiLine: bool? = false, dotAll: bool? = false", regexFunction, "Compiles a regular expression.", "regex(B, ignoreCase => true).matches(abc) ⇒ true", 0},
		{"replace", MethodKind, "regexp: regex, string: string, repl: string, count: int = 0", replaceMatches(0, 1), "Replaces the matches by a template, all or the first count of them. The template names groups by \\1 or \\g<name>.", "regex(\"(a)(b)\").replace(abab, `\\2\\1`) ⇒ \"baba\"", 0},
		{"replace", MethodKind, "string: string, regexp: regex, repl: string, count: int = 0", replaceMatches(1, 0), "Replaces the matches by a template, all or the first count of them.", "abab.replace(regex(b), x) ⇒ \"axax\"", 0},
		{"replaceBy", MethodKind, "regexp: regex, string: string, repl: lambda, count: int = 0", replaceBy(0, 1), "Replaces the matches by what an expression gives; $ is a map of value, start and end, $2 and so on those of the groups.", "regex(b).replaceBy(abb, $.value.toUpper()) ⇒ \"aBB\"", eager},
		{"replaceBy", MethodKind, "string: string, regexp: regex, repl: lambda, count: int = 0", replaceBy(1, 0), "Replaces the matches by what an expression gives.", "abb.replaceBy(regex(b), str($.start)) ⇒ \"a12\"", eager},
		{"search", MethodKind, "regexp: regex, string: string, selector: lambda = null", searchFirst, "Gives the text of the first match or what the selector makes of it; null if there is none.", "regex(\"b+\").search(abbc) ⇒ \"bb\"", eager},
		{"searchAll", MethodKind, "regexp: regex, string: string, selector: lambda = null", searchAll, "Gives the texts of all matches, or what the selector makes of them.", "regex(\"[0-9]\").searchAll(a1b2) ⇒ [\"1\",\"2\"]", 0},
		{"split", MethodKind, "regexp: regex, string: string, maxSplit: int = 0", splitByRegex(0, 1), "Splits the string at the matches; groups of the expression come between the parts.", "regex(\"[,;]\").split(\"a,b;c\") ⇒ [\"a\",\"b\",\"c\"]", 0},
		{"split", MethodKind, "string: string, regexp: regex, maxSplit: int = 0", splitByRegex(1, 0), "Splits the string at the matches.", "a1b.split(regex(\"[0-9]\")) ⇒ [\"a\",\"b\"]", 0},
	}}
}

// compiledPatterns bounds the patterns that one evaluation keeps compiled.
const compiledPatterns = 64

type patternKey struct {
	text  string
	flags pyre.Flags
}

// pattern compiles a pattern, or finds it among those compiled before.
func (r *run) pattern(text string, flags pyre.Flags) (*Regex, error) {
	r.reads(len(text))
	key := patternKey{text, flags}
	if re, ok := r.patterns[key]; ok {
		return re, nil
	}
	// A pattern costs as much to compile as many steps, and Python's limits keep nobody from writing one of megabytes.
	if err := r.spend(compilesFor * len(text)); err != nil {
		return nil, err
	}
	re, err := pyre.Compile(text, flags)
	if err != nil {
		return nil, regexError(err)
	}
	if r.patterns == nil || len(r.patterns) >= compiledPatterns {
		r.patterns = map[patternKey]*Regex{}
	}
	r.patterns[key] = re
	return re, nil
}

// compilesFor is how many steps it takes to compile a character of a pattern, which leaves that much more memory behind.
const compilesFor = 8

// regexError gives the errors of regular expressions a class.
func regexError(err error) error {
	var e *pyre.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return &Error{Class: e.Class, Message: e.Error(), Offset: -1, cause: err}
	case errors.Is(err, pyre.ErrTimeout):
		return &Error{Class: StepBudgetExceeded, Message: err.Error(), Offset: -1, cause: err}
	}
	return err
}

// searchSteps is how many steps of searches for patterns count as one of the evaluation.
const searchSteps = 256

// Searched makes the evaluation pay for searches, and looks whether it is still wanted.
func (r *run) Searched(steps int) error {
	r.steps -= int64(steps / searchSteps)
	return r.checkLimits()
}

func found(r *run, re *Regex, s string, want bool) (bool, error) {
	t, err := re.Matches(s, r)
	return t == want, regexError(err)
}

func matchPattern(text, pattern int, want bool) impl {
	return func(c *Context, a []any) (any, error) {
		re, err := c.run.pattern(a[pattern].(string), 0)
		if err != nil {
			return nil, err
		}
		return found(c.run, re, a[text].(string), want)
	}
}

func matchRegex(text, regex int, want bool) impl {
	return func(c *Context, a []any) (any, error) { return found(c.run, a[regex].(*Regex), a[text].(string), want) }
}

// matching compiles =~ and !~ with a constant pattern, which is compiled once for all evaluations.
func (cp *compiler) matching(n *syntax.Node, l, r *code) *code {
	pattern, _ := r.value.(string)
	compiled := sync.OnceValues(func() (*Regex, error) { return pyre.Compile(pattern, 0) })
	want := n.Name == "=~"
	return testCode(n, l.retains, func(c *Context) (bool, error) {
		v, err := l.eval(c)
		if err != nil {
			return false, err
		}
		s, ok := v.(string)
		if !ok {
			v, err := c.callValues(n, n.Func, v, pattern)
			return truth(v), err
		}
		re, err := compiled()
		if err != nil {
			return false, at(regexError(err), n)
		}
		t, err := found(c.run, re, s, want)
		if err != nil {
			return false, at(err, n)
		}
		return t, nil
	})
}

func regexFunction(c *Context, a []any) (any, error) {
	flags := pyre.Unicode // which a pattern may not take back
	for i, f := range []pyre.Flags{pyre.IgnoreCase, pyre.MultiLine, pyre.DotAll} {
		if truth(a[i+1]) {
			flags |= f
		}
	}
	re, err := c.run.pattern(a[0].(string), flags)
	if err != nil {
		return nil, err
	}
	return re, nil
}

func replaceMatches(regex, text int) impl {
	return func(c *Context, a []any) (any, error) {
		count, err := machineInt(a[3])
		if err != nil {
			return nil, err
		}
		s, err := a[regex].(*Regex).Replace(a[text].(string), a[2].(string), int(count), c.run, c.growing)
		if err != nil {
			return nil, regexError(err)
		}
		return s, c.checkString(len(s))
	}
}

func replaceBy(regex, text int) impl {
	return func(c *Context, a []any) (any, error) {
		f := a[2].(*Lambda)
		count, err := machineInt(a[3])
		if err != nil {
			return nil, err
		}
		s, err := a[regex].(*Regex).ReplaceFunc(a[text].(string), int(count), c.run, c.growing, func(m *pyre.Match) (string, error) {
			v, err := onMatch(a[regex].(*Regex), m, f)
			if err != nil || v == nil {
				return "", err
			}
			s, ok := v.(string)
			if !ok {
				return "", errorf(TypeError, "expected str instance, %s found", typeName(v))
			}
			return s, c.run.step()
		})
		if err != nil {
			return nil, regexError(err)
		}
		return s, c.checkString(len(s))
	}
}

// onMatch evaluates a selector with $ as a record of the match and $2 and so on as records of the groups.
func onMatch(re *Regex, m *pyre.Match, f *Lambda) (any, error) {
	f.c.run.owe(m.Groups())
	inner := f.c.Child()
	inner.set("1", matchRecord(m.Group(0)))
	vars := make([]any, m.Groups()+1)
	for i := 1; i <= m.Groups(); i++ {
		vars[i] = matchRecord(m.Group(i))
	}
	for i := 1; i <= m.Groups(); i++ {
		inner.vars = append(inner.vars, variable{strconv.Itoa(i + 1), vars[i]})
	}
	if err := namedGroupDefect(re, m); err != nil {
		return nil, err
	}
	return (&Lambda{code: f.code, c: inner}).Call()
}

// namedGroupDefect is what the reference does for patterns with named groups: it takes the text of the first
// one for a pair of names, which fails in one way or another.
func namedGroupDefect(re *Regex, m *pyre.Match) error {
	lowest := 0
	for _, i := range re.GroupNames() {
		if lowest == 0 || i < lowest {
			lowest = i
		}
	}
	if lowest == 0 {
		return nil
	}
	g := m.Group(lowest)
	switch {
	case !g.Matched:
		return errorf(TypeError, "cannot unpack non-iterable NoneType object")
	case g.End-g.Start == 2:
		return errorf(IndexError, "no such group")
	}
	return errorf(ValueError, "selectors do not work with named groups")
}

var matchKeys = &Keys{list: []any{"value", "start", "end"}, shared: true}

func matchRecord(g pyre.Group) *Dict {
	var text any
	if g.Matched {
		text = g.Text
	}
	return &Dict{keys: matchKeys, values: []any{text, int64(g.Start), int64(g.End)}, mutable: true}
}

func matchResult(re *Regex, m *pyre.Match, selector any) (any, error) {
	if f, ok := selector.(*Lambda); ok {
		return onMatch(re, m, f)
	}
	return m.Group(0).Text, nil
}

func searchFirst(c *Context, a []any) (any, error) {
	re := a[0].(*Regex)
	m, err := re.Search(a[1].(string), c.run)
	if err != nil || m == nil {
		return nil, regexError(err)
	}
	return matchResult(re, m, a[2])
}

func searchAll(c *Context, a []any) (any, error) {
	re := a[0].(*Regex)
	var matches []*pyre.Match
	for m, err := range re.All(a[1].(string), c.run) {
		if err == nil {
			err = c.run.spend(1 + m.Groups())
		}
		if err != nil {
			return nil, regexError(err)
		}
		matches = append(matches, m)
	}
	at := 0
	return lazily(c, func() (any, bool, error) {
		if at == len(matches) {
			return nil, false, nil
		}
		at++
		v, err := matchResult(re, matches[at-1], a[2])
		return v, err == nil, err
	}), nil
}

func splitByRegex(regex, text int) impl {
	return func(c *Context, a []any) (any, error) {
		limit, err := machineInt(a[2])
		if err != nil {
			return nil, err
		}
		parts, err := a[regex].(*Regex).Split(a[text].(string), int(limit), c.run)
		if err != nil {
			return nil, regexError(err)
		}
		out := make([]any, len(parts))
		for i, p := range parts {
			if p.Matched {
				out[i] = p.Text
			}
		}
		return &List{Items: out}, c.run.spend(len(out))
	}
}
