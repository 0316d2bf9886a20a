package items

import (
	"iter"
	"maps"
	"slices"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/query"
)

// osRow is one operating system over all nodes. Before the nodes answered there
// is one row without a name, which stands for those to come.
type osRow struct {
	name string
	// at holds the definitions by node UUID; asked are the nodes that
	// answered, with the definition or without.
	at    map[string]query.OSState
	asked []string
}

var osTable = query.Table[osRow]{
	What:      "os",
	Fields:    osFields(),
	All:       func(*query.View) iter.Seq[osRow] { return slices.Values([]osRow{{}}) },
	Identity:  func(r osRow) string { return r.name },
	EveryNode: true,
	Always:    query.NeedOS,
	Expand:    osRows,
}.Indexed()

func osRows(v *query.View, _ osRow) []osRow {
	names, at, asked := onNodes(v, func(answer query.NodeState) map[string]query.OSState { return answer.OS })
	names = addImages(v, names, at, asked)
	out := make([]osRow, len(names))
	for i, name := range names {
		out[i] = osRow{name: name, at: at[name], asked: asked}
	}
	return out
}

// addImages adds the operating system whose variants are the images of the cluster, which any node can install, unless nodes have one of their own of
// that name.
func addImages(v *query.View, names []string, at map[string]map[string]query.OSState, asked []string) []string {
	all := query.OSState{Valid: true, Trusted: true, Parameters: cluster.ImageParameters(), APIVersions: []int64{20}}
	for i := range v.Inventory.Images() {
		all.Variants = append(all.Variants, i.Name)
	}
	if len(all.Variants) == 0 || at[cluster.ImageOS] != nil {
		return names
	}
	at[cluster.ImageOS] = map[string]query.OSState{}
	for _, uuid := range asked {
		at[cluster.ImageOS][uuid] = all
	}
	names = append(names, cluster.ImageOS)
	slices.SortFunc(names, query.CompareIdentities)
	return names
}

// onNodes gathers what nodes have under names: the names in nice order, what each node has
// under each, and the nodes that answered. Nodes are named by UUID.
func onNodes[S any](v *query.View, of func(query.NodeState) map[string]S) (names []string, at map[string]map[string]S, asked []string) {
	at = map[string]map[string]S{}
	for uuid, answer := range v.Answers.Nodes {
		if answer.Failed != "" {
			continue
		}
		asked = append(asked, uuid)
		for name, state := range of(answer) {
			if at[name] == nil {
				at[name] = map[string]S{}
			}
			at[name][uuid] = state
		}
	}
	slices.Sort(asked)
	return slices.SortedFunc(maps.Keys(at), query.CompareIdentities), at, asked
}

// everywhere reports whether a test holds on every node that answered; a node
// without the definition fails it.
func (r osRow) everywhere(test func(query.OSState) bool) bool {
	for _, uuid := range r.asked {
		if s, ok := r.at[uuid]; !ok || !test(s) {
			return false
		}
	}
	return len(r.asked) > 0
}

// common returns the entries that the definitions on all nodes share.
func common[T comparable](r osRow, of func(query.OSState) []T) []T {
	var out []T
	for i, uuid := range r.asked {
		list := of(r.at[uuid])
		if i == 0 {
			out = slices.Clone(list)
			continue
		}
		out = slices.DeleteFunc(out, func(e T) bool { return !slices.Contains(list, e) })
	}
	return out
}

func osFields() []query.Field[osRow] {
	live := func(name, title string, kind query.Kind, doc string, get func(*query.View, osRow) any) query.Field[osRow] {
		return query.Field[osRow]{Def: def(name, title, kind, doc), From: query.Live, Need: query.NeedOS,
			Get: func(v *query.View, r osRow) query.Cell { return known(get(v, r)) }}
	}
	return []query.Field[osRow]{
		live("name", "Name", query.KindText, "Name of the operating system", func(_ *query.View, r osRow) any { return r.name }),
		live("valid", "Valid", query.KindBool, "Whether every node that can be reached has a sound definition of it",
			func(_ *query.View, r osRow) any { return r.everywhere(func(s query.OSState) bool { return s.Valid }) }),
		live("trusted", "Trusted", query.KindBool, "Whether its scripts may run without confinement on every node",
			func(_ *query.View, r osRow) any { return r.everywhere(func(s query.OSState) bool { return s.Trusted }) }),
		live("hidden", "Hidden", query.KindBool, "Whether the cluster hides it from lists",
			func(v *query.View, r osRow) any { return slices.Contains(v.Cluster.HiddenOS, r.name) }),
		live("blacklisted", "Blacklisted", query.KindBool, "Whether the cluster allows no new instances with it",
			func(v *query.View, r osRow) any { return slices.Contains(v.Cluster.BlacklistedOS, r.name) }),
		live("variants", "Variants", query.KindOther, "Variants that every node has",
			func(_ *query.View, r osRow) any {
				out := common(r, func(s query.OSState) []string { return s.Variants })
				slices.SortFunc(out, query.CompareIdentities)
				return out
			}),
		live("parameters", "Parameters", query.KindOther, "Parameters that every node has, each as name and help",
			func(_ *query.View, r osRow) any {
				return anyPairs(common(r, func(s query.OSState) [][2]string { return s.Parameters }))
			}),
		live("api_versions", "ApiVersions", query.KindOther, "Versions of the interface to it that every node has",
			func(_ *query.View, r osRow) any {
				out := common(r, func(s query.OSState) []int64 { return s.APIVersions })
				slices.Sort(out)
				return anyInts(out)
			}),
		live("node_status", "NodeStatus", query.KindOther, "What each node has of it: path, soundness, diagnosis, variants, parameters, interface versions and trust", osNodeStatus),
		live("os_hvp", "OsHypervisorParams", query.KindOther, "Hypervisor parameters set for it and its variants",
			func(v *query.View, r osRow) any {
				return perVariant(v, r, func(os string) any { return v.Cluster.OSHVP[os] })
			}),
		live("osparams", "OsParameters", query.KindOther, "Parameters set for it and its variants",
			func(v *query.View, r osRow) any {
				return perVariant(v, r, func(os string) any { return orEmpty(v.Cluster.OSParams[os]).Value })
			}),
	}
}

func osNodeStatus(_ *query.View, r osRow) any {
	out := map[string]any{}
	for _, uuid := range r.asked {
		list := []any{}
		if s, ok := r.at[uuid]; ok {
			list = append(list, []any{s.Path, s.Valid, s.Diagnose, s.Variants, anyPairs(s.Parameters), anyInts(s.APIVersions), s.Trusted})
		}
		out[uuid] = list
	}
	return out
}

// perVariant maps the operating system and each NAME+VARIANT that the cluster
// has settings for to those settings.
func perVariant(v *query.View, r osRow, settings func(string) any) map[string]any {
	out := map[string]any{}
	for _, os := range slices.Concat(slices.Collect(maps.Keys(v.Cluster.OSHVP)), slices.Collect(maps.Keys(v.Cluster.OSParams))) {
		if name, _ := cluster.OSName(os); name == r.name {
			out[os] = settings(os)
		}
	}
	return out
}

func anyPairs(list [][2]string) []any {
	out := make([]any, len(list))
	for i, p := range list {
		out[i] = []any{p[0], p[1]}
	}
	return out
}

func anyInts(list []int64) []any {
	out := make([]any, len(list))
	for i, n := range list {
		out[i] = n
	}
	return out
}
