package deployments

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/deploy/graph"
)

func newValidate() *cobra.Command {
	var graphs []string
	in := &planInput{}
	cmd := &cobra.Command{
		Use:   "validate --graph PATH...",
		Short: "Check task graphs",
		Long: "Check the form of task graphs, their expressions, and that tasks do not wait for one another in a circle.\n" +
			"With an environment, plan a first deployment of it as well. The last line says how much was checked.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			language, err := languageWith(in.functions)
			if err != nil {
				return err
			}
			g, err := loadGraph(language, graphs)
			if err != nil {
				return err
			}
			warn(cmd.ErrOrStderr(), g.Warnings)
			warn(cmd.ErrOrStderr(), graph.Dangling(g))
			if err := graph.Circles(g); err != nil {
				return err
			}
			if in.environment != "" {
				p, _, _, err := in.compute(cmd, language, g)
				if err != nil {
					return err
				}
				warn(cmd.ErrOrStderr(), graph.UnknownRoles(g, p.Roles))
				for _, w := range p.Warnings {
					warnText(cmd.ErrOrStderr(), w)
				}
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s, %s\n", shell.Counted(len(g.Tasks), "task"), shell.Counted(g.Expressions, "expression"))
			return err
		},
	}
	cmd.Flags().StringArrayVarP(&graphs, "graph", "g", nil, "file or directory of a task graph; later ones override earlier ones")
	cmd.Flags().StringVarP(&in.environment, "env", "e", "", "file of the environment that the graph is for")
	functionsFlag(cmd.Flags(), &in.functions)
	_ = cmd.MarkFlagRequired("graph") // the flag exists
	return cmd
}
