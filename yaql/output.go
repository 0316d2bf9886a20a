package yaql

// finalize turns the value of an expression into its result.
func finalize(c *Context, v any) (any, error) {
	cfg := c.run.cfg
	if cfg.finalizer != nil {
		return cfg.finalizer(v)
	}
	if !cfg.convertOutput {
		return v, nil
	}
	switch v.(type) {
	case nil, string, bool, int64, float64:
		return v, nil
	case noValueType:
		return nil, errorf(NoMatchingFunctionException, "No function \"#finalize\" matches supplied arguments")
	}
	out, err := (&output{c: c, cfg: cfg}).convert(v)
	if err != nil {
		return nil, err
	}
	return out, c.run.chargeResult(out)
}

// output converts values of the language to plain Go values.
type output struct {
	c   *Context
	cfg *config
	walk
}

// checkSize counts a container of n values.
func (o *output) checkSize(n int) error {
	if o.cfg.limitIterators >= 0 && n > o.cfg.limitIterators {
		return tooLarge(o.cfg.limitIterators)
	}
	return o.c.run.spend(n)
}

func (o *output) convert(v any) (any, error) {
	switch x := v.(type) {
	case nil, string, bool, int64, float64:
		return v, nil
	case []any:
		items, err := o.items(x)
		if err == nil && !o.cfg.tuplesToLists {
			return Tuple(items), nil
		}
		return items, err
	case map[string]any:
		return o.hostMap(x)
	case *Dict:
		return o.dict(x)
	case *List:
		return o.items(x.Items)
	case *Set:
		return o.set(x.Items())
	case *View:
		if x.kind == valuesView {
			return o.items(x.Items())
		}
		return o.set(x.Items())
	case *Iterator, *ordering, *memo:
		return o.lazy(v)
	}
	return o.hostValue(v)
}

// lazy converts the items of a collection as they come, so that of several errors the first item's is reported.
func (o *output) lazy(v any) (any, error) {
	l, err := limited(o.c, v)
	if err != nil {
		return nil, err
	}
	if it, ok := l.(*Iterator); ok {
		if _, ok := it.src.(bulk); ok {
			items, err := listOf(o.c, l)
			if err != nil {
				return nil, err
			}
			return o.items(items)
		}
	}
	out := []any{}
	err = each(o.c, l, func(x any) error {
		o.enter(1)
		defer o.leave()
		if len(out)&1023 == 1023 {
			if err := o.c.run.chargeItems(len(out)); err != nil {
				return err
			}
		}
		y, err := o.convert(x)
		out = append(out, y)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// hostValue leaves values of the host as they are, and those that are converted lazily too.
func (o *output) hostValue(v any) (any, error) {
	switch x := v.(type) {
	case hostSeq, hostMap, hostStruct, stringSeq:
		return unwrapHost(x), nil
	case Mapping:
		return o.dict(o.c.run.toDict(x, 0))
	case Sequence:
		items, _ := seqItems(x)
		return o.items(items)
	}
	return v, nil
}

func unwrapHost(v any) any {
	switch x := v.(type) {
	case hostSeq:
		return x.v.Interface()
	case hostMap:
		return x.v.Interface()
	case hostStruct:
		return x.v.Interface()
	case stringSeq:
		return []string(x)
	}
	return v
}

// items converts the items of a list. The slice is copied only if an item changes.
func (o *output) items(items []any) ([]any, error) {
	o.enter(len(items))
	defer o.leave()
	if err := o.checkSize(len(items)); err != nil {
		return nil, err
	}
	if items == nil {
		return []any{}, nil
	}
	shared := true
	for i, x := range items {
		switch x.(type) {
		case nil, string, bool, int64, float64:
			continue
		case map[string]any:
			if o.cfg.limitIterators < 0 {
				continue
			}
		}
		y, err := o.convert(x)
		if err != nil {
			return nil, err
		}
		if shared && !sameValue(x, y) {
			items = append([]any(nil), items...)
			shared = false
		}
		items[i] = y
	}
	return items, nil
}

// sameValue reports whether conversion left a value as it was.
func sameValue(x, y any) bool {
	switch a := x.(type) {
	case []any:
		b, ok := y.([]any)
		return ok && len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
	case map[string]any:
		_, ok := y.(map[string]any)
		return ok
	case *Dict:
		b, ok := y.(*Dict)
		return ok && a == b
	case *List, *Set, *View, *Iterator, *ordering, *memo, Mapping, Sequence:
		return false
	}
	return true
}

// hostMap leaves a map of the host as it is, for it holds what the host put there; only limits are checked.
func (o *output) hostMap(m map[string]any) (any, error) {
	if o.cfg.limitIterators < 0 {
		return m, nil
	}
	o.enter(len(m))
	defer o.leave()
	if err := o.checkSize(len(m)); err != nil {
		return nil, err
	}
	for _, x := range m {
		switch x.(type) {
		case map[string]any, []any:
			if _, err := o.convert(x); err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}

func (o *output) dict(d *Dict) (any, error) {
	if d.plain > 0 && o.leavesPlain() {
		return d, nil
	}
	o.enter(len(d.values))
	defer o.leave()
	if err := o.checkSize(len(d.values)); err != nil {
		return nil, err
	}
	if !o.cfg.ordered && d.keys.onlyTexts() {
		m := make(map[string]any, len(d.values))
		for i, v := range d.values {
			x, err := o.convert(v)
			if err != nil {
				return nil, err
			}
			m[d.keys.list[i].(string)] = x
		}
		return m, nil
	}
	return o.orderedDict(d)
}

// orderedDict converts keys and values. The map is copied only if one of them changes, or if it is of the kind that
// cannot be a key, which results are not.
func (o *output) orderedDict(d *Dict) (any, error) {
	var out *Dict
	if d.mutable || !o.cfg.ordered {
		out = NewDict(len(d.values))
	}
	for i, v := range d.values {
		key := d.keys.list[i]
		k, err := o.key(key)
		if err != nil {
			return nil, err
		}
		x, err := o.convert(v)
		if err != nil {
			return nil, err
		}
		if out == nil && sameValue(key, k) && sameValue(v, x) {
			continue
		}
		if out == nil {
			out = d.head(i)
		}
		if err := o.c.run.set(out, k, x); err != nil {
			return nil, err
		}
	}
	if out == nil {
		return d, nil
	}
	return out, nil
}

// leavesPlain tells whether plain maps need no conversion.
func (o *output) leavesPlain() bool {
	return o.cfg.ordered && o.cfg.tuplesToLists && o.cfg.limitIterators < 0
}

// key converts a key of a map or an item of a set. Conversion makes lists, maps and sets mutable, and mutable
// values cannot be keys.
func (o *output) key(k any) (any, error) {
	x, err := o.convert(k)
	if err != nil {
		return nil, err
	}
	if name := mutableName(x); name != "" {
		return nil, errorf(TypeError, "unhashable type: '%s'", name)
	}
	return x, nil
}

// mutableName names the reference's type of a converted value that cannot be hashed, or is empty.
func mutableName(v any) string {
	switch x := v.(type) {
	case []any:
		return "list"
	case map[string]any, *Dict:
		return "dict"
	case *Set:
		return "set"
	case Tuple:
		for _, e := range x {
			if name := mutableName(e); name != "" {
				return name
			}
		}
	}
	return ""
}

func (o *output) set(items []any) (any, error) {
	if o.cfg.setsToLists {
		return o.items(items)
	}
	if err := o.checkSize(len(items)); err != nil {
		return nil, err
	}
	out := &Set{}
	for _, x := range items {
		k, err := o.key(x)
		if err != nil {
			return nil, err
		}
		if err := o.c.run.add(out, k); err != nil {
			return nil, err
		}
	}
	return out, nil
}
