package jobs

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
)

// Drain returns the verb that closes the queue to new jobs, or opens it again.
func Drain(sh *shell.Shell, verb string, on bool) *cobra.Command {
	short := map[bool]string{true: "Take no new jobs; those in the queue go on", false: "Take new jobs again"}[on]
	return &cobra.Command{
		Use: verb, Short: short, Args: shell.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if sh.Flags.DryRun {
				return wouldDrain(cmd.Context(), sh, on)
			}
			return sh.Ask(cmd.Context(), "SetDrainFlag", nil, on, sh.UserTrail())
		},
	}
}

// wouldDrain says what a change of the drain flag would do.
func wouldDrain(ctx context.Context, sh *shell.Shell, on bool) error {
	var values []bool
	if err := sh.Ask(ctx, "QueryConfigValues", &values, []string{"drain_flag"}); err != nil {
		return err
	}
	now := len(values) == 1 && values[0]
	text := map[bool]string{true: "The queue would take no new jobs", false: "The queue would take new jobs"}[on]
	if now == on {
		text += ", as it is already"
	}
	return sh.Show(map[string]bool{"drained": now, "would_be_drained": on}, func() error { return sh.Printf("%s\n", text) })
}
