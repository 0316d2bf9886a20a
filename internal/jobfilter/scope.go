package jobfilter

import (
	"iter"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/reason"
)

// scope is what a predicate's expression looks at: the candidates within a
// job, one of which must satisfy it all by itself, and their fields.
type scope[T any] struct {
	// candidates lists them all, with their place, for explanations.
	candidates func(j subject) iter.Seq2[where, T]
	// none tells that there are no candidates.
	none string
	// any is the quick way to ask whether one candidate satisfies a test.
	any func(holds func(T) truth) test
	// direct, if set, is a quicker way still for some expressions; nil if it
	// has none.
	direct func(n qlang.Node, watermark int64) test
	// field looks a field up by name once, for reading it many times.
	field func(name string) func(T) value
	// text is field for the fields that always are text, which need no check
	// of types; nil for others.
	text func(name string) func(T) string
	// shown is field as explanations may show it; nil if it is the same.
	shown func(name string) func(T) value
	// constants says that the text "watermark" in value positions stands for
	// the rule's watermark.
	constants bool
	// warn is the scope's part of check: what is odd about the expression.
	warn func(n qlang.Node, at string) []Warning
}

// subject is a job as rules see it.
type subject struct {
	id  int64
	ops []*opcode.Opcode
}

// where is the place of a candidate within a job; -1 where it has none.
type where struct{ opcode, entry int }

func jobScope() scope[int64] {
	return scope[int64]{
		candidates: func(j subject) iter.Seq2[where, int64] {
			return func(yield func(where, int64) bool) { yield(where{-1, -1}, j.id) }
		},
		any: func(holds func(int64) truth) test {
			return func(id int64, _ []*opcode.Opcode) bool { return holds(id) == yes }
		},
		direct: compareID,
		field: func(name string) func(int64) value {
			if name != "id" {
				return func(int64) value { return value{} }
			}
			return intValue
		},
		text:      func(string) func(int64) string { return nil },
		constants: true,
		warn:      warnJobID,
	}
}

// compareID decides a single comparison with the id.
func compareID(n qlang.Node, watermark int64) test {
	c, ok := n.(*qlang.Compare)
	if !ok || c.Field != "id" {
		return nil
	}
	v := withWatermark(watermark)(c.Value)
	if !v.IsInt() || !v.Int.IsInt64() {
		return nil
	}
	limit := v.Int.Int64()
	switch c.Op {
	case qlang.Gt:
		return func(id int64, _ []*opcode.Opcode) bool { return id > limit }
	case qlang.Le:
		return func(id int64, _ []*opcode.Opcode) bool { return id <= limit }
	}
	return nil
}

func withWatermark(watermark int64) func(qlang.Value) qlang.Value {
	return func(v qlang.Value) qlang.Value {
		if !v.IsInt() && v.Text == "watermark" {
			return qlang.IntValue(watermark)
		}
		return v
	}
}

func opcodeScope() scope[*opcode.Opcode] {
	return scope[*opcode.Opcode]{
		candidates: func(j subject) iter.Seq2[where, *opcode.Opcode] {
			return func(yield func(where, *opcode.Opcode) bool) {
				for i, op := range j.ops {
					if !yield(where{i, -1}, op) {
						return
					}
				}
			}
		},
		none: "the job has no opcodes",
		any: func(holds func(*opcode.Opcode) truth) test {
			return func(_ int64, ops []*opcode.Opcode) bool {
				for _, op := range ops {
					if holds(op) == yes {
						return true
					}
				}
				return false
			}
		},
		direct: compareOpID,
		field:  opcodeField,
		text: func(name string) func(*opcode.Opcode) string {
			if name != "OP_ID" {
				return nil
			}
			return func(op *opcode.Opcode) string { return op.ID }
		},
		shown: func(name string) func(*opcode.Opcode) value {
			get := opcodeField(name)
			return func(op *opcode.Opcode) value { return get(op.ForDisplay()) }
		},
		warn: warnOpcode,
	}
}

// compareOpID decides the commonest expression, OP_ID == "...".
func compareOpID(n qlang.Node, _ int64) test {
	c, ok := n.(*qlang.Compare)
	if !ok || c.Field != "OP_ID" || c.Op != qlang.Eq || c.Value.IsInt() {
		return nil
	}
	want := c.Value.Text
	return func(_ int64, ops []*opcode.Opcode) bool {
		for _, op := range ops {
			if op.ID == want {
				return true
			}
		}
		return false
	}
}

// commonFields are the fields that every opcode has besides its parameters.
// The list forms of depends and reason are built when asked for, which rules
// rarely do.
var commonFields = map[string]func(*opcode.Opcode) value{
	"OP_ID":       func(op *opcode.Opcode) value { return textValue(op.ID) },
	"dry_run":     func(op *opcode.Opcode) value { return boolValue(op.DryRun) },
	"debug_level": func(op *opcode.Opcode) value { return intValue(int64(op.DebugLevel)) },
	"priority":    func(op *opcode.Opcode) value { return intValue(int64(op.Priority)) },
	"comment": func(op *opcode.Opcode) value {
		if op.Comment == nil {
			return value{}
		}
		return textValue(*op.Comment)
	},
	"depends": func(op *opcode.Opcode) value {
		if op.Depends == nil {
			return value{}
		}
		var out []any
		for _, d := range op.Depends {
			var statuses []any
			for _, s := range d.Statuses {
				statuses = append(statuses, s)
			}
			out = append(out, []any{d.Job, statuses})
		}
		return value{kind: list, inner: out}
	},
	"reason": func(op *opcode.Opcode) value {
		var out []any
		for _, e := range op.Reason {
			out = append(out, []any{e.Source, e.Reason, e.Time})
		}
		return value{kind: list, inner: out}
	},
}

// opcodeField resolves a name: a common field, a parameter, or a dotted path
// into a parameter that is an object.
func opcodeField(name string) func(*opcode.Opcode) value {
	if get := commonFields[name]; get != nil {
		return get
	}
	first, rest, dotted := strings.Cut(name, ".")
	if !dotted {
		return func(op *opcode.Opcode) value {
			v, ok := op.Params[name]
			if !ok {
				return value{}
			}
			return valueOf(v)
		}
	}
	path := strings.Split(rest, ".")
	return func(op *opcode.Opcode) value { return below(op.Params[first], path) }
}

func below(v any, path []string) value {
	for _, key := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return value{}
		}
		if v, ok = m[key]; !ok {
			return value{}
		}
	}
	return valueOf(v)
}

func reasonScope() scope[*reason.Entry] {
	return scope[*reason.Entry]{
		candidates: func(j subject) iter.Seq2[where, *reason.Entry] {
			return func(yield func(where, *reason.Entry) bool) {
				for i, op := range j.ops {
					for k := range op.Reason {
						if !yield(where{i, k}, &op.Reason[k]) {
							return
						}
					}
				}
			}
		},
		none: "the job has no reason trail",
		any: func(holds func(*reason.Entry) truth) test {
			return func(_ int64, ops []*opcode.Opcode) bool {
				for _, op := range ops {
					for k := range op.Reason {
						if holds(&op.Reason[k]) == yes {
							return true
						}
					}
				}
				return false
			}
		},
		field: reasonField,
		text:  reasonText,
		warn:  warnReason,
	}
}

var reasonFields = []string{"source", "reason", "timestamp"}

func reasonField(name string) func(*reason.Entry) value {
	if get := reasonText(name); get != nil {
		return func(e *reason.Entry) value { return textValue(get(e)) }
	}
	if name == "timestamp" {
		return func(e *reason.Entry) value { return intValue(e.Time) }
	}
	return func(*reason.Entry) value { return value{} }
}

func reasonText(name string) func(*reason.Entry) string {
	switch name {
	case "source":
		return func(e *reason.Entry) string { return e.Source }
	case "reason":
		return func(e *reason.Entry) string { return e.Reason }
	}
	return nil
}

// compile turns an expression into a test on jobs.
func (s scope[T]) compile(n qlang.Node, r reading) test {
	if s.direct != nil {
		if t := s.direct(n, r.watermark); t != nil {
			return t
		}
	}
	return s.any(s.closure(n, r))
}

// reading is how the constants of an expression are read, and with how much patience its patterns are searched for.
type reading struct {
	watermark int64
	constant  func(qlang.Value) qlang.Value
	patience  *strikes
}

func (s scope[T]) reading(watermark int64, patience *strikes) reading {
	r := reading{watermark, func(v qlang.Value) qlang.Value { return v }, patience}
	if s.constants {
		r.constant = withWatermark(watermark)
	}
	return r
}

func (s scope[T]) closure(n qlang.Node, r reading) func(T) truth {
	switch x := n.(type) {
	case *qlang.All:
		return func(T) truth { return yes }
	case *qlang.Not:
		arg := s.closure(x.Arg, r)
		return func(c T) truth { return arg(c).negated() }
	case *qlang.And:
		return s.least(x.Args, r)
	case *qlang.Or:
		return s.greatest(x.Args, r)
	}
	name, _ := qlang.Field(n)
	if get, q := s.text(name), askText(n, r); get != nil && q != nil {
		return func(c T) truth { return q(get(c)) }
	}
	get, q := s.field(name), ask(n, r)
	return func(c T) truth { return q(get(c)) }
}

func (s scope[T]) closures(args []qlang.Node, r reading) []func(T) truth {
	out := make([]func(T) truth, len(args))
	for i, a := range args {
		out[i] = s.closure(a, r)
	}
	return out
}

func (s scope[T]) least(args []qlang.Node, r reading) func(T) truth {
	all := s.closures(args, r)
	return func(c T) truth {
		result := yes
		for _, arg := range all {
			if result = min(result, arg(c)); result == no {
				break
			}
		}
		return result
	}
}

func (s scope[T]) greatest(args []qlang.Node, r reading) func(T) truth {
	all := s.closures(args, r)
	return func(c T) truth {
		result := no
		for _, arg := range all {
			if result = max(result, arg(c)); result == yes {
				break
			}
		}
		return result
	}
}

// nearest returns the name that was probably meant, or "".
func nearest(name string, names []string) string { return qlang.Suggest(name, slices.Values(names)) }
