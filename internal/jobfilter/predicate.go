package jobfilter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
)

// Predicate is one condition of a rule: on the wire [Name, expression], or
// ["not", predicate].
type Predicate struct {
	Name string
	// Expr is the expression; nil with "not".
	Expr qlang.Node
	// Of is what "not" negates; nil for all others.
	Of *Predicate
}

// A test tells whether a predicate or a rule holds for a job.
type test func(id int64, ops []*opcode.Opcode) bool

// predicateKind is one kind of predicate. To add one, add an entry to kinds
// (docs/adding/predicate.md).
type predicateKind struct {
	name string
	// form and doc are for help texts.
	form, doc string
	// cost orders the predicates of a rule: cheap ones are tried first.
	cost int
	// parse reads what follows the name; at is the place of the predicate.
	// A nil predicate without an error means that the parameters do not fit.
	parse func(args []any, at string, depth int) (*Predicate, error)
	// compile and explain say whether the predicate holds, the one fast, the
	// other with evidence.
	compile func(p *Predicate, watermark int64, patience *strikes) test
	explain func(p *Predicate, watermark int64, at string, j subject) Finding
	// check warns of what is legal and probably not meant.
	check func(p *Predicate, at string) []Warning
}

// kinds is the table of predicates.
func kinds() []predicateKind {
	return []predicateKind{
		expressionKind("jobid", "id of the job; the value \"watermark\" stands for the rule's watermark", 1, jobScope()),
		expressionKind("opcode", "OP_ID and every parameter of one opcode of the job, dotted paths into objects", 2, opcodeScope()),
		expressionKind("reason", "source, reason and timestamp of one entry of the reason trails", 3, reasonScope()),
		notKind(),
	}
}

func kindOf(name string) (predicateKind, bool) {
	all := kinds()
	i := slices.IndexFunc(all, func(k predicateKind) bool { return k.name == name })
	if i < 0 {
		return predicateKind{}, false
	}
	return all[i], true
}

// PredicateDoc describes a kind of predicate for help texts.
type PredicateDoc struct{ Name, Form, Doc string }

// Predicates lists all kinds of predicate.
func Predicates() []PredicateDoc {
	var out []PredicateDoc
	for _, k := range kinds() {
		out = append(out, PredicateDoc{k.name, k.form, k.doc})
	}
	return out
}

// expressionKind is a predicate [name, expression] that holds if one of the
// scope's candidates satisfies the expression.
func expressionKind[T any](name, doc string, cost int, s scope[T]) predicateKind {
	return predicateKind{
		name: name, form: fmt.Sprintf("[%q, expression]", name), doc: doc, cost: cost,
		parse: func(args []any, at string, _ int) (*Predicate, error) {
			if len(args) != 1 {
				return nil, nil
			}
			expr, err := qlang.FromValue(args[0])
			if err != nil {
				return nil, inside(err, at+"[1]")
			}
			return &Predicate{Name: name, Expr: expr}, nil
		},
		compile: func(p *Predicate, watermark int64, patience *strikes) test {
			return s.compile(p.Expr, s.reading(watermark, patience))
		},
		explain: func(p *Predicate, watermark int64, at string, j subject) Finding {
			return s.explain(p.Expr, watermark, at+"[1]", j)
		},
		check: func(p *Predicate, at string) []Warning { return s.check(p.Expr, at+"[1]") },
	}
}

// notKind is the predicate ["not", predicate].
func notKind() predicateKind {
	return predicateKind{
		name: "not", form: `["not", predicate]`, doc: "holds if the other predicate does not", cost: 4,
		parse: func(args []any, at string, depth int) (*Predicate, error) {
			if len(args) != 1 {
				return nil, nil
			}
			of, err := readPredicate(args[0], at+"[1]", depth-1)
			if err != nil {
				return nil, err
			}
			return &Predicate{Name: "not", Of: of}, nil
		},
		compile: func(p *Predicate, watermark int64, patience *strikes) test {
			of := p.Of.compile(watermark, patience)
			return func(id int64, ops []*opcode.Opcode) bool { return !of(id, ops) }
		},
		explain: func(p *Predicate, watermark int64, at string, j subject) Finding {
			f := p.Of.explain(watermark, at+"[1]", j)
			f.Holds = !f.Holds
			return f
		},
		check: func(p *Predicate, at string) []Warning { return p.Of.check(at + "[1]") },
	}
}

// kind returns the table entry. Predicates come from the parser, so it exists;
// one made by hand with a wrong name is refused by Compile.
func (p *Predicate) kind() predicateKind {
	k, _ := kindOf(p.Name)
	return k
}

func (p *Predicate) compile(watermark int64, patience *strikes) test {
	return p.kind().compile(p, watermark, patience)
}

func (p *Predicate) explain(watermark int64, at string, j subject) Finding {
	return p.kind().explain(p, watermark, at, j)
}

func (p *Predicate) check(at string) []Warning { return p.kind().check(p, at) }

// valid reports whether the parser could have made the predicate.
func (p *Predicate) valid() bool {
	_, known := kindOf(p.Name)
	if p.Name == "not" {
		return p.Of != nil && p.Of.valid()
	}
	return known && p.Expr != nil
}

// MarshalJSON writes the wire form, with "!=" as a negation.
func (p Predicate) MarshalJSON() ([]byte, error) {
	if p.Of != nil {
		return json.Marshal([]any{p.Name, p.Of})
	}
	return json.Marshal([]any{p.Name, qlang.JSON(qlang.Normalize(p.Expr))})
}

// UnmarshalJSON reads the wire form.
func (p *Predicate) UnmarshalJSON(data []byte) error {
	v, err := decode(data)
	if err != nil {
		return err
	}
	read, err := readPredicate(v, "predicate", qlang.MaxDepth)
	if err != nil {
		return err
	}
	*p = *read
	return nil
}

// String shows the predicate to a person, in the form that ParseWhen reads: the
// name, and the expression as text, in parentheses where more than one test is joined.
func (p Predicate) String() string {
	if p.Of != nil {
		return p.Name + " " + p.Of.String()
	}
	text := qlang.String(p.Expr)
	switch x := p.Expr.(type) {
	case *qlang.True:
		if x.Field == "null" { // which alone is every job
			text = string(qlang.JSON(x))
		}
	case *qlang.And, *qlang.Or:
		if !strings.HasPrefix(text, "[") { // as JSON it needs none
			text = "(" + text + ")"
		}
	}
	return p.Name + ": " + text
}

// ParsePredicates reads the wire form of a rule's predicates, a list. An error
// has code Invalid (or TooLarge); its Field, which its message repeats, is the
// place of the fault, for example "predicates[0][1][2]".
func ParsePredicates(data []byte) ([]Predicate, error) {
	if len(data) > qlang.MaxBytes {
		return nil, fault.New(fault.TooLarge, "predicates: %d bytes are more than the limit of %d", len(data), qlang.MaxBytes).At("predicates")
	}
	v, err := decode(data)
	if err != nil {
		return nil, fault.New(fault.Invalid, "predicates: %w", err).At("predicates")
	}
	list, ok := v.([]any)
	if !ok {
		return nil, fault.New(fault.Invalid, "predicates must be a list, got %s", clip(string(data))).At("predicates")
	}
	out := make([]Predicate, 0, len(list))
	for i, item := range list {
		p, err := readPredicate(item, "predicates["+strconv.Itoa(i)+"]", qlang.MaxDepth)
		if err != nil {
			return nil, err
		}
		out = append(out, *p)
	}
	return out, nil
}

func decode(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fault.New(fault.Invalid, "not JSON: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fault.New(fault.Invalid, "not JSON: there is more behind its end")
	}
	return v, nil
}

func readPredicate(v any, at string, depth int) (*Predicate, error) {
	if depth == 0 {
		return nil, fault.New(fault.TooLarge, "%s: nested too deep; the limit is %d levels", at, qlang.MaxDepth).At(at)
	}
	list, _ := v.([]any)
	var name string
	if len(list) > 0 {
		name, _ = list[0].(string)
	}
	if name == "" {
		return nil, fault.New(fault.Invalid, "%s: malformed FilterPredicate: must be a list with the first entry being a string describing the predicate type", at).
			At(at).WithHint("%s", forms())
	}
	k, ok := kindOf(name)
	if !ok {
		return nil, badParameters(name, list[1:], at)
	}
	p, err := k.parse(list[1:], at, depth)
	if p == nil && err == nil {
		return nil, badParameters(name, list[1:], at)
	}
	return p, err
}

func badParameters(name string, args []any, at string) error {
	shown, err := json.Marshal(args)
	if err != nil {
		return err
	}
	f := fault.New(fault.Invalid, "%s: malformed FilterPredicate: bad parameter list for '%s' predicate: %s", at, clip(name), clip(string(shown))).At(at)
	var names []string
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	if near := qlang.Suggest(name, slices.Values(names)); near != "" && near != name {
		return f.WithHint("did you mean %q? %s", near, forms())
	}
	return f.WithHint("%s", forms())
}

func forms() string {
	var out []string
	for _, k := range kinds() {
		out = append(out, k.form)
	}
	return "the predicates are " + strings.Join(out, ", ")
}

// inside puts the place of an expression before the place within it.
func inside(err error, at string) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	c := f.At(at + f.Field)
	c.Message = c.Field + ": " + c.Message
	return c
}

// ofJobID reports whether the predicate asks for nothing but the number of a job.
func (p *Predicate) ofJobID() bool {
	if p.Of != nil {
		return p.Of.ofJobID()
	}
	return p.Name == "jobid"
}
