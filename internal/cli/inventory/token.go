package inventory

import (
	"crypto/rand"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/drover-project/drover/internal/joining"
	"github.com/drover-project/drover/internal/opcode"
)

// nodeToken makes the token of a node's agent. The secret of it is drawn here: the controllers, and the job, have its hash alone.
func nodeToken(sh *shell.Shell) *cobra.Command {
	cmd := &cobra.Command{
		Use: "token NODE", Short: "Let an agent join as a node, and print its token",
		Long: `token lets an agent elsewhere join as a node, which is added if it is not there,
and prints the token alone:

  drover agent join TOKEN --data DIR     on the machine that is to be the node

It counts once, within an hour. For a node that has an agent it lets another take
its place.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: lists.CompleteNames(sh, "node", false),
		RunE: func(cmd *cobra.Command, args []string) error {
			secret := rand.Text()
			params := map[string]any{"node_name": args[0], "token_hash": joining.HashOf(secret)}
			for flag, param := range map[string]string{"group": "group", "primary-ip": "primary_ip"} {
				if cmd.Flags().Changed(flag) {
					params[param] = cmd.Flags().Lookup(flag).Value.String()
				}
			}
			op, err := work.NewOp(sh, "node", "OP_NODE_TOKEN", params)
			if err != nil {
				return err
			}
			if sh.Flags.DryRun {
				return work.Run(cmd.Context(), sh, []work.Task{{Target: args[0], Ops: []*opcode.Opcode{op}}})
			}
			var made struct {
				Node      string   `json:"node"`
				Addresses []string `json:"addresses"`
				Authority string   `json:"authority"`
				Until     int64    `json:"until"`
			}
			if err := work.Made(cmd.Context(), sh, op, &made); err != nil {
				return err
			}
			token := joining.Token{Node: made.Node, Secret: secret, Addresses: made.Addresses, Authority: made.Authority}
			shown := map[string]any{"node": made.Node, "token": token.String(), "until": time.Unix(made.Until, 0).UTC().Format(time.RFC3339)}
			return sh.Show(shown, func() error {
				sh.Notef("on the machine that is to be %s, until %s: drover agent join TOKEN --data DIR\n", made.Node, time.Unix(made.Until, 0).Format(time.TimeOnly))
				return sh.Printf("%s\n", token)
			})
		},
	}
	cmd.Flags().String("group", "", "node group of a node that is added")
	cmd.Flags().String("primary-ip", "", "address of a node that is added")
	return shell.Heeding([]string{"luxi", "output", "reason", "priority", "dry-run"}, cmd)
}
