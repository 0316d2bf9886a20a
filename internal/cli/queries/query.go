// Package queries is the command "drover query": any fields of any kind of item.
package queries

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/cli/debug"
	"github.com/drover-project/drover/internal/cli/deployments"
	"github.com/drover-project/drover/internal/cli/filters"
	"github.com/drover-project/drover/internal/cli/inventory"
	"github.com/drover-project/drover/internal/cli/jobs"
	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qlang"
)

const queryHelp = `List any fields of any kind of item: instance, node, group, network, job, filter,
lock, export, opcode (those of all jobs, with their parameters as fields), reason
(the entries of all trails, with the job and the thing they are about), event
(what was done that is no job: rules, cancels, drains, and by whom), environment,
deployment and task (of deployments), server and server-tag (of the Compute API).

` + filterHelp

// filterHelp is the language of filters on a screen; docs/query-language.md has all of it.
const filterHelp = `A filter, here and behind every --filter, is made of tests of fields
(drover query fields KIND lists them):
  name == "web1"   !=  <  <=  >  >=   a text in quotes, a number, a size (4G), a
                                      length of time (1h30m), a time ("2026-11-22")
  name =~ m/^web/i   !~               a regular expression
  name =* "web*"     !*               a pattern
  "rack:3" in tags   not in           a list has it
  admin_up                            it is true; "not admin_up" if it is false
  disk.size/1 is missing              it has no value, which meets no other test
joined by and, or, not and parentheses.`

// usualLists are the kinds of items whose lists have usual fields.
var usualLists = []lists.List{inventory.InstanceList, inventory.NodeList, inventory.GroupList, inventory.NetworkList, inventory.ImageList, inventory.DiskList, jobs.List, filters.List, debug.LockList, inventory.ExportList,
	{What: "opcode", Fields: []string{"id", "status", "opcode", "object", "reason"}},
	{What: "reason", Fields: []string{"timestamp", "job", "opcode", "object", "source", "reason"}},
	{What: "event", Fields: []string{"timestamp", "what", "object", "name", "who", "reason"}},
	deployments.EnvironmentList, deployments.DeploymentList, deployments.TaskList,
	{What: "server", Fields: []string{"id", "name", "status", "instance", "tags", "pending", "pending_age"}},
	{What: "server-tag", Fields: []string{"server_name", "instance", "namespace", "tag", "status", "job", "pending_age", "failure"}}}

// Command asks about any kind of item.
func Command(sh *shell.Shell) *cobra.Command {
	fields := &cobra.Command{Use: "fields KIND [FIELD...]", Short: "List the fields of a kind of item", Args: shell.AtLeast(1)}
	var fo lists.Options
	fields.RunE = func(cmd *cobra.Command, args []string) error {
		var names any
		if len(args) > 1 {
			names = args[1:]
		}
		if err := checkKind(args[0]); err != nil {
			return err
		}
		var a listing.Answer
		if err := sh.Ask(cmd.Context(), "QueryFields", &a, args[0], names); err != nil {
			return err
		}
		return lists.ShowFields(cmd.Context(), sh, args[0], a.Fields, &fo)
	}
	parse := &cobra.Command{
		Use: "parse FILTER", Short: "Show a text filter in the form that requests carry", Args: shell.Exactly(1),
		RunE: func(_ *cobra.Command, args []string) error {
			n, err := qlang.ParseText(args[0])
			if err != nil {
				return lists.BadFilter(sh, err)
			}
			return sh.Show(qlang.JSON(n), func() error { return sh.Printf("%s\n", qlang.JSON(n)) })
		},
	}
	query := sh.Group("query", "Ask about anything", fields, parse, queryExplain(sh))
	query.Long = queryHelp
	for _, l := range usualLists {
		var o lists.Options
		kind := &cobra.Command{Use: l.What + " [-o FIELDS]", Short: "List any fields of every " + l.What, Long: about(l.What) + queryHelp, Args: shell.Exactly(0),
			RunE: func(cmd *cobra.Command, _ []string) error { return queryItems(cmd.Context(), sh, l, &o) }}
		o.Register(kind, l.What)
		query.AddCommand(shell.Heeding(l.SharedOptions(), kind))
	}
	return query
}

// about tells in help what the values of a kind of item mean, where nothing else does: what
// was done that is an event.
func about(what string) string {
	if what != "event" {
		return ""
	}
	var b strings.Builder
	b.WriteString("What may be done that is an event (what), and is no job:\n")
	verbs := audit.Verbs()
	for _, v := range slices.Sorted(maps.Keys(verbs)) {
		fmt.Fprintf(&b, "  %-19s %s\n", v, strings.ReplaceAll(listing.Fold(verbs[v], 58), "\n", "\n"+strings.Repeat(" ", 20)))
	}
	return b.String() + "\n"
}

// checkKind refuses what is no kind of item.
func checkKind(what string) error {
	kinds := make([]string, len(usualLists))
	for i, l := range usualLists {
		if l.What == what {
			return nil
		}
		kinds[i] = l.What
	}
	hint := "one of " + strings.Join(kinds, ", ")
	if near := qlang.Suggest(what, slices.Values(kinds)); near != "" {
		hint = "did you mean " + near + "?"
	}
	return &shell.ExitError{Status: shell.ExitUsage, Err: fault.New(fault.Invalid, "there is no kind of item %q", what).WithHint("%s", hint)}
}

func queryItems(ctx context.Context, sh *shell.Shell, l lists.List, o *lists.Options) error {
	filter, err := l.Filter(sh, nil, o)
	if err != nil {
		return err
	}
	return lists.Show(ctx, sh, l.What, lists.Selected(sh, l, o), filter, o)
}
