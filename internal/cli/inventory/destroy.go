package inventory

import (
	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/drover-project/drover/internal/opcode"
)

const destroyHelp = `Take the cluster out of service for good. It may have no instances, no disks, and no
node but the master. Nothing more is done in it, and no controller starts on its store
again; what is stored stays there.`

// clusterDestroy makes the verb that takes the cluster out of service. The classic tool has an option in place of a question.
func clusterDestroy(sh *shell.Shell) *cobra.Command {
	cmd := shell.Heeding(shell.Making, &cobra.Command{Use: "destroy NAME", Short: "Take the cluster out of service for good", Long: destroyHelp, Args: shell.Exactly(1)})
	cmd.ValidArgsFunction = cobra.NoFileCompletions // it is to be said by whoever means it
	meant := new(bool)
	if sh.Classic() {
		meant = cmd.Flags().Bool("yes-do-it", false, "the cluster is to be destroyed")
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case sh.Classic() && !*meant:
			sh.Notef("Destroying a cluster is irreversible. If you really want destroy this cluster, supply the --yes-do-it option.\n")
			return shell.ErrFailed
		case !*meant:
			if err := sh.Sure("cluster destroy", args[0]); err != nil {
				return err
			}
		}
		op, err := work.NewOp(sh, "cluster", "OP_CLUSTER_DESTROY", map[string]any{"name": args[0]})
		if err != nil {
			return err
		}
		return work.Run(cmd.Context(), sh, []work.Task{{Ops: []*opcode.Opcode{op}}})
	}
	return cmd
}
