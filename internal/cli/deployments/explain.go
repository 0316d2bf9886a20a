package deployments

import (
	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/deploy/report"
	"github.com/drover-project/drover/internal/fault"
)

func newExplain() *cobra.Command {
	in := &planInput{}
	cmd := &cobra.Command{
		Use:   "explain --env FILE --graph PATH... [--old FILE] TASK NODE",
		Short: "Say why a task would run on a node or not",
		Long: "Say why a task would run on a node or not: every comparison of its condition with the old and the new value,\n" +
			"its parameters as computed, and what it waits for. The virtual node of stages is called null.",
		Args: cobra.ExactArgs(2), //nolint:mnd // task and node
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := in.given(); err != nil {
				return err
			}
			language, err := languageWith(in.functions)
			if err != nil {
				return err
			}
			g, err := loadGraph(language, in.graphs)
			if err != nil {
				return err
			}
			p, _, hide, err := in.compute(cmd, language, g)
			if err != nil {
				return err
			}
			step, ok := p.Find(args[0], args[1])
			if !ok {
				return fault.New(fault.NotFound, "the plan has no task %q on node %q", args[0], args[1])
			}
			veil, err := hide()
			if err != nil {
				return err
			}
			form := "table"
			if f := cmd.Flags().Lookup("output"); f != nil {
				form = f.Value.String()
			}
			switch form {
			case "json":
				return report.ExplainJSON(cmd.OutOrStdout(), p, step)
			case "yaml":
				return report.ExplainYAML(cmd.OutOrStdout(), p, step)
			case "csv":
				return shell.Usage("only lists can be shown as csv")
			}
			return report.Explain(cmd.OutOrStdout(), p, step, veil)
		},
	}
	in.register(cmd)
	return cmd
}
