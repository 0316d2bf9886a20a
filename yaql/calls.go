package yaql

import (
	"github.com/drover-project/drover/yaql/internal/syntax"
)

// argsOf compiles the arguments of a call.
func (cp *compiler) argsOf(nodes []*syntax.Node) (args []arg, retains bool) {
	args = make([]arg, len(nodes))
	for i, n := range nodes {
		k := cp.compile(n)
		args[i] = argOf(k)
		if n.Kind == syntax.Pair {
			args[i].key, args[i].val = cp.compile(n.Args[0]), cp.compile(n.Args[1])
		}
		retains = retains || k.retains
	}
	return args, retains
}

// site prepares a call of a function or method by name. Calls of functions that are not in the library, and all
// calls in contexts that change the library, are resolved when they run.
func (cp *compiler) site(n *syntax.Node, name string, method bool, nodes []*syntax.Node) (s *site, retains bool) {
	args, retains := cp.argsOf(nodes)
	layers := cp.lib.layersOf(name, method)
	if !cp.fast || len(layers) == 0 {
		return &site{name: name, node: n, method: method, args: args, dynamic: true}, true
	}
	s = prepare(&cp.engine.cfg, n, name, method, layers, args)
	for _, k := range s.cands {
		retains = retains || k.fn.retains
	}
	return s, retains
}

// dispatch carries the call out, resolving it now if it is dynamic.
func (s *site) dispatch(c *Context, receiver any) (any, error) {
	if !s.dynamic {
		return s.call(c, receiver)
	}
	if !s.method {
		if fn := c.onlyDefined(s.name); fn != nil {
			return s.callDefined(c, fn)
		}
	}
	return c.callByName(s.node, s.name, s.method, receiver, s.args)
}

// call compiles a call of a function.
func (cp *compiler) call(n *syntax.Node, name string, nodes []*syntax.Node) *code {
	if special := cp.special(n, name, nodes); special != nil {
		return special
	}
	s, retains := cp.site(n, name, false, nodes)
	k := &code{node: n, retains: retains, eval: func(c *Context) (any, error) { return s.dispatch(c, nil) }}
	if s.dynamic {
		k.args = s.args
	}
	return k
}

// byName compiles a call that is always resolved when it runs, with the given arguments.
func (cp *compiler) byName(n *syntax.Node, name string, args ...arg) *code {
	return &code{node: n, retains: true, eval: func(c *Context) (any, error) {
		return c.callByName(n, name, false, nil, args)
	}}
}

// onlyDefined returns the function of that name made by def(), if it is the only one of the name.
func (c *Context) onlyDefined(name string) *Function {
	if c.lib.has(name) {
		return nil
	}
	var only *Function
	for x := c; x != nil; x = x.parent {
		if x.peers != nil {
			return nil
		}
		for _, fn := range x.funcs[name] {
			if only != nil || fn.defined == nil {
				return nil
			}
			only = fn
		}
	}
	return only
}

// callDefined calls a function made by def(), which takes any arguments.
func (s *site) callDefined(c *Context, fn *Function) (any, error) {
	if err := c.run.step(); err != nil {
		return nil, err
	}
	pos, keywords, err := splitArgs(false, s.args)
	if err != nil {
		return nil, at(err, s.node)
	}
	var buf [4]any
	values := buf[:0]
	for i := range pos {
		v, err := pos[i].evaluate(c, fn.variadic)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	var extra []named
	for i := range keywords {
		v, err := keywords[i].evaluate(c, fn.keywords)
		if err != nil {
			return nil, err
		}
		extra = append(extra, named{keywords[i].name, v})
	}
	if err := c.run.enter(); err != nil {
		return nil, at(err, s.node)
	}
	v, err2 := fn.defined.callFresh(values, extra)
	c.run.leave()
	if err2 != nil {
		return nil, at(err2, s.node)
	}
	return v, c.run.charge(v)
}

// special compiles the calls whose arguments need no overload resolution; it returns nil for others.
func (cp *compiler) special(n *syntax.Node, name string, nodes []*syntax.Node) *code {
	if !cp.fast || cp.engine.cfg.legacy || cp.lib.functions[name] == nil {
		return nil
	}
	switch name {
	case "switch":
		if allOf(nodes, syntax.Pair) {
			return cp.switchCall(n, nodes)
		}
	case "coalesce":
		if !anyOf(nodes, syntax.Pair) && !anyOf(nodes, syntax.Skip) {
			return cp.coalesceCall(n, nodes)
		}
	}
	return nil
}

func (cp *compiler) switchCall(n *syntax.Node, pairs []*syntax.Node) *code {
	conditions, values := make([]*code, len(pairs)), make([]*code, len(pairs))
	out := &code{node: n}
	for i, p := range pairs {
		conditions[i], values[i] = cp.compile(p.Args[0]), cp.compile(p.Args[1])
		out.retains = out.retains || conditions[i].retains || values[i].retains
	}
	out.eval = func(c *Context) (any, error) {
		for i, k := range conditions {
			t, err := k.truth(c)
			if err != nil {
				return nil, err
			}
			if t {
				return values[i].eval(c)
			}
		}
		return nil, nil
	}
	return out
}

func (cp *compiler) coalesceCall(n *syntax.Node, nodes []*syntax.Node) *code {
	values := cp.compileAll(nodes)
	out := &code{node: n}
	for _, k := range values {
		out.retains = out.retains || k.retains
	}
	out.eval = func(c *Context) (any, error) {
		for _, k := range values {
			v, err := k.eval(c)
			if v != nil || err != nil {
				return v, err
			}
		}
		return nil, nil
	}
	return out
}

// insideContext is value.method(args) of the legacy language when the value is a context: the call is made in
// that context, on its $0.
func (cp *compiler) insideContext(c *Context, n *syntax.Node, inner *Context) (any, error) {
	receiver, _ := inner.lookup("0")
	if inner.run == nil {
		inner = inner.Child()
		inner.run = c.run
	}
	call := n.Args[1]
	args, _ := (&compiler{engine: cp.engine, lib: cp.lib}).argsOf(call.Args)
	return inner.callByName(call, trimUnderscores(call.Name), true, receiver, args)
}
