package expression

import (
	"context"
	"errors"
	"slices"

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
	decisions  []*Decision // of the expression so far
	pieces     map[yaql.Code]*piece
	byText     map[string]*piece
	pairs      map[comparison]*Decision
	classes    state.Class      // how many there are of what comparisons came to
	memos      map[string]*memo // of whole expressions
	aside      aside
}

// Evaluator returns an evaluator for states of a space.
func (l *Language) Evaluator(space *state.Space) (*Evaluator, error) {
	e := &Evaluator{language: l, space: space, scope: l.engine.NewContext(), pieces: map[yaql.Code]*piece{},
		byText: map[string]*piece{}, pairs: map[comparison]*Decision{}, memos: map[string]*memo{}}
	functions, err := e.register()
	if err != nil {
		return nil, err
	}
	e.scope.Register(functions...)
	return e, e.prepareAside()
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
	e.recordings, e.decisions = e.recordings[:0], e.decisions[:0]
	m := e.memoOf(x)
	if m == nil || !m.remembers() {
		v, err := e.eval(ctx, x)
		return Result{v, slices.Clone(e.decisions)}, err
	}
	if out := e.recall(ctx, m, nil); out != nil {
		m.count(true)
		return Result{out.value, e.shared(out.decisions)}, out.err
	}
	m.count(false)
	r := e.begin(nil)
	v, err := e.eval(ctx, x)
	e.end()
	made := slices.Clone(e.decisions)
	if ctx.Err() == nil {
		e.remember(m, r, &outcome{value: v, err: err, decisions: made})
	}
	return Result{v, made}, err
}

// shared returns the decisions that were made: the same list where they are those of an earlier evaluation.
func (e *Evaluator) shared(earlier []*Decision) []*Decision {
	if slices.Equal(e.decisions, earlier) {
		return earlier
	}
	return slices.Clone(e.decisions)
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
	return x.code.EvalIn(ctx, e.around(e.scope), e.now.New)
}

// around returns a child of a context with the variables that expressions see.
func (e *Evaluator) around(scope *yaql.Context) *yaql.Context {
	c := scope.Child()
	c.Set("node", e.now.Node)
	c.Set("common", e.now.Common)
	return c
}

// piece is an argument of a comparing function: what is known of its text, and its outcomes.
type piece struct {
	text       string
	repeatable bool
	sides      [2]*memo             // of the new and the old side; the same one if the piece looks at $ alone
	same       map[string]*Decision // by function: that it is as it was
	alone      *yaql.Expression     // the piece by itself, once it was needed
	last       last
}

// last is the latest comparison of a piece.
type last struct {
	function  string
	now, then *state.View
	decision  *Decision
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
		p = &piece{text: name, repeatable: repeatable, sides: [2]*memo{{}, {}}, same: map[string]*Decision{}}
		if !f.looksAround(e.language.compares) {
			p.sides[1] = p.sides[0]
		}
		e.byText[name] = p
	}
	e.pieces[code] = p
	return p
}

// call evaluates an argument with a view as $.
func (e *Evaluator) call(l *yaql.Lambda, cur *state.View) (any, error) { return l.Call(cur) }

// side evaluates a piece on the new or old state down to a value that can be compared, by the argument at hand, or by
// itself if there is none. It returns nil if that cannot be done.
func (e *Evaluator) side(ctx context.Context, p *piece, which int, at *argument) *outcome {
	cur := e.now.New
	if which == 1 {
		cur = e.now.Old
	}
	if !p.repeatable {
		return e.settled(at, cur)
	}
	m := p.sides[which]
	memoCurrent := cur
	if p.sides[0] != p.sides[1] {
		memoCurrent = nil
	}
	if out := e.recall(ctx, m, memoCurrent); out != nil && (at == nil || !out.fatal(which)) {
		return out
	} // an error is told with its place in the expression at hand
	r := e.begin(memoCurrent)
	defer e.end()
	var out *outcome
	if at != nil {
		out = e.settled(at, cur)
	} else if out = e.byItself(ctx, p, cur); out == nil {
		return nil
	}
	if ctx.Err() == nil {
		e.remember(m, r, out)
	}
	return out
}

// argument is a piece where it stands in an expression that is being evaluated.
type argument struct {
	context *yaql.Context
	lambda  *yaql.Lambda
}

// settled evaluates an argument and turns lazy results into lists.
func (e *Evaluator) settled(at *argument, cur *state.View) *outcome {
	v, err := at.lambda.Call(cur)
	if err != nil {
		return &outcome{err: err}
	}
	v, err = settle(at.context, v)
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
	d, err := e.decide(c.GoContext(), p, name, &argument{c, l})
	if n := len(e.recordings); n > 0 && p.repeatable {
		if err == nil {
			e.recordings[n-1].compared(p, name, d)
		} else {
			e.recordings[n-1].spoiled = true
		}
	}
	return d, err
}

// decide compares a piece. Without an argument at hand it does so by itself, and returns nil if that cannot be done.
func (e *Evaluator) decide(ctx context.Context, p *piece, name string, at *argument) (*Decision, error) {
	plain := p.repeatable && p.sides[0] == p.sides[1] // no comparisons are made within
	if plain && p.last.function == name && p.last.now == e.now.New && p.last.then == e.now.Old {
		e.decisions = append(e.decisions, p.last.decision)
		return p.last.decision, nil
	}
	after := e.side(ctx, p, 0, at)
	if after == nil || after.fatal(0) {
		return nil, errorOf(after)
	}
	before := e.side(ctx, p, 1, at)
	switch {
	case before == nil || before.fatal(1):
		return nil, errorOf(before)
	case before.err != nil:
		before = noOutcome
	}
	d := e.decision(p, name, before, after)
	e.decisions = append(e.decisions, d)
	if plain {
		p.last = last{name, e.now.New, e.now.Old, d}
	}
	return d, nil
}

// fatal tells whether an outcome is an error of the whole comparison: what the old state does not answer is none.
func (o *outcome) fatal(side int) bool { return o.err != nil && (side == 0 || o.late) }

func errorOf(o *outcome) error {
	if o == nil {
		return nil
	}
	return o.err
}

// The classes of what changed, changedAny and changedAll come to. Others follow.
const (
	unchangedClass state.Class = iota + 1
	changedClass
	nothingClass // added or deleted
	lastClass
)

// decision returns the comparison of two values of a piece; of the same values it is the same one, and of equal ones
// there is one for each piece.
func (e *Evaluator) decision(p *piece, name string, before, after *outcome) *Decision {
	diffs := name == "added" || name == "deleted"
	if before == after && !diffs {
		return p.asItWas(name)
	}
	d := e.pairs[comparison{name, before, after}]
	if d != nil {
		return d
	}
	d = &Decision{Function: name, Expression: p.text, Old: before.value, New: after.value, class: changedClass}
	d.Changed = before != after && !Equal(before.value, after.value)
	switch {
	case diffs:
		d.class = e.classOf(d)
	case !d.Changed:
		d = p.asItWas(name)
	}
	if p.repeatable {
		e.pairs[comparison{name, before, after}] = d
	}
	return d
}

// asItWas returns the decision that nothing changed.
func (p *piece) asItWas(name string) *Decision {
	d := p.same[name]
	if d == nil {
		d = &Decision{Function: name, Expression: p.text, class: unchangedClass}
		p.same[name] = d
	}
	return d
}

// classOf returns the class of what came or went. Where nothing did, it is the same for all.
func (e *Evaluator) classOf(d *Decision) state.Class {
	v := d.added()
	if d.Function == "deleted" {
		v = d.deleted()
	}
	if items, ok := v.([]any); v != nil && (!ok || len(items) > 0) {
		e.classes++
		return lastClass + e.classes
	}
	if v == nil {
		return nothingClass
	}
	return lastClass
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
	Old, New   any    // the values, if they differ; see IsUndefined
	Changed    bool

	class       state.Class // of what it came to, as far as the expression sees it
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
