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
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
)

const restrictedHelp = `Run one of the commands that nodes allow, on all nodes that are named, or all of a
node group, beside one another; nodes that are marked as away are left out. A command
is a program in the directory that the setting restricted-commands of the node's agent
names; it gets no arguments. With --sync no other job does anything on the nodes
meanwhile.`

// restrictedCommand makes the verb that runs a restricted command.
func restrictedCommand(sh *shell.Shell) *cobra.Command {
	cmd := shell.Heeding(shell.Making, &cobra.Command{Use: "restricted-command COMMAND [NODE...]", Short: "Run a command that nodes allow", Long: restrictedHelp, Args: shell.AtLeast(1)})
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 { // its names are the nodes'
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return lists.CompleteNames(sh, "node", true)(cmd, args[1:], start)
	}
	group := cmd.Flags().StringP("node-group", "g", "", "run it on the nodes of this group")
	sync := cmd.Flags().Bool("sync", false, "have the nodes alone meanwhile")
	named := cmd.Flags().BoolP("show-machine-names", "M", false, "begin each line with the name of its node")
	lists.CompleteItems(sh, cmd, map[string]string{"node-group": "group"})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 && *group == "" {
			return fault.New(fault.Invalid, "Node group or node names must be given")
		}
		nodes, err := onlineNodes(cmd.Context(), sh, args[1:], *group)
		if err != nil {
			return err
		}
		op, err := work.NewOp(sh, "node", "OP_RESTRICTED_COMMAND", map[string]any{"command": args[0], "nodes": shell.NonNil(nodes), "use_locking": *sync})
		if err != nil {
			return err
		}
		return work.Run(cmd.Context(), sh, []work.Task{{Ops: []*opcode.Opcode{op}, Read: func(result json.RawMessage) (string, bool, error) {
			return commandOutputs(nodes, result, *named)
		}}})
	}
	return cmd
}

// onlineNodes are the names of nodes that are not marked as away, of those that are named and are in a group, if one is given.
func onlineNodes(ctx context.Context, sh *shell.Shell, names []string, group string) (online []string, err error) {
	var filters []qlang.Node
	if len(names) > 0 {
		filter, err := qlang.FromArguments(names, qlang.ArgOptions{NameField: "name"})
		if err != nil {
			return nil, err
		}
		filters = append(filters, filter)
	}
	if group != "" {
		filters = append(filters, &qlang.Or{Args: []qlang.Node{qlang.AnyOf("group", group), qlang.AnyOf("group.uuid", group)}})
	}
	var found listing.Answer
	if err := sh.Ask(ctx, "Query", &found, "node", []string{"name", "offline"}, qlang.JSON(&qlang.And{Args: filters})); err != nil {
		return nil, err
	}
	var away []string
	for _, row := range found.Data {
		if name := lists.CellText(row[0]); string(row[1].Value) == "true" {
			away = append(away, name)
		} else {
			online = append(online, name)
		}
	}
	if len(away) > 0 {
		sh.Notef("Note: skipping offline node(s): %s\n", strings.Join(away, ", "))
	}
	for _, name := range names {
		if !slices.ContainsFunc(found.Data, func(row []listing.Cell) bool { return meantBy(name, lists.CellText(row[0])) }) {
			return nil, fault.New(fault.NotFound, "Node '%s' not known", name).WithHint("drover node list shows which there are")
		}
	}
	return online, nil
}

// meantBy reports whether a node is meant by its name, or by that up to a dot.
func meantBy(given, node string) bool { return node == given || strings.HasPrefix(node, given+".") }

// commandOutputs words what a restricted command came to on nodes, as the classic tool does.
func commandOutputs(nodes []string, result json.RawMessage, named bool) (text string, good bool, err error) {
	var came [][2]any
	if err := json.Unmarshal(result, &came); err != nil || len(came) != len(nodes) {
		return "", false, fault.New(fault.Internal, "the result of the command has an unexpected form: %.200s", result)
	}
	var out strings.Builder
	good = true
	for i, node := range nodes {
		out.WriteString(strings.Repeat("-", 48) + "\n")
		said := fmt.Sprint(came[i][1])
		switch {
		case came[i][0] != true:
			good = false
			fmt.Fprintln(&out, said)
		case named:
			for line := range strings.Lines(said) {
				fmt.Fprintf(&out, "%s: %s\n", node, strings.TrimSuffix(line, "\n"))
			}
		default:
			fmt.Fprintf(&out, "Node: %s\n%s\n", node, said)
		}
	}
	return out.String(), good, nil
}

// scheduled words what a node says that is to be switched off and on.
func scheduled(_ string, result json.RawMessage) string {
	var said string
	if err := json.Unmarshal(result, &said); err != nil || said == "" {
		return ""
	}
	return said + "\n"
}
