// Package lists shows items of any kind: as lists, as they change, and in full. It also chooses the items that a command
// is about, and names them to the completion of shells.
package lists

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
)

// List describes the list command of one kind of item.
type List struct {
	What   string
	Fields []string // shown by default
	// Table are the columns that people see by default, nil for fields; those of
	// brief are left out where they have nothing to tell. Data have both.
	Table, Brief []string
	// Order is how rows are sorted by default; nil for the controller's order.
	Order []string
	// NameField is what arguments are compared with; numeric names are ids.
	NameField string
	Numeric   bool
	Short     string
	// Means is what an argument stands for; nil where that is the argument itself.
	Means func(ctx context.Context, sh *shell.Shell, arg string) (string, error)
	// Stored: a controller that stands by has them, too.
	Stored bool
	// Extra registers options of the command's own; the function that it
	// returns changes the fields and the filter by them.
	Extra func(cmd *cobra.Command) func(fields []string, filter qlang.Node) ([]string, qlang.Node)
}

// Options are the options that all lists share.
type Options struct {
	Fields, separator, Filter, units string
	noHeaders, force, verbose, watch bool
	fresh                            bool
	sort                             []string
	limit                            int
	groupBy, figures                 []string
	names                            []string // the arguments
	brief                            []string // columns that are left out where they are empty
}

// Register adds the options of a list of a kind of item.
func (o *Options) Register(cmd *cobra.Command, what string) {
	f := cmd.Flags()
	f.StringVarP(&o.Fields, "fields", "o", "", "comma-separated fields to show; +a,b adds to the usual ones")
	f.StringVar(&o.separator, "separator", "", "put this between the columns and do not align them")
	f.StringVar(&o.Filter, "filter", "", "show only what this filter lets through, for example 'status == \"running\"'")
	f.BoolVar(&o.noHeaders, "no-headers", false, "leave out the header line")
	f.BoolVarP(&o.force, "force-filter", "F", false, "the argument is a filter, whatever it looks like")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "tell in words why a value is missing")
	f.StringVar(&o.units, "units", "", "unit of sizes: h (fitting), m, g or t")
	f.StringSliceVar(&o.sort, "sort", nil, "sort by these fields; -FIELD for descending order")
	f.IntVar(&o.limit, "limit", 0, "show at most so many rows")
	f.BoolVar(&o.fresh, "fresh", false, "ask the nodes now, instead of taking what they told last")
	f.BoolVar(&o.watch, "watch", false, "show rows as they enter (+), change (~) and leave (-), in place on a terminal")
	f.StringSliceVar(&o.groupBy, "group-by", nil, "show groups of equal values of these fields instead of rows; of times by spans, as in end_ts/10m")
	f.StringSliceVar(&o.figures, "figures", nil, "with or without --group-by: count, count(F), sum(F), avg(F), min(F), max(F) over the rows")
	for _, name := range []string{"fields", "sort", "group-by"} {
		_ = cmd.RegisterFlagCompletionFunc(name, completeFields(what)) // the option exists
	}
	_ = cmd.RegisterFlagCompletionFunc("filter", CompleteFilter(what))
	_ = cmd.RegisterFlagCompletionFunc("figures", completeFigures)
	_ = cmd.RegisterFlagCompletionFunc("units", cobra.FixedCompletions([]string{"h", "m", "g", "t"}, cobra.ShellCompDirectiveNoFileComp))
}

// extended is what the controller is asked for beyond fields and filter; nil
// for nothing.
func (o *Options) extended() map[string]any {
	out := map[string]any{}
	if len(o.sort) > 0 || o.limit > 0 {
		out["sort"], out["limit"] = shell.NonNil(o.sort), o.limit
	}
	if len(o.groupBy) > 0 || len(o.figures) > 0 {
		figures := o.figures
		if len(figures) == 0 {
			figures = []string{"count"}
		}
		out["group_by"], out["figures"] = shell.NonNil(o.groupBy), figures
	}
	if o.fresh {
		out["fresh"] = true
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// Command makes the command of a list.
func Command(sh *shell.Shell, l List) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use: "list [NAME...]", Short: l.Short, Args: cobra.ArbitraryArgs,
		ValidArgsFunction: CompleteNames(sh, l.What, true),
	}
	o.Register(cmd, l.What)
	change := func(fields []string, filter qlang.Node) ([]string, qlang.Node) { return fields, filter }
	if l.Extra != nil {
		change = l.Extra(cmd)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.names = args
		args, err := meant(cmd.Context(), sh, l, args, &o)
		if err != nil {
			return err
		}
		filter, err := l.Filter(sh, args, &o)
		if err != nil {
			return err
		}
		if o.Fields != "" && len(o.groupBy)+len(o.figures) > 0 && !sh.Classic() {
			return shell.Usage("groups have the columns of --group-by and --figures: -o goes with neither")
		}
		fields, filter := change(Selected(sh, l, &o), filter)
		return Show(cmd.Context(), sh, l.What, fields, filter, &o)
	}
	return shell.Heeding(l.SharedOptions(), cmd)
}

// SharedOptions are the shared ones that a list heeds.
func (l List) SharedOptions() []string {
	if l.Stored {
		return shell.ReadingStored
	}
	return shell.Asking
}

// meant are the arguments of a list, as what they stand for.
func meant(ctx context.Context, sh *shell.Shell, l List, args []string, o *Options) ([]string, error) {
	if l.Means == nil || o.force || sh.Classic() {
		return args, nil
	}
	out := make([]string, len(args))
	for i, arg := range args {
		var err error
		if out[i], err = l.Means(ctx, sh, arg); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// BadFilter is the error of a filter that cannot be read. To the classic tools
// it is a failure like others.
func BadFilter(sh *shell.Shell, err error) error {
	if sh.Classic() {
		return err
	}
	return &shell.ExitError{Status: shell.ExitUsage, Err: err}
}

// Selected returns the fields to show, and notes in the options what else the
// list does by default. No name of a field has blanks, so those around one do no
// harm.
func Selected(sh *shell.Shell, l List, o *Options) []string {
	if len(o.sort) == 0 && len(o.groupBy)+len(o.figures) == 0 && !o.watch && !sh.Classic() {
		o.sort = l.Order
	}
	more, add := strings.CutPrefix(o.Fields, "+")
	fields := strings.Split(more, ",")
	for i, f := range fields {
		fields[i] = strings.TrimSpace(f)
	}
	if o.Fields != "" && !add {
		return fields
	}
	usual := slices.Clone(usual(sh, l, o))
	switch {
	case o.Fields == "":
		return usual
	case sh.Classic():
		return append(usual, fields...)
	}
	o.brief = slices.DeleteFunc(slices.Clone(o.brief), func(f string) bool { return slices.Contains(fields, f) }) // asked for
	return append(usual, slices.DeleteFunc(fields, func(f string) bool { return slices.Contains(usual, f) })...)
}

// usual are the columns of a list that is not told which. People get those that
// say most, data the classic ones and then those.
func usual(sh *shell.Shell, l List, o *Options) []string {
	var own []string
	for _, f := range l.Table {
		if !o.watch || inPlace(sh, o) || !slices.Contains(l.Brief, f) { // what is followed row by row has the same columns all the time
			own = append(own, f)
		}
	}
	switch {
	case sh.Classic() || own == nil:
		return l.Fields
	case !sh.Structured():
		o.brief = l.Brief
		return own
	}
	return append(slices.Clone(l.Fields), slices.DeleteFunc(own, func(f string) bool { return slices.Contains(l.Fields, f) })...)
}

// tells reports whether a cell of a column that may be left out has something to tell.
func tells(c listing.Cell) bool { return c.Status == 0 && string(c.Value) != "false" }

// leaveOut takes columns out of an answer that have nothing to tell.
func leaveOut(a *listing.Answer, names []string) {
	for _, name := range names {
		at := slices.IndexFunc(a.Fields, func(f listing.Field) bool { return f.Name == name })
		if at < 0 || slices.ContainsFunc(a.Data, func(row []listing.Cell) bool { return tells(row[at]) }) {
			continue
		}
		a.Fields = slices.Delete(a.Fields, at, at+1)
		for i := range a.Data {
			a.Data[i] = slices.Delete(a.Data[i], at, at+1)
		}
	}
}

// Filter joins what the arguments and --filter say. What is missing meets no test in
// drover's own lists, so that they show what its verbs would choose.
func (l List) Filter(sh *shell.Shell, args []string, o *Options) (qlang.Node, error) {
	byName, err := qlang.FromArguments(args, qlang.ArgOptions{NameField: l.NameField, Numeric: l.Numeric, Force: o.force, Strict: !sh.Classic()})
	if err != nil {
		return nil, BadFilter(sh, err)
	}
	if o.Filter == "" {
		return byName, nil
	}
	byText, err := ParseFilter(sh, o.Filter)
	if err != nil {
		return nil, err
	}
	return Both(byName, byText), nil
}

// Both is the filter for what two filters let through.
func Both(a, b qlang.Node) qlang.Node {
	if _, all := a.(*qlang.All); all {
		return b
	}
	if _, all := b.(*qlang.All); all {
		return a
	}
	return &qlang.And{Args: []qlang.Node{a, b}}
}

// check refuses options that mean nothing.
func (o *Options) check(fields []string, output string) error {
	if err := listing.CheckUnits(o.units); err != nil {
		return shell.Usage("--units: %v", err)
	}
	if o.limit < 0 {
		return shell.Usage("--limit must be a number of rows, or 0 for all of them, got %d", o.limit)
	}
	if slices.Contains(fields, "") {
		return shell.Usage("-o %q has a field without a name", o.Fields)
	}
	if slices.Contains(shell.FormatNames(), o.Fields) {
		return &shell.ExitError{Status: shell.ExitUsage,
			Err: fault.New(fault.Invalid, "-o names the fields to show, and %s is none", o.Fields).WithHint("did you mean --output %s?", o.Fields)}
	}
	return o.checkFormat(output)
}

// checkFormat refuses options of tables with data, on which they would have no
// effect. CSV has a header, and a separator of one letter.
func (o *Options) checkFormat(output string) error {
	for _, x := range []struct {
		name  string
		given bool
	}{{"units", o.units != ""}, {"separator", o.separator != ""}, {"no-headers", o.noHeaders}, {"verbose", o.verbose}} {
		if x.given && !slices.Contains(shell.FormatNamed(output).Options, x.name) {
			return shell.Usage("--%s would have no effect on --output %s", x.name, output)
		}
	}
	if output == "csv" && utf8.RuneCountInString(o.separator) > 1 {
		return shell.Usage("--separator of csv is one letter, got %q", o.separator)
	}
	return nil
}

// unwatched are the forms in which nothing is shown as it changes.
func unwatched() (names []string) {
	for _, f := range shell.Formats {
		if !f.Watched {
			names = append(names, f.Name)
		}
	}
	return names
}

// Show asks and shows.
func Show(ctx context.Context, sh *shell.Shell, what string, fields []string, filter qlang.Node, o *Options) error {
	if err := o.check(fields, sh.Flags.Output); err != nil {
		return err
	}
	if sh.Flags.Stale && (o.fresh || o.watch) {
		return shell.Usage("--stale goes with neither --fresh nor --watch: only the controller that leads asks nodes, and tells what changes")
	}
	args := []any{what, fields, qlang.JSON(filter)}
	more := o.extended()
	if o.watch {
		if o.fresh || len(o.groupBy)+len(o.figures) > 0 || !sh.Format().Watched {
			return shell.Usage("--watch goes with neither --fresh, --group-by and --figures nor --output %s", shell.Alternatives(unwatched(), " and "))
		}
		return watch(ctx, sh, what, fields, filter, o)
	}
	if more != nil {
		args = append(args, more)
	}
	jobs := what == "job" && !sh.Classic() && len(o.groupBy)+len(o.figures) == 0
	if jobs {
		args[1] = append(slices.Clone(fields), "id", "dry_run")
	}
	var a listing.Answer
	if err := sh.Ask(ctx, "Query", &a, args...); err != nil {
		return err
	}
	var unknown []string
	if jobs {
		unknown = checkJobs(&a, !sh.Structured())
	}
	leaveOut(&a, o.brief)
	if len(a.Data) == 0 && len(o.names) > 0 && !qlang.IsFilter(o.names, o.force) && !sh.Classic() && unknown == nil {
		unknown = o.names
	}
	var err error
	// A table of nothing would only stand above what is wrong.
	nothing := len(a.Data) == 0 && len(unknown) > 0 || len(listing.Unknown(a.Fields)) == len(a.Fields)
	if sh.Classic() || sh.Structured() || !nothing {
		if err = showAnswer(sh, what, &a, o); err == nil {
			err = o.tellMissing(ctx, sh, what)
		}
	}
	if len(a.Data) == 0 && err == nil && o.typed() != "" {
		o.tellNearest(ctx, sh, what)
	}
	if err == nil && len(unknown) > 0 {
		err = fault.New(fault.NotFound, "there is no %s %s", what, strings.Join(unknown, ", "))
	}
	return WarnUnknown(ctx, sh, what, a.Fields, err)
}

// tellMissing tells a person who reads a table what the filter left out for want of a value.
func (o *Options) tellMissing(ctx context.Context, sh *shell.Shell, what string) error {
	if !sh.Person || sh.Structured() || sh.Classic() || sh.Flags.Stale {
		return nil
	}
	if o.typed() == "" {
		return nil
	}
	return TellMissing(ctx, sh, what, o.typed(), &qlang.All{})
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

// FieldsCommand lists the fields of a kind of item.
func FieldsCommand(sh *shell.Shell, l List) *cobra.Command {
	var o Options
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
		if err := sh.Ask(cmd.Context(), "QueryFields", &a, l.What, names); err != nil {
			return err
		}
		return ShowFields(cmd.Context(), sh, l.What, a.Fields, &o)
	}
	return cmd
}
