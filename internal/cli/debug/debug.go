// Package debug holds the commands that look inside and try out: debug, lock, burnin.
package debug

import (
	"strconv"

	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/spf13/cobra"
)

// Command returns the noun "debug".
func Command(sh *shell.Shell) *cobra.Command {
	locks := lists.Command(sh, LockList)
	locks.Use = "locks [NAME...]"
	return sh.Group("debug", "Tools for tests and for looking inside", locks, bundleCommand(sh), shell.Heeding(shell.Making, debugDelay(sh)),
		work.Operation{Noun: "debug", Verb: "allocator", Short: "Ask an allocator what it would do", ID: "OP_TEST_ALLOCATOR", Shown: true}.Command(sh),
		work.Operation{Noun: "debug", Verb: "test-osparams", Short: "Test that secret parameters of operating systems arrive, and are shown to nobody", ID: "OP_TEST_OS_PARAMS",
			Names: map[string]string{"os-parameters": "osparams_secret"}}.Command(sh))
}

func debugDelay(sh *shell.Shell) *cobra.Command {
	cmd := &cobra.Command{Use: "delay SECONDS", Short: "Run a job that only waits", Args: shell.Exactly(1)}
	onNodes := cmd.Flags().StringArrayP("node", "n", nil, "wait on this node; may be repeated")
	noMaster := cmd.Flags().Bool("no-master", false, "do not wait on the master")
	noLocks := cmd.Flags().BoolP("no-locks", "l", false, "take no locks")
	repeat := cmd.Flags().IntP("repeat", "r", 0, "wait so often")
	lists.CompleteItems(sh, cmd, lists.OptionKinds)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		duration, err := strconv.ParseFloat(args[0], 64)
		if err != nil {
			return shell.Usage("the duration is a number of seconds, got %q", args[0])
		}
		op, err := work.NewOp(sh, "debug", "OP_TEST_DELAY", map[string]any{"duration": duration, "on_master": !*noMaster,
			"on_nodes": shell.NonNil(*onNodes), "no_locks": *noLocks, "repeat": *repeat})
		if err != nil {
			return err
		}
		return work.Run(cmd.Context(), sh, []work.Task{{Ops: []*opcode.Opcode{op}}})
	}
	return cmd
}
