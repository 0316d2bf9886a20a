package yaql

import (
	"errors"
	"math/big"
	"slices"

	"github.com/drover-project/drover/yaql/internal/pytext"
	"github.com/drover-project/drover/yaql/internal/syntax"
)

// dot compiles value.name and value.method(args).
func (cp *compiler) dot(n *syntax.Node) *code {
	right := n.Args[1]
	switch right.Kind {
	case syntax.Keyword:
		return cp.member(n, cp.compile(n.Args[0]), right.Name)
	case syntax.Call:
		return cp.methodCall(n, cp.compile(n.Args[0]))
	}
	return cp.noMatch(n, n.Func)
}

// member compiles value.name.
func (cp *compiler) member(n *syntax.Node, l *code, name string) *code {
	out := &code{node: n, retains: l.retains}
	if l.isPath && !cp.engine.cfg.legacy {
		out.isPath = true
		out.path = append(slices.Clone(l.path), name)
	}
	if len(out.path) == 1 {
		out.eval = func(c *Context) (any, error) {
			v := c.item
			if !c.hasItem {
				v, _ = c.dollar()
			}
			if m, ok := v.(map[string]any); ok {
				if x, ok := m[name]; ok {
					return norm(x), nil
				}
			}
			return c.attribute(n, norm(v), name)
		}
		return out
	}
	out.eval = func(c *Context) (any, error) {
		v, err := l.eval(c)
		if err != nil {
			return nil, err
		}
		if m, ok := v.(map[string]any); ok {
			if x, ok := m[name]; ok {
				return norm(x), nil
			}
		}
		return c.attribute(n, v, name)
	}
	return out
}

// attribute is value.name for a value of any type.
func (c *Context) attribute(n *syntax.Node, v any, name string) (any, error) {
	if d, ok := v.(*Dict); ok {
		if x, ok := d.text(name); ok {
			return norm(x), nil
		}
	}
	if isMapping(v) {
		x, ok, err := c.run.dictGet(v, name)
		if err == nil && !ok && !c.run.cfg.legacy {
			err = c.run.missingKey(v, name)
		}
		if err != nil {
			return nil, at(err, n)
		}
		return x, nil
	}
	if o, ok := v.(Object); ok {
		x, err := o.Attribute(name)
		if err != nil {
			return nil, at(err, n)
		}
		return norm(x), nil
	}
	if isIterable(c.run.cfg, v) {
		coll, err := limited(c, v)
		if err != nil {
			return nil, at(err, n)
		}
		src, err := iterate(c, coll)
		if err != nil {
			return nil, at(err, n)
		}
		return &Iterator{src: &memberSource{src: src, c: c, node: n, name: name}, run: c.run}, nil
	}
	x, err := c.callValues(n, "#property#"+name, v)
	if e, ok := errors.AsType[*Error](err); ok && e.Class == NoFunctionRegisteredException {
		e.Hint = propertyHint(n, v, name)
	}
	return x, err
}

// hintedKeys is how many keys of a map are looked at for the one that was meant.
const hintedKeys = 100

func (r *run) missingKey(m, key any) *Error {
	e := errorf(KeyError, "%s", r.repr(key))
	e.Hint = "the map has no such key; get() gives a default instead"
	name, ok := key.(string)
	if !ok {
		return e
	}
	var names []string
	dictRange(m, func(k, _ any) bool {
		if text, ok := k.(string); ok {
			names = append(names, text)
		}
		return len(names) < hintedKeys
	})
	if near, ok := pytext.Nearest(name, names); ok {
		e.Hint = "the map has no such key, did you mean " + near + "? get() gives a default instead"
	}
	return e
}

// memberSource yields item.name for each item.
type memberSource struct {
	src  source
	c    *Context
	node *syntax.Node
	name string
}

func (s *memberSource) next() (any, bool, error) {
	x, ok, err := s.src.next()
	if err != nil || !ok {
		return nil, false, err
	}
	if m, isMap := x.(map[string]any); isMap {
		if y, found := m[s.name]; found {
			return norm(y), true, nil
		}
	}
	y, err := s.c.attribute(s.node, x, s.name)
	return y, err == nil, err
}

// methodCall compiles value.method(args).
func (cp *compiler) methodCall(n *syntax.Node, l *code) *code {
	call := n.Args[1]
	s, retains := cp.site(call, trimUnderscores(call.Name), true, call.Args)
	return cp.methodCode(n, l, s, retains)
}

// callObject calls a method of a host object, or of the library if the object has no such method.
func callObject(c *Context, n *syntax.Node, o Object, s *site) (any, error) {
	args := make([]any, len(s.args))
	for i := range s.args {
		if s.args[i].code == nil || s.args[i].skip {
			args[i] = nil
			continue
		}
		v, err := s.args[i].code.eval(c)
		if err != nil {
			return nil, err
		}
		args[i] = v
	}
	c.run.kept = true
	v, err := o.Call(s.name, args)
	if err != nil {
		return nil, at(err, n)
	}
	return norm(v), nil
}

// safeDot compiles value?.right.
func (cp *compiler) safeDot(n *syntax.Node) *code {
	l := cp.compile(n.Args[0])
	right := n.Args[1]
	var rest func(c *Context, v any) (any, error)
	retains := false
	switch right.Kind {
	case syntax.Keyword:
		rest = func(c *Context, v any) (any, error) { return c.attribute(n, v, right.Name) }
	case syntax.Call:
		s, r := cp.site(right, trimUnderscores(right.Name), true, right.Args)
		retains = r
		rest = func(c *Context, v any) (any, error) {
			if o, ok := v.(Object); ok {
				return callObject(c, right, o, s)
			}
			return s.dispatch(c, v)
		}
	default:
		none := cp.noMatch(n, "#operator_.")
		rest = func(c *Context, _ any) (any, error) { return none.eval(c) }
	}
	return &code{node: n, retains: l.retains || retains, eval: func(c *Context) (any, error) {
		v, err := l.eval(c)
		if err != nil || v == nil {
			return nil, err
		}
		return rest(c, v)
	}}
}

// arrow compiles context -> expression.
func (cp *compiler) arrow(n *syntax.Node) *code {
	l := cp.compile(n.Args[0])
	if l.constant {
		return cp.noMatch(n, n.Func)
	}
	r := cp.compile(n.Args[1])
	slow := &lazyCode{node: n.Args[1]}
	return &code{node: n, retains: true, eval: func(c *Context) (any, error) {
		v, err := l.eval(c)
		if err != nil {
			return nil, err
		}
		inner, ok := v.(*Context)
		if !ok {
			return c.callValues(n, n.Func, v, nil)
		}
		if inner.run != c.run {
			inner = inner.Child()
			inner.run = c.run
		}
		if !inner.untouched || inner.lib != c.lib {
			return slow.get(cp.engine).eval(inner)
		}
		return r.eval(inner)
	}}
}

// index compiles value[args].
func (cp *compiler) index(n *syntax.Node) *code {
	if !cp.fast || cp.engine.cfg.legacy || len(n.Args) != 2 || n.Args[1].Kind == syntax.Pair || n.Args[1].Kind == syntax.Skip {
		return cp.call(n, "#indexer", n.Args)
	}
	l, r := cp.compile(n.Args[0]), cp.compile(n.Args[1])
	if cp.impossible("#indexer", l, r) {
		return cp.noMatch(n, "#indexer")
	}
	return &code{node: n, retains: l.retains || r.retains, eval: func(c *Context) (any, error) {
		v, k, err := evalTwo(c, l, r)
		if err != nil {
			return nil, err
		}
		return c.indexed(n, v, k)
	}}
}

// indexed is value[key] for values of any type.
func (c *Context) indexed(n *syntax.Node, v, key any) (any, error) {
	switch x := v.(type) {
	case []any, *List, Sequence:
		i, ok := smallInt(key)
		if _, isBig := key.(*big.Int); !ok && !isBig {
			break
		}
		if s, host := v.(Sequence); host {
			return itemOf(n, s, i, ok)
		}
		items, _ := seqItems(v)
		return itemAt(n, items, i, ok)
	case map[string]any, *Dict, Mapping:
		y, ok, err := c.run.dictGet(v, key)
		if err == nil && !ok {
			err = c.run.missingKey(v, key)
		}
		if err != nil {
			return nil, at(err, n)
		}
		return y, nil
	case Object:
		c.run.kept = true
		y, err := x.Item(key)
		if err != nil {
			return nil, at(err, n)
		}
		return norm(y), nil
	}
	return c.callValues(n, "#indexer", v, key)
}

// itemOf is itemAt for a list of the host, which is not copied for it.
func itemOf(n *syntax.Node, s Sequence, i int64, fits bool) (any, error) {
	if i < 0 {
		i += int64(s.Len())
	}
	if !fits || i < 0 || i >= int64(s.Len()) {
		return nil, at(errorf(IndexError, "tuple index out of range"), n)
	}
	return norm(s.At(int(i))), nil
}

func itemAt(n *syntax.Node, items []any, i int64, fits bool) (any, error) {
	if i < 0 {
		i += int64(len(items))
	}
	if !fits || i < 0 || i >= int64(len(items)) {
		return nil, at(errorf(IndexError, "tuple index out of range"), n)
	}
	return norm(items[i]), nil
}
