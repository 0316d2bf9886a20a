package query

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/qlang"
)

// path is a way to rows by an index.
type path[R any] struct {
	// index names the field that the index is by.
	index string
	// count is the number of rows, repeats included.
	count int
	// rows come in any order, unless sorted says that they come in that of the
	// item, each once. Of rows with one identity the first one counts.
	rows   iter.Seq[R]
	sorted bool
}

// route returns the shortest way by an index to all rows for which a filter may
// hold, nil if only a scan finds them. The rows that it leaves out do not
// matter: on each of them the filter does not hold, and none of the tests that
// it takes to see that fails.
func (t *table[R]) route(v *view, filter qlang.Node) *path[R] {
	if t.narrow == nil {
		return nil
	}
	tests := t.leading(nil, filter)
	ways := t.narrow(t, v, tests)
	for _, test := range tests {
		if or, ok := test.(*qlang.Or); ok {
			ways = append(ways, t.union(v, or)...)
		}
	}
	var best *path[R]
	for i := range ways {
		if best == nil || ways[i].count < best.count {
			best = &ways[i]
		}
	}
	return best
}

// union returns the way to the rows of one of several tests, none if one of
// them has no way.
func (t *table[R]) union(v *view, or *qlang.Or) []path[R] {
	if len(or.Args) == 0 {
		return nil
	}
	var parts []path[R]
	var names []string
	for _, arg := range or.Args {
		part := t.route(v, arg)
		if part == nil {
			return nil
		}
		parts = append(parts, *part)
		if !slices.Contains(names, part.index) {
			names = append(names, part.index)
		}
	}
	return []path[R]{joined(strings.Join(names, ", "), parts...)}
}

// joined is the way along several ways, by an index of the given name.
func joined[R any](index string, parts ...path[R]) path[R] {
	parts = slices.DeleteFunc(parts, func(p path[R]) bool { return p.count == 0 })
	switch len(parts) {
	case 0:
		return path[R]{index: index, rows: none[R], sorted: true}
	case 1:
		parts[0].index = index
		return parts[0]
	}
	all := path[R]{index: index, rows: func(yield func(R) bool) {
		for _, p := range parts {
			for r := range p.rows {
				if !yield(r) {
					return
				}
			}
		}
	}}
	for _, p := range parts {
		all.count += p.count
	}
	return all
}

// leading appends the tests that a filter joins by "and", up to the first one
// that may fail or be undecided: behind it nothing may be left out.
func (t *table[R]) leading(tests []qlang.Node, filter qlang.Node) []qlang.Node {
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
func (t *table[R]) harmless(filter qlang.Node) bool {
	name, leaf := qlang.Field(filter)
	if !leaf {
		return !slices.ContainsFunc(qlang.Children(filter), func(n qlang.Node) bool { return !t.harmless(n) })
	}
	f := t.field(name)
	if f.from == Live {
		return false
	}
	switch n := filter.(type) {
	case *qlang.True:
		return f.Kind == KindBool
	case *qlang.Match:
		return f.Kind == KindText && n.Regex.Linear()
	case *qlang.Contains:
		return name == "tags" && !n.Value.IsInt()
	case *qlang.Compare:
		if n.Value.IsInt() {
			return f.mode == seconds || f.mode != hostname && slices.Contains(numbers, f.Kind)
		}
		return f.Kind == KindText
	}
	return false
}

// numbers are the kinds whose values can be compared with numbers.
var numbers = []Kind{KindNumber, KindUnit, KindFloat, KindTimestamp}

// fewRows are so many that their number does not matter.
const fewRows = 1000

// indexLimit is the number of rows above which a scan is quicker than an index:
// it meets the rows in order, and each in its place.
func (t *table[R]) indexLimit(v *view) int {
	if t.size == nil {
		return math.MaxInt
	}
	return max(fewRows, t.size(v)/4)
}

// inOrder yields the rows of a path in the order of the item, each once.
func (t *table[R]) inOrder(p *path[R]) iter.Seq[R] {
	if p.sorted {
		return p.rows
	}
	rows := slices.Collect(p.rows)
	slices.SortStableFunc(rows, t.compare)
	return slices.Values(slices.CompactFunc(rows, func(a, b R) bool { return t.compare(a, b) == 0 }))
}

// compareObjects is the order of inventory objects.
func compareObjects[R cluster.Object](a, b R) int {
	return cmp.Or(cluster.CompareNames(a.Label(), b.Label()), strings.Compare(a.Identity(), b.Identity()))
}

// only reports whether a filter tests the given fields and nothing else.
func only(filter qlang.Node, fields ...string) bool {
	tested := qlang.Fields(filter)
	return len(tested) > 0 && !slices.ContainsFunc(tested, func(name string) bool { return !slices.Contains(fields, name) })
}

// textTest returns the text that a filter compares a field with; ok is false if
// it does something else.
func textTest(filter qlang.Node, field string) (text string, ok bool) {
	c, isCompare := filter.(*qlang.Compare)
	if !isCompare || c.Op != qlang.Eq || c.Field != field || c.Value.IsInt() {
		return "", false
	}
	return c.Value.Text, true
}

// tagPaths are the ways to the objects with a tag.
func tagPaths[R any](v *view, kind cluster.Kind, tests []qlang.Node, get func(uuid string) R) []path[R] {
	var out []path[R]
	for _, test := range tests {
		if n, ok := test.(*qlang.Contains); ok && n.Field == "tags" && !n.Value.IsInt() {
			tag := n.Value.Text
			out = append(out, path[R]{index: "tags", count: v.inv.CountTagged(kind, tag), sorted: true,
				rows: taggedRows(v, kind, tag, get)})
		}
	}
	return out
}

// uuidPaths are the ways to the object with a UUID.
func uuidPaths[T any](tests []qlang.Node, get func(uuid string) *T) []path[*T] {
	var out []path[*T]
	for _, test := range tests {
		if uuid, ok := textTest(test, "uuid"); ok {
			out = append(out, path[*T]{index: "uuid", count: 1, sorted: true, rows: oneOrNone(get(uuid))})
		}
	}
	return out
}
