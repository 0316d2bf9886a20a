package deployments

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/deploy/report"
)

func deployPicture(sh *shell.Shell) *cobra.Command {
	form := report.PictureForms[0].Name
	cmd := &cobra.Command{
		Use: "picture ID", Short: "Draw the tasks of a plan or a deployment, and how far each is", Args: shell.Exactly(1),
		Long: "Draw the tasks of a plan that is kept, or of a deployment, whatever their nodes: an arrow leads to what comes later, and each task\n" +
			"tells on how many nodes it is done. The text is for Mermaid or, with --form dot, for Graphviz.",
		Example: "  drover deploy picture 7 --form dot | dot -Tsvg > plan.svg",
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := deploymentID(args[0])
		if err != nil {
			return err
		}
		draw := report.PictureForm(form)
		if draw == nil {
			return shell.Usage("--form must be %s, got %q", shell.Alternatives(pictureForms(), " or "), form)
		}
		var whole json.RawMessage
		if err := sh.Do(cmd.Context(), "OutlineDeployment", &whole, id); err != nil {
			return err
		}
		var o course.Outline
		if err := json.Unmarshal(whole, &o); err != nil {
			return err
		}
		return sh.ShowTimes(whole, stampKeys, func() error { return draw(sh.Out, boxes(o.Tasks), o.After) })
	}
	cmd.Flags().StringVar(&form, "form", form, "what the picture is for: "+strings.Join(pictureForms(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("form", cobra.FixedCompletions(pictureForms(), cobra.ShellCompDirectiveNoFileComp)) // the option exists
	return shell.Heeding(shell.Asking, cmd)
}

func pictureForms() (names []string) {
	for _, f := range report.PictureForms {
		names = append(names, f.Name)
	}
	return names
}

// boxes are tasks as pictures have them.
func boxes(tasks []course.Sum) []report.Box {
	out := make([]report.Box, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		out[i] = report.Box{Title: t.Task, State: t.State, Text: t.State}
		if t.Runs > 0 {
			out[i].Text = fmt.Sprintf("%s, %d of %s", t.State, t.Passed, shell.Counted(t.Runs, "node"))
		}
	}
	return out
}
