package manage

import (
	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/servers"
	"github.com/drover-project/drover/internal/cli/shell"
)

const manageServerHelp = `Lock servers of users in the name of the operator: their users have nothing done to
them until an operator takes the lock away, and neither change their metadata. What
operators do to their instances is not held up. Users read in their servers that they are locked, and
why (--reason). Servers are named by name, id or instance. These commands speak to the
controller itself, not to the Compute API; there administrators have the same.`

// manageServer is about the servers of all projects, as operators see them.
func manageServer(sh *shell.Shell) *cobra.Command {
	c := sh.Group("server", "Servers of users, in the name of the operator",
		holdServer(sh, "lock SERVER", "Keep users from having something done to a server", true, "is locked"),
		holdServer(sh, "unlock SERVER", "Take the lock of a server away, whoever put it there", false, "is not locked any more"))
	c.Long = manageServerHelp
	return c
}

// holdServer locks a server, or takes its lock away.
func holdServer(sh *shell.Shell, use, short string, locked bool, then string) *cobra.Command {
	return shell.Heeding(shell.Changing, &cobra.Command{Use: use, Short: short, Args: shell.Exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		id, err := servers.IDOf(cmd.Context(), sh, args[0])
		if err != nil {
			return err
		}
		var changed bool
		if err := sh.Ask(cmd.Context(), "LockServer", &changed, id, locked, sh.Flags.Reason, sh.Flags.DryRun, sh.UserTrail()); err != nil {
			return err
		}
		return sh.Show(map[string]any{"server": id, "locked": locked, "changed": changed}, func() error {
			switch {
			case !changed:
				return sh.Printf("Nothing changes: server %s %s.\n", id, map[bool]string{true: then, false: "has no lock"}[locked])
			case sh.Flags.DryRun:
				return sh.Printf("Would be so: server %s %s.\n", id, then)
			}
			return sh.Printf("Server %s %s.\n", id, then)
		})
	}})
}
