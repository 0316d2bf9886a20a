package query

import (
	"iter"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
)

// longRow is a row that is kept without what it holds.
type longRow struct{ name, held string }

// Rows wait for their turn in an answer as small as their item makes them, filtered
// or not, and are whole again when they are shown.
func TestRowsAreKeptShort(t *testing.T) {
	all := []longRow{{"a", "much"}, {"b", "more"}}
	table := Table[longRow]{
		What: "long",
		Fields: []Field[longRow]{
			{Def: Def{Name: "name"}, Get: func(_ *View, r longRow) Cell { return Cell{Value: r.name} }},
			{Def: Def{Name: "held"}, Get: func(_ *View, r longRow) Cell { return Cell{Value: r.held} }},
		},
		All:      func(*View) iter.Seq[longRow] { return slices.Values(all) },
		Identity: func(r longRow) string { return r.name },
		Shorten:  func(r longRow) longRow { return longRow{name: r.name} },
		Restore: func(_ *View, r longRow) longRow {
			return all[slices.IndexFunc(all, func(l longRow) bool { return l.name == r.name })]
		},
	}.Indexed()
	v := NewView(&Source{Inventory: cluster.Empty()}, nil)
	for what, test := range map[string]Test[longRow]{"all": nil, "filtered": func(*View, longRow) (Verdict, error) { return Yes, nil }} {
		rows, err := table.keep(v, slices.Values(all), test)
		if err != nil || !slices.Equal(rows, []longRow{{name: "a"}, {name: "b"}}) {
			t.Errorf("%s: kept as %v, %v", what, rows, err)
		}
	}
	got, err := Catalog{table}.Run(v.Source, "long", []string{"held"}, nil, Options{})
	if err != nil || string(got.AppendJSON(nil)) != `{"fields":[{"name":"held","title":"","kind":"","doc":""}],"data":[[[0,"much"]],[[0,"more"]]]}` {
		t.Errorf("shown as %s, %v", got.AppendJSON(nil), err)
	}
}
