// Package page is `drover web`: the way from a shell to the page.
package page

import (
	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
)

// Command returns the command "web".
func Command(sh *shell.Shell) *cobra.Command {
	bare := false
	cmd := &cobra.Command{
		Use: "web", Short: "Print an address of the page that signs in once", Args: shell.Exactly(0),
		Long: "Print an address at which a browser shows what the cluster does and why it waits.\n" +
			"It signs in once, within five minutes, as whoever reaches the controller's socket:\n" +
			"such a one may do everything. Without it the page asks for an account of the users\n" +
			"file.",
		Example: "  drover web\n  firefox \"$(drover web --print)\"",
	}
	cmd.Flags().BoolVar(&bare, "print", false, "print the address alone")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var address string
		if err := sh.Ask(cmd.Context(), "WebLink", &address); err != nil {
			return err
		}
		if bare {
			return sh.Printf("%s\n", address)
		}
		return sh.Printf("Open this in a browser within five minutes; it signs you in once:\n\n  %s\n", address)
	}
	return shell.Heeding([]string{"luxi"}, cmd)
}
