package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qlang"
)

// choice is how drover's own commands choose the items that they are about, beside
// by their names: all of them, those that a filter lets through, or by wildcards in
// the arguments.
type choice struct {
	kind   string
	all    bool
	filter string
}

// register adds the options. Completion offers the names of the items.
func (c *choice) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.all, "all", false, "every "+c.kind+" there is, in place of names")
	cmd.Flags().StringVar(&c.filter, "filter", "", "every "+c.kind+" that this filter lets through, in place of names")
}

// given reports whether items are chosen by an option.
func (c *choice) given() bool { return c.all || c.filter != "" }

// wild reports whether an argument stands for several items.
func wild(arg string) bool { return strings.ContainsAny(arg, "*?") }

// names are the items that are meant. several says that they were not all named,
// so that it takes a question before something is done to them.
func (c *choice) names(ctx context.Context, sh *shell, args []string) (names []string, several bool, err error) {
	switch {
	case c.all && c.filter != "":
		return nil, false, usage("--all and --filter exclude one another")
	case c.given() && len(args) > 0:
		return nil, false, usage("give names, or --all or --filter, not both; got %q", args[0])
	case c.all:
		names, err = sh.column(ctx, c.kind, "name", &qlang.All{})
		return names, true, err
	case c.filter != "":
		filter, err := qlang.ParseText(c.filter)
		if err != nil {
			return nil, false, sh.badFilter(err)
		}
		names, err = sh.column(ctx, c.kind, "name", filter)
		return names, true, err
	}
	seen := map[string]bool{}
	for _, arg := range args {
		found := []string{arg}
		if wild(arg) {
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
func (c *choice) matching(ctx context.Context, sh *shell, pattern string) ([]string, error) {
	filter, err := qlang.FromArguments([]string{pattern}, qlang.ArgOptions{NameField: "name"})
	if err != nil {
		return nil, err
	}
	names, err := sh.column(ctx, c.kind, "name", filter)
	if err == nil && len(names) == 0 {
		err = fault.New(fault.NotFound, "there is no %s %s", c.kind, pattern)
	}
	return names, err
}

// agreed asks whether the items are meant that were chosen and not named.
func (c *choice) agreed(sh *shell, verb string, names []string) error {
	if sh.flags.dryRun {
		sh.notef("%s: %s\n", counted(len(names), c.kind), listed(names))
		return nil
	}
	return sh.confirm(fmt.Sprintf("%s %s: %s?", capital(verb), counted(len(names), c.kind), listed(names)))
}

// listed is a list of names in words, of the first if they are many.
func listed(names []string) string {
	if len(names) > shownJobs {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shownJobs], ", "), len(names)-shownJobs)
	}
	return strings.Join(names, ", ")
}

func capital(verb string) string { return strings.ToUpper(verb[:1]) + verb[1:] }

// choose returns the items that a command is about and asks, where they were not
// named, whether they are meant. Nothing chosen is no fault: it is said.
func (sh *shell) choose(ctx context.Context, c *choice, verb string, args []string, asksItself bool) ([]string, error) {
	names, several, err := c.names(ctx, sh, args)
	if err != nil || !several {
		return names, err
	}
	if len(names) == 0 {
		sh.notef("no %s is chosen\n", c.kind)
		return nil, nil
	}
	if asksItself && !sh.flags.dryRun {
		return names, nil
	}
	return names, c.agreed(sh, verb, names)
}
