package jobfilter

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qlang"
)

// noCondition is the text of no predicates.
const noCondition = "every job"

// WhenText shows the predicates of a rule as the one text that ParseWhen reads back:
//
//	opcode: OP_ID == "OP_INSTANCE_CREATE" and not reason: (source == "user" or reason =~ m/x/)
//
// An expression that the text form of filters cannot express stands there as JSON.
func WhenText(predicates []Predicate) string {
	if len(predicates) == 0 {
		return noCondition
	}
	texts := make([]string, len(predicates))
	for i := range predicates {
		texts[i] = predicates[i].String()
	}
	return strings.Join(texts, " and ")
}

// ParseWhen reads the predicates of a rule from text: each begins with the kind of
// predicate and a colon, and they are joined by "and". An error has code Invalid (or
// TooLarge), and where an expression cannot be read, its *qlang.TextError.
func ParseWhen(text string) ([]Predicate, error) {
	rest := strings.TrimSpace(text)
	if rest == noCondition {
		return []Predicate{}, nil
	}
	var out []Predicate
	for {
		p, behind, err := readWhen(rest, qlang.MaxDepth)
		if err != nil {
			return nil, err
		}
		out = append(out, *p)
		if behind == "" {
			return out, checkLoose(text, out)
		}
		rest = behind
	}
}

// beginning matches what a predicate of a text begins with.
var beginning = regexp.MustCompile(`^([a-z]+)\s*:\s*`)

// jsonBeginning matches what an expression in JSON begins with. A field may be called
// null; alone, the word is the filter that lets everything through.
var jsonBeginning = regexp.MustCompile(`^(?:\[|null(?:\s*$|\s+and\s+(?:not\s+)*(?:jobid|opcode|reason)\s*:))`)

// next matches where the next predicate of a text may begin.
var next = regexp.MustCompile(`\sand\s+((?:not\s+)*(?:jobid|opcode|reason)\s*:)`)

// readWhen reads one predicate, and returns what stands behind the "and" that follows
// it, if there is one.
func readWhen(text string, depth int) (*Predicate, string, error) {
	if depth == 0 {
		return nil, "", fault.New(fault.TooLarge, "the conditions are nested too deep; the limit is %d levels", qlang.MaxDepth)
	}
	if inner, negated := strings.CutPrefix(text, "not "); negated {
		of, rest, err := readWhen(strings.TrimSpace(inner), depth-1)
		return &Predicate{Name: "not", Of: of}, rest, err
	}
	m := beginning.FindStringSubmatch(text)
	if m == nil {
		return nil, "", notAPredicate(text)
	}
	if k, known := kindOf(m[1]); !known || k.name == "not" {
		return nil, "", notAPredicate(text)
	}
	expr, rest, err := readExpression(text[len(m[0]):])
	return &Predicate{Name: m[1], Expr: expr}, rest, err
}

func notAPredicate(text string) error {
	err := fault.New(fault.Invalid, "a condition begins with jobid:, opcode: or reason:, got %s", clip(text))
	if n, parse := qlang.ParseText(text); parse == nil {
		if name := homeOf(qlang.Fields(n)); name != "" {
			return err.WithHint("did you mean %s: %s ?", name, text)
		}
	}
	return err.WithHint(`for example opcode: OP_ID == "OP_INSTANCE_CREATE" and reason: reason =~ m/maintenance/`)
}

// homeOf is the kind of predicate whose expressions have the fields.
func homeOf(fields []string) string {
	for _, f := range fields {
		switch f {
		case "id":
			return "jobid"
		case "source", "reason", "timestamp":
			return "reason"
		}
	}
	return "opcode"
}

// readExpression reads the expression of a predicate: JSON, or a filter up to the
// end or to the first "and" behind which another predicate begins. Such words may
// also stand in a string or a pattern; then what stands before them is no filter.
func readExpression(text string) (qlang.Node, string, error) {
	if jsonBeginning.MatchString(text) {
		return readJSONExpression(text)
	}
	var first error
	for _, at := range append(next.FindAllStringSubmatchIndex(text, -1), []int{len(text), 0, len(text)}) {
		n, err := qlang.ParseText(text[:at[0]])
		if err == nil {
			return n, text[at[2]:], nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, "", first
}

func readJSONExpression(text string) (qlang.Node, string, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return nil, "", fault.New(fault.Invalid, "the condition is not JSON: %w", err)
	}
	n, err := qlang.ParseJSON(bytes.TrimSpace(raw))
	if err != nil {
		return nil, "", err
	}
	rest := text[dec.InputOffset():]
	if strings.TrimSpace(rest) == "" {
		return n, "", nil
	}
	m := next.FindStringSubmatchIndex(rest)
	if m == nil || strings.TrimSpace(rest[:m[0]]) != "" {
		return nil, "", fault.New(fault.Invalid, "behind a condition stands the end or \"and\" and another one, got %s", clip(rest))
	}
	return n, rest[m[2]:], nil
}

// checkLoose refuses an "or" beside another predicate that has no parentheses: it
// would bind more tightly than people read it.
func checkLoose(text string, predicates []Predicate) error {
	if len(predicates) < 2 {
		return nil
	}
	for i := range predicates {
		p := &predicates[i]
		for p.Of != nil {
			p = p.Of
		}
		or, ok := p.Expr.(*qlang.Or)
		if ok && or.End > 0 && or.Start == 0 {
			return fault.New(fault.Invalid, "what \"or\" joins stands in parentheses, where \"and\" joins another condition to it: %s", clip(text)).
				WithHint("%s: (A or B) and ...", p.Name)
		}
	}
	return nil
}
