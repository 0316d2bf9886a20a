package yaql

import "github.com/drover-project/drover/yaql/internal/syntax"

// filtering is all that where() and select() need to walk through a list, in one piece of memory.
type filtering struct {
	it    Iterator
	where whereSource
	items sliceSource
	f     Lambda
	frame Context
}

// mappingOfList is the same for select().
type mappingOfList struct {
	it    Iterator
	sel   selectSource
	items sliceSource
	f     Lambda
	frame Context
}

// overList compiles where() and select() for the case that the receiver turns out to be a list: what overload
// resolution would find is known then. It returns nil for other calls, and the result is nil for other receivers.
func (cp *compiler) overList(s *site) func(c *Context, receiver any) any {
	cfg := &cp.engine.cfg
	if s.dynamic || s.err != nil || len(s.cands) != 1 || len(s.args) != 1 || s.args[0].skip || cfg.memoryQuota > 0 || cfg.legacy {
		return nil
	}
	if fn := s.cands[0].fn; fn.module != "queries" || fn.variadic != nil {
		return nil
	}
	body := s.args[0].code
	switch s.name {
	case "where", "filter":
		return func(c *Context, receiver any) any {
			items, ok := receiver.([]any)
			if !ok || !fitsLimit(c, items) {
				return nil
			}
			w := &filtering{}
			w.it = Iterator{src: &w.where, run: c.run}
			w.where = whereSource{src: &w.items, test: &w.f}
			w.items = sliceSource{items: items, run: c.run}
			w.f.start(body, c, &w.frame)
			return &w.it
		}
	case "select", "map":
		return func(c *Context, receiver any) any {
			items, ok := receiver.([]any)
			if !ok || !fitsLimit(c, items) {
				return nil
			}
			m := &mappingOfList{}
			m.it = Iterator{src: &m.sel, run: c.run}
			m.sel = selectSource{src: &m.items, f: &m.f}
			m.items = sliceSource{items: items, run: c.run}
			m.f.start(body, c, &m.frame)
			return &m.it
		}
	}
	return nil
}

func fitsLimit(c *Context, items []any) bool {
	limit := c.run.cfg.limitIterators
	return limit < 0 || len(items) <= limit
}

// start makes l the lambda of an argument written in c, with room for its frame.
func (l *Lambda) start(body *code, c, frame *Context) {
	l.code, l.c = body, c
	if !body.retains {
		frame.frameOf(c)
		l.frame = frame
	}
}

// frameOf makes the context a child of c in which $ will be set.
func (frame *Context) frameOf(c *Context) {
	frame.parent, frame.lib, frame.run, frame.untouched, frame.hasItem = c, c.lib, c.run, c.untouched, true
}

// wholeFilter is where() at the top of an expression, the result of which nobody else can see.
func wholeFilter(l *code, s *site) func(c, frame *Context) ([]any, any, error) {
	body := s.args[0].code
	return func(c, frame *Context) ([]any, any, error) {
		v, err := l.eval(c)
		if err != nil {
			return nil, nil, err
		}
		list, ok := v.([]any)
		if !ok || !fitsLimit(c, list) {
			v, err = s.call(c, v)
			return nil, v, err
		}
		frame.frameOf(c)
		out, err := filterList(list, body, frame)
		if out == nil {
			out = []any{}
		}
		return out, nil, err
	}
}

// countWhole counts what where() keeps of a list without making anything lazy.
func countWhole(n *syntax.Node, l *code, s *site) *code {
	return &code{node: n, eval: func(c *Context) (any, error) {
		items, v, err := l.whole(c, &Context{})
		switch {
		case err != nil:
			return nil, err
		case items == nil:
			return s.call(c, v)
		}
		return int64(len(items)), nil
	}}
}

// methodCode is the code of a method call whose site is prepared.
func (cp *compiler) methodCode(n *syntax.Node, l *code, s *site, retains bool) *code {
	if l.whole != nil && (s.name == "len" || s.name == "count") && len(s.args) == 0 && !s.dynamic {
		return countWhole(n, l, s)
	}
	call := n.Args[1]
	legacy := cp.engine.cfg.legacy
	direct := cp.overList(s)
	k := &code{node: n, retains: retains || l.retains, eval: func(c *Context) (any, error) {
		v, err := l.eval(c)
		if err != nil {
			return nil, err
		}
		if direct != nil {
			if result := direct(c, v); result != nil {
				return result, c.run.step()
			}
		}
		switch x := v.(type) {
		case Object:
			return callObject(c, call, x, s)
		case *Context:
			if legacy {
				return cp.insideContext(c, n, x)
			}
		}
		return s.dispatch(c, v)
	}}
	if direct != nil && !l.retains && !s.args[0].code.retains && (s.name == "where" || s.name == "filter") {
		k.whole = wholeFilter(l, s)
	}
	return k
}
