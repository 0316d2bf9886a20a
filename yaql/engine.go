package yaql

import (
	"context"
	"sync"

	"github.com/drover-project/drover/yaql/internal/syntax"
)

// config is what an engine may be told.
type config struct {
	limitIterators  int
	memoryQuota     int64
	steps           int64
	depth           int
	convertInput    bool
	convertOutput   bool
	tuplesToLists   bool
	setsToLists     bool
	iterableDicts   bool
	ordered         bool
	delegates       bool
	legacy          bool
	noSets          bool
	groupByFallback bool
	withoutModules  map[string]bool
	table           syntax.Table
	tableChange     []func(*syntax.Table) error
	finalizer       func(any) (any, error)
	tuplesSet       bool // by an option
}

// Option changes how an engine behaves.
type Option func(*config)

// DefaultSteps is the [StepBudget] of an engine that was not told otherwise. Items of collections, bytes of texts and
// entries of maps are steps too, so it bounds time and memory alike: some seconds and about a gigabyte for an
// expression that is written to cost as much as it can. One pass over 20,000 nodes takes some tens of thousands.
const DefaultSteps = 5_000_000

// LimitIterators bounds the number of items that a collection may have when it is passed to a function that
// walks through it, and in results. Negative means no bound but the budget of steps, which is the default.
func LimitIterators(n int) Option { return func(c *config) { c.limitIterators = n } }

// MemoryQuota bounds the size of each single argument and result, roughly in the bytes that the reference counts.
// Zero and negative mean no bound but the budget of steps, which is the default.
func MemoryQuota(bytes int64) Option { return func(c *config) { c.memoryQuota = bytes } }

// StepBudget bounds the calls, operators and items of one evaluation, and what long texts, searches for regular expressions,
// copies of lists, maps and sets, comparisons of all that is in them, and large numbers take: 64 bytes of a text are a step. The default is [DefaultSteps]. Zero and negative mean no bound; see [Unbounded].
func StepBudget(n int64) Option { return func(c *config) { c.steps = n } }

// DepthLimit bounds the depth of nested evaluation; the default is 10,000.
func DepthLimit(n int) Option { return func(c *config) { c.depth = n } }

// Unbounded takes back the bounds on steps, items and sizes, for expressions that the host's own people write. What
// nests too deep is refused all the same, and a context still ends an evaluation.
func Unbounded() Option {
	return func(c *config) { c.limitIterators, c.memoryQuota, c.steps = -1, 0, 0 }
}

// ConvertInputData tells whether lists and maps of the input are the immutable kinds, as by default, or the
// mutable ones; see [Unconverted].
func ConvertInputData(on bool) Option { return func(c *config) { c.convertInput = on } }

// ConvertOutputData tells whether results are converted to plain Go values, as by default, or left as they are.
func ConvertOutputData(on bool) Option { return func(c *config) { c.convertOutput = on } }

// ConvertTuplesToLists tells whether tuples in results become []any, as by default, or [Tuple].
func ConvertTuplesToLists(on bool) Option {
	return func(c *config) { c.tuplesToLists, c.tuplesSet = on, true }
}

// ConvertSetsToLists tells whether sets in results become []any, as by default, or *[Set].
func ConvertSetsToLists(on bool) Option { return func(c *config) { c.setsToLists = on } }

// IterableDicts tells whether maps count as collections of their keys; by default they do not.
func IterableDicts(on bool) Option { return func(c *config) { c.iterableDicts = on } }

// OrderedResults makes maps in results *[Dict] values, which keep their order, instead of map[string]any.
func OrderedResults() Option { return func(c *config) { c.ordered = true } }

// AllowDelegates turns on lambda(...) and calls of values.
func AllowDelegates() Option { return func(c *config) { c.delegates = true } }

// Legacy selects the first version of the language.
func Legacy() Option { return func(c *config) { c.legacy = true } }

// KeywordOperator changes the sign between name and value of keyword arguments and map entries from =>; an
// empty sign turns both off.
func KeywordOperator(sign string) Option {
	return func(c *config) { c.table.Pair = sign }
}

// NoSets leaves out the functions on sets.
func NoSets() Option { return func(c *config) { c.noSets = true } }

// GroupByFallback tells whether groupBy's aggregator may have the old form that gets the whole (key, values)
// pair; by default it may.
func GroupByFallback(on bool) Option { return func(c *config) { c.groupByFallback = on } }

// Without leaves out modules of the standard library by name: see the Module method of [Function].
func Without(modules ...string) Option {
	return func(c *config) {
		for _, m := range modules {
			c.withoutModules[m] = true
		}
	}
}

// Finalizer replaces the last step of an evaluation. It receives the unconverted result.
func Finalizer(f func(any) (any, error)) Option { return func(c *config) { c.finalizer = f } }

// ReferenceDefaults sets the options as the reference's library does: sets stay sets in results, and nothing is bounded.
func ReferenceDefaults() Option {
	return func(c *config) {
		Unbounded()(c)
		ConvertSetsToLists(false)(c)
	}
}

// Fixity says where an operator stands and how it groups.
type Fixity = syntax.Fixity

// The fixities of operators.
const (
	BinaryLeft  = syntax.BinaryLeft
	BinaryRight = syntax.BinaryRight
	Prefix      = syntax.Prefix
	Suffix      = syntax.Suffix
)

// Operator is an operator of the host. It calls the function #operator_Symbol, or #unary_operator_Symbol, or
// *Alias if there is an alias; the host registers that function in a context.
type Operator = syntax.Operator

// InsertOperator adds an operator right below the level of an existing one in precedence, or on its level.
func InsertOperator(existing string, fixity Fixity, op Operator, sameLevel bool) Option {
	return func(c *config) {
		c.tableChange = append(c.tableChange, func(t *syntax.Table) error { return t.Insert(existing, fixity, op, sameLevel) })
	}
}

// Engine compiles expressions. It is immutable and safe for use by many goroutines.
type Engine struct {
	cfg    config
	parser *syntax.Parser
	lib    *library
	spare  *sync.Pool // of *evaluation
}

// New returns an engine. Without options it has the standard language and library, bounds what an evaluation costs by
// [DefaultSteps] and its depth, and converts tuples and sets in results to lists.
func New(options ...Option) (*Engine, error) {
	cfg := config{limitIterators: -1, steps: DefaultSteps, depth: 10000, convertInput: true, convertOutput: true, tuplesToLists: true,
		setsToLists: true, groupByFallback: true, table: syntax.Default(), withoutModules: map[string]bool{}}
	for _, o := range options {
		o(&cfg)
	}
	if cfg.legacy {
		cfg.table = syntax.Legacy()
		cfg.iterableDicts = true
		if !cfg.tuplesSet {
			cfg.tuplesToLists = false
		}
	}
	for _, change := range cfg.tableChange {
		if err := change(&cfg.table); err != nil {
			return nil, errorf(InvalidOperatorTableException, "%s", err)
		}
	}
	p, err := syntax.NewParser(cfg.table, cfg.delegates)
	if err != nil {
		return nil, errorf(InvalidOperatorTableException, "%s", err)
	}
	return &Engine{cfg: cfg, parser: p, lib: newLibrary(&cfg), spare: &sync.Pool{}}, nil
}

// Functions returns the overloads of the standard library of the engine, in the order of the reference pages.
func (e *Engine) Functions() []*Function { return e.lib.all }

// Expression is a compiled expression. It is immutable and may be evaluated by many goroutines at once.
type Expression struct {
	engine *Engine
	source string
	root   *syntax.Node
	code   *code
	slow   lazyCode
}

// Compile parses and compiles an expression. Errors are of type *[Error].
func (e *Engine) Compile(source string) (*Expression, error) {
	root, perr := e.parser.Parse(source)
	if perr != nil {
		return nil, parseError(perr)
	}
	x := &Expression{engine: e, source: source, root: root}
	x.code = (&compiler{engine: e, lib: e.lib, fast: true}).compile(root)
	x.slow.node = root
	return x, nil
}

// String returns the text of the expression.
func (x *Expression) String() string { return x.source }

// Tree returns the syntax tree as nested lists, such as ["bin","+",["const",1],["var","$x"]].
func (x *Expression) Tree() []any { return x.root.Tree() }

// Eval evaluates the expression with data as $. The data is neither copied nor changed, and the result may
// share memory with it. Errors are of type *[Error].
func (x *Expression) Eval(ctx context.Context, data any) (any, error) {
	return x.EvalIn(ctx, nil, data)
}

// EvalIn evaluates the expression in a child of c with data as $. A nil c means the standard library alone.
func (x *Expression) EvalIn(ctx context.Context, c *Context, data any) (any, error) {
	e := x.begin(ctx, c)
	e.c.item, e.c.hasItem = data, true
	if !x.engine.cfg.convertInput {
		e.c.item = Unconverted(data)
	}
	return x.finish(e)
}

// EvalHere is like EvalIn but evaluates with the $ that c already has.
func (x *Expression) EvalHere(ctx context.Context, c *Context) (any, error) {
	return x.finish(x.begin(ctx, c))
}

// Test returns the truth value of the expression with data as $. It is what conditions are for: it does not
// convert the result, and simple ones allocate nothing.
func (x *Expression) Test(ctx context.Context, data any) (t bool, err error) {
	e := x.begin(ctx, nil)
	e.c.item, e.c.hasItem = data, true
	if !x.engine.cfg.convertInput {
		e.c.item = Unconverted(data)
	}
	defer rescue(&err)
	code := x.code
	if !e.c.untouched {
		code = x.slow.get(x.engine)
	}
	t, err = code.truth(&e.c)
	if err != nil {
		return false, x.place(err)
	}
	x.end(e)
	return t, nil
}

// begin prepares an evaluation in a child of c.
func (x *Expression) begin(ctx context.Context, c *Context) *evaluation {
	e, _ := x.engine.spare.Get().(*evaluation)
	if e == nil {
		e = &evaluation{}
	}
	e.run.init(ctx, x.engine)
	e.run.spare = &e.frame
	e.c.run, e.c.lib, e.c.untouched = &e.run, x.engine.lib, x.engine.lib.whole
	if c != nil {
		e.c.parent, e.c.lib, e.c.untouched = c, c.lib, c.untouched
	}
	return e
}

// end keeps what an evaluation needed for the next one, unless something may still use it.
func (x *Expression) end(e *evaluation) {
	if !e.run.kept && (e.unseen || !x.code.retains && e.c.untouched) {
		*e = evaluation{}
		x.engine.spare.Put(e)
	}
}

func (x *Expression) finish(e *evaluation) (any, error) {
	v, err := x.eval(e)
	if err != nil {
		return nil, x.place(err)
	}
	if x.engine.cfg.convertOutput && x.engine.cfg.finalizer == nil {
		x.end(e)
	}
	return v, nil
}

func (x *Expression) eval(e *evaluation) (out any, err error) {
	defer rescue(&err)
	c := &e.c
	if c.untouched && c.lib == x.engine.lib {
		if x.code.filter != nil && x.engine.cfg.convertOutput && x.engine.cfg.finalizer == nil {
			return x.evalFilter(e)
		}
		v, err := x.code.eval(c)
		if err != nil {
			return nil, err
		}
		return finalize(c, v)
	}
	v, err := x.slow.get(x.engine).eval(c)
	if err != nil {
		return nil, err
	}
	return c.callValues(nil, "#finalize", v)
}

// evalFilter evaluates an expression that filters a list.
func (x *Expression) evalFilter(e *evaluation) (any, error) {
	items, ok, v, err := x.code.filter.receiver(&e.c)
	if err != nil {
		return nil, err
	}
	if !ok {
		return finalize(&e.c, v)
	}
	frame := e.run.takeFrame(&e.c)
	kept, err := filterList(items, x.code.filter.predicate, frame)
	if err != nil {
		return nil, err
	}
	e.unseen = true
	kept, err = (&output{c: &e.c, cfg: &x.engine.cfg}).items(kept)
	if err != nil {
		return nil, err
	}
	return kept, nil
}

// place completes an error with the source of the expression.
func (x *Expression) place(err error) error {
	e := *asError(err)
	if e.Source == "" {
		e.Source = x.source
	}
	return &e
}
