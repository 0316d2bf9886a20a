package yaql

import (
	"sync"

	"github.com/drover-project/drover/yaql/internal/syntax"
)

// code is a compiled part of an expression. It is immutable.
type code struct {
	node *syntax.Node
	eval func(c *Context) (any, error)
	// test is the truth value of eval, where that can be had for less; nil otherwise.
	test func(c *Context) (bool, error)
	// constant tells that value is the result and eval need not be called.
	constant bool
	value    any
	// retains tells that the context passed to eval may be in use after eval returned.
	retains bool
	// path lists the keys of an expression such as $.a.b; isPath tells $ alone from other expressions.
	path   []string
	isPath bool
	args   []arg   // of a call, as they were written; not for calls resolved at compile time
	filter *filter // what the code does, if it is a call of where()
}

func (k *code) truth(c *Context) (bool, error) {
	if k.test != nil {
		return k.test(c)
	}
	v, err := k.eval(c)
	return truth(v), err
}

// tester returns the function that truth calls.
func (k *code) tester() func(c *Context) (bool, error) {
	if k.test != nil {
		return k.test
	}
	return k.truth
}

// lazyCode compiles a node for contexts that replace functions of the library, when one is met.
type lazyCode struct {
	once sync.Once
	node *syntax.Node
	code *code
}

func (l *lazyCode) get(e *Engine) *code {
	l.once.Do(func() { l.code = (&compiler{engine: e, lib: e.lib}).compile(l.node) })
	return l.code
}

// compiler turns nodes into code.
type compiler struct {
	engine *Engine
	lib    *library
	// fast code assumes a context in which the library is untouched. Other code finds every function and
	// operator by name when it runs.
	fast bool
}

func constantCode(n *syntax.Node, v any) *code {
	return &code{node: n, constant: true, value: v, eval: func(*Context) (any, error) { return v, nil }}
}

// failing is code that always fails, with an error that is placed at the node.
func failing(n *syntax.Node, err *Error) *code {
	placed := at(err, n)
	return &code{node: n, eval: func(*Context) (any, error) { return nil, placed }}
}

// at completes an error with the place of a node, if it has none yet.
func at(err error, n *syntax.Node) error {
	e := asError(err)
	if e.Offset >= 0 || n == nil {
		return err
	}
	placed := *e
	placed.Offset = n.Pos
	return &placed
}

func (cp *compiler) compile(n *syntax.Node) *code {
	switch n.Kind {
	case syntax.Const, syntax.Keyword:
		return constantCode(n, n.Value)
	case syntax.Wrap:
		inner := *cp.compile(n.Args[0])
		inner.node, inner.constant = n, false
		return &inner
	case syntax.Var:
		return cp.variable(n)
	case syntax.List:
		return cp.list(n)
	case syntax.Dict:
		return cp.dict(n)
	case syntax.Index:
		return cp.index(n)
	case syntax.Unary:
		return cp.unary(n)
	case syntax.Binary:
		return cp.binary(n)
	case syntax.Invoke:
		return cp.call(n, "#call", n.Args)
	case syntax.Call:
		return cp.call(n, trimUnderscores(n.Name), n.Args)
	case syntax.Pair:
		return cp.pair(n)
	}
	return constantCode(n, NoValue)
}

// trimUnderscores drops the trailing underscores that a call may add to a name.
func trimUnderscores(name string) string {
	end := len(name)
	for end > 1 && name[end-1] == '_' {
		end--
	}
	return name[:end]
}

func (cp *compiler) compileAll(nodes []*syntax.Node) []*code {
	codes := make([]*code, len(nodes))
	for i, n := range nodes {
		codes[i] = cp.compile(n)
	}
	return codes
}

func (cp *compiler) variable(n *syntax.Node) *code {
	if !cp.fast {
		name := constantCode(n, n.Name)
		return cp.byName(n, "#get_context_data", arg{code: name, value: n.Name, known: true})
	}
	if n.Name == "$" || n.Name == "$1" {
		return &code{node: n, isPath: true, eval: func(c *Context) (any, error) {
			if c.hasItem {
				return norm(c.item), nil
			}
			v, _ := c.dollar()
			return v, nil
		}}
	}
	name := n.Name[1:]
	return &code{node: n, eval: func(c *Context) (any, error) {
		v, _ := c.lookup(name)
		return v, nil
	}}
}

// pair evaluates key => value to a [Pair].
func (cp *compiler) pair(n *syntax.Node) *code {
	k, v := cp.compile(n.Args[0]), cp.compile(n.Args[1])
	return &code{node: n, retains: k.retains || v.retains, eval: func(c *Context) (any, error) {
		key, err := k.eval(c)
		if err != nil {
			return nil, err
		}
		value, err := v.eval(c)
		return Pair{key, value}, err
	}}
}

// allOf reports whether every node is of the kind.
func allOf(nodes []*syntax.Node, kind syntax.Kind) bool {
	for _, n := range nodes {
		if n.Kind != kind {
			return false
		}
	}
	return true
}

func anyOf(nodes []*syntax.Node, kind syntax.Kind) bool {
	for _, n := range nodes {
		if n.Kind == kind {
			return true
		}
	}
	return false
}

func (cp *compiler) list(n *syntax.Node) *code {
	if !cp.fast || anyOf(n.Args, syntax.Pair) {
		return cp.call(n, "#list", n.Args)
	}
	items := cp.compileAll(n.Args)
	out := &code{node: n}
	for _, it := range items {
		out.retains = out.retains || it.retains
	}
	out.eval = func(c *Context) (any, error) {
		list := make([]any, len(items))
		for i, it := range items {
			v, err := it.eval(c)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		if err := c.run.spend(len(list)); err != nil {
			return nil, err
		}
		return list, c.run.chargeItems(len(list))
	}
	return out
}

func (cp *compiler) dict(n *syntax.Node) *code {
	if !cp.fast || cp.engine.cfg.legacy || !allOf(n.Args, syntax.Pair) {
		return cp.call(n, "#map", n.Args)
	}
	keys, values := make([]*code, len(n.Args)), make([]*code, len(n.Args))
	out := &code{node: n}
	for i, p := range n.Args {
		keys[i], values[i] = cp.compile(p.Args[0]), cp.compile(p.Args[1])
		out.retains = out.retains || keys[i].retains || values[i].retains
	}
	if known, ok := constantKeys(keys); ok {
		out.eval = fixedDict(known, values)
		return out
	}
	out.eval = func(c *Context) (any, error) {
		ks, vs := make([]any, len(keys)), make([]any, len(keys))
		for i := range keys {
			k, err := keys[i].eval(c)
			if err != nil {
				return nil, err
			}
			v, err := values[i].eval(c)
			if err != nil {
				return nil, err
			}
			ks[i], vs[i] = k, v
		}
		d := NewDict(len(keys))
		for i, k := range ks {
			if err := c.run.set(d, k, vs[i]); err != nil {
				return nil, at(err, n)
			}
		}
		return d, c.run.charge(d)
	}
	return out
}

// constantKeys returns the keys of a map literal if they are known, distinct strings.
func constantKeys(keys []*code) (*Keys, bool) {
	words := make([]any, len(keys))
	for i, k := range keys {
		if _, ok := k.value.(string); !ok || !k.constant {
			return nil, false
		}
		words[i] = k.value
	}
	known, err := NewKeys(words...)
	return known, err == nil
}

// fixedDict evaluates a map literal whose keys are known.
func fixedDict(keys *Keys, values []*code) func(c *Context) (any, error) {
	return func(c *Context) (any, error) {
		d := &Dict{keys: keys, values: make([]any, len(values))}
		for i := range values {
			v, err := values[i].eval(c)
			if err != nil {
				return nil, err
			}
			d.values[i] = v
		}
		return d, c.run.charge(d)
	}
}
