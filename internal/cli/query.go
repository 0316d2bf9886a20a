package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/classic"
	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qlang"
)

const queryHelp = `List any fields of any kind of item: instance, node, group, network, job, filter,
lock, export, opcode (those of all jobs, with their parameters as fields), reason
(the entries of all trails, with the job and the thing they are about), event
(what was done that is no job: rules, cancels, drains, and by whom), environment,
deployment and task (of deployments), server and server-tag (of the Compute API).

  drover query instance -o name,status,be/memory --filter 'status != "running"'
  drover query reason --filter 'reason =~ m/OPS-123/'
  drover query opcode -o +disk_template --filter 'object == "web1.example.com"'
  drover query fields reason`

// usualLists are the kinds of items whose lists have usual fields.
var usualLists = []list{instanceList, nodeList, groupList, networkList, jobList, filterList, lockList, exportList,
	{what: "opcode", fields: []string{"id", "status", "opcode", "object", "reason"}},
	{what: "reason", fields: []string{"timestamp", "job", "opcode", "object", "source", "reason"}},
	{what: "event", fields: []string{"timestamp", "what", "object", "name", "who", "reason"}},
	environmentList, deploymentList, deployTaskList,
	{what: "server", fields: []string{"id", "name", "status", "instance", "tags", "pending", "pending_age"}},
	{what: "server-tag", fields: []string{"server_name", "instance", "namespace", "tag", "status", "job", "pending_age", "failure"}}}

// queryCommand asks about any kind of item.
func queryCommand(sh *shell) *cobra.Command {
	fields := &cobra.Command{Use: "fields KIND [FIELD...]", Short: "List the fields of a kind of item", Args: atLeast(1)}
	var fo listOptions
	fields.RunE = func(cmd *cobra.Command, args []string) error {
		var names any
		if len(args) > 1 {
			names = args[1:]
		}
		if err := checkKind(args[0]); err != nil {
			return err
		}
		var a listing.Answer
		if err := sh.ask(cmd.Context(), "QueryFields", &a, args[0], names); err != nil {
			return err
		}
		return sh.showFields(cmd.Context(), args[0], a.Fields, &fo)
	}
	parse := &cobra.Command{
		Use: "parse FILTER", Short: "Show a text filter in the form that requests carry", Args: exactly(1),
		RunE: func(_ *cobra.Command, args []string) error {
			n, err := qlang.ParseText(args[0])
			if err != nil {
				return sh.badFilter(err)
			}
			return sh.show(qlang.JSON(n), func() error { return sh.printf("%s\n", qlang.JSON(n)) })
		},
	}
	query := sh.group("query", "Ask about anything", fields, parse, queryExplain(sh))
	query.Long = queryHelp
	for _, l := range usualLists {
		var o listOptions
		kind := &cobra.Command{Use: l.what + " [-o FIELDS]", Short: "List any fields of every " + l.what, Long: queryHelp, Args: exactly(0),
			RunE: func(cmd *cobra.Command, _ []string) error { return sh.queryItems(cmd.Context(), l, &o) }}
		o.register(kind, l.what)
		query.AddCommand(heeding(l.options(), kind))
	}
	return query
}

// checkKind refuses what is no kind of item.
func checkKind(what string) error {
	kinds := make([]string, len(usualLists))
	for i, l := range usualLists {
		if l.what == what {
			return nil
		}
		kinds[i] = l.what
	}
	hint := "one of " + strings.Join(kinds, ", ")
	if near := qlang.Suggest(what, slices.Values(kinds)); near != "" {
		hint = "did you mean " + near + "?"
	}
	return &exitError{status: ExitUsage, err: fault.New(fault.Invalid, "there is no kind of item %q", what).WithHint("%s", hint)}
}

func (sh *shell) queryItems(ctx context.Context, l list, o *listOptions) error {
	filter, err := l.filter(nil, o)
	if err != nil {
		return sh.badFilter(err)
	}
	return sh.list(ctx, l.what, sh.selected(l, o), filter, o)
}

// itemInfo shows all fields of items.
func itemInfo(sh *shell, l list) *cobra.Command {
	return &cobra.Command{
		Use: "info [NAME...]", Short: "Show everything about them", Args: cobra.ArbitraryArgs,
		ValidArgsFunction: sh.completeNames(l.what, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := qlang.FromArguments(args, qlang.ArgOptions{NameField: l.nameField})
			if err != nil {
				return err
			}
			var defs, found listing.Answer
			if err := sh.ask(cmd.Context(), "QueryFields", &defs, l.what, nil); err != nil {
				return err
			}
			names := make([]string, len(defs.Fields))
			for i, d := range defs.Fields {
				names[i] = d.Name
			}
			if err := sh.ask(cmd.Context(), "Query", &found, l.what, names, qlang.JSON(filter)); err != nil {
				return err
			}
			data, err := objects(&found)
			if err != nil {
				return err
			}
			return sh.show(data, func() error { return sh.printItems(&found) })
		},
	}
}

// printItems shows rows as outlines, without the fields that have no value.
func (sh *shell) printItems(a *listing.Answer) error {
	items := make([]any, len(a.Data))
	for i, row := range a.Data {
		item := classic.Record{}
		for n, cell := range row {
			if cell.Status != 0 {
				continue
			}
			v, _ := parseJSON(string(cell.Value))
			item = append(item, classic.Line(a.Fields[n].Name, v))
		}
		items[i] = item
	}
	return sh.printf("%s", classic.Outline(items))
}
