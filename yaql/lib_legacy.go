package yaql

import (
	"strings"

	"github.com/drover-project/drover/yaql/internal/syntax"
)

// legacyModules are what the first version of the language has over the standard library, or instead of it.
func legacyModules() []module {
	again := func(m module, names ...string) []definition {
		var defs []definition
		for _, d := range m.defs {
			for _, name := range names {
				if d.name == name && !strings.HasPrefix(d.params, "a: any?, b") {
					d.kind = ExtensionKind
					defs = append(defs, d)
				}
			}
		}
		return defs
	}
	standard := again(booleanModule(), "bool")
	standard = append(standard, again(mathModule(), "float", "int")...)
	standard = append(standard, again(stringsModule(), "join")...)
	standard = append(standard, again(collectionsModule(), "get", "list")...)
	standard = append(standard, again(queriesModule(), "join", "select", "sum", "takeWhile", "where")...)
	return []module{{"extensions", standard}, {"legacy", legacyDefinitions()}}
}

func legacyDefinitions() []definition {
	return []definition{
		{"#indexer", FunctionKind, "collection: iterable, indexExpression: lambda", legacyIndex,
			"Gives the item at a place of a list, or the items for which the expression is true.", "", exclusiveName},
		{"#map", FunctionKind, "*tuples: tuple", dictFromTuples, "Makes a map of tuples.", "", noKwargs},
		{"#operator_.", FunctionKind, "dict: mapping, key: keyword", func(c *Context, a []any) (any, error) { return getItem(c, append(a, nil)) },
			"Gives the value of a key, or null.", "", 0},
		{"#operator_.", FunctionKind, "receiver: context, expr: method", func(c *Context, a []any) (any, error) {
			inner := a[0].(*Context).Child()
			inner.run = c.run
			receiver, _ := inner.lookup("0")
			return (&Lambda{code: a[1].(*Lambda).code, c: inner}).callMethod(receiver)
		}, "Calls a method of $0 in a context.", "", keeps},
		{"#operator_=>", FunctionKind, "left: expression, right: any?", makeTuple, "Makes a tuple; a => b => c has three items.", "", 0},
		{"as", MethodKind, "receiver: any?, *mappings: lambda", asNames,
			"Gives a context in which the names stand for the values before the arrows, and $0 for the receiver.", "", noKwargs | keeps},
		{"dict", FunctionKind, "*tuples: tuple", dictFromTuples, "Makes a map of tuples.", "", noKwargs},
		{"dict", MethodKind, "*tuples: tuple", func(c *Context, a []any) (any, error) {
			// The reference passes such a call on to the standard library, which knows dict as a function only.
			return nil, errorf(NoMethodRegisteredException, "Unknown method \"dict\" for receiver %s", c.run.shown(a[0]))
		}, "Fails, as it does in the reference: dict is a function.", "", noKwargs},
		{"range", ExtensionKind, "start: int, stop: int = null", func(c *Context, a []any) (any, error) {
			if a[1] == nil {
				return countFrom(c, asIndex(a[0]), int64(1)), nil
			}
			if r, ok := shortRange(asIndex(a[0]), asIndex(a[1])); ok {
				return r, nil
			}
			return rangeOf(c, asIndex(a[0]), a[1], int64(1))
		}, "Gives the integers from start up to stop, or without end.", "", 0},
		{"switch", ExtensionKind, "value: any?, *conditions: lambda", legacySwitch,
			"Gives the value behind the first condition that is true, or null.", "", noKwargs | eager | exclusiveName},
		{"toList", MethodKind, "collection: iterable", func(c *Context, a []any) (any, error) {
			items, err := listOf(c, a[0])
			return &List{Items: items}, err
		}, "Makes a list of any collection.", "", 0},
		{"tuple", FunctionKind, "*args: any?", func(_ *Context, a []any) (any, error) { return a, nil }, "Makes a tuple of the arguments.", "", 0},
	}
}

// madeList is a list that a function of the library makes of items: a mutable one in the legacy language.
func (c *Context) madeList(items []any) any {
	if c.run.cfg.legacy {
		return &List{Items: items}
	}
	return items
}

func legacyIndex(c *Context, a []any) (any, error) {
	f := a[1].(*Lambda)
	if isSequence(a[0]) {
		v, err := f.Call()
		if err != nil {
			return nil, err
		}
		if syntax.IsInt(v) {
			return c.indexed(nil, a[0], v)
		}
	}
	return where(c, a)
}

func dictFromTuples(c *Context, a []any) (any, error) { return dictFromItems(c, []any{a}) }

func makeTuple(c *Context, a []any) (any, error) {
	left := a[0].(arg)
	if left.code == nil {
		return []any{left.value, a[1]}, nil
	}
	v, err := left.code.eval(c)
	if err != nil {
		return nil, err
	}
	if n := left.code.node; n.Kind == syntax.Binary && n.Name == "=>" {
		if items, ok := seqItems(v); ok {
			return append(append(make([]any, 0, len(items)+1), items...), a[1]), nil
		}
	}
	return []any{v, a[1]}, nil
}

// twoOf is a tuple of two, as => makes it.
func twoOf(v any, function string) (a, b any, err error) {
	items, ok := v.([]any)
	if !ok {
		return nil, nil, errorf(ValueError, "%s() must have tuple parameters", function)
	}
	if len(items) != 2 {
		return nil, nil, errorf(ValueError, "%s() tuples must be of size 2", function)
	}
	return items[0], items[1], nil
}

func asNames(c *Context, a []any) (any, error) {
	inner := c.Child()
	for _, x := range a[1:] {
		v, err := x.(*Lambda).call1(a[0])
		if err != nil {
			return nil, err
		}
		value, name, err := twoOf(v, "as")
		if err != nil {
			return nil, err
		}
		s, ok := name.(string)
		if !ok {
			return nil, errorf(AttributeError, "'%s' object has no attribute 'startswith'", typeName(name))
		}
		inner.set(strings.TrimPrefix(s, "$"), value)
	}
	inner.set("0", a[0])
	return inner, nil
}

func legacySwitch(_ *Context, a []any) (any, error) {
	for _, x := range a[1:] {
		v, err := x.(*Lambda).call1(a[0])
		if err != nil {
			return nil, err
		}
		condition, value, err := twoOf(v, "switch")
		if err != nil {
			return nil, err
		}
		if truth(condition) {
			return value, nil
		}
	}
	return nil, nil
}

// intRange is a list of successive integers, which the first version of the language does not take for an iterator.
type intRange struct{ start, count int64 }

// Len returns the number of integers.
func (r intRange) Len() int { return int(r.count) }

// At returns one of the integers.
func (r intRange) At(i int) any { return r.start + int64(i) }

// longestRange keeps lists of integers small: longer ranges are made item by item.
const longestRange = 100_000

func shortRange(start, stop any) (intRange, bool) {
	from, ok1 := start.(int64)
	to, ok2 := stop.(int64)
	if !ok1 || !ok2 || to > from && uint64(to-from) > longestRange {
		return intRange{}, false
	}
	return intRange{from, max(0, to-from)}, true
}
