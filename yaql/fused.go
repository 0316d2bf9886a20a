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

// frameOf makes c a child of outer in which $ will be set.
func (c *Context) frameOf(outer *Context) {
	c.parent, c.lib, c.run, c.untouched, c.hasItem = outer, outer.lib, outer.run, outer.untouched, true
}

// filter is a call of where() that can be carried out at once, when nobody can see that it is not lazy: the
// predicate does not keep its context.
type filter struct {
	list      *code // the receiver
	predicate *code
	site      *site
}

// receiver evaluates the receiver. If it is a list, the items are given; else v is what the call gives.
func (f *filter) receiver(c *Context) (items []any, ok bool, v any, err error) {
	v, err = f.list.eval(c)
	if err != nil {
		return nil, false, nil, err
	}
	if items, ok = v.([]any); ok && fitsLimit(c, items) {
		return items, true, nil, nil
	}
	v, err = f.site.call(c, v)
	return nil, false, v, err
}

// takeFrame returns a context for predicates. giveFrame takes it back.
func (r *run) takeFrame(c *Context) *Context {
	frame := r.spare
	r.spare = nil
	if frame == nil {
		frame = &Context{}
	}
	frame.frameOf(c)
	return frame
}

func (r *run) giveFrame(frame *Context) {
	*frame = Context{}
	r.spare = frame
}

// countFiltered counts what where() keeps of a list.
func countFiltered(n *syntax.Node, f *filter, s *site) *code {
	return &code{node: n, eval: func(c *Context) (any, error) {
		items, ok, v, err := f.receiver(c)
		if err != nil {
			return nil, err
		}
		if !ok {
			return s.call(c, v)
		}
		frame := c.run.takeFrame(c)
		count, err := countList(items, f.predicate, frame)
		c.run.giveFrame(frame)
		return int64(count), err
	}}
}

// methodCode is the code of a method call whose site is prepared.
func (cp *compiler) methodCode(n *syntax.Node, l *code, s *site, retains bool) *code {
	if l.filter != nil && (s.name == "len" || s.name == "count") && len(s.args) == 0 && len(s.named) == 0 && !s.dynamic {
		return countFiltered(n, l.filter, s)
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
		k.filter = &filter{list: l, predicate: s.args[0].code, site: s}
	}
	return k
}
