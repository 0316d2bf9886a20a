package qlang

import (
	"math/big"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// ArgOptions says how the arguments of a list command become a filter.
type ArgOptions struct {
	// NameField is the field that names are compared with.
	NameField string
	// Numeric names must be integers (job ids).
	Numeric bool
	// Force makes the one argument a filter whatever it looks like (-F).
	Force bool
	// Strict reads a filter as Strict has it. Names stay as they are.
	Strict bool
}

// filterLetters mark a single argument as a filter rather than a name.
const filterLetters = " !\"'()/<=>\\~\t\v\n\f\r"

// FromArguments turns the arguments of a list command into a filter: none is
// the null filter, a single one that looks like a filter is parsed as text,
// others are names, which may hold the wildcards * and ? unless numeric.
func FromArguments(args []string, o ArgOptions) (Node, error) {
	if o.Force || IsFilter(args, false) {
		if len(args) != 1 {
			return nil, fault.New(fault.Invalid, "Exactly one argument must be given as a filter")
		}
		n, err := ParseText(args[0])
		if err == nil && o.Strict {
			n = Strict(n)
		}
		return n, err
	}
	if len(args) == 0 {
		return &All{}, nil
	}
	tests := make([]Node, len(args))
	patterns := allowance{left: maxProgram}
	for i, arg := range args {
		n, err := nameTest(&patterns, arg, o)
		if err != nil {
			return nil, err
		}
		tests[i] = n
	}
	return &Or{Args: tests}, nil
}

// IsFilter reports whether the arguments of a list command are one filter, by what it looks like or because
// force says so.
func IsFilter(args []string, force bool) bool {
	return len(args) == 1 && (force || strings.ContainsAny(args[0], filterLetters))
}

func nameTest(patterns *allowance, arg string, o ArgOptions) (Node, error) {
	if o.Numeric {
		digits := strings.TrimPrefix(strings.TrimSpace(arg), "+")
		n, ok := new(big.Int).SetString(digits, 10)
		if !ok || strings.HasPrefix(digits, "+") {
			return nil, fault.New(fault.Invalid, "Invalid job ID passed: invalid literal for int() with base 10: %s", pyQuote(arg))
		}
		return &Compare{Op: Eq, Field: o.NameField, Value: Value{Int: n}}, nil
	}
	if !strings.ContainsAny(arg, "*?") {
		return &Compare{Op: Eq, Field: o.NameField, Value: TextValue(arg)}, nil
	}
	return glob(patterns, o.NameField, arg)
}

func glob(patterns *allowance, field, pattern string) (Node, error) {
	re, err := patterns.compile(Glob(pattern))
	if err != nil {
		return nil, err
	}
	return &Match{Field: field, Regex: re}, nil
}

// AnyOf returns the filter "field is one of values"; without values it is the
// null filter, as the reference's helper has it.
func AnyOf(field string, values ...string) Node {
	if len(values) == 0 {
		return &All{}
	}
	tests := make([]Node, len(values))
	for i, v := range values {
		tests[i] = &Compare{Op: Eq, Field: field, Value: TextValue(v)}
	}
	return &Or{Args: tests}
}

// globSpecial are the letters that a glob's literal part escapes.
const globSpecial = "()[]{}?*+-|^$\\.&~# \t\n\r\v\f"

// Glob returns the regular expression of a shell pattern for host names: *
// stands for any letters within a label, ? for one, and any domain may follow.
func Glob(pattern string) string {
	var b strings.Builder
	b.WriteByte('^')
	for _, r := range pattern {
		switch {
		case r == '*':
			b.WriteString("[^.]*")
		case r == '?':
			b.WriteString("[^.]")
		case strings.ContainsRune(globSpecial, r):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteString(`(\..*)?$`)
	return b.String()
}

// pyQuote quotes as the reference's messages do.
func pyQuote(s string) string {
	quote := "'"
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = `"`
	}
	body := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(s)
	if quote == "'" {
		body = strings.ReplaceAll(body, "'", `\'`)
	}
	return quote + body + quote
}
