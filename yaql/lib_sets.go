package yaql

func setDefinitions() []definition {
	const two = "left: set, right: set"
	return []definition{
		{"#operator_-", FunctionKind, two, onSets(difference), "Gives the items of the left set that are not in the right one.", "set(1, 2) - set(2) ⇒ [1]", setsOnly},
		{"#operator_<", FunctionKind, two, subset(false, true), "Tells whether the left set is a proper subset of the right one.", "set(1) < set(1, 2) ⇒ true", setsOnly},
		{"#operator_<=", FunctionKind, two, subset(false, false), "Tells whether the left set is a subset of the right one.", "set(1) <= set(1) ⇒ true", setsOnly},
		{"#operator_>", FunctionKind, two, subset(true, true), "Tells whether the right set is a proper subset of the left one.", "set(1, 2) > set(1) ⇒ true", setsOnly},
		{"#operator_>=", FunctionKind, two, subset(true, false), "Tells whether the right set is a subset of the left one.", "set(1) >= set(2) ⇒ false", setsOnly},
		{"add", MethodKind, "set: set, *values: any?", func(c *Context, a []any) (any, error) {
			s, err := realSet(a[0], "union")
			if err != nil {
				return nil, err
			}
			return addedTo(c.run, s, a[1:])
		}, "Gives the set with further items.", "set(1).add(2, 3) ⇒ [1,2,3]", setsOnly},
		{"difference", MethodKind, two, onSets(difference), "Gives the items that are not in the other set.", "set(1, 2).difference(set(2)) ⇒ [1]", setsOnly},
		{"intersect", MethodKind, two, onSets(intersection), "Gives the items that are in both sets.", "set(1, 2).intersect(set(2, 3)) ⇒ [2]", setsOnly},
		{"isSet", FunctionKind, "arg: any?", isOf(isSet), "Tells whether the value is a set; keys() and items() are.", "isSet(set()) ⇒ true", setsOnly},
		{"len", ExtensionKind, "set: set", lengthOf, "Gives the number of items.", "set(1, 1).len() ⇒ 1", setsOnly},
		{"remove", MethodKind, "set: set, *values: any?", func(c *Context, a []any) (any, error) {
			s, err := realSet(a[0], "difference")
			if err != nil {
				return nil, err
			}
			drop, err := c.run.newSet(a[1:])
			if err != nil {
				return nil, err
			}
			return difference(c.run, s, drop)
		}, "Gives the set without some items.", "set(1, 2).remove(1) ⇒ [2]", setsOnly},
		{"set", FunctionKind, "*args: any?", func(c *Context, a []any) (any, error) {
			items, err := expanded(c, a)
			if err != nil {
				return nil, err
			}
			return setOf(c, items)
		}, "Makes a set of the arguments; the items of lazy ones are taken in one by one.", "set(1, 2, 1) ⇒ [1,2]", setsOnly},
		{"symmetricDifference", MethodKind, two, onSets(func(r *run, x, y *Set) (*Set, error) {
			left, err := difference(r, x, y)
			if err != nil {
				return nil, err
			}
			right, err := difference(r, y, x)
			if err != nil {
				return nil, err
			}
			return union(r, left, right)
		}), "Gives the items that are in one of the sets but not in both.", "set(1, 2).symmetricDifference(set(2, 3)) ⇒ [1,3]", setsOnly},
		{"toSet", MethodKind, "collection: iterable", func(c *Context, a []any) (any, error) { return setOf(c, a[0]) },
			"Makes a set of a collection.", "[1, 1, 2].toSet() ⇒ [1,2]", setsOnly},
		{"union", MethodKind, two, onSets(union), "Gives the items of both sets.", "set(1).union(set(2)) ⇒ [1,2]", setsOnly},
	}
}

func setOf(c *Context, coll any) (any, error) {
	s := &Set{}
	if err := each(c, coll, func(x any) error { return c.run.add(s, x) }); err != nil {
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
func onSets(f func(r *run, x, y *Set) (*Set, error)) impl {
	return func(c *Context, a []any) (any, error) {
		x, err := realSet(a[0], "union")
		if err != nil {
			return nil, err
		}
		y, ok := a[1].(*Set)
		if !ok {
			n, _ := sizeIfSized(a[1])
			c.run.owe(n)
			if y, err = c.run.newSet(setItems(a[1])); err != nil {
				return nil, err
			}
		}
		return f(c.run, x, y)
	}
}

func addedTo(r *run, s *Set, items []any) (*Set, error) {
	r.owe(s.Len() + len(items))
	out := &Set{keys: *s.keys.clone(len(items))}
	for _, x := range items {
		if err := r.add(out, x); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func union(r *run, x, y *Set) (*Set, error) { return addedTo(r, x, y.Items()) }

func difference(r *run, x, y *Set) (*Set, error) {
	return selected(r, x, func(v any) bool { return !r.has(y, v) })
}

// intersection takes the items from the smaller set, from the right one if they have equal sizes.
func intersection(r *run, x, y *Set) (*Set, error) {
	if y.Len() > x.Len() {
		x, y = y, x
	}
	return selected(r, y, func(v any) bool { return r.has(x, v) })
}

func selected(r *run, s *Set, keep func(v any) bool) (*Set, error) {
	r.owe(s.Len())
	out := &Set{}
	for _, v := range s.keys.list {
		if keep(v) {
			if err := r.add(out, v); err != nil {
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
		few, _ := sizeIfSized(small)
		many, _ := sizeIfSized(large)
		if few > many || proper && few == many {
			return false, nil
		}
		c.run.owe(few + many)
		parts, all := setItems(small), setItems(large)
		if view, ok := large.(*View); ok && view.kind == itemsView {
			return view.hasEntries(c, parts)
		}
		return c.run.containsAll(all, parts), nil
	}
}
