package inventory

import (
	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/drover-project/drover/internal/opcode"
)

const deactivateHelp = `Take the address of the cluster away from the machine of the controller that leads:
who is connected to it is cut off. It stays away until activate-master-ip, or until
another controller leads. The setting master-ip-setup of the controllers names the
program that does it.`

// clusterDeactivateAddress makes the verb that takes the address of the cluster away. The classic tool asks, too.
func clusterDeactivateAddress(sh *shell.Shell) *cobra.Command {
	cmd := shell.Heeding(shell.Making, &cobra.Command{Use: "deactivate-master-ip", Short: "Take the address of the cluster away", Long: deactivateHelp, Args: shell.Exactly(0)})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := sh.Sure("cluster deactivate-master-ip"); err != nil {
			return err
		}
		op, err := work.NewOp(sh, "cluster", "OP_CLUSTER_DEACTIVATE_MASTER_IP", nil)
		if err != nil {
			return err
		}
		return work.Run(cmd.Context(), sh, []work.Task{{Ops: []*opcode.Opcode{op}}})
	}
	return cmd
}
