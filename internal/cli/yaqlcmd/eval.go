package yaqlcmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/yaql/yaqljson"
)

func newEval() *cobra.Command {
	s := &settings{}
	lines := false
	cmd := &cobra.Command{
		Use:   "eval [--data FILE] EXPR",
		Short: "Evaluate one expression, or a stream of them",
		Long: `Evaluate an expression and print its result as JSON.

With --jsonl, read lines {"id", "expr", "data", "options"} from standard input and write for each, in the same
order, a line {"id", "value"} or {"id", "error": {"type", "message"}}. --steps and --timeout
hold for each line; a line's options decide about the rest, and without options the defaults are those of the
language's reference.

What JSON lacks is written as an object with one key: {"$set": [1]}, {"$datetime": "..."}, {"$timespan": 1000000}.`,
		Example: `  drover yaql eval '[1, 2, 3].where($ > 1).sum()'
  drover yaql eval --data nodes.json '$.nodes.where($.status = ready).name'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if lines {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			cmd.SilenceUsage = true
			if lines {
				return s.evalLines(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
			}
			return s.evalOne(cmd, args[0])
		},
	}
	s.register(cmd)
	cmd.Flags().BoolVar(&lines, "jsonl", false, "evaluate lines of JSON from standard input")
	for _, other := range []string{"data", "legacy", "delegates"} {
		cmd.MarkFlagsMutuallyExclusive("jsonl", other)
	}
	return cmd
}

// evalOne prints the result of an expression.
func (s *settings) evalOne(cmd *cobra.Command, expression string) error {
	engine, err := s.engine()
	if err != nil {
		return err
	}
	data, err := s.load(cmd.InOrStdin())
	if err != nil {
		return err
	}
	compiled, err := engine.Compile(expression)
	if err != nil {
		return errors.New(explain(err))
	}
	doubt(cmd.ErrOrStderr(), compiled)
	ctx, cancel := s.deadline(cmd.Context())
	defer cancel()
	result, err := compiled.Eval(ctx, data)
	if err != nil {
		return errors.New(explain(err))
	}
	return printJSON(cmd.OutOrStdout(), result)
}

// printJSON writes a result for a person.
func printJSON(out io.Writer, result any) error {
	text, err := yaqljson.Encode(result)
	if err != nil {
		return err
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, text, "", "  "); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, pretty.String())
	return err
}
