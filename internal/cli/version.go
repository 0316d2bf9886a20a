package cli

import (
	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/version"
)

// versionCommand tells which program this is; no controller is asked.
// `cluster version` tells what the controller is.
func versionCommand(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this program and the commit it was built from", Args: shell.Exactly(0),
		RunE: func(*cobra.Command, []string) error {
			b := version.Current()
			return sh.Show(b, func() error { return sh.Printf("drover %s\n%s %s\n", b, b.Go, b.Platform) })
		},
	}
}
