package top

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/screen"
	"github.com/drover-project/drover/internal/cli/shell"
)

// fastest is the shortest time between two pictures: each costs the controller some
// questions.
const fastest = 500 * time.Millisecond

// Command returns the command "top".
func Command(sh *shell.Shell) *cobra.Command {
	every := 2 * time.Second
	cmd := &cobra.Command{
		Use: "top [jobs|holds|nodes]", Short: "Show what runs, what waits and what holds it, as it changes", Args: cobra.MaximumNArgs(1),
		Long: "Show on a terminal what the cluster does, as it changes: the jobs that run and wait,\n" +
			"what holds them and what would have to be different, how many come and end, and\n" +
			"the nodes. Key ? tells the keys.",
		ValidArgsFunction: cobra.FixedCompletions(viewNames, cobra.ShellCompDirectiveNoFileComp),
	}
	cmd.Flags().DurationVar(&every, "interval", every, "how long it rests between two looks")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		view, err := viewOf(args)
		if err != nil {
			return err
		}
		if every < fastest {
			return shell.Usage("--interval must be %v at least, got %v", fastest, every)
		}
		terminal, err := screen.Of(sh, "drover job list shows what runs and what waits; with --watch, as it changes")
		if err != nil {
			return err
		}
		return screen.Show(cmd.Context(), terminal, &State{ask: sh.Ask, now: sh.Now, every: every, paint: sh.Paint, view: view})
	}
	return shell.Heeding([]string{"luxi"}, cmd)
}

// viewOf reads the name of a view.
func viewOf(args []string) (View, error) {
	if len(args) == 0 {
		return Jobs, nil
	}
	for v, name := range viewNames {
		if name == args[0] {
			return View(v), nil
		}
	}
	return 0, shell.Usage("the views are jobs, holds and nodes, not %q", args[0])
}
