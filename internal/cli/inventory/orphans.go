package inventory

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/drover-project/drover/internal/opcode"
)

// unknownThing is something that a node has and the inventory does not know.
type unknownThing struct {
	Node   string `json:"node"`
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	UUID   string `json:"uuid"`
	State  string `json:"state"`
	Disks  int    `json:"disks"`
	Size   int    `json:"size"`
	MadeBy struct {
		Life   string `json:"life"`
		Job    int64  `json:"job"`
		Opcode int    `json:"opcode"`
	} `json:"made_by"`
	Why string `json:"why"`
}

// madeBy is the job, and which of its opcodes, that made it, in few letters.
func (t *unknownThing) madeBy() string {
	if t.MadeBy.Job == 0 {
		return "?"
	}
	return fmt.Sprintf("%d/%d", t.MadeBy.Job, t.MadeBy.Opcode)
}

func nodeOrphans(sh *shell.Shell) *cobra.Command {
	return shell.Heeding(shell.Asking, &cobra.Command{
		Use: "orphans [NODE...]", Short: "List what nodes have and the inventory does not know",
		Long: `orphans lists what nodes have and the inventory does not know: orphans, which a job of
this store has left there (clear-orphans removes them), disks that an instance does not
have, and dumps that are no whole export (clear-orphans removes those that it is given),
exports of instances that are no more (backup remove removes them), and strangers, which
nothing of Drover ever touches. Without names it asks all nodes that are not marked as
away. MADE BY is the job, and which of its opcodes; that of a stranger may be of another
store. Something that a creation or an export has just made is listed, too, until it is
in the inventory, or whole.`,
		ValidArgsFunction: lists.CompleteNames(sh, "node", true),
		RunE: func(cmd *cobra.Command, nodes []string) error {
			var err error
			if len(nodes) == 0 {
				nodes, err = presentNodes(cmd.Context(), sh)
			}
			if err != nil {
				return err
			}
			found, failed, err := unknownOn(cmd.Context(), sh, nodes)
			if err != nil {
				return err
			}
			if err := sh.Show(found, func() error { return showUnknown(sh, found, len(nodes), failed) }); err != nil || !failed {
				return err
			}
			return shell.ErrFailed
		},
	})
}

// presentNodes are the names of the nodes that are not marked as away.
func presentNodes(ctx context.Context, sh *shell.Shell) (names []string, err error) {
	var all listing.Answer
	if err := sh.Ask(ctx, "Query", &all, "node", []string{"name", "offline"}, nil); err != nil {
		return nil, err
	}
	for _, row := range all.Data {
		if string(row[1].Value) != "true" {
			names = append(names, lists.CellText(row[0]))
		}
	}
	return names, nil
}

// unknownOn asks nodes what they have that the inventory does not know. A node that does not answer is told of, and keeps nobody from
// seeing what the others have.
func unknownOn(ctx context.Context, sh *shell.Shell, nodes []string) (found []unknownThing, failed bool, err error) {
	ops := make([]*opcode.Opcode, len(nodes))
	for i, node := range nodes {
		if ops[i], err = work.NewOp(sh, "node", "OP_NODE_ORPHANS", map[string]any{"node_name": node}); err != nil {
			return nil, false, err
		}
	}
	answers, err := work.Answers(ctx, sh, ops)
	if err != nil {
		return nil, false, err
	}
	found = []unknownThing{}
	for i, a := range answers {
		if a.Refused != nil && len(nodes) == 1 {
			return nil, false, a.Refused
		}
		var list []unknownThing
		refused := a.Refused
		if refused == nil {
			refused = json.Unmarshal(a.Result, &list)
		}
		if failed = failed || refused != nil; refused != nil {
			sh.Notef("%s: %v\n", nodes[i], refused)
		}
		for k := range list {
			list[k].Node = nodes[i]
		}
		found = append(found, list...)
	}
	return found, failed, nil
}

func showUnknown(sh *shell.Shell, found []unknownThing, nodes int, failed bool) error {
	switch {
	case len(found) > 0:
		return sh.Printf("%s", unknownTable(found))
	case failed:
		return nil
	case nodes == 1:
		return sh.Printf("The node has nothing that the inventory does not know.\n")
	}
	return sh.Printf("The nodes have nothing that the inventory does not know.\n")
}

// tableWidth is what the table keeps to, as long as nodes have names of common length.
const tableWidth = 80

// unknownTable shows things, each on a line: nodes by the first part of their names where that tells them apart, and names of
// instances as far as there is room for them.
func unknownTable(found []unknownThing) string {
	short, whole := map[string]string{}, map[string]bool{}
	for i := range found {
		label, _, _ := strings.Cut(found[i].Node, ".")
		if of, taken := short[label]; taken && of != found[i].Node {
			whole[label] = true
		}
		short[label] = found[i].Node
	}
	rows := [][]string{{"NODE", "KIND", "NAME", "UUID", "MADE BY"}}
	for i := range found {
		t := &found[i]
		node, _, _ := strings.Cut(t.Node, ".")
		if whole[node] {
			node = t.Node
		}
		uuid := t.UUID
		if uuid == "" {
			uuid = "-"
		}
		rows = append(rows, []string{node, t.Kind, listing.Printable(t.Name), listing.Printable(uuid), t.madeBy()})
	}
	const name = 2
	left := tableWidth - (len(rows[0]) - 1)
	for i := range rows[0] {
		if i != name {
			left -= len(slices.MaxFunc(rows, func(a, b []string) int { return len(a[i]) - len(b[i]) })[i])
		}
	}
	t := &shell.Table{}
	for _, row := range rows {
		row[name] = listing.Cut(row[name], max(left, 8))
		t.Add(row...)
	}
	return t.String()
}

// leftovers shows what clear-orphans would remove, before it asks; nothing where it would be refused.
func leftovers(ctx context.Context, sh *shell.Shell, params map[string]any, targets []string) error {
	op, err := work.NewOp(sh, "node", "OP_NODE_CLEAR_ORPHANS", params)
	if err != nil {
		return err
	}
	answers, err := work.Answers(ctx, sh, []*opcode.Opcode{op})
	if err != nil {
		return err
	}
	if answers[0].Refused != nil {
		return nil //nolint:nilerr // it is said behind the question
	}
	var gone []string
	if err := json.Unmarshal(answers[0].Result, &gone); err != nil {
		return err
	}
	found, _, err := unknownOn(ctx, sh, targets[:1])
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(t unknownThing) bool { return !slices.Contains(gone, t.UUID) })
	sh.Notef("%s", unknownTable(found))
	return nil
}
