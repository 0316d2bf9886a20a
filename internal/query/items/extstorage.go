package items

import (
	"iter"
	"slices"

	"github.com/drover-project/drover/internal/query"
)

// extRow is one provider of external storage over all nodes.
type extRow struct {
	name string
	at   map[string]query.ExtStorageState // by node UUID
	// asked are the nodes that answered.
	asked []string
}

var extStorageTable = query.Table[extRow]{
	What:      "extstorage",
	Fields:    extFields(),
	All:       func(*query.View) iter.Seq[extRow] { return slices.Values([]extRow{{}}) },
	Identity:  func(r extRow) string { return r.name },
	EveryNode: true,
	Always:    query.NeedExtStorage,
	Expand:    extRows,
}.Indexed()

func extRows(v *query.View, _ extRow) []extRow {
	names, at, asked := onNodes(v, func(answer query.NodeState) map[string]query.ExtStorageState { return answer.ExtStorage })
	out := make([]extRow, len(names))
	for i, name := range names {
		out[i] = extRow{name: name, at: at[name], asked: asked}
	}
	return out
}

func extFields() []query.Field[extRow] {
	live := func(name, title string, kind query.Kind, doc string, get func(*query.View, extRow) any) query.Field[extRow] {
		return query.Field[extRow]{Def: def(name, title, kind, doc), From: query.Live, Need: query.NeedExtStorage,
			Get: func(v *query.View, r extRow) query.Cell { return known(get(v, r)) }}
	}
	return []query.Field[extRow]{
		live("name", "Name", query.KindText, "Name of the provider", func(_ *query.View, r extRow) any { return r.name }),
		live("node_status", "NodeStatus", query.KindOther, "What each node has of it: path, soundness, diagnosis and parameters",
			func(_ *query.View, r extRow) any {
				out := map[string]any{}
				for _, uuid := range r.asked {
					list := []any{}
					if s, ok := r.at[uuid]; ok {
						list = append(list, []any{s.Path, s.Valid, s.Diagnose, anyPairs(s.Parameters)})
					}
					out[uuid] = list
				}
				return out
			}),
		live("nodegroup_status", "NodegroupStatus", query.KindOther, "Whether it can be used in each node group", extGroups),
		live("parameters", "Parameters", query.KindOther, "Parameters that every node has, each as name and help",
			func(_ *query.View, r extRow) any {
				var out [][2]string
				for i, uuid := range r.asked {
					if list := r.at[uuid].Parameters; i == 0 {
						out = slices.Clone(list)
					} else {
						out = slices.DeleteFunc(out, func(p [2]string) bool { return !slices.Contains(list, p) })
					}
				}
				return anyPairs(out)
			}),
	}
}

// extGroups maps the name of each group to whether all its nodes that answered
// have a sound provider.
func extGroups(v *query.View, r extRow) any {
	out := map[string]any{}
	for g := range v.Inventory.Groups() {
		ok := true
		for n := range v.Inventory.NodesIn(g.UUID) {
			if slices.Contains(r.asked, n.UUID) && !r.at[n.UUID].Valid {
				ok = false
			}
		}
		out[g.Name] = ok
	}
	return out
}
