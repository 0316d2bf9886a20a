package items

import (
	"cmp"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
)

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
func tagPaths[R any](v *query.View, kind cluster.Kind, tests []qlang.Node, get func(uuid string) R) []query.Path[R] {
	var out []query.Path[R]
	for _, test := range tests {
		if n, ok := test.(*qlang.Contains); ok && n.Field == "tags" && !n.Value.IsInt() {
			tag := n.Value.Text
			out = append(out, query.Path[R]{Index: "tags", Count: v.Inventory.CountTagged(kind, tag), Sorted: true,
				Rows: taggedRows(v, kind, tag, get)})
		}
	}
	return out
}

// uuidPaths are the ways to the object with a UUID.
func uuidPaths[T any](tests []qlang.Node, get func(uuid string) *T) []query.Path[*T] {
	var out []query.Path[*T]
	for _, test := range tests {
		if uuid, ok := textTest(test, "uuid"); ok {
			out = append(out, query.Path[*T]{Index: "uuid", Count: 1, Sorted: true, Rows: oneOrNone(get(uuid))})
		}
	}
	return out
}
