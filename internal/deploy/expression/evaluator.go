package expression

import (
	"context"
	"errors"

	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/yaql"
)

// Surroundings are what an expression is evaluated in: the new state and that of the task's last success as the
// node sees them, and the two parts of the new state by themselves.
type Surroundings struct {
	New, Old     *state.View
	Node, Common *state.View
}

// Evaluator evaluates expressions on states of one space. It belongs to one goroutine.
type Evaluator struct {
	language   *Language
	space      *state.Space
	scope      *yaql.Context
	now        Surroundings
	expr       *Expression // that is being evaluated
	recordings []*recording
	decisions  []*Decision
	pieces     map[yaql.Code]*piece
	byText     map[string]*piece
	pairs      map[comparison]*Decision
	memos      map[string]*memo // of whole expressions
}

// Evaluator returns an evaluator for states of a space.
func (l *Language) Evaluator(space *state.Space) (*Evaluator, error) {
	e := &Evaluator{language: l, space: space, scope: l.engine.NewContext(), pieces: map[yaql.Code]*piece{},
		byText: map[string]*piece{}, pairs: map[comparison]*Decision{}, memos: map[string]*memo{}}
	functions, err := e.functions()
	if err != nil {
		return nil, err
	}
	e.scope.Register(functions...)
	return e, nil
}

func (e *Evaluator) read(v *state.View, key int) {
	if n := len(e.recordings); n > 0 {
		e.recordings[n-1].note(v, key)
	}
}

// Result is the value of an expression, and the comparisons that led to it in the order they were made.
type Result struct {
	Value     any
	Decisions []*Decision
}

// Eval evaluates an expression. Errors are of type *yaql.Error.
func (e *Evaluator) Eval(ctx context.Context, x *Expression, in Surroundings) (Result, error) {
	e.now, e.expr = in, x
	e.space.Read = e.read // evaluators may take turns on a space
	e.recordings, e.decisions = e.recordings[:0], nil
	m := e.memoOf(x)
	if m == nil || !m.remembers() {
		v, err := e.eval(ctx, x)
		return Result{v, e.decisions}, err
	}
	if out := e.recall(m, nil); out != nil {
		m.count(true)
		return Result{out.value, out.decisions}, out.err
	}
	m.count(false)
	r := e.begin(nil)
	v, err := e.eval(ctx, x)
	e.end(r)
	if ctx.Err() == nil {
		e.remember(m, r, &outcome{value: v, err: err, decisions: e.decisions})
	}
	return Result{v, e.decisions}, err
}

// memoOf returns what is remembered of a whole expression, nil if it is not repeatable.
func (e *Evaluator) memoOf(x *Expression) *memo {
	m, ok := e.memos[x.text]
	if !ok {
		f := e.language.inspect(x.code.Tree())
		if f.repeatable(e.language.known) {
			m = &memo{}
		}
		e.memos[x.text] = m
	}
	return m
}

func (e *Evaluator) eval(ctx context.Context, x *Expression) (any, error) {
	c := e.scope.Child()
	c.Set("node", e.now.Node)
	c.Set("common", e.now.Common)
	return x.code.EvalIn(ctx, c, e.now.New)
}

// piece is an argument of a comparing function: what is known of its text, and its outcomes.
type piece struct {
	text       string
	repeatable bool
	sides      [2]*memo // of the new and the old side; the same one if the piece looks at $ alone
}

func (e *Evaluator) pieceOf(l *yaql.Lambda) *piece {
	code := l.Code()
	if p, ok := e.pieces[code]; ok {
		return p
	}
	tree := code.Tree()
	name := text(tree)
	f := e.language.inspect(tree)
	repeatable := f.repeatable(e.language.known) && !e.expr.defs
	p := e.byText[name]
	if p == nil || p.repeatable != repeatable {
		p = &piece{text: name, repeatable: repeatable, sides: [2]*memo{{}, {}}}
		if !f.looksAround() {
			p.sides[1] = p.sides[0]
		}
		e.byText[name] = p
	}
	e.pieces[code] = p
	return p
}

// call evaluates an argument with a view as $.
func (e *Evaluator) call(l *yaql.Lambda, cur *state.View) (any, error) { return l.Call(cur) }

// side evaluates an argument on the new or old state down to a value that can be compared.
func (e *Evaluator) side(c *yaql.Context, l *yaql.Lambda, p *piece, which int) *outcome {
	cur := e.now.New
	if which == 1 {
		cur = e.now.Old
	}
	if !p.repeatable {
		return e.settled(c, l, cur)
	}
	m := p.sides[which]
	memoCurrent := cur
	if p.sides[0] != p.sides[1] {
		memoCurrent = nil
	}
	if out := e.recall(m, memoCurrent); out != nil {
		return out
	}
	r := e.begin(memoCurrent)
	out := e.settled(c, l, cur)
	e.end(r)
	if c.GoContext().Err() == nil {
		e.remember(m, r, out)
	}
	return out
}

// settled evaluates an argument and turns lazy results into lists.
func (e *Evaluator) settled(c *yaql.Context, l *yaql.Lambda, cur *state.View) *outcome {
	v, err := l.Call(cur)
	if err != nil {
		return &outcome{err: err}
	}
	v, err = settle(c, v)
	return &outcome{value: v, err: err, late: err != nil}
}

// settle is what the last step of an evaluation does, but data of the state is not copied, and sets stay sets.
func settle(c *yaql.Context, v any) (any, error) {
	switch x := v.(type) {
	case nil, bool, int64, float64, string, *undefined:
		return v, nil
	case *state.View:
		_ = x.Len() // reads all of it
		if x.Fits(maxItems) {
			return x, nil
		}
	case *yaql.Set:
		if x.Len() <= maxItems {
			return x, nil
		}
	case *yaql.View:
		if set := keySet(x); set != nil {
			return set, nil
		}
	case *yaql.Dict, *yaql.List:
		if n := state.Widest(v); n >= 0 && n <= maxItems {
			return v, nil
		}
	}
	return c.Finalize(v)
}

// keySet returns the keys of a map as a set, and nil for views of values and entries, whose order counts.
func keySet(v *yaql.View) *yaql.Set {
	items := v.Items()
	if !v.OfKeys() || len(items) > maxItems {
		return nil
	}
	set, err := yaql.NewSet(items...)
	if err != nil {
		return nil
	}
	return set
}

// compareMany is changedAny and changedAll: it stops at the first argument that decides.
func (e *Evaluator) compareMany(c *yaql.Context, name string, args []any, decides bool) (any, error) {
	for _, a := range args {
		d, err := e.compare(c, name, lambda(a))
		if err != nil {
			return nil, err
		}
		if d.Changed == decides {
			return decides, nil
		}
	}
	return !decides, nil
}

// compare evaluates an argument on both states. Errors on the new state are errors; on the old one they make the
// old value undefined, unless they come to light only when the value is walked through.
func (e *Evaluator) compare(c *yaql.Context, name string, l *yaql.Lambda) (*Decision, error) {
	p := e.pieceOf(l)
	after := e.side(c, l, p, 0)
	if after.err != nil {
		return nil, after.err
	}
	before := e.side(c, l, p, 1)
	if before.err != nil {
		if before.late {
			return nil, before.err
		}
		before = noOutcome
	}
	d := e.pairs[comparison{name, before, after}]
	if d == nil {
		d = &Decision{Function: name, Expression: p.text, Old: before.value, New: after.value}
		d.Changed = before != after && !Equal(before.value, after.value)
		if p.repeatable {
			e.pairs[comparison{name, before, after}] = d
		}
	}
	e.decisions = append(e.decisions, d)
	return d, nil
}

// comparison is what a decision is remembered by.
type comparison struct {
	function      string
	before, after *outcome
}

var noOutcome = &outcome{value: notThere}

// Decision is one comparison of an expression.
type Decision struct {
	Function   string // that compared: changed, changedAny, changedAll, added or deleted
	Expression string // that was compared
	Old, New   any    // the values; see IsUndefined
	Changed    bool

	diffed      bool
	plus, minus any
}

func (d *Decision) diff() {
	if !d.diffed {
		d.diffed = true
		d.plus, d.minus = Diff(d.Old, d.New)
	}
}

func (d *Decision) added() any {
	if IsUndefined(d.Old) {
		return d.New
	}
	d.diff()
	return d.plus
}

func (d *Decision) deleted() any {
	if IsUndefined(d.Old) {
		return nil
	}
	d.diff()
	return d.minus
}

// ErrorClass returns the class of an error of an expression, or an empty text.
func ErrorClass(err error) string {
	if e, ok := errors.AsType[*yaql.Error](err); ok {
		return e.Class
	}
	return ""
}
