package items

import (
	"iter"
	"slices"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
)

// exportRow is an export on a node; status tells why there is none to show.
type exportRow struct {
	node   *cluster.Node
	export string
	status query.Status
}

var exportTable = query.Table[exportRow]{
	What:      "export",
	NameField: "node",
	Fields: []query.Field[exportRow]{
		{Def: def("node", "Node", query.KindText, "Name of the node that keeps the export"), From: query.Live, Mode: query.ModeHostname, Need: query.NeedExports,
			Get: func(_ *query.View, r exportRow) query.Cell { return text(r.node.Name) }},
		{Def: def("export", "Export", query.KindText, "Name of the export"), From: query.Live, Need: query.NeedExports,
			Get: func(_ *query.View, r exportRow) query.Cell {
				if r.status != query.Normal {
					return query.Cell{Status: r.status}
				}
				return text(r.export)
			}},
	},
	All: func(v *query.View) iter.Seq[exportRow] { return exportRows(v.Inventory.Nodes()) },
	Named: func(v *query.View, names []qlang.Value) ([]exportRow, bool, error) {
		nodes, ok, err := nodeNamed(v, names)
		return slices.Collect(exportRows(slices.Values(nodes))), ok, err
	},
	Identity: func(r exportRow) string { return r.node.UUID + "/" + r.export },
	Nodes:    func(_ *query.View, r exportRow) string { return r.node.UUID },
	Always:   query.NeedExports,
	Expand:   exportsOf,
}.Indexed()

// exportRows yields a row for each node, which stands for the exports there.
func exportRows(nodes iter.Seq[*cluster.Node]) iter.Seq[exportRow] {
	return func(yield func(exportRow) bool) {
		for n := range nodes {
			if !yield(exportRow{node: n}) {
				return
			}
		}
	}
}

// exportsOf makes a row of each export of a node, and one of a node that could
// not tell.
func exportsOf(v *query.View, r exportRow) []exportRow {
	if r.node.Offline {
		r.status = query.Offline
		return []exportRow{r}
	}
	answer, ok := v.Answers.Of(r.node.UUID)
	if !ok {
		r.status = query.NoData
		return []exportRow{r}
	}
	out := make([]exportRow, len(answer.Exports))
	for i, name := range answer.Exports {
		out[i] = exportRow{node: r.node, export: name}
	}
	return out
}
