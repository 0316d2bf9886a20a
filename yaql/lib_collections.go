package yaql

func collectionsModule() module {
	return module{"collections", append(append(listDefinitions(), dictDefinitions()...), setDefinitions()...)}
}

func listDefinitions() []definition {
	return []definition{
		{"#indexer", FunctionKind, "list: sequence, index: int", func(c *Context, a []any) (any, error) { return c.indexed(nil, a[0], asIndex(a[1])) },
			"Gives the item at a place of a list; negative places count from the end.", "[a, b, c][-1] ⇒ \"c\"", 0},
		{"#list", FunctionKind, "*args: any?", func(c *Context, a []any) (any, error) { return a, c.run.chargeItems(len(a)) },
			"Makes a list of the arguments.", "[1, a, null] ⇒ [1,\"a\",null]", 0},
		{"#operator_*", FunctionKind, "left: int, right: sequence", func(c *Context, a []any) (any, error) { return repeatList(c, a[1], a[0]) },
			"Repeats a list.", "2 * [1] ⇒ [1,1]", 0},
		{"#operator_*", FunctionKind, "left: sequence, right: int", func(c *Context, a []any) (any, error) { return repeatList(c, a[0], a[1]) },
			"Repeats a list.", "[1, 2] * 2 ⇒ [1,2,1,2]", 0},
		{"#operator_+", FunctionKind, "left: iterable, right: iterable", func(c *Context, a []any) (any, error) { return chained(c, a[0], a[1]) },
			"Puts two collections one after the other. Two lists give a list, two sets their union, everything else a lazy collection.", "[1] + [2] ⇒ [1,2]", 0},
		{"#operator_in", FunctionKind, "value: any?, collection: iterable", func(c *Context, a []any) (any, error) { return hasItem(c, a[1], a[0]) },
			"Tells whether the value is in the collection.", "2 in [1, 2] ⇒ true", 0},
		{"contains", MethodKind, "collection: iterable, value: any?", func(c *Context, a []any) (any, error) { return hasItem(c, a[0], a[1]) },
			"Tells whether the value is in the collection.", "[1, 2].contains(2) ⇒ true", 0},
		{"delete", MethodKind, "collection: iterable, position: int, count: int = 1", func(c *Context, a []any) (any, error) {
			return edited(c, a[0], clampInt(a[1]), clampInt(a[2]), nil)
		}, "Leaves out count items from a place on; a negative count means all that follow.", "[1, 2, 3, 4].delete(1, 2) ⇒ [1,4]", 0},
		{"flatten", MethodKind, "collection: iterable", flatten, "Gives the items of the collection and of all collections within it; maps and strings stay whole.", "[1, [2, [3]]].flatten() ⇒ [1,2,3]", 0},
		{"insert", MethodKind, "collection: unordered, position: int, value: any?", func(c *Context, a []any) (any, error) {
			return inserted(c, a[0], clampInt(a[1]), []any{a[2]}, false)
		}, "Puts a value before the item at a place, or at the end of a shorter collection.", "range(2).insert(1, x) ⇒ [0,\"x\",1]", 0},
		{"insert", MethodKind, "collection: sequence, position: int, value: any?", insertIntoList, "Puts a value before the item at a place of a list; negative places count from the end.", "[1, 2].insert(-1, x) ⇒ [1,\"x\",2]", 0},
		{"insertMany", MethodKind, "collection: iterable, position: int, values: iterable", func(c *Context, a []any) (any, error) {
			return inserted(c, a[0], clampInt(a[1]), a[2], true)
		}, "Puts the items of another collection before the item at a place, at the start if the place is negative, at the end if there is none.", "[1, 2].insertMany(1, [x, y]) ⇒ [1,\"x\",\"y\",2]", 0},
		{"isList", FunctionKind, "arg: any?", isOf(isSequence), "Tells whether the value is a list; lazy collections are none.", "isList([]) ⇒ true", 0},
		{"len", ExtensionKind, "sequence: sequence", lengthOf, "Gives the number of items.", "[1, 2].len() ⇒ 2", 0},
		{"list", FunctionKind, "*args: any?", listFunction, "Makes a list of the arguments; the items of lazy ones are taken in one by one.", "list(1, range(2)) ⇒ [1,0,1]", 0},
		{"replace", MethodKind, "collection: iterable, position: int, value: any?, count: int = 1", func(c *Context, a []any) (any, error) {
			return edited(c, a[0], clampInt(a[1]), clampInt(a[3]), []any{a[2]})
		}, "Puts one value in place of count items from a place on; a negative count means all that follow.", "[1, 2, 3].replace(1, x) ⇒ [1,\"x\",3]", 0},
		{"replaceMany", MethodKind, "collection: iterable, position: int, values: iterable, count: int = 1", func(c *Context, a []any) (any, error) {
			return edited(c, a[0], clampInt(a[1]), clampInt(a[3]), a[2])
		}, "Puts the items of another collection in place of count items from a place on.", "[1, 2, 3].replaceMany(1, [x, y]) ⇒ [1,\"x\",\"y\",3]", 0},
		{"toList", MethodKind, "collection: iterable", func(c *Context, a []any) (any, error) { return tupleOf(c, a[0]) },
			"Makes a list of any collection.", "range(3).toList() ⇒ [0,1,2]", 0},
	}
}

// asIndex turns booleans, which count as integers, into integers.
func asIndex(v any) any {
	if b, ok := v.(bool); ok {
		n, _ := smallInt(b)
		return n
	}
	return v
}

func lengthOf(_ *Context, a []any) (any, error) {
	n, _ := sizeIfSized(a[0])
	return int64(n), nil
}

// tupleOf is a list of the items of a collection, in a slice of its own unless the collection is a list.
func tupleOf(c *Context, coll any) (any, error) {
	items, err := listOf(c, coll)
	if items == nil {
		items = []any{}
	}
	return items, err
}

func repeatList(c *Context, list, times any) (any, error) {
	if _, ok := list.(intRange); ok {
		return nil, errorf(TypeError, "unsupported operand type(s) for *: 'range' and 'int'")
	}
	c.run.opens(list)
	items, _ := seqItems(list)
	n, err := machineInt(times)
	if err != nil {
		return nil, err
	}
	if n <= 0 || len(items) == 0 {
		items, n = nil, 0
	}
	const most = 1 << 26
	if n > most || int64(len(items)) > most/max(n, 1) {
		return nil, errQuota
	}
	size := len(items) * int(n)
	if err := c.run.chargeItems(size); err != nil {
		return nil, err
	}
	if err := c.run.spend(size); err != nil {
		return nil, err
	}
	out := make([]any, 0, size)
	for range n {
		out = append(out, items...)
	}
	if _, ok := list.(*List); ok {
		return &List{Items: out}, nil
	}
	return out, nil
}

// isTuple reports whether v is an immutable list.
func isTuple(v any) bool {
	_, list := v.(*List)
	_, numbers := v.(intRange)
	return isSequence(v) && !list && !numbers
}

// chained puts collections one after the other.
func chained(c *Context, left, right any) (any, error) {
	if isTuple(left) && isTuple(right) {
		a, _ := seqItems(left)
		b, _ := seqItems(right)
		if err := c.run.spend(len(a) + len(b)); err != nil {
			return nil, err
		}
		out := make([]any, 0, len(a)+len(b))
		return append(append(out, a...), b...), c.run.chargeItems(len(a) + len(b))
	}
	if a, ok := left.(*Set); ok {
		if b, ok := right.(*Set); ok {
			return union(c.run, a, b)
		}
	}
	return concatenated(c, []any{left, right}), nil
}

// concatenated walks lazily through collections one after the other.
func concatenated(c *Context, colls []any) *Iterator {
	var src source
	return lazily(c, func() (any, bool, error) {
		for {
			if src == nil {
				if len(colls) == 0 {
					return nil, false, nil
				}
				var err error
				if src, err = iterate(c, colls[0]); err != nil {
					return nil, false, err
				}
				colls = colls[1:]
			}
			x, ok, err := src.next()
			if ok || err != nil {
				return x, ok, err
			}
			src = nil
		}
	})
}

// hasItem looks a value up in a set by its hash, and in other collections item by item.
func hasItem(c *Context, coll, x any) (any, error) {
	switch s := coll.(type) {
	case *Set:
		i, err := s.keys.find(c.run, x)
		return i >= 0, err
	case *View:
		if s.kind == keysView {
			_, ok, err := c.run.dictGet(s.dict, x)
			return ok, err
		}
		if s.kind == itemsView {
			return s.hasEntry(c, x)
		}
	}
	return containsValue(c, coll, x)
}

// hasEntry looks up an entry, which should be a list of key and value. Views of maps that cannot be keys do not
// insist on that.
func (v *View) hasEntry(c *Context, x any) (bool, error) {
	entry, ok := x.([]any)
	if !isHashableDict(v.dict) {
		if !ok || len(entry) != 2 {
			return false, nil
		}
	} else if s, isText := x.(string); isText {
		if err := c.run.spend(len(s)); err != nil {
			return false, err
		}
		entry = charItems(s)
	} else if !ok {
		var err error
		if entry, err = listOf(c, x); err != nil {
			return false, errorf(TypeError, "cannot unpack non-iterable %s object", typeName(x))
		}
	}
	if len(entry) != 2 {
		return false, errorf(ValueError, "an entry has a key and a value, not %d parts", len(entry))
	}
	value, ok, err := c.run.dictGet(v.dict, norm(entry[0]))
	return ok && err == nil && c.run.equal(value, norm(entry[1])), err
}

func (v *View) hasEntries(c *Context, parts []any) (bool, error) {
	for _, x := range parts {
		if err := c.run.step(); err != nil {
			return false, err
		}
		if found, err := v.hasEntry(c, norm(x)); !found || err != nil {
			return false, err
		}
	}
	return true, nil
}

// edited leaves out count items from position on, all if count is negative, and yields the items of others in
// their place.
func edited(c *Context, coll any, position, count int64, others any) (any, error) {
	src, err := iterate(c, coll)
	if err != nil {
		return nil, err
	}
	i := int64(-1)
	var inner source
	started := false
	return lazily(c, func() (any, bool, error) {
		for {
			if inner != nil {
				x, ok, err := inner.next()
				if ok || err != nil {
					return x, ok, err
				}
				inner = nil
			}
			x, ok, err := src.next()
			if !ok || err != nil {
				return nil, false, err
			}
			i++
			if i < position || count >= 0 && i >= saturatingAdd(position, count) {
				return x, true, nil
			}
			if !started && others != nil {
				if inner, err = iterate(c, others); err != nil {
					return nil, false, err
				}
			}
			started = true
		}
	}), nil
}

func flatten(c *Context, a []any) (any, error) {
	first, err := iterate(c, a[0])
	if err != nil {
		return nil, err
	}
	stack := []source{first}
	return lazily(c, func() (any, bool, error) {
		for len(stack) > 0 {
			x, ok, err := stack[len(stack)-1].next()
			if err != nil {
				return nil, false, err
			}
			if !ok {
				stack = stack[:len(stack)-1]
				continue
			}
			if !isCollection(x) {
				return x, true, nil
			}
			if len(stack) > maxValueDepth {
				return nil, false, errTooDeep
			}
			inner, err := iterate(c, x)
			if err != nil {
				return nil, false, err
			}
			stack = append(stack, inner)
		}
		return nil, false, nil
	}), nil
}

// plainConfig treats maps as values and not as collections.
var plainConfig = &config{}

// isCollection reports whether v can be walked through; strings and maps do not count.
func isCollection(v any) bool { return isIterable(plainConfig, v) }

// inserter yields the items of a collection, and further values before the one at a place.
type inserter struct {
	c        *Context
	src      source
	values   any
	position int64
	at       int64  // the place of the next item
	inner    source // the values, while they are yielded
	held     []any  // the item that comes after the values
	done     bool   // the values have been begun
}

// inserted yields the values before the item at position, or at the end if that is where position is or further
// on. If first is set, a negative position means the start.
func inserted(c *Context, coll any, position int64, values any, first bool) (any, error) {
	src, err := iterate(c, coll)
	if err != nil {
		return nil, err
	}
	in := &inserter{c: c, src: src, values: values, position: position}
	if first && position < 0 { // before the first item is even asked for
		in.done = true
		if in.inner, err = iterate(c, values); err != nil {
			return nil, err
		}
	}
	return lazily(c, in.step), nil
}

func (in *inserter) step() (any, bool, error) {
	for {
		if in.inner != nil {
			x, ok, err := in.inner.next()
			if ok || err != nil {
				return x, ok, err
			}
			in.inner = nil
		}
		if len(in.held) > 0 {
			x := in.held[0]
			in.held = nil
			return x, true, nil
		}
		x, ok, err := in.src.next()
		if err != nil {
			return nil, false, err
		}
		here := !in.done && (ok && in.at == in.position || !ok && in.position >= in.at)
		if !here {
			in.at++
			return x, ok, nil
		}
		in.done = true
		if ok {
			in.at++
			in.held = []any{x}
		}
		if in.inner, err = iterate(in.c, in.values); err != nil {
			return nil, false, err
		}
	}
}

func insertIntoList(c *Context, a []any) (any, error) {
	c.run.opens(a[0])
	items, _ := seqItems(a[0])
	n := int64(len(items))
	at, err := machineInt(a[1])
	if err != nil {
		return nil, err
	}
	if at < 0 {
		at = max(at+n, 0)
	}
	at = min(at, n)
	if err := c.run.spend(len(items) + 1); err != nil {
		return nil, err
	}
	out := make([]any, 0, n+1)
	out = append(append(append(out, items[:at]...), a[2]), items[at:]...)
	return &List{Items: out}, nil
}

// expanded yields the arguments, and the items of lazy ones in their place.
func expanded(c *Context, args []any) ([]any, error) {
	var out []any
	w := &walk{}
	var add func(x any) error
	add = func(x any) error {
		if !isIterator(x) {
			out = append(out, x)
			return nil
		}
		w.enter(0)
		defer w.leave()
		return each(c, x, add)
	}
	for _, x := range args {
		if err := add(x); err != nil {
			return nil, err
		}
	}
	if limit := c.run.cfg.limitIterators; limit >= 0 && len(out) > limit {
		return nil, tooLarge(limit)
	}
	if out == nil {
		out = []any{}
	}
	return out, c.run.chargeItems(len(out))
}

func listFunction(c *Context, a []any) (any, error) {
	items, err := expanded(c, a)
	if err != nil {
		return nil, err
	}
	return c.madeList(items), nil
}
