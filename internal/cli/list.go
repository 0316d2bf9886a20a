package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
)

// list describes the list command of one kind of item.
type list struct {
	what   string
	fields []string // shown by default
	// nameField is what arguments are compared with; numeric names are ids.
	nameField string
	numeric   bool
	short     string
	// extra registers options of the command's own; the function that it
	// returns changes the fields and the filter by them.
	extra func(cmd *cobra.Command) func(fields []string, filter qlang.Node) ([]string, qlang.Node)
}

// The lists.
var (
	jobList = list{what: "job", fields: []string{"id", "status", "summary"}, nameField: "id", numeric: true,
		short: "List jobs", extra: jobListOptions}
	filterList = list{what: "filter", fields: []string{"uuid", "watermark", "priority", "predicates", "action", "reason_trail"},
		nameField: "uuid", short: "List the filter rules"}
	instanceList = list{what: "instance", fields: []string{"name", "hypervisor", "os", "pnode", "status", "oper_ram"},
		nameField: "name", short: "List instances"}
	nodeList = list{what: "node", fields: []string{"name", "dtotal", "dfree", "mtotal", "mnode", "mfree", "pinst_cnt", "sinst_cnt"},
		nameField: "name", short: "List nodes"}
	groupList = list{what: "group", fields: []string{"name", "node_cnt", "pinst_cnt", "alloc_policy", "ndparams"},
		nameField: "name", short: "List node groups"}
	networkList = list{what: "network", fields: []string{"name", "network", "gateway", "mac_prefix", "group_list", "tags"},
		nameField: "name", short: "List networks"}
	exportList = list{what: "export", fields: []string{"node", "export"}, nameField: "export", short: "List the exports of instances"}
	lockList   = list{what: "lock", fields: []string{"name", "mode", "owner", "pending"}, nameField: "name",
		short: "List the locks that are held or waited for"}
)

// listOptions are the options that all lists share.
type listOptions struct {
	fields, separator, filter, units string
	noHeaders, force, verbose, watch bool
	fresh                            bool
	sort                             []string
	limit                            int
	groupBy, figures                 []string
}

func (o *listOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&o.fields, "fields", "o", "", "comma-separated fields to show; +a,b adds to the usual ones")
	f.StringVar(&o.separator, "separator", "", "put this between the columns and do not align them")
	f.StringVar(&o.filter, "filter", "", "show only what this filter lets through, for example 'status == \"running\"'")
	f.BoolVar(&o.noHeaders, "no-headers", false, "leave out the header line")
	f.BoolVarP(&o.force, "force-filter", "F", false, "the argument is a filter, whatever it looks like")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "tell in words why a value is missing")
	f.StringVar(&o.units, "units", "", "unit of sizes: h (fitting), m, g or t")
	f.StringSliceVar(&o.sort, "sort", nil, "sort by these fields; -FIELD for descending order")
	f.IntVar(&o.limit, "limit", 0, "show at most so many rows")
	f.BoolVar(&o.fresh, "fresh", false, "ask the nodes now, instead of taking what they told last")
	f.BoolVar(&o.watch, "watch", false, "then show rows as they enter (+), change (~) and leave (-)")
	f.StringSliceVar(&o.groupBy, "group-by", nil, "show groups of equal values of these fields instead of rows")
	f.StringSliceVar(&o.figures, "figures", nil, "with or without --group-by: count, count(F), sum(F), min(F), max(F) over the rows")
}

// extended is what the controller is asked for beyond fields and filter; nil
// for nothing.
func (o *listOptions) extended() map[string]any {
	out := map[string]any{}
	if len(o.sort) > 0 || o.limit > 0 {
		out["sort"], out["limit"] = nonNil(o.sort), o.limit
	}
	if len(o.groupBy) > 0 || len(o.figures) > 0 {
		figures := o.figures
		if len(figures) == 0 {
			figures = []string{"count"}
		}
		out["group_by"], out["figures"] = nonNil(o.groupBy), figures
	}
	if o.fresh {
		out["fresh"] = true
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func listCommand(sh *shell, l list) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use: "list [NAME...]", Short: l.short, Args: cobra.ArbitraryArgs,
		ValidArgsFunction: sh.completeNames(l.what, true),
	}
	o.register(cmd)
	change := func(fields []string, filter qlang.Node) ([]string, qlang.Node) { return fields, filter }
	if l.extra != nil {
		change = l.extra(cmd)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		filter, err := l.filter(args, &o)
		if err != nil {
			return sh.badFilter(err)
		}
		fields, filter := change(l.selected(o.fields), filter)
		return sh.list(cmd.Context(), l.what, fields, filter, &o)
	}
	return cmd
}

// badFilter is the error of a filter that cannot be read. To the classic tools
// it is a failure like others.
func (sh *shell) badFilter(err error) error {
	if sh.persona.classic() {
		return err
	}
	return &exitError{status: ExitUsage, err: err}
}

// selected returns the fields to show. No name of a field has blanks, so those
// around one do no harm.
func (l list) selected(text string) []string {
	if text == "" {
		return l.fields
	}
	more, add := strings.CutPrefix(text, "+")
	fields := strings.Split(more, ",")
	for i, f := range fields {
		fields[i] = strings.TrimSpace(f)
	}
	if add {
		return slices.Concat(l.fields, fields)
	}
	return fields
}

// filter joins what the arguments and --filter say.
func (l list) filter(args []string, o *listOptions) (qlang.Node, error) {
	byName, err := qlang.FromArguments(args, qlang.ArgOptions{NameField: l.nameField, Numeric: l.numeric, Force: o.force})
	if err != nil || o.filter == "" {
		return byName, err
	}
	byText, err := qlang.ParseText(o.filter)
	return both(byName, byText), err
}

// both is the filter for what two filters let through.
func both(a, b qlang.Node) qlang.Node {
	if _, all := a.(*qlang.All); all {
		return b
	}
	if _, all := b.(*qlang.All); all {
		return a
	}
	return &qlang.And{Args: []qlang.Node{a, b}}
}

// check refuses options that mean nothing.
func (o *listOptions) check(fields []string) error {
	if err := listing.CheckUnits(o.units); err != nil {
		return usage("--units: %v", err)
	}
	if o.limit < 0 {
		return usage("--limit must be a number of rows, or 0 for all of them, got %d", o.limit)
	}
	if slices.Contains(fields, "") {
		return usage("-o %q has a field without a name", o.fields)
	}
	return nil
}

// list asks and shows.
func (sh *shell) list(ctx context.Context, what string, fields []string, filter qlang.Node, o *listOptions) error {
	if err := o.check(fields); err != nil {
		return err
	}
	args := []any{what, fields, qlang.JSON(filter)}
	more := o.extended()
	if o.watch {
		if more != nil || sh.flags.output == "yaml" || sh.flags.output == "csv" {
			return usage("--watch goes with neither --sort, --limit, --fresh, --group-by and --figures nor --output yaml and csv")
		}
		return sh.watch(ctx, what, fields, filter, o)
	}
	if more != nil {
		args = append(args, more)
	}
	marked := what == "job" && !sh.structured() && !sh.persona.classic() && len(o.groupBy)+len(o.figures) == 0
	if marked {
		args[1] = append(slices.Clone(fields), "dry_run")
	}
	var a listing.Answer
	if err := sh.ask(ctx, "Query", &a, args...); err != nil {
		return err
	}
	if marked {
		markDryRuns(&a)
	}
	err := sh.showAnswer(what, &a, o)
	return sh.warnUnknown(ctx, what, a.Fields, err)
}

// markDryRuns takes the last column, which tells whether a job only checks, and
// says so in its summary.
func markDryRuns(a *listing.Answer) {
	last := len(a.Fields) - 1
	summary := slices.IndexFunc(a.Fields, func(f listing.Field) bool { return f.Name == "summary" })
	a.Fields = a.Fields[:last]
	for i, row := range a.Data {
		var texts []string
		if summary >= 0 && string(row[last].Value) == "true" && json.Unmarshal(row[summary].Value, &texts) == nil {
			for n := range texts {
				texts[n] += job.DryRunMark
			}
			if value, err := json.Marshal(texts); err == nil {
				row[summary].Value = value
			}
		}
		a.Data[i] = row[:last]
	}
}

// fieldsCommand lists the fields of a kind of item.
func fieldsCommand(sh *shell, l list) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{Use: "list-fields [FIELD...]", Short: "List the fields that lists can show", Args: cobra.ArbitraryArgs}
	f := cmd.Flags()
	f.BoolVar(&o.noHeaders, "no-headers", false, "leave out the header line")
	f.StringVar(&o.separator, "separator", "", "put this between the columns and do not align them")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var names any
		if len(args) > 0 {
			names = args
		}
		var a listing.Answer
		if err := sh.ask(cmd.Context(), "QueryFields", &a, l.what, names); err != nil {
			return err
		}
		return sh.showFields(cmd.Context(), l.what, a.Fields, &o)
	}
	return cmd
}
