package lock

import (
	"iter"

	"github.com/tidwall/btree"
)

// Owners is a set of owners, in order. It never changes, and to make it of the
// holders of a lock costs the same however many they are: nearly every opcode
// shares one lock. The zero value is the empty set.
type Owners struct {
	tree *owners
}

// owners is the set of a lock, which changes.
type owners = btree.Map[Owner, struct{}]

// degree is how wide the trees are: each State of a lock has the next change copy
// a node of each level.
const degree = 8

func newOwners() *owners { return btree.NewMap[Owner, struct{}](degree) }

// OwnersOf returns the set of these owners.
func OwnersOf(list ...Owner) Owners {
	s := newOwners()
	for _, o := range list {
		s.Set(o, struct{}{})
	}
	return Owners{s}
}

// Len is how many there are.
func (o Owners) Len() int {
	if o.tree == nil {
		return 0
	}
	return o.tree.Len()
}

// All yields them in order.
func (o Owners) All() iter.Seq[Owner] {
	return func(yield func(Owner) bool) {
		if o.tree != nil {
			o.tree.Scan(func(owner Owner, _ struct{}) bool { return yield(owner) })
		}
	}
}
