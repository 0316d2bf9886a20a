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

// row is an item with those of its keys that have been evaluated so far.
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

// fewItems is how many items are sorted by insertion.
const fewItems = 64

func (o *ordering) sort(items []any) ([]any, error) {
	o.c.run.owe(len(items))
	rows := make([]row, len(items))
	keys := make([]any, len(items)*len(o.keys))
	order := make([]*row, len(items))
	for i, x := range items {
		at := i * len(o.keys)
		rows[i] = row{norm(x), keys[at : at : at+len(o.keys)]}
		order[i] = &rows[i]
	}
	sorting := insertionSort
	if len(order) >= fewItems {
		sorting = mergeSort
	}
	err := sorting(order, func(a, b *row) (int, error) {
		n, err := o.compare(a, b)
		if err == nil {
			err = o.c.run.step()
		}
		return n, err
	})
	if err != nil {
		return nil, err
	}
	out := make([]any, len(order))
	for i, r := range order {
		out[i] = r.item
	}
	return out, nil
}

type rowOrder func(a, b *row) (int, error)

// insertionSort asks for the same comparisons in the same order as Python does for few items: which one fails first
// decides about the error, and what is not comparable to everything about the result.
func insertionSort(rows []*row, compare rowOrder) error {
	sorted, err := leadingRun(rows, compare)
	for ; err == nil && sorted < len(rows); sorted++ {
		pivot := rows[sorted]
		low, high := 0, sorted
		for low < high {
			middle := (low + high) / 2
			n, err := compare(pivot, rows[middle])
			if err != nil {
				return err
			}
			if n < 0 {
				high = middle
			} else {
				low = middle + 1
			}
		}
		copy(rows[low+1:sorted+1], rows[low:sorted])
		rows[low] = pivot
	}
	return err
}

// leadingRun returns how many rows at the start are in order, after turning round those that strictly descend.
func leadingRun(rows []*row, compare rowOrder) (int, error) {
	descending := false
	for i := 1; i < len(rows); i++ {
		n, err := compare(rows[i], rows[i-1])
		if err != nil {
			return 0, err
		}
		if i == 1 {
			descending = n < 0
		} else if descending != (n < 0) {
			return turned(rows[:i], descending), nil
		}
	}
	return turned(rows, descending), nil
}

func turned(rows []*row, descending bool) int {
	if descending {
		slices.Reverse(rows)
	}
	return len(rows)
}

func mergeSort(rows []*row, compare rowOrder) error {
	var failure error
	slices.SortStableFunc(rows, func(a, b *row) int {
		if failure != nil {
			return 0
		}
		var n int
		n, failure = compare(a, b)
		return n
	})
	return failure
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
		if r, ok := o.c.run.compareOrdered(x, y); ok {
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

// key returns the i-th key of a row. Keys are evaluated when they decide, which is in their order.
func (o *ordering) key(r *row, i int) (any, error) {
	if i < len(r.keys) {
		return r.keys[i], nil
	}
	k, err := o.keys[i].selector.call1(r.item)
	if err != nil {
		return nil, err
	}
	r.keys = append(r.keys, k)
	return k, nil
}
