package yaql

func slice(c *Context, a []any) (any, error) {
	n := clampInt(a[1])
	src, err := iterate(c, a[0])
	if err != nil {
		return nil, err
	}
	return lazily(c, func() (any, bool, error) {
		if _, ok := smallInt(a[1]); n < 0 || !ok {
			_, err := checkCount(a[1])
			return nil, false, err
		}
		var part []any
		for int64(len(part)) < n {
			x, ok, err := src.next()
			if err != nil {
				return nil, false, err
			}
			if !ok {
				break
			}
			part = append(part, x)
		}
		return checkedPart(c, part, len(part) > 0)
	}), nil
}

// checkedPart applies the iterator limit to a list that a function makes of some items.
func checkedPart(c *Context, part []any, ok bool) (any, bool, error) {
	if _, err := limited(c, part); err != nil {
		return nil, false, err
	}
	return c.madeList(part), ok, nil
}

// cut makes a lazy collection of parts of a list. The function cuts calls emit for each part.
func cut(c *Context, coll any, next func(items []any, from int) (part []any, to int, ok bool, err error)) *Iterator {
	var items []any
	at := -1
	return lazily(c, func() (any, bool, error) {
		if at < 0 {
			var err error
			if items, err = listOf(c, coll); err != nil {
				return nil, false, err
			}
			at = 0
		}
		part, to, ok, err := next(items, at)
		if err != nil || !ok {
			return nil, false, err
		}
		at = to
		return c.madeList(part), true, nil
	})
}

func splitWhere(c *Context, a []any) (any, error) {
	f := a[1].(*Lambda)
	return cut(c, a[0], func(items []any, from int) ([]any, int, bool, error) {
		for i := from; i < len(items); i++ {
			if err := c.run.step(); err != nil {
				return nil, 0, false, err
			}
			t, err := f.test1(norm(items[i]))
			if err != nil {
				return nil, 0, false, err
			}
			if t {
				return items[from:i:i], i + 1, true, nil
			}
		}
		return items[from:], len(items), from < len(items), nil
	}), nil
}

func sliceWhere(c *Context, a []any) (any, error) {
	f := a[1].(*Lambda)
	last := NoValue
	return cut(c, a[0], func(items []any, from int) ([]any, int, bool, error) {
		i := from
		if last != NoValue && from < len(items) {
			i++ // the value of the first item is known from the cut before it
		}
		for ; i < len(items); i++ {
			if err := c.run.step(); err != nil {
				return nil, 0, false, err
			}
			v, err := f.call1(norm(items[i]))
			if err != nil {
				return nil, 0, false, err
			}
			before := last
			last = v
			if before != NoValue && !c.run.equal(v, before) {
				return items[from:i:i], i, true, nil
			}
		}
		return items[from:], len(items), from < len(items), nil
	}), nil
}

func splitAt(c *Context, a []any) (any, error) {
	items, err := listOf(c, a[0])
	if err != nil {
		return nil, err
	}
	n := int64(len(items))
	at := clampInt(a[1])
	if at < 0 {
		at = max(at+n, 0)
	}
	at = min(at, n)
	return &List{Items: []any{c.madeList(items[:at:at]), c.madeList(items[at:])}}, nil
}
