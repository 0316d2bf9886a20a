package query

import (
	"iter"
	"maps"
	"slices"

	"github.com/drover-project/drover/internal/cluster"
)

// osRow is one operating system over all nodes. Before the nodes answered there
// is one row without a name, which stands for those to come.
type osRow struct {
	name string
	// at holds the definitions by node UUID; asked are the nodes that
	// answered, with the definition or without.
	at    map[string]OSState
	asked []string
}

var osTable = table[osRow]{
	what:      "os",
	fields:    osFields(),
	all:       func(*view) iter.Seq[osRow] { return slices.Values([]osRow{{}}) },
	identity:  func(r osRow) string { return r.name },
	everyNode: true,
	always:    NeedOS,
	expand:    osRows,
}.indexed()

// osRows gathers the nodes' definitions by name, in nice order.
func osRows(v *view, _ osRow) []osRow {
	byName := map[string]osRow{}
	var asked []string
	for uuid, answer := range v.live.nodes {
		if answer.Failed != "" {
			continue
		}
		asked = append(asked, uuid)
		for name, state := range answer.OS {
			r, ok := byName[name]
			if !ok {
				r = osRow{name: name, at: map[string]OSState{}}
			}
			r.at[uuid] = state
			byName[name] = r
		}
	}
	slices.Sort(asked)
	out := make([]osRow, 0, len(byName))
	for _, name := range slices.SortedFunc(maps.Keys(byName), compareIdentities) {
		r := byName[name]
		r.asked = asked
		out = append(out, r)
	}
	return out
}

// everywhere reports whether a test holds on every node that answered; a node
// without the definition fails it.
func (r osRow) everywhere(test func(OSState) bool) bool {
	for _, uuid := range r.asked {
		if s, ok := r.at[uuid]; !ok || !test(s) {
			return false
		}
	}
	return len(r.asked) > 0
}

// common returns the entries that the definitions on all nodes share.
func common[T comparable](r osRow, of func(OSState) []T) []T {
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

func osFields() []field[osRow] {
	live := func(name, title string, kind Kind, doc string, get func(*view, osRow) any) field[osRow] {
		return field[osRow]{Def: Def{name, title, kind, doc}, from: Live, need: NeedOS,
			get: func(v *view, r osRow) Cell { return known(get(v, r)) }}
	}
	return []field[osRow]{
		live("name", "Name", KindText, "Name of the operating system", func(_ *view, r osRow) any { return r.name }),
		live("valid", "Valid", KindBool, "Whether every node that can be reached has a sound definition of it",
			func(_ *view, r osRow) any { return r.everywhere(func(s OSState) bool { return s.Valid }) }),
		live("trusted", "Trusted", KindBool, "Whether its scripts may run without confinement on every node",
			func(_ *view, r osRow) any { return r.everywhere(func(s OSState) bool { return s.Trusted }) }),
		live("hidden", "Hidden", KindBool, "Whether the cluster hides it from lists",
			func(v *view, r osRow) any { return slices.Contains(v.cluster.HiddenOS, r.name) }),
		live("blacklisted", "Blacklisted", KindBool, "Whether the cluster allows no new instances with it",
			func(v *view, r osRow) any { return slices.Contains(v.cluster.BlacklistedOS, r.name) }),
		live("variants", "Variants", KindOther, "Variants that every node has",
			func(_ *view, r osRow) any {
				out := common(r, func(s OSState) []string { return s.Variants })
				slices.SortFunc(out, compareIdentities)
				return anyList(out)
			}),
		live("parameters", "Parameters", KindOther, "Parameters that every node has, each as name and help",
			func(_ *view, r osRow) any {
				return anyPairs(common(r, func(s OSState) [][2]string { return s.Parameters }))
			}),
		live("api_versions", "ApiVersions", KindOther, "Versions of the interface to it that every node has",
			func(_ *view, r osRow) any {
				out := common(r, func(s OSState) []int64 { return s.APIVersions })
				slices.Sort(out)
				return anyInts(out)
			}),
		live("node_status", "NodeStatus", KindOther, "What each node has of it: path, soundness, diagnosis, variants, parameters, interface versions and trust", osNodeStatus),
		live("os_hvp", "OsHypervisorParams", KindOther, "Hypervisor parameters set for it and its variants",
			func(v *view, r osRow) any {
				return perVariant(v, r, func(os string) any { return v.cluster.OSHVP[os] })
			}),
		live("osparams", "OsParameters", KindOther, "Parameters set for it and its variants",
			func(v *view, r osRow) any {
				return perVariant(v, r, func(os string) any { return orEmpty(v.cluster.OSParams[os]).Value })
			}),
	}
}

func osNodeStatus(_ *view, r osRow) any {
	out := map[string]any{}
	for _, uuid := range r.asked {
		list := []any{}
		if s, ok := r.at[uuid]; ok {
			list = append(list, []any{s.Path, s.Valid, s.Diagnose, anyList(s.Variants), anyPairs(s.Parameters), anyInts(s.APIVersions), s.Trusted})
		}
		out[uuid] = list
	}
	return out
}

// perVariant maps the operating system and each NAME+VARIANT that the cluster
// has settings for to those settings.
func perVariant(v *view, r osRow, settings func(string) any) map[string]any {
	out := map[string]any{}
	for _, os := range slices.Concat(slices.Collect(maps.Keys(v.cluster.OSHVP)), slices.Collect(maps.Keys(v.cluster.OSParams))) {
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

// extRow is one provider of external storage over all nodes.
type extRow struct {
	name string
	at   map[string]ExtStorageState // by node UUID
	// asked are the nodes that answered.
	asked []string
}

var extStorageTable = table[extRow]{
	what:      "extstorage",
	fields:    extFields(),
	all:       func(*view) iter.Seq[extRow] { return slices.Values([]extRow{{}}) },
	identity:  func(r extRow) string { return r.name },
	everyNode: true,
	always:    NeedExtStorage,
	expand:    extRows,
}.indexed()

func extRows(v *view, _ extRow) []extRow {
	byName := map[string]extRow{}
	var asked []string
	for uuid, answer := range v.live.nodes {
		if answer.Failed != "" {
			continue
		}
		asked = append(asked, uuid)
		for name, state := range answer.ExtStorage {
			r, ok := byName[name]
			if !ok {
				r = extRow{name: name, at: map[string]ExtStorageState{}}
			}
			r.at[uuid] = state
			byName[name] = r
		}
	}
	slices.Sort(asked)
	out := make([]extRow, 0, len(byName))
	for _, name := range slices.SortedFunc(maps.Keys(byName), compareIdentities) {
		r := byName[name]
		r.asked = asked
		out = append(out, r)
	}
	return out
}

func extFields() []field[extRow] {
	live := func(name, title string, kind Kind, doc string, get func(*view, extRow) any) field[extRow] {
		return field[extRow]{Def: Def{name, title, kind, doc}, from: Live, need: NeedExtStorage,
			get: func(v *view, r extRow) Cell { return known(get(v, r)) }}
	}
	return []field[extRow]{
		live("name", "Name", KindText, "Name of the provider", func(_ *view, r extRow) any { return r.name }),
		live("node_status", "NodeStatus", KindOther, "What each node has of it: path, soundness, diagnosis and parameters",
			func(_ *view, r extRow) any {
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
		live("nodegroup_status", "NodegroupStatus", KindOther, "Whether it can be used in each node group", extGroups),
		live("parameters", "Parameters", KindOther, "Parameters that every node has, each as name and help",
			func(_ *view, r extRow) any {
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
func extGroups(v *view, r extRow) any {
	out := map[string]any{}
	for g := range v.inv.Groups() {
		ok := true
		for n := range v.inv.NodesIn(g.UUID) {
			if slices.Contains(r.asked, n.UUID) && !r.at[n.UUID].Valid {
				ok = false
			}
		}
		out[g.Name] = ok
	}
	return out
}
