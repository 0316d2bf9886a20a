package sqlite

import (
	"cmp"
	"slices"

	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/groupcommit"
)

// overlay yields the rows of a listing with the recent writes among them, each where it
// belongs.
type overlay struct {
	opts  store.Options
	yield func(store.Object, error) bool
	// hides are the objects of which the rows are not to be seen.
	hides map[string]bool
	// writes are those that belong into the listing, in its order.
	writes []*groupcommit.Write
	given  int
}

func newOverlay(r *recent, kind store.Kind, opts store.Options, yield func(store.Object, error) bool) *overlay {
	o := &overlay{opts: opts, yield: yield, hides: map[string]bool{}}
	for _, w := range r.last(kind) {
		o.hides[w.Key.ID] = true
		if !w.Deleted && inList(w, opts) {
			o.writes = append(o.writes, w)
		}
	}
	slices.SortFunc(o.writes, func(a, b *groupcommit.Write) int { return o.compare(a.At, a.Key.ID, b.At, b.Key.ID) })
	return o
}

// inList tells whether the options leave a write in, as the query of listQuery does with rows.
func inList(w *groupcommit.Write, opts store.Options) bool {
	if opts.After != "" {
		if order := store.CompareIDs(w.Key.ID, opts.After); order == 0 || (order < 0) != opts.Desc {
			return false
		}
	}
	return (!opts.ByAt || w.At != 0) && (opts.Since == 0 || w.At >= opts.Since) && (opts.Until == 0 || w.At < opts.Until)
}

// compare orders two objects as the listing does.
func (o *overlay) compare(atA int64, idA string, atB int64, idB string) int {
	order := store.CompareIDs(idA, idB)
	if byAt := cmp.Compare(atA, atB); o.opts.ByAt && byAt != 0 {
		order = byAt
	}
	if o.opts.Desc {
		return -order
	}
	return order
}

// row yields a row of the table, and before it the writes that come before it.
func (o *overlay) row(row store.Object, err error) bool {
	if err != nil {
		return o.yield(row, err)
	}
	if o.hides[row.ID] {
		return true
	}
	for len(o.writes) > 0 && o.compare(o.writes[0].At, o.writes[0].Key.ID, row.At, row.ID) < 0 {
		if !o.next() {
			return false
		}
	}
	return o.give(row, nil)
}

// rest yields the writes that come behind all rows.
func (o *overlay) rest() {
	for len(o.writes) > 0 && o.next() {
		continue
	}
}

// next yields the next write; false if the consumer has had enough.
func (o *overlay) next() bool {
	w := o.writes[0]
	o.writes = o.writes[1:]
	return o.give(recentObject(w))
}

// give yields an object, up to the limit.
func (o *overlay) give(object store.Object, err error) bool {
	o.given++
	return o.yield(object, err) && o.given != o.opts.Limit
}
