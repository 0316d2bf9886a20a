package yaqlcmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/yaql"
)

func newFunctions() *cobra.Command {
	s := &settings{}
	module := ""
	cmd := &cobra.Command{
		Use:   "functions [NAME]",
		Short: "List the functions, methods and operators",
		Long:  "List the functions, methods and operators of the language, or tell about one of them.",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cmd.SilenceUsage = true
			engine, err := s.engine()
			if err != nil {
				return err
			}
			if len(args) == 1 && module != "" {
				return errors.New("--module is for the list of all functions, and not for one of them")
			}
			if len(args) == 1 {
				return tellFunction(cmd.OutOrStdout(), engine, args[0])
			}
			return listFunctions(cmd.OutOrStdout(), engine, module)
		},
	}
	cmd.Flags().BoolVar(&s.legacy, "legacy", false, "those of the first version of the language")
	cmd.Flags().BoolVar(&s.delegates, "delegates", false, "with those that call values")
	cmd.Flags().StringVar(&module, "module", "", "only those of a module, such as strings or queries")
	return cmd
}

// listFunctions prints one line for each overload, sorted by module and name.
func listFunctions(out io.Writer, engine *yaql.Engine, module string) error {
	functions := slices.Clone(engine.Functions())
	slices.SortStableFunc(functions, func(a, b *yaql.Function) int {
		return cmp.Or(cmp.Compare(a.Module(), b.Module()), cmp.Compare(a.Name(), b.Name()))
	})
	found, heading := false, ""
	for _, f := range functions {
		if module != "" && f.Module() != module {
			continue
		}
		if f.Module() != heading {
			heading = f.Module()
			if _, err := fmt.Fprintf(out, "%s:\n", heading); err != nil {
				return err
			}
		}
		found = true
		if _, err := fmt.Fprintf(out, "  %s\n", f.Signature()); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("there is no module %q; the modules are %s", module, strings.Join(modules(engine), ", "))
	}
	return nil
}

func modules(engine *yaql.Engine) []string {
	var names []string
	for _, f := range engine.Functions() {
		names = append(names, f.Module())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// tellFunction prints all that is known about the overloads of a name.
func tellFunction(out io.Writer, engine *yaql.Engine, name string) error {
	found := false
	for _, f := range engine.Functions() {
		if !answersTo(f, name) {
			continue
		}
		found = true
		if _, err := fmt.Fprintf(out, "%s\n    %s\n", f.Signature(), f.Doc()); err != nil {
			return err
		}
		if expression, result := f.Example(); expression != "" {
			if _, err := fmt.Fprintf(out, "    %s  gives  %s\n", expression, result); err != nil {
				return err
			}
		}
	}
	if !found {
		return fmt.Errorf("there is no function %q%s", name, suggestion(engine, name))
	}
	return nil
}

// answersTo reports whether a function is known by a name: operators by their sign too.
func answersTo(f *yaql.Function, name string) bool {
	return f.Name() == name || slices.Contains(operatorNames(name), f.Name())
}

func operatorNames(sign string) []string {
	names := []string{"#operator_" + sign, "#unary_operator_" + sign, "#property#" + sign}
	switch sign {
	case "=":
		names = append(names, "*equal")
	case "!=":
		names = append(names, "*not_equal")
	}
	return names
}

// suggestion names functions that begin or continue like name.
func suggestion(engine *yaql.Engine, name string) string {
	var near []string
	for _, f := range engine.Functions() {
		if isWord(f.Name()) && strings.Contains(strings.ToLower(f.Name()), strings.ToLower(name)) {
			near = append(near, f.Name())
		}
	}
	slices.Sort(near)
	near = slices.Compact(near)
	if len(near) == 0 {
		return ""
	}
	return "; there is " + strings.Join(near, ", ")
}

func isWord(name string) bool { return name != "" && !strings.ContainsAny(name, "#*") }
