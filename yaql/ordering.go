package yaql

import "slices"

// ordering is a collection that is sorted when it is first walked through.
type ordering struct {
	c    *Context
	coll any
	keys []orderKey
	done bool
	out  []any
}

type orderKey struct {
	selector   *Lambda
	descending bool
}

func orderBy(descending bool) impl {
	return func(c *Context, a []any) (any, error) {
		return &ordering{c: c, coll: a[0], keys: []orderKey{{a[1].(*Lambda), descending}}}, nil
	}
}

func thenBy(descending bool) impl {
	return func(_ *Context, a []any) (any, error) {
		o := a[0].(*ordering)
		o.keys = append(o.keys, orderKey{a[1].(*Lambda), descending})
		return o, nil
	}
}

// row is an item with its keys, of which those after the first are evaluated when they decide.
type row struct {
	item any
	keys []any
}

func (o *ordering) sorted() ([]any, error) {
	if o.done {
		return o.out, nil
	}
	items, err := listOf(o.c, o.coll)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(items)
	if len(items) > 1 {
		if out, err = o.sort(items); err != nil {
			return nil, err
		}
	}
	o.out, o.done = out, true
	return out, nil
}

func (o *ordering) sort(items []any) ([]any, error) {
	rows := make([]row, len(items))
	keys := make([]any, 0, len(items)*len(o.keys))
	for i, x := range items {
		rows[i].item = norm(x)
		k, err := o.keys[0].selector.call1(rows[i].item)
		if err != nil {
			return nil, err
		}
		at := len(keys)
		keys = append(keys, k)
		keys = keys[:at+len(o.keys)]
		rows[i].keys = keys[at : at+1 : at+len(o.keys)]
	}
	var failure error
	slices.SortStableFunc(rows, func(a, b row) int {
		if failure != nil {
			return 0
		}
		n, err := o.compare(&a, &b)
		if err == nil {
			err = o.c.run.step()
		}
		failure = err
		return n
	})
	if failure != nil {
		return nil, failure
	}
	out := make([]any, len(rows))
	for i := range rows {
		out[i] = rows[i].item
	}
	return out, nil
}

// compare orders two rows by the keys. The operators < and > decide, in this order.
func (o *ordering) compare(a, b *row) (int, error) {
	for i := range o.keys {
		x, err := o.key(a, i)
		if err != nil {
			return 0, err
		}
		y, err := o.key(b, i)
		if err != nil {
			return 0, err
		}
		n, err := o.compareKeys(x, y)
		if err != nil {
			return 0, err
		}
		if n == 0 {
			continue
		}
		if o.keys[i].descending {
			n = -n
		}
		return n, nil
	}
	return 0, nil
}

func (o *ordering) compareKeys(x, y any) (int, error) {
	if o.c.untouched {
		if r, ok := compareOrdered(x, y); ok {
			if r == unordered {
				return 0, nil
			}
			return int(r), nil
		}
	}
	lt, err := compareValues(o.c, "<", x, y)
	if err != nil || lt {
		return -1, err
	}
	gt, err := compareValues(o.c, ">", x, y)
	if err != nil || !gt {
		return 0, err
	}
	return 1, nil
}

// key returns the i-th key of a row. Rows share the room for their keys, so that copies see them too.
func (o *ordering) key(r *row, i int) (any, error) {
	if i == 0 {
		return r.keys[0], nil
	}
	room := r.keys[:cap(r.keys)]
	if k, ok := room[i].(keyOf); ok {
		return k.value, nil
	}
	k, err := o.keys[i].selector.call1(r.item)
	if err != nil {
		return nil, err
	}
	room[i] = keyOf{k}
	return k, nil
}

// keyOf marks a key that has been evaluated.
type keyOf struct{ value any }
