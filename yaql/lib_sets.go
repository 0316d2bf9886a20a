package yaql

func setDefinitions() []definition {
	const two = "left: set, right: set"
	return []definition{
		{"#operator_-", FunctionKind, two, onSets(difference), "Gives the items of the left set that are not in the right one.", "set(1, 2) - set(2) ⇒ [1]", setsOnly},
		{"#operator_<", FunctionKind, two, subset(false, true), "Tells whether the left set is a proper subset of the right one.", "set(1) < set(1, 2) ⇒ true", setsOnly},
		{"#operator_<=", FunctionKind, two, subset(false, false), "Tells whether the left set is a subset of the right one.", "set(1) <= set(1) ⇒ true", setsOnly},
		{"#operator_>", FunctionKind, two, subset(true, true), "Tells whether the right set is a proper subset of the left one.", "set(1, 2) > set(1) ⇒ true", setsOnly},
		{"#operator_>=", FunctionKind, two, subset(true, false), "Tells whether the right set is a subset of the left one.", "set(1) >= set(2) ⇒ false", setsOnly},
		{"add", MethodKind, "set: set, *values: any?", func(_ *Context, a []any) (any, error) {
			s, err := realSet(a[0], "union")
			if err != nil {
				return nil, err
			}
			return addedTo(s, a[1:])
		}, "Gives the set with further items.", "set(1).add(2, 3) ⇒ [1,2,3]", setsOnly},
		{"difference", MethodKind, two, onSets(difference), "Gives the items that are not in the other set.", "set(1, 2).difference(set(2)) ⇒ [1]", setsOnly},
		{"intersect", MethodKind, two, onSets(intersection), "Gives the items that are in both sets.", "set(1, 2).intersect(set(2, 3)) ⇒ [2]", setsOnly},
		{"isSet", FunctionKind, "arg: any?", isOf(func(v any) bool { _, ok := setItems(v); return ok }), "Tells whether the value is a set; keys() and items() are.", "isSet(set()) ⇒ true", setsOnly},
		{"len", ExtensionKind, "set: set", lengthOf, "Gives the number of items.", "set(1, 1).len() ⇒ 1", setsOnly},
		{"remove", MethodKind, "set: set, *values: any?", func(_ *Context, a []any) (any, error) {
			s, err := realSet(a[0], "difference")
			if err != nil {
				return nil, err
			}
			drop, err := NewSet(a[1:]...)
			if err != nil {
				return nil, err
			}
			return difference(s, drop)
		}, "Gives the set without some items.", "set(1, 2).remove(1) ⇒ [2]", setsOnly},
		{"set", FunctionKind, "*args: any?", func(c *Context, a []any) (any, error) {
			items, err := expanded(c, a)
			if err != nil {
				return nil, err
			}
			return setOf(c, items)
		}, "Makes a set of the arguments; the items of lazy ones are taken in one by one.", "set(1, 2, 1) ⇒ [1,2]", setsOnly},
		{"symmetricDifference", MethodKind, two, onSets(func(x, y *Set) (*Set, error) {
			left, err := difference(x, y)
			if err != nil {
				return nil, err
			}
			right, err := difference(y, x)
			if err != nil {
				return nil, err
			}
			return union(left, right)
		}), "Gives the items that are in one of the sets but not in both.", "set(1, 2).symmetricDifference(set(2, 3)) ⇒ [1,3]", setsOnly},
		{"toSet", MethodKind, "collection: iterable", func(c *Context, a []any) (any, error) { return setOf(c, a[0]) },
			"Makes a set of a collection.", "[1, 1, 2].toSet() ⇒ [1,2]", setsOnly},
		{"union", MethodKind, two, onSets(union), "Gives the items of both sets.", "set(1).union(set(2)) ⇒ [1,2]", setsOnly},
	}
}

func setOf(c *Context, coll any) (any, error) {
	s := &Set{}
	if err := each(c, coll, s.add); err != nil {
		return nil, err
	}
	return s, c.run.charge(s)
}

// realSet is v as a set. Views pass as sets where types are checked, but they lack a set's methods.
func realSet(v any, method string) (*Set, error) {
	s, ok := v.(*Set)
	if !ok {
		return nil, errorf(AttributeError, "'%s' object has no attribute '%s'", typeName(v), method)
	}
	return s, nil
}

// onSets is an operation on a set and another one, which may be a view.
func onSets(f func(x, y *Set) (*Set, error)) impl {
	return func(c *Context, a []any) (any, error) {
		x, err := realSet(a[0], "union")
		if err != nil {
			return nil, err
		}
		items, _ := setItems(a[1])
		y, ok := a[1].(*Set)
		if !ok {
			if y, err = NewSet(items...); err != nil {
				return nil, err
			}
		}
		if err := c.run.spend(x.Len() + y.Len()); err != nil {
			return nil, err
		}
		return f(x, y)
	}
}

func addedTo(s *Set, items []any) (*Set, error) {
	out := &Set{keys: *s.keys.clone(len(items))}
	for _, x := range items {
		if err := out.add(x); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func union(x, y *Set) (*Set, error) { return addedTo(x, y.Items()) }

func difference(x, y *Set) (*Set, error) { return selected(x, func(v any) bool { return !y.Has(v) }) }

// intersection takes the items from the smaller set, from the right one if they have equal sizes.
func intersection(x, y *Set) (*Set, error) {
	if y.Len() > x.Len() {
		x, y = y, x
	}
	return selected(y, x.Has)
}

func selected(s *Set, keep func(v any) bool) (*Set, error) {
	out := &Set{}
	for _, v := range s.keys.list {
		if keep(v) {
			if err := out.add(v); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// subset compares two sets; turned swaps them.
func subset(turned, proper bool) impl {
	return func(c *Context, a []any) (any, error) {
		small, large := a[0], a[1]
		if turned {
			small, large = large, small
		}
		parts, _ := setItems(small)
		all, _ := setItems(large)
		if len(parts) > len(all) || proper && len(parts) == len(all) {
			return false, nil
		}
		if view, ok := large.(*View); ok && view.kind == itemsView {
			return view.hasEntries(c, parts)
		}
		return containsAll(all, parts), nil
	}
}
