package query

import (
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/qlang"
)

// Path is a way to rows by an index.
type Path[R any] struct {
	// Index names the field that the index is by.
	Index string
	// Count is the number of rows, repeats included.
	Count int
	// Rows come in any order, unless sorted says that they come in that of the
	// item, each once. Of rows with one identity the first one counts.
	Rows   iter.Seq[R]
	Sorted bool
}

// route returns the shortest way by an index to all rows for which a filter may
// hold, nil if only a scan finds them. The rows that it leaves out do not
// matter: on each of them the filter does not hold, and none of the tests that
// it takes to see that fails.
func (t *Table[R]) route(v *View, filter qlang.Node) *Path[R] {
	if t.Narrow == nil {
		return nil
	}
	tests := t.leading(nil, filter)
	ways := t.Narrow(t, v, tests)
	for _, test := range tests {
		if or, ok := test.(*qlang.Or); ok {
			ways = append(ways, t.union(v, or)...)
		}
	}
	var best *Path[R]
	for i := range ways {
		if best == nil || ways[i].Count < best.Count {
			best = &ways[i]
		}
	}
	return best
}

// union returns the way to the rows of one of several tests, none if one of
// them has no way.
func (t *Table[R]) union(v *View, or *qlang.Or) []Path[R] {
	if len(or.Args) == 0 {
		return nil
	}
	var parts []Path[R]
	var names []string
	for _, arg := range or.Args {
		part := t.route(v, arg)
		if part == nil {
			return nil
		}
		parts = append(parts, *part)
		if !slices.Contains(names, part.Index) {
			names = append(names, part.Index)
		}
	}
	return []Path[R]{Join(strings.Join(names, ", "), parts...)}
}

// Join is the way along several ways, by an index of the given name.
func Join[R any](index string, parts ...Path[R]) Path[R] {
	parts = slices.DeleteFunc(parts, func(p Path[R]) bool { return p.Count == 0 })
	switch len(parts) {
	case 0:
		return Path[R]{Index: index, Rows: func(func(R) bool) {}, Sorted: true}
	case 1:
		parts[0].Index = index
		return parts[0]
	}
	all := Path[R]{Index: index, Rows: func(yield func(R) bool) {
		for _, p := range parts {
			for r := range p.Rows {
				if !yield(r) {
					return
				}
			}
		}
	}}
	for _, p := range parts {
		all.Count += p.Count
	}
	return all
}

// leading appends the tests that a filter joins by "and", up to the first one
// that may fail or be undecided: behind it nothing may be left out.
func (t *Table[R]) leading(tests []qlang.Node, filter qlang.Node) []qlang.Node {
	and, ok := filter.(*qlang.And)
	if !ok {
		return append(tests, filter)
	}
	for _, arg := range and.Args {
		tests = t.leading(tests, arg)
		if !t.harmless(arg) {
			break
		}
	}
	return tests
}

// harmless reports whether a filter is decided for every row without asking a
// node, and without an error.
func (t *Table[R]) harmless(filter qlang.Node) bool {
	name, leaf := qlang.Field(filter)
	if !leaf {
		return !slices.ContainsFunc(qlang.Children(filter), func(n qlang.Node) bool { return !t.harmless(n) })
	}
	f := t.field(name)
	if f.From == Live {
		return false
	}
	switch n := filter.(type) {
	case *qlang.Missing:
		return true
	case *qlang.True:
		return f.Kind == KindBool
	case *qlang.Match:
		return f.Kind == KindText && n.Regex.Linear()
	case *qlang.Contains:
		return name == "tags" && !n.Value.IsInt()
	case *qlang.Compare:
		if n.Value.IsInt() {
			return f.Mode == ModeSeconds || f.Mode != ModeHostname && slices.Contains(numbers, f.Kind)
		}
		return f.Kind == KindText
	}
	return false
}

// numbers are the kinds whose values can be compared with numbers.
var numbers = []Kind{KindNumber, KindUnit, KindFloat, KindTimestamp}

// fewRows are so many that their number does not matter.
const fewRows = 1000

// IndexLimit is the number of rows above which a scan is quicker than an index:
// it meets the rows in order, and each in its place.
func (t *Table[R]) IndexLimit(v *View) int {
	if t.Size == nil {
		return math.MaxInt
	}
	return max(fewRows, t.Size(v)/4)
}

// inOrder yields the rows of a path in the order of the item, each once.
func (t *Table[R]) inOrder(p *Path[R]) iter.Seq[R] {
	if p.Sorted {
		return p.Rows
	}
	rows := slices.Collect(p.Rows)
	slices.SortStableFunc(rows, t.Compare)
	return slices.Values(slices.CompactFunc(rows, func(a, b R) bool { return t.Compare(a, b) == 0 }))
}
