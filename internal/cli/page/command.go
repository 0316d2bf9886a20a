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
		Use: "web", Short: "Open the page in a browser, signed in", Args: shell.Exactly(0),
		Long: "Open a browser that shows what the cluster does and why it waits, or where there is\n" +
			"none to be seen print the address. It signs in once, within five minutes, as whoever\n" +
			"reaches the controller's socket: such a one may do everything. Without it the page\n" +
			"asks for an account of the users file.",
		Example: "  drover web\n  firefox \"$(drover web --print)\"",
	}
	cmd.Flags().BoolVar(&bare, "print", false, "print the address alone, and open nothing")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var address string
		if err := sh.Ask(cmd.Context(), "WebLink", &address); err != nil {
			return err
		}
		if bare {
			return sh.Printf("%s\n", address)
		}
		if program := opener(sh); program != "" {
			err := open(cmd.Context(), sh, program, address)
			if err == nil {
				return sh.Printf("The page is opened in a browser. If none comes up, open this within five minutes:\n\n  %s\n", address)
			}
			if cmd.Context().Err() != nil {
				return err
			}
			sh.Notef("%v\n", err)
		}
		return sh.Printf("Open this in a browser within five minutes; it signs you in once:\n\n  %s\n", address)
	}
	return shell.Heeding([]string{"luxi"}, cmd)
}
