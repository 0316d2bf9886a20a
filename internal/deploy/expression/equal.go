package expression

import (
	"cmp"
	"slices"

	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/yaql"
)

func sortBlocks(blocks []block) {
	slices.SortFunc(blocks, func(x, y block) int { return cmp.Or(cmp.Compare(x.i, y.i), cmp.Compare(x.j, y.j)) })
}

// Equal compares results: lists by their items, whichever kind of list they are, maps by contents, sets as sets,
// numbers by value, and the rest as the language does. Undefined is equal to itself alone.
func Equal(a, b any) bool {
	if x, ok := listItems(a); ok {
		y, ok := listItems(b)
		return ok && slices.EqualFunc(x, y, Equal)
	}
	switch x := a.(type) {
	case yaql.Tuple:
		y, ok := b.(yaql.Tuple)
		return ok && slices.EqualFunc(x, y, Equal)
	case *state.View:
		if y, ok := b.(*state.View); ok {
			return equalViews(x, y)
		}
	}
	if x, ok := a.(yaql.Mapping); ok {
		y, ok := b.(yaql.Mapping)
		return ok && equalMaps(x, y)
	}
	return yaql.Equal(a, b)
}

func equalMaps(x, y yaql.Mapping) bool {
	if x == y {
		return true
	}
	if x.Len() != y.Len() {
		return false
	}
	same := true
	x.Range(func(k, v any) bool {
		other, ok := y.Get(k)
		same = ok && Equal(v, other)
		return same
	})
	return same
}

// equalViews compares values only where their classes differ, which they do for equal values of different types.
func equalViews(x, y *state.View) bool {
	if x.Len() != y.Len() {
		return false
	}
	same := true
	x.Differing(y, func(_ string, mine, theirs any) { same = same && Equal(mine, theirs) })
	return same
}
