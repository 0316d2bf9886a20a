package yaql

import (
	"slices"

	"github.com/drover-project/drover/yaql/internal/syntax"
)

// library is the standard library of an engine: layers of functions, the innermost first. It is immutable.
type library struct {
	all       []*Function
	functions map[string][][]*Function
	methods   map[string][][]*Function
	names     map[string]bool
	whole     bool // no module was left out
}

// definition is an entry of the tables that the library is made of. The notation of params is that of
// parseParams. A definition whose example is empty takes part in the tests of others.
type definition struct {
	name    string
	kind    Kind
	params  string
	call    impl
	doc     string
	example string // expression ⇒ result as JSON
	flags   definitionFlags
}

type definitionFlags uint8

const (
	// noKwargs makes key => value arguments reach the function as they are.
	noKwargs definitionFlags = 1 << iota
	// eager tells that nothing of the call is kept once it has returned, although it takes expressions.
	eager
	// setsOnly marks what is left out of a library without sets.
	setsOnly
	// keeps tells that the context of the call is kept, although the function takes no expressions.
	keeps
	// exclusiveName hides the functions of that name in outer layers.
	exclusiveName
)

// module is a named table of definitions.
type module struct {
	name string
	defs []definition
}

// The layers of a library, innermost first.
func libraryLayers(cfg *config) [][]module {
	standard := []module{systemModule(cfg), commonModule(), booleanModule(), branchingModule(), mathModule(), stringsModule(),
		regexModule(), collectionsModule(), queriesModule(), datetimeModule()}
	layers := [][]module{{objectsModule()}, standard, {coreModule()}}
	if cfg.legacy {
		layers = slices.Insert(layers, 0, legacyModules())
	}
	return layers
}

func newLibrary(cfg *config) *library {
	l := &library{functions: map[string][][]*Function{}, methods: map[string][][]*Function{}, names: map[string]bool{}, whole: len(cfg.withoutModules) == 0}
	for _, layer := range libraryLayers(cfg) {
		functions, methods := map[string][]*Function{}, map[string][]*Function{}
		for _, m := range layer {
			if cfg.withoutModules[m.name] {
				continue
			}
			for i := range m.defs {
				d := &m.defs[i]
				if cfg.noSets && d.flags&setsOnly != 0 {
					continue
				}
				fn := d.function(m.name)
				l.all = append(l.all, fn)
				l.names[fn.name] = true
				if fn.isFunction() {
					functions[fn.name] = append(functions[fn.name], fn)
				}
				if fn.isMethod() {
					methods[fn.name] = append(methods[fn.name], fn)
				}
			}
		}
		addLayer(l.functions, functions)
		addLayer(l.methods, methods)
	}
	return l
}

// addLayer adds the functions of a layer below those of the layers before it, unless they are hidden.
func addLayer(all map[string][][]*Function, layer map[string][]*Function) {
	for name, fns := range layer {
		above := all[name]
		if n := len(above); n > 0 && above[n-1][0].exclusive {
			continue
		}
		all[name] = append(above, fns)
	}
}

func (d *definition) function(module string) *Function {
	fn := &Function{name: d.name, kind: d.kind, noKwargs: d.flags&noKwargs != 0, call: d.call, doc: d.doc,
		example: d.example, module: module, exclusive: d.flags&exclusiveName != 0}
	if err := fn.parseParams(d.params); err != nil {
		panic(err) // a mistake in a table of this package, which every test would meet
	}
	fn.retains = d.flags&keeps != 0
	if d.flags&eager == 0 {
		for _, p := range fn.params {
			fn.retains = fn.retains || p.typ.lazy()
		}
		fn.retains = fn.retains || fn.variadic != nil && fn.variadic.typ.lazy()
	}
	return fn
}

func (l *library) has(name string) bool { return l.names[name] }

func (l *library) layersOf(name string, method bool) [][]*Function {
	if method {
		return l.methods[name]
	}
	return l.functions[name]
}

// impossible reports whether no overload of an operator takes the operands, judging by those that are constant.
func (cp *compiler) impossible(fn string, operands ...*code) bool {
	constant := false
	for _, k := range operands {
		constant = constant || k.constant
	}
	if !constant {
		return false
	}
	for _, layer := range cp.lib.functions[fn] {
		for _, f := range layer {
			if f.mayTake(&cp.engine.cfg, operands) {
				return false
			}
		}
	}
	return true
}

func (f *Function) mayTake(cfg *config, operands []*code) bool {
	if len(f.params) > len(operands) || len(f.params) < len(operands) && f.variadic == nil {
		return false
	}
	for i, k := range operands {
		p := f.variadic
		if i < len(f.params) {
			p = &f.params[i]
		}
		a := arg{code: k, value: k.value, known: k.constant}
		if !a.fits(cfg, p) {
			return false
		}
	}
	return true
}

// noMatch is code for a call that no overload of fn can take.
func (cp *compiler) noMatch(n *syntax.Node, fn string) *code {
	s := &site{name: fn, node: n, overload: cp.lib.functions[fn]}
	return &code{node: n, eval: func(c *Context) (any, error) { return nil, at(s.notFound(c, nil, nil), n) }}
}
