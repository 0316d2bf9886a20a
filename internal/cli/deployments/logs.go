package deployments

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
)

func deployLogs(sh *shell.Shell) *cobra.Command {
	follow := false
	cmd := shell.Heeding(shell.Asking, &cobra.Command{
		Use: "logs ID TASK NODE", Short: "Show what a task printed on a node", Args: shell.Exactly(3), //nolint:mnd // deployment, task and node
		Long: "Show what a task of a deployment printed on a node: the log of its latest job, with <redacted> in place of secrets.",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := deploymentID(args[0])
			if err != nil {
				return err
			}
			if follow && sh.Structured() {
				return shell.Usage("--follow shows lines as they come; it has no form for --output %s", sh.Flags.Output)
			}
			var x course.Explanation
			if err := sh.Do(cmd.Context(), "ExplainDeploymentTask", &x, id, args[1], args[2]); err != nil {
				return err
			}
			if x.Job == 0 {
				return fault.New(fault.NotFound, "%s has printed nothing: it has no job, and is %s", whereIs(&x.Task), x.State).
					WithHint("drover deploy explain %d %s %s tells why", id, args[1], args[2])
			}
			if follow {
				return followLog(cmd.Context(), sh, job.ID(x.Job))
			}
			return showLog(cmd.Context(), sh, &x)
		},
	})
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the task has ended")
	return cmd
}

// showLog shows the log of the job of a task; of a job that is no longer there what was kept beside it.
func showLog(ctx context.Context, sh *shell.Shell, x *course.Explanation) error {
	var answers [][]json.RawMessage
	if err := sh.Ask(ctx, "QueryJobs", &answers, []int64{x.Job}, []string{"oplog"}); err != nil {
		return err
	}
	var logs [][]work.LogEntry
	if len(answers) == 1 && len(answers[0]) == 1 {
		if err := json.Unmarshal(answers[0][0], &logs); err != nil {
			return err
		}
	}
	if len(logs) == 0 {
		if len(x.Output) == 0 {
			return fault.New(fault.NotFound, "job %d of the task is no longer kept, nor what it printed", x.Job)
		}
		sh.Notef("job %d of the task is no longer kept; these are the last lines\n", x.Job)
		return sh.Show(x.Output, func() error {
			for _, line := range x.Output {
				if err := sh.Printf("%s\n", line); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return sh.Show(logs[0], func() error {
		for _, entry := range logs[0] {
			if err := sh.Printf("%s\n", entry.Text()); err != nil {
				return err
			}
		}
		return nil
	})
}

// followLog shows the log of a job until it has ended. That the task failed is no failure of the command.
func followLog(ctx context.Context, sh *shell.Shell, id job.ID) error {
	_, err := work.Follow(ctx, sh, id, func(e work.LogEntry) error { return sh.Printf("%s\n", e.Text()) })
	return err
}
