package yaql

import (
	"maps"
	"slices"
	"strings"
)

// Context holds variables and functions for expressions. Contexts form chains: a name that one does not know is
// looked up in its parent, and a variable that none knows is null.
//
// A context that expressions are evaluated in must not be changed at the same time; evaluations of many
// goroutines may share it.
type Context struct {
	parent    *Context
	lib       *library
	run       *run // nil in contexts made by the host
	item      any  // the value of $ and $1, if hasItem
	hasItem   bool
	untouched bool // neither this context nor one above it adds functions under names of the library
	vars      []variable
	funcs     map[string][]*Function
	peers     []*Context // contexts consulted side by side with this one
}

type variable struct {
	name  string
	value any
}

// NewContext returns a context right above the standard library of the engine.
func (e *Engine) NewContext() *Context { return &Context{lib: e.lib, untouched: e.lib.whole} }

// Child returns a new context whose parent is c.
func (c *Context) Child() *Context {
	return &Context{parent: c, lib: c.lib, run: c.run, untouched: c.untouched}
}

// withItem returns a child in which $ is x.
func (c *Context) withItem(x any) *Context {
	return &Context{parent: c, lib: c.lib, run: c.run, untouched: c.untouched, item: x, hasItem: true}
}

// Set gives a variable a value in this context; the name may be written with its dollar sign or without.
func (c *Context) Set(name string, value any) { c.set(strings.TrimPrefix(name, "$"), value) }

// setItem gives $ a value. A gap in a list hides no $ further out.
func (c *Context) setItem(x any) { c.item, c.hasItem = x, x != NoValue }

func (c *Context) set(name string, value any) {
	if name == "" || name == "1" {
		c.setItem(value)
		return
	}
	for i := range c.vars {
		if c.vars[i].name == name {
			c.vars[i].value = value
			return
		}
	}
	c.vars = append(c.vars, variable{name, value})
}

// Get returns the value of a variable, or nil if no context of the chain knows it.
func (c *Context) Get(name string) any {
	v, _ := c.lookup(strings.TrimPrefix(name, "$"))
	return v
}

func (c *Context) lookup(name string) (any, bool) {
	if name == "" || name == "1" {
		return c.dollar()
	}
	for x := c; x != nil; x = x.parent {
		for i := range x.vars {
			if x.vars[i].name == name && x.vars[i].value != NoValue {
				return norm(x.vars[i].value), true
			}
		}
		for _, p := range x.peers {
			if v, ok := p.lookup(name); ok {
				return v, true
			}
		}
	}
	return nil, false
}

// dollar returns the value of $.
func (c *Context) dollar() (any, bool) {
	for x := c; x != nil; x = x.parent {
		if x.hasItem {
			return norm(x.item), true
		}
		for _, p := range x.peers {
			if v, ok := p.dollar(); ok {
				return v, true
			}
		}
	}
	return nil, false
}

// Register adds functions to this context. Functions under a name that an outer context also has are further
// overloads of it, found first; see [Exclusive] to hide the outer ones.
//
// Register functions before child contexts are made or expressions evaluated.
func (c *Context) Register(functions ...*Function) {
	if c.funcs == nil {
		c.funcs = map[string][]*Function{}
	}
	for _, f := range functions {
		c.funcs[f.name] = append(c.funcs[f.name], f)
		if c.lib.has(f.name) {
			c.untouched = false
		}
	}
}

// Multi returns a context that consults c and the others side by side: the first that knows a variable gives its
// value, and functions of the same name are overloads of equal rank.
func (c *Context) Multi(others ...*Context) *Context {
	m := &Context{lib: c.lib, run: c.run, untouched: c.untouched, peers: append([]*Context{c}, others...)}
	for _, o := range others {
		m.untouched = m.untouched && o.untouched && o.lib == c.lib
	}
	return m
}

// Link returns a context with the variables and functions of c itself, but with the given parent.
func (c *Context) Link(parent *Context) *Context {
	l := *c
	l.parent, l.lib, l.run = parent, parent.lib, parent.run
	l.untouched = parent.untouched
	for name := range l.funcs {
		if l.lib.has(name) {
			l.untouched = false
		}
	}
	return &l
}

// collect returns the functions of that name that may be called as a method, or as a function, in layers, the
// innermost first.
func (c *Context) collect(name string, method bool) [][]*Function {
	own, exclusive := c.layers(name, method)
	layers := own[:0]
	for _, l := range own {
		if len(l) > 0 {
			layers = append(layers, l)
		}
	}
	if exclusive {
		return layers
	}
	return append(layers, c.lib.layersOf(name, method)...)
}

// layers returns a layer, which may be empty, for each context of the chain, and whether outer ones are hidden.
func (c *Context) layers(name string, method bool) (layers [][]*Function, exclusive bool) {
	for x := c; x != nil; x = x.parent {
		if x.funcs != nil {
			var layer []*Function
			for _, f := range x.funcs[name] {
				exclusive = exclusive || f.exclusive
				if method && f.isMethod() || !method && f.isFunction() {
					layer = append(layer, f)
				}
			}
			layers = append(layers, layer)
			if exclusive {
				return layers, true
			}
		}
		if x.peers != nil {
			side, hidden := x.sideBySide(name, method)
			layers = append(layers, side...)
			if hidden {
				return layers, true
			}
		}
	}
	return layers, false
}

// sideBySide pools the layers of contexts that are consulted side by side, level by level.
func (c *Context) sideBySide(name string, method bool) (layers [][]*Function, exclusive bool) {
	for _, p := range c.peers {
		side, hidden := p.layers(name, method)
		exclusive = exclusive || hidden
		for i, l := range side {
			if i == len(layers) {
				layers = append(layers, nil)
			}
			layers[i] = append(layers[i], l...)
		}
	}
	return layers, exclusive
}

// Functions returns all functions that expressions in c can call, those of the library last.
func (c *Context) Functions() []*Function { return append(c.added(nil), c.lib.all...) }

// added appends the functions that c and the contexts around it add to the library.
func (c *Context) added(out []*Function) []*Function {
	for x := c; x != nil; x = x.parent {
		for _, name := range slices.Sorted(maps.Keys(x.funcs)) {
			out = append(out, x.funcs[name]...)
		}
		for _, p := range x.peers {
			out = p.added(out)
		}
	}
	return out
}
