// Package yaqlcmd is the command "drover yaql": it evaluates expressions, one or a stream of them, offers a
// console to try them in, and tells what functions there are.
//
// The commands compute on what they are given; they talk to no controller.
package yaqlcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/yaql"
	"github.com/drover-project/drover/yaql/yaqljson"
)

// New returns the command "yaql" with its subcommands.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "yaql",
		Short: "Evaluate YAQL expressions",
		Long:  "Evaluate YAQL expressions, the language of computed deployment tasks, on data of your own.",
	}
	cmd.AddCommand(newEval(), newRepl(), newFunctions())
	return cmd
}

// settings are the flags that eval and repl share.
type settings struct {
	data      string
	legacy    bool
	delegates bool
	limit     int
	memory    int64
	steps     int64
	timeout   time.Duration
}

func (s *settings) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&s.data, "data", "d", "", "JSON file that becomes $ (- for standard input)")
	flags.BoolVar(&s.legacy, "legacy", false, "speak the first version of the language")
	flags.BoolVar(&s.delegates, "delegates", false, "allow lambda(...) and calls of values")
	flags.IntVar(&s.limit, "limit", -1, "greatest number of items of a collection (-1: no limit)")
	flags.Int64Var(&s.memory, "memory", -1, "greatest size of a value in bytes (-1: no limit)")
	flags.Int64Var(&s.steps, "steps", -1, "greatest number of steps (-1: no limit)")
	flags.DurationVar(&s.timeout, "timeout", 0, "longest time of an evaluation (0: no limit)")
}

func (s *settings) engine() (*yaql.Engine, error) {
	options := []yaql.Option{yaql.LimitIterators(s.limit), yaql.MemoryQuota(s.memory), yaql.StepBudget(s.steps), yaql.OrderedResults()}
	if s.legacy {
		options = append(options, yaql.Legacy())
	}
	if s.delegates {
		options = append(options, yaql.AllowDelegates())
	}
	return yaql.New(options...)
}

// deadline returns the context of one evaluation.
func (s *settings) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.timeout > 0 {
		return context.WithTimeout(ctx, s.timeout)
	}
	return context.WithCancel(ctx)
}

// load reads the document of --data, nil without one.
func (s *settings) load(stdin io.Reader) (any, error) {
	if s.data == "" {
		return nil, nil
	}
	return readDocument(s.data, stdin)
}

func readDocument(name string, stdin io.Reader) (any, error) {
	var text []byte
	var err error
	if name == "-" {
		text, err = io.ReadAll(stdin)
	} else {
		text, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, err
	}
	value, err := yaqljson.Decode(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return value, nil
}

// explain writes an error for a person: what is wrong, where in the expression, and what may help.
func explain(err error) string {
	fault, ok := errors.AsType[*yaql.Error](err)
	if !ok {
		return err.Error()
	}
	text := fault.Class + ": " + fault.Plain()
	if caret := fault.Caret(); caret != "" {
		text += "\n" + caret
	}
	hint := fault.Hint
	if name := ofTasks(fault); name != "" {
		hint = name + " is a function of tasks of deployments: drover deploy console evaluates it"
	}
	if hint != "" {
		text += "\n" + hint
	}
	return text
}

// ofTasks names the function that is unknown here and known in expressions of tasks, if it is one.
func ofTasks(e *yaql.Error) string {
	_, quoted, found := strings.Cut(e.Message, `"`)
	name, _, _ := strings.Cut(quoted, `"`)
	if !found || e.Class != yaql.NoFunctionRegisteredException && e.Class != yaql.NoMethodRegisteredException {
		return ""
	}
	language, err := expression.NewLanguage()
	plain, err2 := yaql.New()
	if err != nil || err2 != nil || !language.Has(name) || slices.ContainsFunc(plain.Functions(), func(f *yaql.Function) bool { return f.Name() == name }) {
		return ""
	}
	return name
}

// doubt tells a person what is probably not meant in an expression.
func doubt(w io.Writer, x *yaql.Expression) {
	for _, d := range x.Doubts() {
		_, _ = fmt.Fprintf(w, "note: %s\n", d.Text) // there is nowhere else to say it
	}
}
