package deployments

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/deploy/report"
	"github.com/drover-project/drover/internal/fault"
)

// explained write why a step runs or does not, by the names of formats; any other format shows what JSON says.
var explained = map[string]func(out io.Writer, p *plan.Plan, step int32) error{"json": report.ExplainJSON, "yaml": report.ExplainYAML}

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
			form := shell.FormatOf(cmd)
			switch write := explained[form.Name]; {
			case write != nil:
				return write(cmd.OutOrStdout(), p, step)
			case form.Data == nil:
				return report.Explain(cmd.OutOrStdout(), p, step, veil)
			}
			var text bytes.Buffer
			if err := report.ExplainJSON(&text, p, step); err != nil {
				return err
			}
			return form.Data(cmd.OutOrStdout(), json.RawMessage(text.Bytes()))
		},
	}
	in.register(cmd)
	return cmd
}
