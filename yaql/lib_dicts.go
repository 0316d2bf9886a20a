package yaql

func dictDefinitions() []definition {
	return []definition{
		{"#indexer", FunctionKind, "dict: mapping, key: any?", func(c *Context, a []any) (any, error) { return c.indexed(nil, a[0], a[1]) },
			"Gives the value of a key of a map, which must be there.", "{a => 1}[a] ⇒ 1", 0},
		{"#indexer", FunctionKind, "dict: mapping, key: any?, default: any?", getItem, "Gives the value of a key of a map, or the default.", "{a => 1}[b, 2] ⇒ 2", 0},
		{"#map", FunctionKind, "*args: rulevalue", dictFromRules, "Makes a map of the arguments.", "{a => 1, 2 => b}.len() ⇒ 2", noKwargs},
		{"#operator_+", FunctionKind, "left: mapping, right: mapping", func(c *Context, a []any) (any, error) {
			d := c.run.toDict(a[0], dictLen(a[1]))
			return d, setAll(c, d, a[1])
		}, "Joins two maps; the values of the right one win.", "{a => 1} + {a => 2, b => 3} ⇒ {\"a\":2,\"b\":3}", 0},
		{"#operator_.", FunctionKind, "dict: mapping, key: keyword", func(c *Context, a []any) (any, error) { return c.attribute(nil, a[0], a[1].(string)) },
			"Gives the value of a key of a map, which must be there.", "{a => 1}.a ⇒ 1", 0},
		{"containsKey", MethodKind, "dict: mapping, key: any?", func(c *Context, a []any) (any, error) {
			_, ok, err := c.run.dictGet(a[0], a[1])
			return ok, err
		}, "Tells whether the map has the key.", "{a => 1}.containsKey(a) ⇒ true", 0},
		{"containsValue", MethodKind, "dict: mapping, value: any?", func(c *Context, a []any) (any, error) {
			return containsValue(c, &View{kind: valuesView, dict: a[0]}, a[1])
		}, "Tells whether the map has the value.", "{a => 1}.containsValue(1) ⇒ true", 0},
		{"delete", MethodKind, "dict: mapping, *keys: any?", func(c *Context, a []any) (any, error) { return without(c.run, a[0], a[1:]) },
			"Gives the map without some keys.", "{a => 1, b => 2}.delete(a) ⇒ {\"b\":2}", 0},
		{"deleteAll", MethodKind, "dict: mapping, keys: iterable", func(c *Context, a []any) (any, error) {
			keys, err := listOf(c, a[1])
			if err != nil {
				return nil, err
			}
			return without(c.run, a[0], keys)
		}, "Gives the map without the keys of a collection.", "{a => 1, b => 2}.deleteAll([a]) ⇒ {\"b\":2}", 0},
		{"dict", FunctionKind, "*args: rulevalue", dictFromRules, "Makes a map of the arguments.", "dict(a => 1) ⇒ {\"a\":1}", noKwargs},
		{"dict", FunctionKind, "items: iterable", dictFromItems, "Makes a map of pairs of keys and values.", "dict([[a, 1], [b, 2]]) ⇒ {\"a\":1,\"b\":2}", noKwargs},
		{"get", MethodKind, "dict: mapping, key: any?, default: any? = null", getItem, "Gives the value of a key, or the default.", "{a => 1}.get(b, 2) ⇒ 2", 0},
		{"isDict", FunctionKind, "arg: any?", isOf(isMapping), "Tells whether the value is a map.", "isDict({}) ⇒ true", 0},
		{"items", MethodKind, "dict: mapping", viewOf(itemsView), "Gives the entries as [key, value] lists.", "{a => 1}.items().toList() ⇒ [[\"a\",1]]", 0},
		{"keys", MethodKind, "dict: mapping", viewOf(keysView), "Gives the keys.", "{a => 1}.keys().toList() ⇒ [\"a\"]", 0},
		{"len", ExtensionKind, "dict: mapping", lengthOf, "Gives the number of entries.", "{a => 1}.len() ⇒ 1", 0},
		{"set", MethodKind, "dict: mapping, *args: rulevalue", func(c *Context, a []any) (any, error) {
			d := c.run.toDict(a[0], len(a)-1)
			for _, x := range a[1:] {
				if err := c.run.set(d, x.(Pair).Key, x.(Pair).Value); err != nil {
					return nil, err
				}
			}
			return d, nil
		}, "Gives the map with other values for some keys.", "{a => 1}.set(b => 2) ⇒ {\"a\":1,\"b\":2}", noKwargs},
		{"set", MethodKind, "dict: mapping, key: any?, value: any?", func(c *Context, a []any) (any, error) {
			d := c.run.toDict(a[0], 1)
			return d, c.run.set(d, a[1], a[2])
		}, "Gives the map with another value for a key.", "{a => 1}.set(b, 2) ⇒ {\"a\":1,\"b\":2}", noKwargs},
		{"set", MethodKind, "dict: mapping, replacements: mapping", func(c *Context, a []any) (any, error) {
			d := c.run.toDict(a[0], dictLen(a[1]))
			return d, setAll(c, d, a[1])
		}, "Gives the map with the entries of another one put over its own.", "{a => 1}.set({a => 2}) ⇒ {\"a\":2}", noKwargs},
		{"toDict", MethodKind, "collection: iterable, keySelector: lambda, valueSelector: lambda = null", toDictFunction,
			"Makes a map of a collection; of items with the same key the last one counts.", "[a, bb].toDict($, $.len()) ⇒ {\"a\":1,\"bb\":2}", eager},
		{"values", MethodKind, "dict: mapping", viewOf(valuesView), "Gives the values.", "{a => 1}.values().toList() ⇒ [1]", 0},
	}
}

func viewOf(kind viewKind) impl {
	return func(_ *Context, a []any) (any, error) { return &View{kind: kind, dict: a[0]}, nil }
}

func getItem(c *Context, a []any) (any, error) {
	v, ok, err := c.run.dictGet(a[0], a[1])
	if err != nil || ok {
		return v, err
	}
	return a[2], nil
}

// setAll puts the entries of a map over those of d.
func setAll(c *Context, d *Dict, other any) error {
	var err error
	dictRange(other, func(k, x any) bool {
		err = c.run.set(d, k, x)
		return err == nil
	})
	if err != nil {
		return err
	}
	return c.run.spend(dictLen(other))
}

func dictFromRules(c *Context, a []any) (any, error) {
	d := NewDict(len(a))
	for _, x := range a {
		if err := c.run.set(d, x.(Pair).Key, x.(Pair).Value); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func dictFromItems(c *Context, a []any) (any, error) {
	d := NewDict(0)
	err := each(c, a[0], func(x any) error {
		k, v, err := firstTwo(c, x)
		if err != nil {
			return err
		}
		return c.run.set(d, k, v)
	})
	return d, err
}

// firstTwo takes the first two items of anything that can be walked through, strings included.
func firstTwo(c *Context, x any) (k, v any, err error) {
	var src source
	if s, ok := x.(string); ok {
		src = &sliceSource{items: firstChars(s, 2), run: c.run} //nolint:mnd // see above
	} else if src, err = iterate(c, x); err != nil {
		return nil, nil, err
	}
	pair := [2]any{}
	for i := range pair {
		y, ok, err := src.next()
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			return nil, nil, errorf(StopIteration, "an item has no key and value")
		}
		pair[i] = y
	}
	return pair[0], pair[1], nil
}

// charItems is the list of the characters of a string.
func charItems(s string) []any { return firstChars(s, len(s)) }

// firstChars are the first n of them.
func firstChars(s string, n int) []any {
	var out []any
	for _, r := range s {
		if len(out) == n {
			break
		}
		out = append(out, string(r))
	}
	return out
}

// without copies a map but for some keys.
func without(run *run, dict any, keys []any) (any, error) {
	run.owe(dictLen(dict) + len(keys))
	drop := &Set{}
	if dictLen(dict) == 0 {
		keys = nil // even those that could not be looked up
	}
	for _, k := range keys {
		if err := run.add(drop, norm(k)); err != nil {
			return nil, err
		}
	}
	d := NewDict(dictLen(dict))
	d.mutable = true
	var err error
	dictRange(dict, func(k, x any) bool {
		if !run.has(drop, k) {
			err = run.set(d, k, x)
		}
		return err == nil
	})
	return d, err
}

func toDictFunction(c *Context, a []any) (any, error) {
	key, _ := a[1].(*Lambda)
	value, _ := a[2].(*Lambda)
	n, _ := sizeIfSized(a[0])
	d := NewDict(n)
	d.mutable = true
	err := each(c, a[0], func(x any) error {
		k, err := callItem(key, x)
		if err != nil {
			return err
		}
		if x, err = callItem(value, x); err != nil {
			return err
		}
		return c.run.set(d, k, x)
	})
	if err != nil {
		return nil, err
	}
	return d, c.run.charge(d)
}

// callItem evaluates an optional lambda on an item; without one the item is the result.
func callItem(l *Lambda, x any) (any, error) {
	if l == nil {
		return x, nil
	}
	return l.call1(x)
}
