package environment

import (
	"maps"
	"slices"
	"sync"

	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/yaql"
)

// Status is how far an environment as a whole has come, as expressions see it.
type Status string

// The statuses.
const (
	New         Status = "new"                // no task has succeeded yet
	Operational Status = "operational"        // its latest deployment as a whole went well
	Partial     Status = "partially_deployed" // something has succeeded, and not all of it
)

// Member is a node of an environment as the others see it.
type Member struct {
	UID   string
	Roles []string
	Part  *state.Part
}

// About returns what expressions are told of an environment when they ask for it by name: nodes, a list of the data of each node but the master, by UID,
// and environment, its name and status. A node has its uid, its roles, and the first of them as role, whether or not its data does. An environment
// of which no status is known has none. Nothing is made of nodes that nobody asks for.
func About(name string, status Status, members []Member) func(key string) (any, bool) {
	nodes := sync.OnceValue(func() any { return listOf(members) })
	about := map[string]any{"name": name}
	if status != "" {
		about["status"] = string(status)
	}
	environment := yaql.Unconverted(about)
	return func(key string) (any, bool) {
		switch key {
		case "nodes":
			return nodes(), true
		case "environment":
			return environment, true
		}
		return nil, false
	}
}

// listOf are the data of nodes, by UID.
func listOf(members []Member) *yaql.List {
	members = slices.Clone(members)
	slices.SortFunc(members, func(a, b Member) int { return plan.CompareUIDs(a.UID, b.UID) })
	out := &yaql.List{Items: make([]any, 0, len(members))}
	for _, m := range members {
		if m.UID != plan.Master {
			out.Items = append(out.Items, m.data())
		}
	}
	return out
}

// data is the data of a node, with what all nodes have, in the order of keys.
func (m *Member) data() any {
	all := map[string]any{"uid": m.UID, "roles": m.Roles}
	if len(m.Roles) > 0 {
		all["role"] = m.Roles[0]
	}
	m.Part.Data().Range(func(k, v any) bool {
		if key, ok := k.(string); ok {
			all[key] = v
		}
		return true
	})
	out := yaql.NewDict(len(all))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		_ = out.Set(key, all[key]) // texts can be keys
	}
	return yaql.Unconverted(out)
}

// About is what expressions of plans from files are told of the environment, which has come as far as the caller says.
func (e *Environment) About(status Status) func(key string) (any, bool) {
	members := make([]Member, len(e.Nodes))
	for i, n := range e.Nodes {
		members[i] = Member{n.UID, n.Tags, e.Parts[n.UID]}
	}
	return About(e.Name, status, members)
}
