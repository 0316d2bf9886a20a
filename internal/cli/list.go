package cli

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
)

// list describes the list command of one kind of item.
type list struct {
	what   string
	fields []string // shown by default
	// table are the columns that people see by default, nil for fields; those of
	// brief are left out where they have nothing to tell. Data have both.
	table, brief []string
	// order is how rows are sorted by default; nil for the controller's order.
	order []string
	// nameField is what arguments are compared with; numeric names are ids.
	nameField string
	numeric   bool
	short     string
	// stored: a controller that stands by has them, too.
	stored bool
	// extra registers options of the command's own; the function that it
	// returns changes the fields and the filter by them.
	extra func(cmd *cobra.Command) func(fields []string, filter qlang.Node) ([]string, qlang.Node)
}

// The lists.
var (
	jobList = list{what: "job", fields: []string{"id", "status", "summary"}, nameField: "id", numeric: true, stored: true,
		table: []string{"id", "status", "wait_reason", "place", "summary"}, brief: []string{"wait_reason", "place"},
		short: "List jobs", extra: jobListOptions}
	filterList = list{what: "filter", fields: []string{"uuid", "watermark", "priority", "predicates", "action", "reason_trail"},
		table: []string{"rule", "priority", "action_text", "held", "until", "shadow", "predicates_text", "reason"}, brief: []string{"until", "shadow"},
		order: []string{"priority", "watermark", "uuid"}, nameField: "uuid", stored: true, short: "List the filter rules in the order in which they are asked"}
	instanceList = list{what: "instance", fields: []string{"name", "hypervisor", "os", "pnode", "status", "oper_ram"},
		nameField: "name", stored: true, short: "List instances"}
	nodeList = list{what: "node", fields: []string{"name", "dtotal", "dfree", "mtotal", "mnode", "mfree", "pinst_cnt", "sinst_cnt"},
		nameField: "name", stored: true, short: "List nodes"}
	groupList = list{what: "group", fields: []string{"name", "node_cnt", "pinst_cnt", "alloc_policy", "ndparams"},
		nameField: "name", stored: true, short: "List node groups"}
	networkList = list{what: "network", fields: []string{"name", "network", "gateway", "mac_prefix", "group_list", "tags"},
		nameField: "name", stored: true, short: "List networks"}
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
	names                            []string // the arguments
	brief                            []string // columns that are left out where they are empty
}

func (o *listOptions) register(cmd *cobra.Command, what string) {
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
	f.StringSliceVar(&o.figures, "figures", nil, "with or without --group-by: count, count(F), sum(F), avg(F), min(F), max(F) over the rows")
	for _, name := range []string{"fields", "sort", "group-by"} {
		_ = cmd.RegisterFlagCompletionFunc(name, completeFields(what)) // the option exists
	}
	_ = cmd.RegisterFlagCompletionFunc("figures", completeFigures)
	_ = cmd.RegisterFlagCompletionFunc("units", cobra.FixedCompletions([]string{"h", "m", "g", "t"}, cobra.ShellCompDirectiveNoFileComp))
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
	o.register(cmd, l.what)
	change := func(fields []string, filter qlang.Node) ([]string, qlang.Node) { return fields, filter }
	if l.extra != nil {
		change = l.extra(cmd)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.names = args
		args, err := sh.meant(cmd.Context(), l, args, &o)
		if err != nil {
			return err
		}
		filter, err := l.filter(args, &o)
		if err != nil {
			return sh.badFilter(err)
		}
		if o.fields != "" && len(o.groupBy)+len(o.figures) > 0 && !sh.persona.classic() {
			return usage("groups have the columns of --group-by and --figures: -o goes with neither")
		}
		fields, filter := change(sh.selected(l, &o), filter)
		return sh.list(cmd.Context(), l.what, fields, filter, &o)
	}
	return heeding(l.options(), cmd)
}

// options are the shared ones that a list heeds.
func (l list) options() []string {
	if l.stored {
		return readingStored
	}
	return asking
}

// meant are the arguments of a list, with the UUIDs of the rules that they mean: a
// rule may be called by its name, or the beginning of that or of its UUID.
func (sh *shell) meant(ctx context.Context, l list, args []string, o *listOptions) ([]string, error) {
	if l.what != "filter" || o.force || sh.persona.classic() {
		return args, nil
	}
	out := slices.Clone(args)
	for i, arg := range args {
		if !ruleRef.MatchString(arg) {
			continue // a filter, or a pattern
		}
		var err error
		if out[i], err = sh.ruleUUID(ctx, arg); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ruleRef is what the beginning of a UUID or of a name looks like.
var ruleRef = regexp.MustCompile(`^[\w.-]+$`)

// badFilter is the error of a filter that cannot be read. To the classic tools
// it is a failure like others.
func (sh *shell) badFilter(err error) error {
	if sh.persona.classic() {
		return err
	}
	return &exitError{status: ExitUsage, err: err}
}

// selected returns the fields to show, and notes in the options what else the
// list does by default. No name of a field has blanks, so those around one do no
// harm.
func (sh *shell) selected(l list, o *listOptions) []string {
	if len(o.sort) == 0 && len(o.groupBy)+len(o.figures) == 0 && !o.watch && !sh.persona.classic() {
		o.sort = l.order
	}
	more, add := strings.CutPrefix(o.fields, "+")
	fields := strings.Split(more, ",")
	for i, f := range fields {
		fields[i] = strings.TrimSpace(f)
	}
	if o.fields != "" && !add {
		return fields
	}
	usual := slices.Clone(sh.usual(l, o))
	switch {
	case o.fields == "":
		return usual
	case sh.persona.classic():
		return append(usual, fields...)
	}
	o.brief = slices.DeleteFunc(slices.Clone(o.brief), func(f string) bool { return slices.Contains(fields, f) }) // asked for
	return append(usual, slices.DeleteFunc(fields, func(f string) bool { return slices.Contains(usual, f) })...)
}

// usual are the columns of a list that is not told which. People get those that
// say most, data the classic ones and then those.
func (sh *shell) usual(l list, o *listOptions) []string {
	var own []string
	for _, f := range l.table {
		if !o.watch || !slices.Contains(l.brief, f) { // what is followed has the same columns all the time
			own = append(own, f)
		}
	}
	switch {
	case sh.persona.classic() || own == nil:
		return l.fields
	case !sh.structured():
		o.brief = l.brief
		return own
	}
	return append(slices.Clone(l.fields), slices.DeleteFunc(own, func(f string) bool { return slices.Contains(l.fields, f) })...)
}

// leaveOut takes columns out of an answer that have nothing to tell.
func leaveOut(a *listing.Answer, names []string) {
	for _, name := range names {
		at := slices.IndexFunc(a.Fields, func(f listing.Field) bool { return f.Name == name })
		if at < 0 || slices.ContainsFunc(a.Data, func(row []listing.Cell) bool {
			return row[at].Status == 0 && string(row[at].Value) != "false"
		}) {
			continue
		}
		a.Fields = slices.Delete(a.Fields, at, at+1)
		for i := range a.Data {
			a.Data[i] = slices.Delete(a.Data[i], at, at+1)
		}
	}
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
func (o *listOptions) check(fields []string, output string) error {
	if err := listing.CheckUnits(o.units); err != nil {
		return usage("--units: %v", err)
	}
	if o.limit < 0 {
		return usage("--limit must be a number of rows, or 0 for all of them, got %d", o.limit)
	}
	if slices.Contains(fields, "") {
		return usage("-o %q has a field without a name", o.fields)
	}
	return o.checkFormat(output)
}

// checkFormat refuses options of tables with data, on which they would have no
// effect. CSV has a header, and a separator of one letter.
func (o *listOptions) checkFormat(output string) error {
	for _, x := range []struct {
		name  string
		given bool
		csv   bool
	}{{"units", o.units != "", false}, {"separator", o.separator != "", true}, {"no-headers", o.noHeaders, true}, {"verbose", o.verbose, true}} {
		if x.given && output != "table" && !(x.csv && output == "csv") {
			return usage("--%s would have no effect on --output %s", x.name, output)
		}
	}
	if output == "csv" && utf8.RuneCountInString(o.separator) > 1 {
		return usage("--separator of csv is one letter, got %q", o.separator)
	}
	return nil
}

// list asks and shows.
func (sh *shell) list(ctx context.Context, what string, fields []string, filter qlang.Node, o *listOptions) error {
	if err := o.check(fields, sh.flags.output); err != nil {
		return err
	}
	if sh.flags.stale && (o.fresh || o.watch) {
		return usage("--stale goes with neither --fresh nor --watch: only the controller that leads asks nodes, and tells what changes")
	}
	args := []any{what, fields, qlang.JSON(filter)}
	more := o.extended()
	if o.watch {
		if o.fresh || len(o.groupBy)+len(o.figures) > 0 || sh.flags.output == "yaml" || sh.flags.output == "csv" {
			return usage("--watch goes with neither --fresh, --group-by and --figures nor --output yaml and csv")
		}
		return sh.watch(ctx, what, fields, filter, o)
	}
	if more != nil {
		args = append(args, more)
	}
	jobs := what == "job" && !sh.persona.classic() && len(o.groupBy)+len(o.figures) == 0
	if jobs {
		args[1] = append(slices.Clone(fields), "id", "dry_run")
	}
	var a listing.Answer
	if err := sh.ask(ctx, "Query", &a, args...); err != nil {
		return err
	}
	var unknown []string
	if jobs {
		unknown = checkJobs(&a, !sh.structured())
	}
	leaveOut(&a, o.brief)
	err := sh.showAnswer(what, &a, o)
	if err == nil && len(a.Data) == 0 && len(o.names) > 0 && !o.force && !sh.persona.classic() && unknown == nil {
		unknown = o.names
	}
	if err == nil && len(unknown) > 0 {
		err = fault.New(fault.NotFound, "there is no %s %s", what, strings.Join(unknown, ", "))
	}
	return sh.warnUnknown(ctx, what, a.Fields, err)
}

// checkJobs takes the last two columns: the numbers of jobs, and whether they only
// check, which it says in their summaries if asked to. A job that was named and
// does not exist is a row all the same; it is taken out, and its number
// returned.
func checkJobs(a *listing.Answer, mark bool) (unknown []string) {
	shown := len(a.Fields) - 2
	summary := slices.IndexFunc(a.Fields, func(f listing.Field) bool { return f.Name == "summary" })
	a.Fields = a.Fields[:shown]
	rows := a.Data[:0]
	for _, row := range a.Data {
		id, dryRun := row[shown], row[shown+1]
		if dryRun.Status != 0 {
			unknown = append(unknown, string(id.Value))
			continue
		}
		if mark && summary >= 0 && string(dryRun.Value) == "true" {
			row[summary].Value = markedSummary(row[summary].Value)
		}
		rows = append(rows, row[:shown])
	}
	a.Data = rows
	return unknown
}

// markedSummary is the summary of a job that only checks.
func markedSummary(value json.RawMessage) json.RawMessage {
	var texts []string
	if json.Unmarshal(value, &texts) != nil {
		return value
	}
	for n := range texts {
		texts[n] += job.DryRunMark
	}
	out, err := json.Marshal(texts)
	if err != nil {
		return value
	}
	return out
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
