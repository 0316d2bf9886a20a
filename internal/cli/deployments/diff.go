package deployments

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/deploy/report"
)

func deployDiff(sh *shell.Shell) *cobra.Command {
	var tasks, all bool
	cmd := &cobra.Command{
		Use: "diff ENVIRONMENT|DEPLOYMENT [ENVIRONMENT|DEPLOYMENT]", Short: "Compare the states of environments and deployments", Args: shell.Between(1, 2),
		Long: "Compare two states: that of a deployment, by its number, or the one to be reached of an environment, by its name.\nWith one environment only, its state is compared with that of its latest deployment.\n" +
			"With --tasks two plans are compared, by their numbers: what only one of them runs, and what both run for different reasons.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if tasks {
				return diffPlans(cmd.Context(), sh, args, all)
			}
			if all {
				return shell.Usage("--all is for --tasks; of states all is told")
			}
			before, after, err := twoStates(cmd.Context(), sh, args)
			if err != nil {
				return err
			}
			var found []struct {
				Node, Path string
				Old, New   json.RawMessage
				Came, Gone bool
				Host       bool
			}
			if err := sh.Do(cmd.Context(), "DiffStates", &found, before, after); err != nil {
				return err
			}
			return sh.Show(found, func() error {
				for _, d := range found {
					where := "common"
					if d.Node != "" {
						where = "node " + d.Node
					}
					text := string(d.Old) + " -> " + string(d.New)
					switch {
					case d.Host:
						where += " host"
					case d.Came:
						text = "came: " + string(d.New)
					case d.Gone:
						text = "went: " + string(d.Old)
					}
					if err := sh.Printf("%s%s: %s\n", where, d.Path, text); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&tasks, "tasks", false, "compare which tasks two plans run, and why")
	cmd.Flags().BoolVar(&all, "all", false, "with --tasks: tell of all tasks and reasons, however many they are")
	return cmd
}

// diffPlans tells how two plans differ.
func diffPlans(ctx context.Context, sh *shell.Shell, args []string, all bool) error {
	if len(args) != 2 { //nolint:mnd // before and after
		return shell.Usage("--tasks compares two plans: give both their numbers")
	}
	var plans [2]planned
	for i, arg := range args {
		id, err := deploymentID(arg)
		if err != nil {
			return err
		}
		if err := sh.Do(ctx, "QueryDeployment", &plans[i].Deployment, id); err != nil {
			return err
		}
		if err := sh.Do(ctx, "QueryDeploymentTasks", &plans[i].Tasks, id); err != nil {
			return err
		}
	}
	gone, came, changed := report.Compare(plans[0].rows(), plans[1].rows())
	return sh.Show(map[string]any{"gone": told(gone), "came": told(came), "changed": told(changed)}, func() error {
		for _, part := range []struct {
			what string
			rows []report.Row
		}{
			{"only deployment " + args[0] + " runs:", gone}, {"only deployment " + args[1] + " runs:", came}, {"both run, for other reasons:", changed},
		} {
			if len(part.rows) > 0 {
				if err := sh.Printf("%s", rowsPage(part.what, part.rows, all, sh.Line)); err != nil {
					return err
				}
			}
		}
		if len(gone)+len(came)+len(changed) == 0 {
			return sh.Printf("both run the same, for the same reasons\n")
		}
		return nil
	})
}

// told are rows as programs read them.
func told(rows []report.Row) []map[string]string {
	out := []map[string]string{}
	for _, r := range rows {
		out = append(out, map[string]string{"task": r.Task, "node": r.Node, "why": r.Why})
	}
	return out
}

// stateAt names a state.
type stateAt struct {
	Environment string `json:"environment,omitempty"`
	Deployment  int64  `json:"deployment,omitempty"`
}

func stateNamed(text string) stateAt {
	if n, ok := shell.NumberValue(text).(int64); ok {
		return stateAt{Deployment: n}
	}
	return stateAt{Environment: text}
}

// twoStates are those that arguments name. What one environment alone is compared with is its latest deployment.
func twoStates(ctx context.Context, sh *shell.Shell, args []string) (before, after stateAt, err error) {
	before = stateNamed(args[0])
	if len(args) > 1 {
		return before, stateNamed(args[1]), nil
	}
	after = before
	if after.Deployment != 0 {
		return before, after, shell.Usage("give a second state to compare that of deployment %d with", after.Deployment)
	}
	var latest struct{ ID int64 }
	if err := sh.Do(ctx, "LatestDeployment", &latest, after.Environment); err != nil {
		return before, after, err
	}
	return stateAt{Deployment: latest.ID}, after, nil
}
