package lists

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qlang"
)

// Choice is how drover's own commands choose the items that they are about, beside
// by their names: all of them, those that a filter lets through, or by wildcards in
// the arguments.
type Choice struct {
	Kind   string
	all    bool
	filter string
}

// Register adds the options. Completion offers the names of the items.
func (c *Choice) Register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.all, "all", false, "every "+c.Kind+" there is, in place of names")
	cmd.Flags().StringVar(&c.filter, "filter", "", "every "+c.Kind+" that this filter lets through, in place of names")
	_ = cmd.RegisterFlagCompletionFunc("filter", CompleteFilter(c.Kind)) // the option exists
}

// Given reports whether items are chosen by an option.
func (c *Choice) Given() bool { return c.all || c.filter != "" }

// Wild reports whether an argument stands for several items.
func Wild(arg string) bool { return strings.ContainsAny(arg, "*?") }

// names are the items that are meant. several says that they were not all named,
// so that it takes a question before something is done to them.
func (c *Choice) names(ctx context.Context, sh *shell.Shell, args []string) (names []string, several bool, err error) {
	switch {
	case c.all && c.filter != "":
		return nil, false, shell.Usage("--all and --filter exclude one another")
	case c.Given() && len(args) > 0:
		return nil, false, shell.Usage("give names, or --all or --filter, not both; got %q", args[0])
	case c.all:
		sh.ChosenBy("--all", "")
		names, err = sh.Column(ctx, c.Kind, "name", &qlang.All{})
		return names, true, err
	case c.filter != "":
		sh.ChosenBy("--filter", c.filter)
		filter, err := ParseFilter(sh, c.filter)
		if err != nil {
			return nil, false, err
		}
		names, err = sh.Column(ctx, c.Kind, "name", filter)
		return names, true, err
	}
	seen := map[string]bool{}
	for _, arg := range args {
		if strings.TrimSpace(arg) == "" {
			return nil, false, shell.Usage("an argument is empty, which names no %s", c.Kind)
		}
		found := []string{arg}
		if Wild(arg) {
			several = true
			if found, err = c.matching(ctx, sh, arg); err != nil {
				return nil, false, err
			}
		}
		for _, name := range found {
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names, several, nil
}

// matching are the items whose names a pattern fits; there is one at least.
func (c *Choice) matching(ctx context.Context, sh *shell.Shell, pattern string) ([]string, error) {
	filter, err := qlang.FromArguments([]string{pattern}, qlang.ArgOptions{NameField: "name"})
	if err != nil {
		return nil, err
	}
	names, err := sh.Column(ctx, c.Kind, "name", filter)
	if err == nil && len(names) == 0 {
		err = fault.New(fault.NotFound, "there is no %s %s", c.Kind, pattern)
	}
	return names, err
}

// agreed asks whether the items are meant that were chosen and not named.
func (c *Choice) agreed(sh *shell.Shell, verb string, names []string) error {
	if sh.Flags.DryRun {
		sh.Notef("%s: %s\n", shell.Counted(len(names), c.Kind), shell.Listed(names))
		return nil
	}
	return sh.Confirm(fmt.Sprintf("%s %s: %s?", capital(verb), shell.Counted(len(names), c.Kind), shell.Listed(names)))
}

func capital(verb string) string { return strings.ToUpper(verb[:1]) + verb[1:] }

// Choose returns the items that a command is about and asks, where they were not
// named, whether they are meant. Nothing chosen is no fault: it is said.
func Choose(ctx context.Context, sh *shell.Shell, c *Choice, verb string, args []string, asksItself bool) ([]string, error) {
	names, several, err := c.names(ctx, sh, args)
	if err != nil || !several {
		return names, err
	}
	if len(names) == 0 {
		sh.Notef("no %s is chosen\n", c.Kind)
	}
	if c.filter != "" {
		if err := TellMissing(ctx, sh, c.Kind, c.filter, &qlang.All{}); err != nil {
			return nil, err
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	if asksItself && !sh.Flags.DryRun {
		return names, nil
	}
	return names, c.agreed(sh, verb, names)
}
