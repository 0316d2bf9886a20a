package inventory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
)

const sshCommandHelp = `Run a command on nodes by ssh, as root, one node after the other and the master last;
nodes that are marked offline are left out. It is the ssh of this machine, with its
keys and known hosts, that connects, at the port of the node parameter ssh_port: the
controller has nothing to do with it. What nodes are to be allowed by name, without
ssh, is for drover node restricted-command.`

// came is what a command came to on a node.
type came struct {
	Node   string `json:"node"`
	Status int    `json:"status"`
	Output string `json:"output"`
}

// clusterCommand makes the verb that runs a command on nodes.
func clusterCommand(sh *shell.Shell) *cobra.Command {
	cmd := shell.Heeding(shell.Asking, &cobra.Command{Use: "command COMMAND...", Short: "Run a command on nodes by ssh", Long: sshCommandHelp, Args: shell.AtLeast(1)})
	cmd.Flags().SetInterspersed(false) // options behind the command are the command's
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	nodes := cmd.Flags().StringArrayP("node", "n", nil, "run it on this node (may be given several times)")
	group := cmd.Flags().StringP("node-group", "g", "", "run it on the nodes of this group")
	named := cmd.Flags().BoolP("show-machine-names", "M", false, "begin each line with the name of its node")
	failures := cmd.Flags().Bool("failure-only", false, "tell of failures alone")
	lists.CompleteItems(sh, cmd, map[string]string{"node": "node", "node-group": "group"})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		online, err := onlineNodes(cmd.Context(), sh, *nodes, *group)
		if err != nil {
			return err
		}
		targets, err := sshTargets(cmd.Context(), sh, online)
		if err != nil {
			return err
		}
		all, bad := []came{}, false
		for _, t := range targets {
			c, err := t.run(cmd.Context(), strings.Join(args, " "))
			if err != nil {
				return err
			}
			bad = bad || c.Status != 0
			if *failures && c.Status == 0 {
				continue
			}
			if all = append(all, c); sh.Format().Data == nil {
				if err := sh.Printf("%s", c.text(*named)); err != nil {
					return err
				}
			}
		}
		if err := sh.Show(all, func() error { return nil }); err != nil {
			return err
		}
		if bad && !sh.Classic() {
			return shell.ErrFailed
		}
		return nil
	}
	return cmd
}

// text is how the classic tool tells of it.
func (c came) text(named bool) string {
	var out strings.Builder
	out.WriteString(strings.Repeat("-", 48) + "\n")
	if named {
		for line := range strings.Lines(c.Output) {
			fmt.Fprintf(&out, "%s: %s\n", c.Node, strings.TrimSuffix(line, "\n"))
		}
	} else {
		fmt.Fprintf(&out, "node: %s\n%s\n", c.Node, c.Output)
	}
	fmt.Fprintf(&out, "return code = %d\n", c.Status)
	return out.String()
}

// sshTarget is a node as ssh reaches it.
type sshTarget struct {
	name string
	port int
}

// sshTargets are nodes in the order in which a command runs on them: the master is the last.
func sshTargets(ctx context.Context, sh *shell.Shell, names []string) (targets []sshTarget, err error) {
	var found listing.Answer
	if err := sh.Ask(ctx, "Query", &found, "node", []string{"name", "master", "ndparams"}, nil); err != nil {
		return nil, err
	}
	ports, master := map[string]int{}, ""
	for _, row := range found.Data {
		var params struct {
			Port int `json:"ssh_port"`
		}
		if err := json.Unmarshal(row[2].Value, &params); err != nil {
			return nil, fault.New(fault.Internal, "the parameters of node %s have an unexpected form: %.200s", lists.CellText(row[0]), row[2].Value)
		}
		ports[lists.CellText(row[0])] = params.Port
		if string(row[1].Value) == "true" {
			master = lists.CellText(row[0])
		}
	}
	var last []sshTarget
	for _, name := range names {
		t := sshTarget{name, ports[name]}
		if name == master {
			last = append(last, t)
		} else {
			targets = append(targets, t)
		}
	}
	return append(targets, last...), nil
}

// run runs a command there.
func (t sshTarget) run(ctx context.Context, command string) (came, error) {
	args := []string{"-oBatchMode=yes", "-oEscapeChar=none"}
	if t.port > 0 {
		args = append(args, "-p", strconv.Itoa(t.port))
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "ssh", append(args, "root@"+t.name, "--", command)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return came{}, context.Cause(ctx)
	case err != nil && !ended:
		return came{}, fault.New(fault.Environment, "ssh cannot be run: %w", err)
	}
	c := came{Node: t.name, Output: out.String()}
	if ended {
		c.Status = exit.ExitCode()
	}
	return c, nil
}
