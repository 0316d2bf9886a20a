package deployments

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
)

// removed is a deployment that went, or would go.
type removed struct {
	ID          int64  `json:"id"`
	Environment string `json:"environment"`
	Status      string `json:"status"`
}

func deployDelete(sh *shell.Shell) *cobra.Command {
	return shell.Heeding(shell.Changing, &cobra.Command{
		Use: "delete ID...", Short: "Remove deployments that are over, or plans that were not begun", Args: shell.AtLeast(1),
		Long: "Remove deployments for good, with their plans, what became of each task, and the states that nothing else refers to. Those stay by which something\n" +
			"is decided: one that is under way, the latest of an environment and the newest of all, and those in which tasks last succeeded. What tasks\n" +
			"printed is in their jobs. drover archive prune --deployments-older-than removes by age.",
		RunE: func(cmd *cobra.Command, args []string) error {
			ids := make([]int64, len(args))
			for i, arg := range args {
				id, err := deploymentID(arg)
				if err != nil {
					return err
				}
				ids[i] = id
			}
			did := "Removed"
			var whole json.RawMessage
			if err := sh.Ask(cmd.Context(), "DeleteDeployments", &whole, ids, sh.UserTrail(), true); err != nil {
				return err
			}
			what, err := going(whole)
			if err != nil {
				return err
			}
			if sh.Flags.DryRun {
				did = "Would remove"
			} else {
				if err := sh.Sure(shell.PathOf(cmd), what); err != nil {
					return err
				}
				if err := sh.Do(cmd.Context(), "DeleteDeployments", &whole, ids, sh.UserTrail()); err != nil {
					return err
				}
			}
			return sh.ShowTimes(whole, append([]string{"over"}, stampKeys...), func() error { return sh.Printf("%s %s.\n", did, what) })
		},
	})
}

// going names the deployments of an answer.
func going(answer json.RawMessage) (string, error) {
	var a struct {
		Deployments []removed `json:"deployments"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return "", err
	}
	names := make([]string, len(a.Deployments))
	for i, d := range a.Deployments {
		names[i] = fmt.Sprintf("%d of %s (%s)", d.ID, d.Environment, d.Status)
	}
	if len(names) == 1 {
		return "deployment " + names[0], nil
	}
	return fmt.Sprintf("%s: %s", shell.Counted(len(names), "deployment"), shell.Listed(names)), nil
}
