package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/deploy/secret"
)

// Row is a task that runs on a node.
type Row struct {
	Task, Node string
	Roles      []string // of the node
	Why        string
	// Drift is what differs on the machine, if that is why it runs.
	Drift *course.Differs
}

// Group is a task with all nodes on which it runs.
type Group struct {
	Task  string   `json:"task"`
	Nodes []string `json:"nodes"`
	// Roles are those of the nodes, those of most nodes first; Reasons say why it runs, in the order in which they come.
	Roles   []Role  `json:"roles"`
	Reasons []Cause `json:"reasons"`
}

// Role is a role and how many nodes have it.
type Role struct {
	Name  string `json:"name"`
	Nodes int    `json:"nodes"`
}

// Cause is a reason for which a task runs on some nodes.
type Cause struct {
	Why   string   `json:"why"`
	Nodes []string `json:"nodes"`
	// Drift is what differs on the machine of each of them, if that is why; nil otherwise.
	Drift *course.Differs `json:"-"`
}

// Rows are the tasks that a plan runs, in the order in which they may, without what is to be hidden.
func Rows(p *plan.Plan, order []int32, hide *secret.Veil) []Row {
	var out []Row
	why := Why(p, hide)
	for _, i := range order {
		if s := &p.Steps[i]; s.Run {
			out = append(out, Row{Task: s.ID(), Node: p.Nodes[s.Node], Roles: p.Tags[s.Node], Why: why(i)})
		}
	}
	return out
}

// RowsWith is RowsOf with what differs on the machines.
func RowsWith(nodes []course.Node, tasks []course.Task, drift *course.Drift) []Row {
	rows := RowsOf(nodes, tasks)
	if drift == nil {
		return rows
	}
	type place struct{ task, node string }
	found := map[place]*course.Differs{}
	for i := range drift.Differ {
		found[place{drift.Differ[i].Task, drift.Differ[i].Node}] = &drift.Differ[i]
	}
	for i := range rows {
		rows[i].Drift = found[place{rows[i].Task, rows[i].Node}]
	}
	return rows
}

// RowsOf are the tasks of a stored plan, or of one that is only shown, that run on its nodes.
func RowsOf(nodes []course.Node, tasks []course.Task) []Row {
	roles := map[string][]string{}
	for _, n := range nodes {
		roles[n.UID] = n.Roles
	}
	var out []Row
	for i := range tasks {
		if t := &tasks[i]; t.State != course.Skipped {
			out = append(out, Row{Task: t.Task, Node: t.Node, Roles: roles[t.Node], Why: t.Why})
		}
	}
	return out
}

// Headline sums up what a plan runs, of so many tasks on nodes.
func Headline(steps int, rows []Row) string {
	if len(rows) == 0 {
		return fmt.Sprintf("nothing to do: 0 of %d tasks run", steps)
	}
	seen := map[string]bool{}
	for i := range rows {
		seen[rows[i].Node] = true
	}
	if len(seen) == 1 {
		return fmt.Sprintf("%d of %d tasks run, on 1 node", len(rows), steps)
	}
	return fmt.Sprintf("%d of %d tasks run, on %d nodes", len(rows), steps, len(seen))
}

// Groups puts rows together that are of one task, in the order in which tasks come first.
func Groups(rows []Row) []Group {
	var out []Group
	at := map[string]int{}
	causes, roles := []map[string]int{}, []map[string]int{}
	for _, r := range rows {
		i, known := at[r.Task]
		if !known {
			i = len(out)
			at[r.Task] = i
			out = append(out, Group{Task: r.Task})
			causes, roles = append(causes, map[string]int{}), append(roles, map[string]int{})
		}
		g := &out[i]
		g.Nodes = append(g.Nodes, r.Node)
		for _, role := range r.Roles {
			roles[i][role]++
		}
		reason := r.Why
		if r.Drift != nil {
			reason += "\n" + strings.Join(r.Drift.Difference, "\n")
		}
		c, known := causes[i][reason]
		if !known {
			c = len(g.Reasons)
			causes[i][reason] = c
			g.Reasons = append(g.Reasons, Cause{Why: r.Why, Drift: r.Drift})
		}
		g.Reasons[c].Nodes = append(g.Reasons[c].Nodes, r.Node)
	}
	for i := range out {
		for name, n := range roles[i] {
			out[i].Roles = append(out[i].Roles, Role{name, n})
		}
		slices.SortFunc(out[i].Roles, func(a, b Role) int { return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Name, b.Name)) })
	}
	return out
}

// Compare tells how two plans differ: what only the old one runs, what only the new one does, and what both run for different reasons, of which the
// rows tell both.
func Compare(before, after []Row) (gone, came, changed []Row) {
	type place struct{ task, node string }
	old := map[place]Row{}
	for _, r := range before {
		old[place{r.Task, r.Node}] = r
	}
	both := map[place]bool{}
	for _, r := range after {
		was, runs := old[place{r.Task, r.Node}]
		switch {
		case !runs:
			came = append(came, r)
			continue
		case was.Why != r.Why:
			r.Why = was.Why + " => " + r.Why
			changed = append(changed, r)
		}
		both[place{r.Task, r.Node}] = true
	}
	for _, r := range before {
		if !both[place{r.Task, r.Node}] {
			gone = append(gone, r)
		}
	}
	return gone, came, changed
}
