package deployments

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/deploy/report"
)

// How much a page of a plan tells, unless all is asked for.
const (
	planLines    = 38 // so that a question has room on a screen of 40
	namedNodes   = 6  // nodes that are named; of more it is told how many have which role
	shownRoles   = 4
	shownReasons = 3 // of a task
	shownDrift   = 8 // lines of what differs on a machine
	shownUnknown = 5 // reasons for which something is not known
)

// planPage tells for people what a plan runs: a line that sums it up, then each task with its nodes and the reason, folded to a width.
func planPage(head string, steps int, rows []report.Row, all bool, width int) string {
	return rowsPage(head+report.Headline(steps, rows), rows, all, width)
}

// rowsPage tells of each task with its nodes and the reason, below a line that sums it up.
func rowsPage(head string, rows []report.Row, all bool, width int) string {
	lines := []string{head}
	groups := report.Groups(rows)
	for i := range groups {
		told := groupLines(&groups[i], all, width)
		if left := len(groups) - i; !all && len(lines)+len(told) > planLines {
			lines = append(lines, fmt.Sprintf("and %d more; --all shows them", left))
			break
		}
		lines = append(lines, told...)
	}
	return strings.Join(lines, "\n") + "\n"
}

// groupLines tell of a task.
func groupLines(g *report.Group, all bool, width int) []string {
	head := g.Task + " on " + nodesAndRoles(g)
	if len(g.Reasons) == 1 {
		return append(folded(head+": "+g.Reasons[0].Why, "", width), driftLines(g.Reasons[0].Drift, "    ", all, width)...)
	}
	lines := folded(head+":", "", width)
	for i, c := range g.Reasons {
		if !all && i == shownReasons {
			lines = append(lines, fmt.Sprintf("    and %d more reasons", len(g.Reasons)-i))
			break
		}
		lines = append(lines, folded(few(c.Nodes)+": "+c.Why, "    ", width)...)
		lines = append(lines, driftLines(c.Drift, "        ", all, width)...)
	}
	return lines
}

// driftLines are those that tell what differs on a machine, unless the reason has told all; each is cut to the width.
func driftLines(d *course.Differs, indent string, all bool, width int) (lines []string) {
	if d == nil || !d.More && len(d.Difference) == 1 && strings.TrimSpace(d.Difference[0]) == d.Summary {
		return nil
	}
	for i, line := range d.Difference {
		if !all && i == shownDrift {
			return append(lines, indent+"and more lines; --all shows them")
		}
		lines = append(lines, listing.Cut(indent+listing.Printable(line), width))
	}
	if d.More {
		lines = append(lines, indent+"and more lines, which nobody was told")
	}
	return lines
}

// driftPage tells how many tasks were compared with what is on the machines, and of which it is not known whether something differs.
func driftPage(d *course.Drift, all bool, width int) string {
	if d == nil {
		return ""
	}
	text := fmt.Sprintf("compared on the machines: %s", shell.Counted(d.Compared, "task"))
	switch n := len(d.Differ); {
	case n == 1:
		text += ", 1 differs"
	case n > 0 || d.Compared > 0:
		text += fmt.Sprintf(", %d differ", n)
	}
	if n := len(d.Unknown); n > 0 {
		text += fmt.Sprintf("; not known of %d", n)
	}
	if d.Uncompared > 0 {
		text += fmt.Sprintf("; %d without a check", d.Uncompared)
	}
	lines := folded(text, "", width)
	type group struct {
		nodes []string
		tasks int
	}
	groups, order := map[string]*group{}, []string{}
	for _, u := range d.Unknown {
		g := groups[u.Why]
		if g == nil {
			g = &group{}
			groups[u.Why], order = g, append(order, u.Why)
		}
		g.tasks++
		if !slices.Contains(g.nodes, u.Node) {
			g.nodes = append(g.nodes, u.Node)
		}
	}
	for i, why := range order {
		if !all && i == shownUnknown {
			lines = append(lines, fmt.Sprintf("and %d more reasons for which something is not known; --all shows them", len(order)-i))
			break
		}
		g := groups[why]
		lines = append(lines, folded("not known of "+shell.Counted(g.tasks, "task")+" on "+few(g.nodes)+": "+why, "", width)...)
	}
	return strings.Join(lines, "\n") + "\n"
}

// few names nodes if they are few, else it says how many they are.
func few(uids []string) string {
	if len(uids) == 1 {
		return "node " + uids[0]
	}
	if len(uids) > namedNodes {
		return shell.Counted(len(uids), "node")
	}
	uids = slices.Clone(uids)
	slices.SortFunc(uids, byNumber)
	return "nodes " + strings.Join(uids, ", ")
}

// nodesAndRoles names the nodes of a task if they are few, else it says how many of each role they are.
func nodesAndRoles(g *report.Group) string {
	text := few(g.Nodes)
	if len(g.Nodes) <= namedNodes || len(g.Roles) == 0 {
		return text
	}
	var parts []string
	for _, r := range g.Roles[:min(len(g.Roles), shownRoles)] {
		parts = append(parts, fmt.Sprintf("%s %d", r.Name, r.Nodes))
	}
	if len(g.Roles) > shownRoles {
		parts = append(parts, "...")
	}
	return text + " (" + strings.Join(parts, ", ") + ")"
}

// folded is a text in lines of a width, each behind an indent; what goes on stands further right. A word that is wider is cut.
func folded(text, indent string, width int) []string {
	lines := strings.Split(listing.Fold(indent+listing.Printable(text), width), "\n")
	for i, line := range lines {
		lines[i] = listing.Cut(line, width)
	}
	return lines
}
