package yaql

func queriesModule() module {
	return module{"queries", append(append(append(selecting(), folding()...), grouping()...), generating()...)}
}

// selecting are the functions that pick and map items.
func selecting() []definition {
	const predicate = "collection: iterable, predicate: lambda"
	return []definition{
		{"#operator_.", FunctionKind, "collection: iterable, attribute: keyword", func(c *Context, a []any) (any, error) { return c.attribute(nil, a[0], a[1].(string)) },
			"Gives the same member of each item, lazily.", "[{a => 1}, {a => 2}].a ⇒ [1,2]", 0},
		{"append", ExtensionKind, "collection: iterable, *args: any?", func(c *Context, a []any) (any, error) {
			return concatenated(c, []any{a[0], a[1:]}), nil
		}, "Puts values after the items.", "[1].append(2, 3) ⇒ [1,2,3]", 0},
		{"concat", ExtensionKind, "*collections: iterable", func(c *Context, a []any) (any, error) { return concatenated(c, a), nil },
			"Puts collections one after the other.", "[1].concat([2], [3]) ⇒ [1,2,3]", 0},
		{"cycle", MethodKind, "collection: iterable", cycle, "Repeats the items without end.", "[1, 2].cycle().take(3) ⇒ [1,2,1]", 0},
		{"defaultIfEmpty", MethodKind, "collection: iterable, default: iterable", defaultIfEmpty, "Gives the other collection if this one has no items.", "[].defaultIfEmpty([0]) ⇒ [0]", 0},
		{"distinct", ExtensionKind, "collection: iterable, keySelector: lambda = null", distinct, "Leaves out items that are equal to an earlier one, or whose keys are.", "[1, 2, 1].distinct() ⇒ [1,2]", 0},
		{"enumerate", ExtensionKind, "collection: iterable, start: int? = 0", enumerate, "Gives [number, item] for each item.", "[a, b].enumerate(1) ⇒ [[1,\"a\"],[2,\"b\"]]", 0},
		{"filter", MethodKind, predicate, where, "Keeps the items for which the predicate is true.", "[1, 2, 3].filter($ > 1) ⇒ [2,3]", 0},
		{"limit", MethodKind, "collection: iterable, count: int", take, "Keeps the first items.", "[1, 2, 3].limit(2) ⇒ [1,2]", 0},
		{"map", MethodKind, "collection: iterable, selector: lambda", selectItems, "Gives the value of the selector for each item.", "[1, 2].map($ * 2) ⇒ [2,4]", 0},
		{"memorize", MethodKind, "collection: iterable", func(c *Context, a []any) (any, error) { return memorized(c, a[0]), nil },
			"Keeps the items of a lazy collection, so that it can be walked through again.", "let(range(3).memorize()) -> $.sum() + $.sum() ⇒ 6", 0},
		{"reverse", MethodKind, "collection: iterable", reverse, "Gives the items from the last to the first.", "[1, 2].reverse() ⇒ [2,1]", 0},
		{"select", MethodKind, "collection: iterable, selector: lambda", selectItems, "Gives the value of the selector for each item.", "[1, 2].select($ * 2) ⇒ [2,4]", 0},
		{"selectMany", MethodKind, "collection: iterable, selector: lambda", selectMany, "Like select, but the items of collections take the place of the collections.", "[1, 2].selectMany([$, $]) ⇒ [1,1,2,2]", 0},
		{"skip", MethodKind, "collection: iterable, count: int", skip, "Leaves out the first items.", "[1, 2, 3].skip(1) ⇒ [2,3]", 0},
		{"skipWhile", MethodKind, predicate, skipWhile, "Leaves out the first items as long as the predicate is true.", "[1, 5, 2].skipWhile($ < 3) ⇒ [5,2]", 0},
		{"slice", MethodKind, "collection: iterable, length: int", slice, "Cuts the collection into lists of that length.", "range(5).slice(2) ⇒ [[0,1],[2,3],[4]]", 0},
		{"sliceWhere", MethodKind, predicate, sliceWhere, "Cuts the collection into lists of neighbours for which the predicate gives equal values.", "[1, 1, 2].sliceWhere($) ⇒ [[1,1],[2]]", 0},
		{"splitAt", MethodKind, "collection: iterable, index: int", splitAt, "Cuts the collection in two.", "[1, 2, 3].splitAt(1) ⇒ [[1],[2,3]]", 0},
		{"splitWhere", MethodKind, predicate, splitWhere, "Cuts the collection at the items for which the predicate is true, and drops these.", "[1, 0, 2].splitWhere($ = 0) ⇒ [[1],[2]]", 0},
		{"take", MethodKind, "collection: iterable, count: int", take, "Keeps the first items.", "[1, 2, 3].take(2) ⇒ [1,2]", 0},
		{"takeWhile", MethodKind, predicate, takeWhile, "Keeps the first items as long as the predicate is true.", "[1, 5, 2].takeWhile($ < 3) ⇒ [1]", 0},
		{"where", MethodKind, predicate, where, "Keeps the items for which the predicate is true.", "[1, 2, 3].where($ > 1) ⇒ [2,3]", 0},
		{"zip", MethodKind, "*collections: iterable", func(c *Context, a []any) (any, error) { return zip(c, a, nil, false) },
			"Gives lists of the first items of all collections, the second ones, and so on, until one ends.", "[1, 2].zip([a, b]) ⇒ [[1,\"a\"],[2,\"b\"]]", 0},
		{"zipLongest", MethodKind, "*collections: iterable, **kwargs: any?", func(c *Context, a []any) (any, error) {
			keywords, _ := a[len(a)-1].([]named)
			var fill any
			for _, k := range keywords {
				if k.name == "default" {
					fill = k.value
				}
			}
			return zip(c, a[:len(a)-1], fill, true)
		}, "Like zip, but until all end; the keyword default stands in for missing items.", "[1].zipLongest([a, b], default => 0) ⇒ [[1,\"a\"],[0,\"b\"]]", 0},
	}
}

// whereSource keeps the items for which a predicate is true.
type whereSource struct {
	src  source
	test *Lambda
}

func where(c *Context, a []any) (any, error) {
	src, err := iterate(c, a[0])
	return &Iterator{src: &whereSource{src, a[1].(*Lambda)}, run: c.run}, err
}

func (s *whereSource) next() (any, bool, error) {
	for {
		x, ok, err := s.src.next()
		if err != nil || !ok {
			return nil, false, err
		}
		t, err := s.test.test1(x)
		if err != nil {
			return nil, false, err
		}
		if t {
			return x, true, nil
		}
	}
}

// drain yields what is left of a list in one loop.
func (s *whereSource) drain() ([]any, error) {
	src, ok := s.src.(*sliceSource)
	if !ok || s.test.code.retains {
		return drainSlowly(s)
	}
	items := src.items[src.at:]
	src.at = len(src.items)
	return filterList(items, s.test.code, s.test.bind(nil))
}

// filterList keeps the items for which the predicate is true. The frame is the context in which each is $.
func filterList(items []any, predicate *code, frame *Context) ([]any, error) {
	test, run := predicate.tester(), frame.run
	var out []any
	for _, x := range items {
		if err := run.step(); err != nil {
			return nil, err
		}
		x = norm(x)
		frame.setItem(x)
		t, err := test(frame)
		if err != nil {
			return nil, err
		}
		if t {
			if out == nil {
				out = make([]any, 0, min(len(items), 8))
			}
			out = append(out, x)
		}
	}
	return out, nil
}

func drainSlowly(s source) ([]any, error) {
	var out []any
	for {
		x, ok, err := s.next()
		if err != nil || !ok {
			return out, err
		}
		out = append(out, x)
	}
}

// countList counts the items for which the predicate is true.
func countList(items []any, predicate *code, frame *Context) (int, error) {
	test, run := predicate.tester(), frame.run
	n := 0
	for _, x := range items {
		if err := run.step(); err != nil {
			return 0, err
		}
		frame.setItem(norm(x))
		t, err := test(frame)
		if err != nil {
			return 0, err
		}
		if t {
			n++
		}
	}
	return n, nil
}

// selectSource maps items.
type selectSource struct {
	src source
	f   *Lambda
}

func selectItems(c *Context, a []any) (any, error) {
	src, err := iterate(c, a[0])
	return &Iterator{src: &selectSource{src, a[1].(*Lambda)}, run: c.run}, err
}

func (s *selectSource) next() (any, bool, error) {
	x, ok, err := s.src.next()
	if err != nil || !ok {
		return nil, false, err
	}
	y, err := s.f.call1(x)
	return y, err == nil, err
}

// drain maps what is left of a list in one loop.
func (s *selectSource) drain() ([]any, error) {
	src, ok := s.src.(*sliceSource)
	if !ok || s.f.code.retains {
		return drainSlowly(s)
	}
	eval, frame := s.f.code.eval, s.f.bind(nil)
	items, run := src.items[src.at:], src.run
	src.at = len(src.items)
	out := make([]any, 0, len(items))
	for _, x := range items {
		if err := run.step(); err != nil {
			return nil, err
		}
		frame.setItem(norm(x))
		y, err := eval(frame)
		if err != nil {
			return nil, err
		}
		out = append(out, y)
	}
	return out, nil
}

func selectMany(c *Context, a []any) (any, error) {
	src, err := iterate(c, a[0])
	if err != nil {
		return nil, err
	}
	f := a[1].(*Lambda)
	var inner source
	return lazily(c, func() (any, bool, error) {
		for {
			if inner != nil {
				y, ok, err := inner.next()
				if ok || err != nil {
					return y, ok, err
				}
				inner = nil
			}
			x, ok, err := src.next()
			if err != nil || !ok {
				return nil, false, err
			}
			y, err := f.call1(x)
			if err != nil {
				return nil, false, err
			}
			if !isCollection(y) {
				return y, true, nil
			}
			if inner, err = iterate(c, y); err != nil {
				return nil, false, err
			}
		}
	}), nil
}

func cycle(c *Context, a []any) (any, error) {
	src, err := iterate(c, a[0])
	if err != nil {
		return nil, err
	}
	var seen []any
	at, ended := 0, false
	return lazily(c, func() (any, bool, error) {
		if !ended {
			x, ok, err := src.next()
			if err != nil {
				return nil, false, err
			}
			if ok {
				seen = append(seen, x)
				return x, true, c.run.chargeItems(len(seen))
			}
			ended = true
		}
		if len(seen) == 0 {
			return nil, false, nil
		}
		if err := c.run.step(); err != nil {
			return nil, false, err
		}
		x := seen[at%len(seen)]
		at++
		return x, true, nil
	}), nil
}

// memorized makes a lazy collection one that can be walked through again. Others are that already.
func memorized(c *Context, coll any) any {
	switch x := coll.(type) {
	case *Iterator:
		return &memo{src: x, run: c.run}
	case *ordering:
		return &memo{src: nextOf(c, x), run: c.run}
	case *View:
		if x.kind == valuesView {
			return &memo{src: nextOf(c, x), run: c.run}
		}
	}
	return coll
}

// nextOf starts a walk when the first item is asked for.
func nextOf(c *Context, coll any) source {
	var src source
	return nextFunc(func() (any, bool, error) {
		if src == nil {
			var err error
			if src, err = iterate(c, coll); err != nil {
				return nil, false, err
			}
		}
		return src.next()
	})
}

func defaultIfEmpty(c *Context, a []any) (any, error) {
	coll := memorized(c, a[0])
	if n, ok := sizeIfSized(coll); ok {
		if n == 0 {
			return a[1], nil
		}
		return coll, nil
	}
	src, err := iterate(c, coll)
	if err != nil {
		return nil, err
	}
	if _, ok, err := src.next(); err != nil || !ok {
		return a[1], err
	}
	return coll, nil
}

func distinct(c *Context, a []any) (any, error) {
	src, err := iterate(c, a[0])
	if err != nil {
		return nil, err
	}
	key, _ := a[1].(*Lambda)
	words, others := map[string]struct{}{}, map[any]struct{}{}
	return lazily(c, func() (any, bool, error) {
		for {
			x, ok, err := src.next()
			if err != nil || !ok {
				return nil, false, err
			}
			k, err := callItem(key, x)
			if err != nil {
				return nil, false, err
			}
			if s, ok := k.(string); ok {
				c.run.reads(len(s))
				if _, seen := words[s]; seen {
					continue
				}
				words[s] = struct{}{}
				return x, true, c.run.chargeSet(len(words))
			}
			h, err := c.run.hashKey(k)
			if err != nil {
				return nil, false, err
			}
			if _, seen := others[h]; seen {
				continue
			}
			others[h] = struct{}{}
			return x, true, c.run.chargeSet(len(others))
		}
	}), nil
}

func enumerate(c *Context, a []any) (any, error) {
	src, err := iterate(c, a[0])
	if err != nil {
		return nil, err
	}
	var i any
	if a[1] != nil {
		i = asIndex(a[1])
	}
	return lazily(c, func() (any, bool, error) {
		if i == nil {
			return nil, false, errorf(TypeError, "'NoneType' object cannot be interpreted as an integer")
		}
		x, ok, err := src.next()
		if err != nil || !ok {
			return nil, false, err
		}
		pair := &List{Items: []any{i, x}}
		i, err = c.run.arith('+', i, int64(1))
		return pair, true, err
	}), nil
}

// checkCount refuses counts that are negative or beyond what can be counted.
func checkCount(v any) (int64, error) {
	n := clampInt(v)
	if _, ok := smallInt(v); !ok || n < 0 {
		return 0, errorf(ValueError, "a count must be between 0 and 9223372036854775807")
	}
	return n, nil
}

func take(c *Context, a []any) (any, error) {
	n, err := checkCount(a[1])
	if err != nil {
		return nil, err
	}
	src, err := iterate(c, a[0])
	if err != nil {
		return nil, err
	}
	return lazily(c, func() (any, bool, error) {
		if n == 0 {
			return nil, false, nil
		}
		n--
		return src.next()
	}), nil
}

func skip(c *Context, a []any) (any, error) {
	n, err := checkCount(a[1])
	if err != nil {
		return nil, err
	}
	src, err := iterate(c, a[0])
	if err != nil {
		return nil, err
	}
	return lazily(c, func() (any, bool, error) {
		for ; n > 0; n-- {
			if _, ok, err := src.next(); err != nil || !ok {
				return nil, false, err
			}
		}
		return src.next()
	}), nil
}

func takeWhile(c *Context, a []any) (any, error) {
	src, err := iterate(c, a[0])
	if err != nil {
		return nil, err
	}
	f := a[1].(*Lambda)
	return lazily(c, func() (any, bool, error) {
		x, ok, err := src.next()
		if err != nil || !ok {
			return nil, false, err
		}
		t, err := f.test1(x)
		return x, t && err == nil, err
	}), nil
}

func skipWhile(c *Context, a []any) (any, error) {
	src, err := iterate(c, a[0])
	if err != nil {
		return nil, err
	}
	f := a[1].(*Lambda)
	skipping := true
	return lazily(c, func() (any, bool, error) {
		for {
			x, ok, err := src.next()
			if err != nil || !ok || !skipping {
				return x, ok, err
			}
			if skipping, err = f.test1(x); err != nil || !skipping {
				return x, err == nil, err
			}
		}
	}), nil
}

func reverse(c *Context, a []any) (any, error) {
	items, err := listOf(c, a[0])
	if err != nil {
		return nil, err
	}
	at := len(items)
	return lazily(c, func() (any, bool, error) {
		if at == 0 {
			return nil, false, nil
		}
		at--
		return norm(items[at]), true, c.run.step()
	}), nil
}

func zip(c *Context, colls []any, fill any, longest bool) (any, error) {
	sources := make([]source, len(colls))
	for i, coll := range colls {
		var err error
		if sources[i], err = iterate(c, coll); err != nil {
			return nil, err
		}
	}
	return lazily(c, func() (any, bool, error) {
		c.run.copies(len(sources))
		row := make([]any, len(sources))
		live := 0
		for i, src := range sources {
			row[i] = fill
			if src == nil {
				continue
			}
			x, ok, err := src.next()
			switch {
			case err != nil:
				return nil, false, err
			case ok:
				row[i] = x
				live++
			case !longest:
				return nil, false, nil
			default:
				sources[i] = nil
			}
		}
		return row, live > 0, nil
	}), nil
}
