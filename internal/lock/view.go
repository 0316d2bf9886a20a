package lock

import (
	"iter"

	"github.com/tidwall/btree"
)

// View is what locks look like at one moment: those that are held or waited
// for. It never changes; With makes the next one at the cost of what is
// different. The zero value is the view in which all locks are free.
type View struct {
	tree *btree.BTreeG[State]
}

func newViewTree() *btree.BTreeG[State] {
	return btree.NewBTreeGOptions(func(a, b State) bool { return a.Name.compare(b.Name) < 0 }, btree.Options{NoLocks: true})
}

// With returns the view after locks changed, as Table.Changed tells them. It
// must not be called on one view from several goroutines at a time.
func (v View) With(changed []State) View {
	if len(changed) == 0 {
		return v
	}
	next := newViewTree()
	if v.tree != nil {
		next = v.tree.Copy()
	}
	for _, s := range changed {
		if s.Free() {
			next.Delete(s)
			continue
		}
		next.Set(s)
	}
	return View{next}
}

// All yields the locks in the order in which they are taken.
func (v View) All() iter.Seq[State] {
	return func(yield func(State) bool) {
		if v.tree != nil {
			v.tree.Scan(yield)
		}
	}
}
