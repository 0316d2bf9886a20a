package jobfilter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
)

// Warning tells of something in a rule that is legal and probably not meant.
type Warning struct {
	// Place is the part of the rule, for example "predicates[0][1][1]".
	Place   string `json:"place"`
	Message string `json:"message"`
	// Hint says what may have been meant; empty if there is nothing to say.
	Hint string `json:"hint,omitempty"`
}

// String tells the warning in one line.
func (w Warning) String() string {
	s := w.Place + ": " + w.Message
	if w.Hint != "" {
		s += " (" + w.Hint + ")"
	}
	return s
}

// Check looks for parts of a rule that can never do what they seem to.
func Check(r *Rule) []Warning {
	var out []Warning
	for i := range r.Predicates {
		out = append(out, r.Predicates[i].check(fmt.Sprintf("predicates[%d]", i))...)
	}
	return out
}

// CheckAmong warns of what a rule may mean beside the others: the same place
// in the order as another, or power over every job.
func CheckAmong(r *Rule, others []*Rule) []Warning {
	out := Check(r)
	if len(r.Predicates) == 0 && r.Deciding() && (r.Action.Kind == Reject || r.Action.Kind == Pause) {
		out = append(out, Warning{
			Place:   "predicates",
			Message: "without predicates the rule concerns every job: " + everyJob[r.Action.Kind],
			Hint:    `for new jobs alone, write the predicate ["jobid", [">", "id", "watermark"]]`,
		})
	}
	for _, o := range others {
		if o.UUID != r.UUID && o.Priority == r.Priority && o.Watermark == r.Watermark {
			out = append(out, Warning{
				Place:   "priority",
				Message: "rule " + o.Short() + " has the same priority as " + r.called() + " and no job came in between: the order of their UUIDs decides which is asked first",
				Hint:    "give one of them another priority",
			})
		}
	}
	return out
}

// called names the rule where it may be one of several that are new.
func (r *Rule) called() string {
	if r.Name == "" && r.fresh {
		return "this one"
	}
	return r.Short()
}

// everyJob says what an action means for a cluster.
var everyJob = map[Kind]string{
	Reject: "all that wait are cancelled, and all that come are refused",
	Pause:  "nothing begins any more",
}

func (s scope[T]) check(n qlang.Node, at string) []Warning {
	return append(s.warn(n, at), backtracking(n, at)...)
}

// backtracking warns of patterns that some texts take very long to be searched for.
func backtracking(n qlang.Node, at string) []Warning {
	var out []Warning
	eachLeaf(n, at, func(leaf qlang.Node, _, at string) {
		if m, ok := leaf.(*qlang.Match); ok && !m.Regex.Linear() {
			out = append(out, Warning{Place: at + "[2]", Message: "the pattern needs backtracking: where a text takes it longer than " + qlang.MatchLimit.String() +
				", the rule is not asked, and applies if it keeps jobs from running", Hint: "write it without look-around, back-references and possessive quantifiers"})
		}
	})
	return out
}

func eachLeaf(n qlang.Node, at string, visit func(leaf qlang.Node, field, at string)) {
	qlang.Walk(n, func(path string, n qlang.Node) bool {
		if field, ok := qlang.Field(n); ok {
			visit(n, field, at+path)
		}
		return true
	})
}

func unknownField(at, message, near string) Warning {
	w := Warning{Place: at + "[1]", Message: message + "; this part is never true"}
	if near != "" {
		w.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return w
}

// misfit warns of an operator or constant that does not fit a field that
// always is text, or always is a number.
func misfit(leaf qlang.Node, field, at string, isNumber bool) []Warning {
	what := "text"
	if isNumber {
		what = "a number"
	}
	never := func(place, format string, args ...any) []Warning {
		return []Warning{{Place: place, Message: fmt.Sprintf("%s is %s, ", field, what) + fmt.Sprintf(format, args...)}}
	}
	switch x := leaf.(type) {
	case *qlang.True:
		return never(at, "and \"?\" asks about booleans")
	case *qlang.Contains:
		return never(at, "and \"=[]\" asks about lists")
	case *qlang.Compare:
		if x.Value.IsInt() != isNumber {
			return never(at+"[2]", "and never equal to %s, smaller or greater", x.Value)
		}
	}
	return nil
}

func warnJobID(n qlang.Node, at string) []Warning {
	var out []Warning
	eachLeaf(n, at, func(leaf qlang.Node, field, at string) {
		switch {
		case field != "id":
			out = append(out, unknownField(at, fmt.Sprintf("the predicate jobid has only the field id, not %q", field), "id"))
		case usesWatermark(leaf):
		default:
			found := misfit(leaf, field, at, true)
			for i := range found {
				if c, ok := leaf.(*qlang.Compare); ok && qlang.Suggest(c.Value.Text, slices.Values([]string{"watermark"})) != "" {
					found[i].Hint = `did you mean "watermark"?`
				}
			}
			out = append(out, found...)
		}
	})
	return out
}

func warnReason(n qlang.Node, at string) []Warning {
	var out []Warning
	eachLeaf(n, at, func(leaf qlang.Node, field, at string) {
		if !slices.Contains(reasonFields, field) {
			message := fmt.Sprintf("an entry of a reason trail has the fields %s, not %q", strings.Join(reasonFields, ", "), field)
			out = append(out, unknownField(at, message, nearest(field, reasonFields)))
			return
		}
		out = append(out, misfit(leaf, field, at, field == "timestamp")...)
	})
	return append(out, warnNegation(n, at)...)
}

// warnNegation explains what a negation inside a reason predicate really
// means. Below a negation nothing more is said.
func warnNegation(n qlang.Node, at string) []Warning {
	var out []Warning
	qlang.Walk(n, func(path string, n qlang.Node) bool {
		var negated qlang.Node
		switch x := n.(type) {
		case *qlang.Not:
			negated = x.Arg
		case *qlang.Compare:
			if x.Op == qlang.Ne {
				negated = &qlang.Compare{Op: qlang.Eq, Field: x.Field, Value: x.Value}
			}
		}
		if negated == nil {
			return true
		}
		meant := Predicate{Name: "not", Of: &Predicate{Name: "reason", Expr: negated}}
		out = append(out, Warning{
			Place: at + path,
			Message: "this negation is asked of each entry of the reason trails by itself, and one entry that satisfies it is enough; " +
				"every trail has entries of several hops, so it holds for almost every job",
			Hint: "to mean the jobs that have no such entry, write the predicate " + wire(meant),
		})
		return false
	})
	return out
}

// wire shows a predicate as it is written in a rule.
func wire(p Predicate) string {
	if p.Of != nil {
		return fmt.Sprintf("[%q, %s]", p.Name, wire(*p.Of))
	}
	return fmt.Sprintf("[%q, %s]", p.Name, qlang.JSON(qlang.Normalize(p.Expr)))
}

func warnOpcode(n qlang.Node, at string) []Warning {
	var out []Warning
	about := definitions(n)
	names := fieldNames(about)
	eachLeaf(n, at, func(leaf qlang.Node, field, at string) {
		if field == "OP_ID" {
			out = append(out, warnOpID(leaf, at)...)
			return
		}
		first, _, _ := strings.Cut(field, ".")
		if slices.Contains(names, first) {
			out = append(out, warnValue(leaf, field, at, about)...)
			return
		}
		message := fmt.Sprintf("no opcode has a parameter %q", first)
		if len(about) == 1 {
			message = fmt.Sprintf("%s has no parameter %q", about[0].ID, first)
		} else if len(about) > 1 && len(about) < len(opcode.All()) {
			message = fmt.Sprintf("none of the opcodes that this is about has a parameter %q", first)
		}
		out = append(out, unknownField(at, message, nearest(first, names)))
	})
	return out
}

// warnValue warns of a test that no value of a parameter meets, where the opcodes
// agree on what it is.
func warnValue(leaf qlang.Node, field, at string, about []*opcode.Definition) []Warning {
	if field == "reason" {
		return []Warning{{Place: at, Message: "the reason of an opcode is a list of entries, which this test never fits; this part is never true",
			Hint: "the predicate reason asks each entry: [\"reason\", [\"=~\", \"reason\", \"TEXT\"]]"}}
	}
	kind := ""
	for _, d := range about {
		p, ok := d.Param(field)
		if !ok {
			continue
		}
		if k := valuesOf(p.Type); kind == "" || kind == k {
			kind = k
			continue
		}
		return nil // something else for another opcode
	}
	switch kind {
	case "text":
		return misfit(leaf, field, at, false)
	case "number":
		return misfit(leaf, field, at, true)
	case "truth":
		if _, asks := leaf.(*qlang.True); !asks {
			return []Warning{{Place: at, Message: field + " is true or false, which no value equals; this part is never true",
				Hint: fmt.Sprintf("ask by [\"?\", %q]", field)}}
		}
	}
	return nil
}

// valuesOf tells what the values of a type are: text, number, truth, or other.
func valuesOf(t opcode.Type) string {
	name := strings.TrimPrefix(t.String(), "optional ")
	switch {
	case name == "string", name == "non-empty string", strings.HasPrefix(name, "enum "):
		return "text"
	case name == "float", name == "int", strings.HasPrefix(name, "int "):
		return "number"
	case name == "bool":
		return "truth"
	}
	return "other"
}

// definitions returns the opcodes that an expression can be about: those that
// it requires by OP_ID, or all.
func definitions(n qlang.Node) []*opcode.Definition {
	var out []*opcode.Definition
	for _, id := range requiredIDs(n) {
		d, ok := opcode.Lookup(id)
		if !ok {
			return opcode.All()
		}
		out = append(out, d)
	}
	if len(out) == 0 {
		return opcode.All()
	}
	return out
}

// requiredIDs returns the OP_IDs of which one must be there for n to hold; nil
// if n says nothing about it.
func requiredIDs(n qlang.Node) []string {
	switch x := n.(type) {
	case *qlang.Compare:
		if x.Op == qlang.Eq && x.Field == "OP_ID" && !x.Value.IsInt() {
			return []string{x.Value.Text}
		}
	case *qlang.And:
		for _, arg := range x.Args {
			if ids := requiredIDs(arg); ids != nil {
				return ids
			}
		}
	case *qlang.Or:
		var all []string
		for _, arg := range x.Args {
			ids := requiredIDs(arg)
			if ids == nil {
				return nil
			}
			all = append(all, ids...)
		}
		return all
	}
	return nil
}

// fieldNames returns what the opcodes' fields are called, each once, sorted.
func fieldNames(definitions []*opcode.Definition) []string {
	var names []string
	for _, d := range definitions {
		names = append(names, d.FieldNames()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func warnOpID(leaf qlang.Node, at string) []Warning {
	if found := misfit(leaf, "OP_ID", at, false); found != nil {
		return found
	}
	switch x := leaf.(type) {
	case *qlang.Compare:
		_, exists := opcode.Lookup(x.Value.Text)
		if exists || x.Op != qlang.Eq && x.Op != qlang.Ne {
			return nil
		}
		w := Warning{Place: at + "[2]", Message: fmt.Sprintf("there is no opcode %q", x.Value.Text)}
		if near := nearestOpcode(x.Value.Text); near != "" {
			w.Hint = fmt.Sprintf("did you mean %q?", near)
		}
		return []Warning{w}
	case *qlang.Match:
		for _, d := range opcode.All() {
			if ok, err := x.Regex.Search(d.ID); ok || err != nil {
				return nil
			}
		}
		return []Warning{{Place: at + "[2]", Message: fmt.Sprintf("no opcode's OP_ID matches %q", x.Regex.Pattern()),
			Hint: "OP_IDs look like OP_INSTANCE_CREATE, in capitals"}}
	}
	return nil
}

func nearestOpcode(name string) string {
	var ids []string
	for _, d := range opcode.All() {
		ids = append(ids, d.ID)
	}
	upper := strings.ToUpper(name)
	if !strings.HasPrefix(upper, "OP_") {
		upper = "OP_" + upper
	}
	return nearest(upper, ids)
}
