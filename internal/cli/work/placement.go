package work

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/cli/shell"
)

// Placement is how the node of a new instance was chosen, or would be.
type Placement struct {
	// Node is the chosen one, empty if none fits; Why is why.
	Node string `json:"node"`
	UUID string `json:"uuid"`
	Why  string `json:"why"`
	// Memory and Disk (MiB) and VCPUs are what the instance takes.
	Memory int64 `json:"memory"`
	Disk   int64 `json:"disk"`
	VCPUs  int64 `json:"vcpus"`
	// Nodes are those that fit by rank, then the others by name.
	Nodes []Verdict `json:"nodes"`
	// Mirror is the decision about the second copy of mirrored disks, beside the node; nil for other disks.
	Mirror *Placement `json:"mirror,omitempty"`
}

// Verdict is what is said of one node: its rank, or the first constraint that it breaks.
type Verdict struct {
	Node   string `json:"node"`
	Rank   int    `json:"rank"`
	Fails  string `json:"fails"`
	Need   int64  `json:"need"`
	Have   int64  `json:"have"`
	Margin int64  `json:"margin"`
	Text   string `json:"text"`
}

// Summary says in a line what was decided.
func (p *Placement) Summary() string {
	switch {
	case p.Node == "":
		return "no node fits: " + p.Why
	case len(p.Nodes) == 1:
		return "it would go to " + p.Node + ": " + p.Nodes[0].Text + p.second()
	}
	return fmt.Sprintf("it would go to %s: %s%s", p.Node, p.Why, p.second())
}

// second says where the second copy of the disks would go.
func (p *Placement) second() string {
	if p.Mirror == nil || p.Mirror.Node == "" {
		return ""
	}
	return "; the second copy of its disks to " + p.Mirror.Node
}

// Table tells of each node, the best first.
func (p *Placement) Table(sh *shell.Shell) string {
	head := fmt.Sprintf("asked for: %d MiB of memory, %d MiB of disk space, virtual processors: %d\n", p.Memory, p.Disk, p.VCPUs)
	return head + p.verdicts(sh)
}

// verdicts tells of each node, and of each of those that could have the second copy of the disks.
func (p *Placement) verdicts(sh *shell.Shell) string {
	t := &shell.Table{}
	t.Add("RANK", "NODE", "FAILS", "WHY")
	for _, v := range p.Nodes {
		rank, fails := "-", v.Fails
		if v.Rank > 0 {
			rank, fails = strconv.Itoa(v.Rank), "-"
		}
		t.Add(rank, v.Node, fails, v.Text)
	}
	lines := strings.SplitAfter(t.String(), "\n")
	lines[0] = sh.Paint(shell.Bold, strings.TrimSuffix(lines[0], "\n")) + "\n"
	for i, v := range p.Nodes {
		if v.Node == p.Node {
			lines[i+1] = sh.Paint(shell.Green, strings.TrimSuffix(lines[i+1], "\n")) + "\n"
		}
	}
	out := strings.Join(lines, "")
	if p.Mirror != nil {
		out += "\nthe second copy of its disks, in the same group:\n" + p.Mirror.verdicts(sh)
	}
	return out
}
