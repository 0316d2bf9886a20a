package query

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tidwall/btree"
)

// tracker keeps the answer of one query current: it knows the rows that the
// filter keeps, in order, and looks only at those of objects that changed. With
// a limit the first rows are shown, and the others are known, so a row that
// leaves makes room for the next one.
type tracker[R any] struct {
	t       *Table[R]
	r       Request
	order   ordering[R]
	test    Test[R]
	columns []column[R]
	objects map[string][]*tracked[R]
	rows    *btree.BTreeG[*tracked[R]]
	// edge is the last row that is shown; nil while all are.
	edge *tracked[R]
}

// tracked is a row that the filter keeps; data are its cells, if it is shown.
type tracked[R any] struct {
	keyed[R]
	shown bool
	data  string
}

// trackable reports whether a query need not be run anew to see what is
// different. It must be when nodes are asked, when rows are looked up by names,
// for values that depend on other rows, and for items whose rows are not known to belong to objects.
func (t *Table[R]) trackable(r Request, p parsed[R]) bool {
	names, byName := requestedNames(r.Filter, t.NameField)
	ordered := len(p.order.keys) > 0 || t.Compare != nil || r.Limit == 0
	return p.need == 0 && !slices.ContainsFunc(p.used, t.mutual) && t.RowsOf != nil && r.After == "" && !(byName && len(names) > 0) && ordered
}

// less is the order of the rows.
func (f *tracker[R]) less(a, b *tracked[R]) bool {
	if len(f.order.keys) > 0 {
		return f.order.compare(a.keyed, b.keyed) < 0
	}
	c := 0
	if f.t.Compare != nil {
		c = f.t.Compare(a.row, b.row)
	}
	return cmp.Or(c, CompareIdentities(a.id, b.id)) < 0
}

// restart takes all rows in anew and tells what is different.
func (f *tracker[R]) restart(src *Source) ([]Event, error) {
	v := NewView(src, f.r.Fields)
	considered, err := f.t.candidates(v, f.r.Filter, &Explanation{})
	if err != nil {
		return nil, err
	}
	kept, err := f.t.keep(v, considered, f.test)
	if err != nil {
		return nil, err
	}
	rows := btree.NewBTreeGOptions(f.less, btree.Options{NoLocks: true})
	objects := make(map[string][]*tracked[R], len(kept))
	for i, row := range kept {
		if i%blockSize == 0 {
			if err := v.Err(); err != nil {
				return nil, err
			}
		}
		r := f.track(v, f.t.restored(v, row))
		rows.Set(r)
		key := f.t.objectOf(row)
		objects[key] = append(objects[key], r)
	}
	diff := newDiff(v, f)
	for r := range f.shown() {
		diff.left[r.id] = r
	}
	f.rows, f.objects, f.edge = rows, objects, nil
	if f.r.Limit > 0 && rows.Len() > f.r.Limit {
		f.edge, _ = rows.GetAt(f.r.Limit - 1)
	}
	rows.Scan(func(r *tracked[R]) bool {
		diff.show(r)
		return r != f.edge
	})
	return diff.events(), nil
}

func (f *tracker[R]) track(v *View, row R) *tracked[R] {
	return &tracked[R]{keyed: keyed[R]{row: row, id: f.t.Identity(row), values: f.order.values(v, row)}}
}

// shown yields the rows that are shown, in order.
func (f *tracker[R]) shown() func(yield func(*tracked[R]) bool) {
	return func(yield func(*tracked[R]) bool) {
		if f.rows == nil {
			return
		}
		f.rows.Scan(func(r *tracked[R]) bool { return yield(r) && r != f.edge })
	}
}

// all returns the rows that are shown as entries.
func (f *tracker[R]) all() []Event {
	out := []Event{}
	for r := range f.shown() {
		out = append(out, Event{"enter", r.id, []byte(r.data)})
	}
	return out
}

// step looks at the rows of what changed and tells what is different. An error
// leaves everything as it was.
func (f *tracker[R]) step(src *Source, d *Delta) ([]Event, error) {
	a := f.t.Affected(d)
	if a.All {
		return f.restart(src)
	}
	if a.none() {
		return nil, nil
	}
	v := NewView(src, f.r.Fields)
	now := make(map[string][]*tracked[R], len(a.keys))
	for _, key := range slices.Sorted(maps.Keys(a.keys)) { // those that belong together after one another
		if err := v.Err(); err != nil {
			return nil, err
		}
		rows, err := f.rowsOf(v, d, key)
		if err != nil {
			return nil, err
		}
		now[key] = rows
	}
	diff := newDiff(v, f)
	var fresh []*tracked[R]
	for key, rows := range now {
		for _, r := range f.objects[key] {
			f.rows.Delete(r)
			if r.shown {
				diff.left[r.id] = r
			}
		}
		delete(f.objects, key)
		if len(rows) > 0 {
			f.objects[key] = rows
		}
		fresh = append(fresh, rows...)
	}
	for _, r := range fresh { // after all that went: a name may go from one object to another
		f.rows.Set(r)
	}
	f.moveEdge(diff, fresh)
	return diff.events(), nil
}

// rowsOf returns the rows of an object that the filter keeps now.
func (f *tracker[R]) rowsOf(v *View, d *Delta, key string) ([]*tracked[R], error) {
	var out []*tracked[R]
	for _, row := range f.t.RowsOf(v, d, key) {
		if f.test != nil {
			verdict, err := f.test(v, row)
			if err != nil {
				return nil, err
			}
			if verdict == No {
				continue
			}
		}
		out = append(out, f.track(v, row))
	}
	return out, v.Err()
}

// moveEdge shows what is new among the first rows, and finds those that came in
// or went out because of others: all of them lie between the old edge and the
// new one.
func (f *tracker[R]) moveEdge(diff *diff[R], fresh []*tracked[R]) {
	old := f.edge
	f.edge = nil
	if f.r.Limit > 0 && f.rows.Len() > f.r.Limit {
		f.edge, _ = f.rows.GetAt(f.r.Limit - 1)
	}
	for _, r := range fresh {
		if f.edge == nil || !f.less(f.edge, r) {
			diff.show(r)
		}
	}
	if f.edge != nil {
		f.rows.Ascend(f.edge, func(r *tracked[R]) bool {
			if r == f.edge {
				return true
			}
			if old != nil && f.less(old, r) {
				return false
			}
			if r.shown {
				diff.left[r.id] = r
				r.shown, r.data = false, ""
			}
			return true
		})
	}
	if old != nil {
		f.rows.Ascend(old, func(r *tracked[R]) bool {
			if f.edge != nil && f.less(f.edge, r) {
				return false
			}
			if !r.shown {
				diff.show(r)
			}
			return true
		})
	}
}

// diff gathers the differences between two answers.
type diff[R any] struct {
	v *View
	f *tracker[R]
	// left are the rows that were shown and perhaps are no more, by identity.
	left map[string]*tracked[R]
	// news are the rows that entered or changed.
	news []*tracked[R]
	told map[string]string // what each of them is
	row  []Cell
}

func newDiff[R any](v *View, f *tracker[R]) *diff[R] {
	return &diff[R]{v: v, f: f, left: map[string]*tracked[R]{}, told: map[string]string{}, row: make([]Cell, len(f.columns))}
}

// show takes a row in that is to be shown.
func (d *diff[R]) show(r *tracked[R]) {
	for i := range d.f.columns {
		d.row[i] = d.f.columns[i].get(d.v, r.row)
	}
	r.shown, r.data = true, string(appendList(nil, d.row, appendCell))
	before, known := d.left[r.id]
	delete(d.left, r.id)
	switch {
	case !known:
		d.told[r.id] = "enter"
	case before.data != r.data:
		d.told[r.id] = "change"
	default:
		return
	}
	d.news = append(d.news, r)
}

// events returns the differences: rows in the order of the answer, then those
// that left, in the order of their identities.
func (d *diff[R]) events() []Event {
	slices.SortFunc(d.news, func(a, b *tracked[R]) int {
		switch {
		case d.f.less(a, b):
			return -1
		case d.f.less(b, a):
			return 1
		}
		return 0
	})
	var out []Event
	for _, r := range d.news {
		out = append(out, Event{d.told[r.id], r.id, []byte(r.data)})
	}
	first := len(out)
	for id := range d.left {
		out = append(out, Event{Type: "leave", ID: id})
	}
	slices.SortFunc(out[first:], func(a, b Event) int { return CompareIdentities(a.ID, b.ID) })
	return out
}
