package yaql

// folding are the functions that walk through a collection to give one value.
func folding() []definition {
	const fold = "collection: iterable, selector: lambda, seed: any? = none"
	const predicate = "collection: iterable, predicate: lambda"
	const initial = "collection: iterable, initial: any? = none"
	return []definition{
		{"accumulate", MethodKind, fold, accumulate, "Gives the running results of a fold.", "[1, 2, 3].accumulate($1 + $2) ⇒ [1,3,6]", 0},
		{"aggregate", MethodKind, fold, aggregate, "Folds the items: $1 is the result so far and $2 the next item.", "[1, 2, 3].aggregate($1 * 10 + $2) ⇒ 123", eager},
		{"all", ExtensionKind, "collection: iterable, predicate: lambda = null", quantifier(false), "Tells whether the predicate, or the item itself, is true for all items.", "[1, 2].all($ > 0) ⇒ true", eager},
		{"any", ExtensionKind, "collection: iterable, predicate: lambda = null", quantifier(true), "Tells whether there is an item for which the predicate is true, or any item.", "[1, 2].any($ > 1) ⇒ true", eager},
		{"count", MethodKind, "collection: iterable", count, "Counts the items.", "[1, 2].where($ > 1).count() ⇒ 1", 0},
		{"first", MethodKind, "collection: iterable, default: any? = none", first, "Gives the first item, or the default if there is none.", "[3, 4].first() ⇒ 3", 0},
		{"indexOf", MethodKind, "collection: iterable, item: any?", indexOf(false), "Gives the place of the first item that is equal, or -1.", "[a, b].indexOf(b) ⇒ 1", 0},
		{"indexWhere", MethodKind, predicate, indexWhere(false), "Gives the place of the first item for which the predicate is true, or -1.", "[1, 2].indexWhere($ > 1) ⇒ 1", eager},
		{"isIterable", FunctionKind, "value: any?", func(c *Context, a []any) (any, error) { return isIterable(c.run.cfg, a[0]) && !isMapping(a[0]), nil },
			"Tells whether the value is a collection; strings and maps are none.", "isIterable([]) ⇒ true", 0},
		{"last", MethodKind, "collection: iterable, default: any? = none", last, "Gives the last item, or the default if there is none.", "[3, 4].last() ⇒ 4", 0},
		{"lastIndexOf", MethodKind, "collection: iterable, item: any?", indexOf(true), "Gives the place of the last item that is equal, or -1.", "[a, a].lastIndexOf(a) ⇒ 1", 0},
		{"lastIndexWhere", MethodKind, predicate, indexWhere(true), "Gives the place of the last item for which the predicate is true, or -1.", "[2, 2].lastIndexWhere($ > 1) ⇒ 1", eager},
		{"len", ExtensionKind, "collection: iterator", count, "Counts what is left of a lazy collection, which is used up by that.", "range(3).len() ⇒ 3", 0},
		{"max", MethodKind, initial, extreme("max", greaterOf), "Gives the greatest item.", "[1, 3, 2].max() ⇒ 3", 0},
		{"min", MethodKind, initial, extreme("min", smallerOf), "Gives the smallest item.", "[2, 1, 3].min() ⇒ 1", 0},
		{"reduce", MethodKind, fold, aggregate, "Folds the items: $1 is the result so far and $2 the next item.", "[1, 2, 3].reduce($1 + $2, 10) ⇒ 16", eager},
		{"single", MethodKind, "collection: iterable", single, "Gives the only item, and fails if there are none or more.", "[5].single() ⇒ 5", 0},
		{"sum", MethodKind, initial, sum, "Adds the items by the operator +.", "[1, 2, 3].sum() ⇒ 6", 0},
	}
}

// foldItems folds a collection, with the first item as the seed if there is none.
func foldItems(c *Context, coll, seed any, name string, f func(total, x any) (any, error)) (any, error) {
	total, started := seed, seed != NoValue
	err := each(c, coll, func(x any) error {
		if !started {
			total, started = x, true
			return nil
		}
		var err error
		total, err = f(total, x)
		return err
	})
	if err != nil {
		return nil, err
	}
	if !started {
		return nil, emptyFold(name)
	}
	return total, nil
}

func emptyFold(name string) *Error {
	e := errorf(TypeError, "%s() of empty iterable with no initial value", name)
	e.Hint = "give an initial value"
	return e
}

func aggregate(c *Context, a []any) (any, error) {
	return foldItems(c, a[0], a[2], "reduce", a[1].(*Lambda).call2)
}

func sum(c *Context, a []any) (any, error) {
	return foldItems(c, a[0], a[1], "reduce", func(total, x any) (any, error) {
		if t, ok := total.(int64); ok && c.untouched {
			if y, ok := x.(int64); ok {
				return addInt(t, y), nil
			}
		}
		return add(c, total, x)
	})
}

// add calls the operator +.
func add(c *Context, a, b any) (any, error) {
	if c.untouched {
		return c.arithmetic(nil, '+', a, b)
	}
	return c.callValues(nil, "#operator_+", a, b)
}

// extreme folds with max or min, which a context may replace.
func extreme(name string, pick func(c *Context, a, b any) (any, error)) impl {
	return func(c *Context, a []any) (any, error) {
		return foldItems(c, a[0], a[1], "reduce", func(total, x any) (any, error) {
			if c.untouched {
				return pick(c, total, x)
			}
			return c.callValues(nil, name, total, x)
		})
	}
}

func accumulate(c *Context, a []any) (any, error) {
	src, err := iterate(c, a[0])
	if err != nil {
		return nil, err
	}
	f := a[1].(*Lambda)
	total, started := a[2], false
	return lazily(c, func() (any, bool, error) {
		if !started && total != NoValue {
			started = true
			return total, true, nil
		}
		x, ok, err := src.next()
		if err != nil {
			return nil, false, err
		}
		if !started {
			started = true
			if !ok {
				return nil, false, errorf(TypeError, "accumulate() of empty sequence with no initial value")
			}
			total = x
			return total, true, nil
		}
		if !ok {
			return nil, false, nil
		}
		total, err = f.call2(total, x)
		return total, err == nil, err
	}), nil
}

// quantifier is any(), or all().
func quantifier(exists bool) impl {
	return func(c *Context, a []any) (any, error) {
		f, _ := a[1].(*Lambda)
		result := !exists
		err := each(c, a[0], func(x any) error {
			t := exists || truth(x)
			if f != nil {
				var err error
				if t, err = f.test1(x); err != nil {
					return err
				}
			}
			if t == exists {
				result = exists
				return errStop
			}
			return nil
		})
		return result, err
	}
}

func count(c *Context, a []any) (any, error) {
	if n, ok := sizeIfSized(a[0]); ok {
		return int64(n), c.run.spend(n)
	}
	if it, ok := a[0].(*Iterator); ok && c.run.cfg.limitIterators < 0 {
		if _, ok := it.src.(bulk); ok {
			items, err := listOf(c, it)
			return int64(len(items)), err
		}
	}
	n := int64(0)
	err := each(c, a[0], func(any) error { n++; return nil })
	return n, err
}

func first(c *Context, a []any) (any, error) {
	src, err := iterate(c, a[0])
	if err != nil {
		return nil, err
	}
	x, ok, err := src.next()
	if err != nil {
		return nil, err
	}
	return itemOr(x, ok, a[1])
}

// itemOr gives an item or, if there is none, the default.
func itemOr(x any, ok bool, def any) (any, error) {
	if ok {
		return x, nil
	}
	if def == NoValue {
		e := errorf(StopIteration, "the collection has no such item")
		e.Hint = "give a default"
		return nil, e
	}
	return def, nil
}

func last(c *Context, a []any) (any, error) {
	if isSequence(a[0]) {
		n, _ := sizeIfSized(a[0])
		if n == 0 {
			return itemOr(nil, false, a[1])
		}
		return c.indexed(nil, a[0], int64(n-1))
	}
	var x any
	found := false
	err := each(c, a[0], func(y any) error {
		x, found = y, true
		return nil
	})
	if err != nil {
		return nil, err
	}
	return itemOr(x, found, a[1])
}

func single(c *Context, a []any) (any, error) {
	src, err := iterate(c, a[0])
	if err != nil {
		return nil, err
	}
	x, ok, err := src.next()
	if err != nil || !ok {
		return firstError(err)
	}
	if _, more, err := src.next(); err != nil || more {
		return firstError(err)
	}
	return x, nil
}

// firstError is err, or the error of a collection that has not exactly one item.
func firstError(err error) (any, error) {
	if err == nil {
		err = errorf(StopIteration, "the collection has not exactly one item")
	}
	return nil, err
}

// place finds the first or the last place where test is true.
func place(c *Context, coll any, lastOne bool, test func(x any) (bool, error)) (any, error) {
	at, i := int64(-1), int64(-1)
	err := each(c, coll, func(x any) error {
		i++
		t, err := test(x)
		if err != nil || !t {
			return err
		}
		at = i
		if lastOne {
			return nil
		}
		return errStop
	})
	return at, err
}

func indexOf(lastOne bool) impl {
	return func(c *Context, a []any) (any, error) {
		return place(c, a[0], lastOne, func(x any) (bool, error) { return c.run.equal(x, a[1]), nil })
	}
}

func indexWhere(lastOne bool) impl {
	return func(c *Context, a []any) (any, error) { return place(c, a[0], lastOne, a[1].(*Lambda).test1) }
}
