package yaql

// grouping are the functions that sort, group, join and merge.
func grouping() []definition {
	return []definition{
		{"groupBy", MethodKind, "collection: iterable, keySelector: lambda, valueSelector: lambda = null, aggregator: lambda = null", groupBy,
			"Gives [key, values] for each key, or [key, aggregate of the values].", "[1, 2, 3].groupBy($ mod 2, aggregator => $.sum()) ⇒ [[1,4],[0,2]]", 0},
		{"join", MethodKind, "collection1: iterable, collection2: iterable, predicate: lambda, selector: lambda", join,
			"Gives the selector for each pair of items, $1 and $2, for which the predicate is true.", "[1, 2].join([2, 3], $1 = $2, $1 * 10) ⇒ [20]", 0},
		{"mergeWith", MethodKind, "dict: mapping, another: mapping, listMerger: lambda = null, itemMerger: lambda = null, maxLevels: int = 0", mergeWith,
			"Merges two maps level by level: maps are merged, lists joined without duplicates, other values replaced.", "{a => [1], b => 1}.mergeWith({a => [2], b => 2}) ⇒ {\"a\":[1,2],\"b\":2}", eager},
		{"orderBy", MethodKind, "collection: iterable, selector: lambda", orderBy(false), "Sorts by the selector; equal items keep their order.", "[3, 1, 2].orderBy($) ⇒ [1,2,3]", 0},
		{"orderByDescending", MethodKind, "collection: iterable, selector: lambda", orderBy(true), "Sorts by the selector, the greatest first.", "[3, 1, 2].orderByDescending($) ⇒ [3,2,1]", 0},
		{"thenBy", MethodKind, "collection: ordering, selector: lambda", thenBy(false), "Sorts items that were equal so far by another selector.", "[b, aa, a].orderBy($.len()).thenBy($) ⇒ [\"a\",\"b\",\"aa\"]", 0},
		{"thenByDescending", MethodKind, "collection: ordering, selector: lambda", thenBy(true), "Sorts items that were equal so far by another selector, the greatest first.", "[b, aa, a].orderBy($.len()).thenByDescending($) ⇒ [\"b\",\"a\",\"aa\"]", 0},
	}
}

func groupBy(c *Context, a []any) (any, error) {
	key, _ := a[1].(*Lambda)
	value, _ := a[2].(*Lambda)
	aggregator, _ := a[3].(*Lambda)
	groups := NewDict(0)
	err := each(c, a[0], func(x any) error {
		v, err := callItem(value, x)
		if err != nil {
			return err
		}
		k, err := callItem(key, x)
		if err != nil {
			return err
		}
		i, err := groups.find(c.run, k)
		if err != nil {
			return err
		}
		if i < 0 {
			return c.run.set(groups, k, &List{Items: []any{v}})
		}
		l := groups.values[i].(*List)
		l.Items = append(l.Items, v)
		return nil
	})
	if err != nil {
		return nil, err
	}
	groups.mutable = true // which it is, as far as its size is concerned
	if err := c.run.charge(groups); err != nil {
		return nil, err
	}
	g := &aggregation{f: aggregator, fallback: c.run.cfg.groupByFallback}
	at := 0
	return lazily(c, func() (any, bool, error) {
		if at == len(groups.values) {
			return nil, false, nil
		}
		v, err := g.apply(groups.keys.list[at], groups.values[at].(*List))
		at++
		return v, err == nil, err
	}), nil
}

// aggregation applies the aggregator of groupBy. Once upon a time aggregators got the pair of key and values and
// gave another pair. An aggregator that fails on the first group's values is tried in that way.
type aggregation struct {
	f        *Lambda
	fallback bool
	failure  error
}

func (g *aggregation) apply(key any, values *List) (any, error) {
	if g.f == nil {
		return []any{key, values}, nil
	}
	if g.failure == nil {
		v, err := g.f.call1(values)
		if err == nil {
			if !looksLikePair(g.f.c.run, v, values) {
				g.fallback = false
			}
			return []any{key, v}, nil
		}
		if !g.fallback || !isClass(err, NoMatchingMethodException, NoMatchingFunctionException, IndexError) {
			return nil, err
		}
		g.failure = err
	}
	v, err := g.f.call1([]any{key, values})
	if err != nil {
		return nil, g.failure
	}
	if items, ok := seqItems(v); !ok || len(items) != 2 {
		return nil, g.failure
	}
	return v, nil
}

// looksLikePair reports whether the result of an aggregator on two values might be that of an old one on key
// and values.
func looksLikePair(run *run, v any, values *List) bool {
	items, ok := seqItems(v)
	return ok && len(items) == 2 && len(values.Items) == 2 && run.equal(norm(items[0]), values.Items[0])
}

func join(c *Context, a []any) (any, error) {
	left, err := iterate(c, a[0])
	if err != nil {
		return nil, err
	}
	others := memorized(c, a[1])
	predicate, selector := a[2].(*Lambda), a[3].(*Lambda)
	var right source
	var x any
	return lazily(c, func() (any, bool, error) {
		for {
			if right == nil {
				var ok bool
				var err error
				if x, ok, err = left.next(); err != nil || !ok {
					return nil, false, err
				}
				if right, err = iterate(c, others); err != nil {
					return nil, false, err
				}
			}
			y, ok, err := right.next()
			if err != nil {
				return nil, false, err
			}
			if !ok {
				right = nil
				continue
			}
			t, err := predicate.test2(x, y)
			if err != nil {
				return nil, false, err
			}
			if t {
				v, err := selector.call2(x, y)
				return v, err == nil, err
			}
		}
	}), nil
}

// merger merges maps.
type merger struct {
	c           *Context
	lists, item *Lambda
	walk
}

func mergeWith(c *Context, a []any) (any, error) {
	m := &merger{c: c, walk: walk{run: c.run}}
	m.lists, _ = a[2].(*Lambda)
	m.item, _ = a[3].(*Lambda)
	return m.dicts(a[0], a[1], clampInt(a[4]))
}

func (m *merger) dicts(a, b any, levels int64) (*Dict, error) {
	m.enter(dictLen(a) + dictLen(b))
	defer m.leave()
	out := NewDict(dictLen(a) + dictLen(b))
	out.mutable = true
	var err error
	dictRange(a, func(k, x any) bool {
		y, ok, e := m.c.run.dictGet(b, k)
		if err = e; err == nil && ok {
			x, err = m.values(x, y, levels)
		}
		if err == nil {
			err = m.c.run.set(out, k, x)
		}
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	dictRange(b, func(k, y any) bool {
		var i int
		if i, err = out.find(m.c.run, k); err == nil && i < 0 {
			err = m.c.run.set(out, k, y)
		}
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (m *merger) values(x, y any, levels int64) (any, error) {
	switch {
	case levels != 1 && isMapping(y):
		if !isMapping(x) {
			return nil, cannotMerge(x, y)
		}
		return m.dicts(x, y, max(levels-1, 0))
	case levels != 1 && isSequence(y):
		if !isSequence(x) {
			return nil, cannotMerge(x, y)
		}
		return m.sequences(x, y)
	case m.item != nil:
		return m.item.call2(x, y)
	}
	return y, nil
}

func cannotMerge(x, y any) error {
	return errorf(TypeError, "Cannot merge %s with %s", typeName(x), typeName(y))
}

// sequences joins two lists and leaves out duplicates, unless there is another rule.
func (m *merger) sequences(x, y any) (any, error) {
	if m.lists != nil {
		return m.lists.call2(x, y)
	}
	if isTuple(x) != isTuple(y) {
		return nil, errorf(TypeError, "can only concatenate %s (not \"%s\") to %s", typeName(x), typeName(y), typeName(x))
	}
	a, _ := seqItems(x)
	b, _ := seqItems(y)
	m.c.run.copies(len(a) + len(b))
	both := append(append(make([]any, 0, len(a)+len(b)), a...), b...)
	it, err := distinct(m.c, []any{both, nil})
	if err != nil {
		return nil, err
	}
	items, err := listOf(m.c, it)
	if err != nil {
		return nil, err
	}
	return m.c.madeList(items), nil
}
