// Package work is what commands have done by jobs: it makes commands of opcodes, submits them with a key that makes it
// safe to send them again, and follows jobs to their ends.
package work

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
)

// Operation describes a command that makes one opcode per argument, or one in
// all. Its options come from the opcode's definition: one for each parameter,
// with dashes for underscores, described as the catalogue does.
type Operation struct {
	Noun, Verb string
	// Aliases are other names of the command.
	Aliases []string
	Short   string
	// Long describes the options that stand for more than one parameter.
	Long string
	ID   string
	// Target is the parameter that the arguments fill, one job for each;
	// empty when the command takes none.
	Target string
	// Places are further parameters that are given by position, after the
	// target; there is one job then.
	Places []string
	// Rest is a parameter that takes all arguments behind the target, as a
	// list; there is one job then. Without a target it takes all, or none.
	Rest string
	// File is a parameter that a file of JSON gives, which is the only argument.
	File string
	// Fixed are parameters that the command sets by itself.
	Fixed map[string]any
	// Relaxed are parameters that drover sets where the classic tools, and the
	// opcode, have stricter defaults.
	Relaxed map[string]any
	// Letters and names are further spellings of options: a letter, or a
	// name, for a parameter.
	Letters map[string]string
	Names   map[string]string
	// Selects says that the classic tool looks the arguments up first, and shows
	// their full names.
	Selects bool
	// Switches are parameters without a default that need no value to be set.
	Switches []string
	// Hidden parameters have no option.
	Hidden []string
	// Plain says that no parameter has an option: the verb says it all.
	Plain bool
	// Own says that the classic tool has no such verb.
	Own bool
	// Destroys says what parameters destroy, of a verb that asks in that case
	// alone; empty for nothing. Nil for verbs that always ask, or never.
	Destroys func(params map[string]any, targets []string) string
	// Beforehand shows what would go before the question is asked.
	Beforehand func(ctx context.Context, sh *shell.Shell, params map[string]any, targets []string) error
	// Told words the result as the classic tool does.
	Told func(name string, result json.RawMessage) string
	// Aside says that what is told goes to standard error, with drover, too.
	Aside bool
	// Unasked: the classic tool does not ask.
	Unasked bool
	// Extra registers options of the command's own; the function that it
	// returns puts their values into the parameters.
	Extra func(cmd *cobra.Command) func(params map[string]any) error
	// Shown says that the result is what the user asked for.
	Shown bool
	// Asks says that the opcode changes nothing: drover makes no job of it.
	Asks bool
	// Children has the jobs waited for, too, that the result names; nil for none.
	Children *Children
	// Before says of instances, by their status, that they were as the verb would have them
	// before it was asked for.
	Before map[string]string
	// Placed says that a node is chosen: --explain tells of each node why it would be, or why not.
	Placed bool
	// Complete names the items that arguments may be, for the shell.
	Complete string
}

func (o Operation) definition() *opcode.Definition {
	def, ok := opcode.Lookup(o.ID)
	if !ok {
		panic("cli: no opcode " + o.ID) // a fault of the tables in this package
	}
	return def
}

// Command makes the command of an operation.
func (o Operation) Command(sh *shell.Shell) *cobra.Command {
	def := o.definition()
	heeds := shell.Making
	if o.Asks && !sh.Classic() {
		heeds = shell.Asking
	}
	cmd := shell.Heeding(heeds, &cobra.Command{Use: o.use(), Aliases: o.Aliases, Short: o.Short, Long: o.Long, Args: o.checkArgs})
	if o.Complete != "" {
		cmd.ValidArgsFunction = lists.CompleteNames(sh, o.Complete, len(o.Places) == 0)
	}
	read := o.register(sh, cmd, def)
	explain := new(bool)
	if o.Placed && !sh.Classic() {
		cmd.Flags().BoolVar(explain, "explain", false, "tell of each node why it would be chosen, or why not, and change nothing")
	}
	if text := notation(cmd); text != "" {
		cmd.Long = cmp.Or(cmd.Long, cmd.Short+".") + text
	}
	lists.CompleteItems(sh, cmd, o.itemOptions(def))
	lists.CompleteKeys(cmd)
	var selected shell.Selection
	chosen := lists.Choice{Kind: o.Complete}
	switch {
	case o.Selects && sh.Classic():
		selected.Register(cmd)
		cmd.Args = nil
	case o.choosable() && !sh.Classic():
		chosen.Register(cmd)
		cmd.Args = nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		switch {
		case o.Selects && sh.Classic():
			args, err = selectNames(sh, cmd, o, &selected, args)
		case o.choosable() && !sh.Classic():
			args, err = chooseFor(sh, cmd, o, &chosen, args)
		}
		if err != nil || o.choosable() && len(args) == 0 {
			return err
		}
		sh.Flags.DryRun = sh.Flags.DryRun || *explain
		tasks, err := o.tasks(sh, args, read)
		if err != nil {
			return err
		}
		for i := range tasks {
			tasks[i].explain = *explain
		}
		return o.carryOut(cmd.Context(), sh, args, tasks)
	}
	return cmd
}

// notation explains how the values of options are written that are lists or objects,
// if a command has such.
func notation(cmd *cobra.Command) string {
	kinds := map[string]bool{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { kinds[f.Value.Type()] = kinds[f.Value.Type()] || !f.Hidden })
	text := ""
	if kinds[shell.KindList] {
		text += "\n  a,b   a list, for example node1,node2"
	}
	if kinds[shell.KindObject] {
		text += "\n  k=v   keys with values, for example memory=512,vcpus=2; no_KEY is KEY=false,\n        and a comma within a value is written \\,"
	}
	if text == "" {
		return ""
	}
	return "\n\nValues of options are written as" + text + "\nor as JSON."
}

// choosable reports whether the command is about any number of items that there
// are.
func (o Operation) choosable() bool {
	return o.Target != "" && o.Complete != "" && len(o.Places) == 0 && o.Rest == ""
}

// chooseFor returns the items that a command of drover's own is about.
func chooseFor(sh *shell.Shell, cmd *cobra.Command, o Operation, c *lists.Choice, args []string) ([]string, error) {
	if !c.Given() {
		if err := o.checkArgs(cmd, args); err != nil {
			return nil, err
		}
	}
	return lists.Choose(cmd.Context(), sh, c, o.Verb, args, sh.AlwaysAsks(o.path()))
}

// selectNames returns the items that a command of a classic tool is about.
func selectNames(sh *shell.Shell, cmd *cobra.Command, o Operation, s *shell.Selection, args []string) ([]string, error) {
	if !s.Given() {
		if err := o.checkArgs(cmd, args); err != nil {
			return nil, err
		}
		return fullNames(cmd.Context(), sh, o.Complete, args)
	}
	names, err := s.Names(cmd.Context(), sh, args)
	if err != nil || len(names) == 0 {
		return names, err
	}
	return names, sh.ConfirmMany(s, cmd.CalledAs(), names)
}

// fullNames looks items up by their names or beginnings of them.
func fullNames(ctx context.Context, sh *shell.Shell, kind string, names []string) ([]string, error) {
	filter, err := qlang.FromArguments(names, qlang.ArgOptions{NameField: "name"})
	if err != nil {
		return nil, err
	}
	var found listing.Answer
	err = sh.Ask(ctx, "Query", &found, kind, []string{"name"}, qlang.JSON(filter))
	if fault.Is(err, fault.NotFound) || (err == nil && len(found.Data) == 0) {
		return nil, fault.New(fault.Invalid, "Selection filter does not match any %ss", kind)
	}
	out := make([]string, len(found.Data))
	for i, row := range found.Data {
		out[i] = lists.CellText(row[0])
	}
	return out, err
}

func (o Operation) use() string {
	words := []string{o.Verb}
	if o.Target != "" {
		target := strings.ToUpper(strings.TrimSuffix(o.Target, "_name"))
		if len(o.Places) == 0 && o.Rest == "" {
			target += "..."
		}
		words = append(words, target)
	}
	if o.Rest != "" {
		words = append(words, strings.ToUpper(strings.TrimSuffix(o.Rest, "s"))+"...")
	}
	for _, p := range o.Places {
		words = append(words, strings.ToUpper(p))
	}
	if o.File != "" {
		words = append(words, "FILE")
	}
	return strings.Join(words, " ")
}

func (o Operation) checkArgs(cmd *cobra.Command, args []string) error {
	switch {
	case o.File != "":
		return shell.Exactly(1)(cmd, args)
	case o.Target == "" && len(o.Places) == 0 && o.Rest == "" && len(args) > 0:
		return shell.Exactly(0)(cmd, args)
	case o.Target != "" && len(o.Places) == 0 && len(args) == 0:
		return shell.AtLeast(1)(cmd, args)
	case o.Rest != "":
		return nil
	case len(o.Places) > 0 && len(args) != o.positional():
		return shell.Exactly(o.positional())(cmd, args)
	}
	return nil
}

func (o Operation) positional() int {
	n := len(o.Places)
	if o.Target != "" {
		n++
	}
	return n
}

// wordsOf are the words that an option takes.
func wordsOf(kind string, p *opcode.Param) []string {
	if kind == yesOrNo {
		return []string{"yes", "no"}
	}
	return p.Type.Allowed()
}

// yesOrNo is the kind of an option that wants a truth value.
const yesOrNo = "yes|no"

// register adds the options. The function that it returns reads those that
// were given.
func (o Operation) register(sh *shell.Shell, cmd *cobra.Command, def *opcode.Definition) func() (map[string]any, error) {
	texts := map[string]*shell.ParamText{} // by option
	params := map[string]*opcode.Param{}
	add := func(name, letter string, p *opcode.Param, hide bool) {
		texts[name], params[name] = &shell.ParamText{Kind: shell.KindOf(p)}, p
		cmd.Flags().VarP(texts[name], name, letter, o.optionHelp(sh, p))
		flag := cmd.Flags().Lookup(name)
		flag.Hidden = hide
		switch {
		case p.Type.String() == "bool" || slices.Contains(o.Switches, p.Name):
			flag.NoOptDefVal = "true"
		case texts[name].Kind == shell.KindBool:
			texts[name].Kind = yesOrNo // a value is wanted
		}
		if words := wordsOf(texts[name].Kind, p); len(words) > 0 {
			_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // the option exists
		}
	}
	for i := range def.Params {
		p := &def.Params[i]
		if o.hasOption(p.Name) {
			add(strings.ReplaceAll(p.Name, "_", "-"), o.Letters[p.Name], p, strings.HasSuffix(p.Name, "_uuid"))
			for _, name := range shell.ClassicNames[p.Name] {
				add(name, "", p, true)
			}
		}
	}
	negated := o.registerNegated(cmd, def)
	for name, param := range o.Names {
		if p, ok := def.Param(param); ok {
			add(name, "", p, true)
		}
	}
	var own func(map[string]any) error
	if o.Extra != nil {
		own = o.Extra(cmd)
	}
	return func() (map[string]any, error) {
		out := map[string]any{}
		by := map[string]string{} // the option, by parameter
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			if !cmd.Flags().Changed(name) {
				continue
			}
			param := params[name].Name
			if other := by[param]; other != "" {
				return nil, shell.Usage("--%s and --%s mean the same; give one", other, name)
			}
			by[param], out[param] = name, paramValue(params[name], texts[name].Text)
		}
		for param, off := range negated {
			if !*off {
				continue
			}
			if other := by[param]; other != "" && out[param] != false {
				return nil, shell.Usage("--%s and --no-%[1]s contradict one another", other)
			}
			out[param] = false
		}
		if own == nil {
			return out, nil
		}
		return out, own(out)
	}
}

// registerNegated adds --no-X for what is on by default; they are returned by parameter.
func (o Operation) registerNegated(cmd *cobra.Command, def *opcode.Definition) map[string]*bool {
	negated := map[string]*bool{}
	for i := range def.Params {
		if p := &def.Params[i]; p.Default == true && o.hasOption(p.Name) {
			name := "no-" + strings.ReplaceAll(p.Name, "_", "-")
			negated[p.Name] = cmd.Flags().Bool(name, false, "do not "+p.Doc)
			cmd.Flags().Lookup(name).Hidden = true
		}
	}
	return negated
}

// itemOptions are the options whose values are names of items, with their kinds.
func (o Operation) itemOptions(def *opcode.Definition) map[string]string {
	out := maps.Clone(lists.OptionKinds)
	for i := range def.Params {
		p := def.Params[i].Name
		if kind := lists.ParamKinds[p]; kind != "" && o.hasOption(p) {
			out[strings.ReplaceAll(p, "_", "-")] = kind
		}
	}
	for option, param := range o.Names {
		out[option] = lists.ParamKinds[param]
	}
	return out
}

// hasOption reports whether a parameter is set by an option.
func (o Operation) hasOption(param string) bool {
	_, fixed := o.Fixed[param]
	return !o.Plain && !fixed && param != o.Target && param != o.File && !slices.Contains(o.Places, param) && !slices.Contains(o.Hidden, param)
}

// optionHelp describes an option by its parameter: what it is, which words it
// takes, the default.
func (o Operation) optionHelp(sh *shell.Shell, p *opcode.Param) string {
	text := p.Doc
	def := p.Default
	if relaxed, ok := o.Relaxed[p.Name]; ok && !sh.Classic() {
		def = relaxed
	}
	if def == true {
		return fmt.Sprintf("%s (on by default; --%s=no)", text, strings.ReplaceAll(p.Name, "_", "-"))
	}
	if words := p.Type.Allowed(); len(words) > 0 && len(words) <= 12 {
		text += " (" + strings.Join(words, ", ") + ")"
	}
	switch d := p.Default.(type) {
	case nil, bool, []any, map[string]any:
		return text
	case string:
		return fmt.Sprintf("%s (default %q)", text, d)
	default:
		return fmt.Sprintf("%s (default %v)", text, d)
	}
}

// tasks makes the opcodes.
func (o Operation) tasks(sh *shell.Shell, args []string, read func() (map[string]any, error)) ([]Task, error) {
	params, err := read()
	if err != nil {
		return nil, err
	}
	defaults := []map[string]any{o.Fixed, o.Relaxed}
	if sh.Classic() {
		defaults = defaults[:1]
	}
	for _, values := range defaults {
		for name, value := range values {
			if _, given := params[name]; !given {
				params[name] = value
			}
		}
	}
	if def := o.definition(); shell.NothingToChange(def, params) {
		switch {
		case !sh.Classic():
			return nil, shell.Usage("nothing to change is given: see drover %s %s --help", o.Noun, o.Verb)
		case def.ID != "OP_GROUP_SET_PARAMS":
			return nil, &shell.ExitError{Status: shell.ExitFailed, Err: fault.New(fault.Failed, "Please give at least one of the parameters.")}
		}
	}
	if o.File != "" {
		if params[o.File], err = readJSON(sh, args[0]); err != nil {
			return nil, err
		}
	}
	targets := []string{""}
	if o.Target == "" && o.Rest != "" && len(args) > 0 {
		params[o.Rest] = args
	}
	if o.Target != "" {
		targets = args
		if o.Rest != "" {
			targets = args[:1]
			if len(args) > 1 {
				params[o.Rest] = args[1:]
			}
		}
		if len(o.Places) > 0 {
			targets, args = args[:1], args[1:]
		}
	}
	def, _ := opcode.Lookup(o.ID)
	for i, place := range o.Places {
		params[place] = placeValue(def, place, args[i])
	}
	tasks := make([]Task, len(targets))
	for i, target := range targets {
		if o.Target != "" {
			params[o.Target] = target
		}
		op, err := NewOp(sh, o.Noun, o.ID, params)
		if err != nil {
			return nil, err
		}
		tasks[i] = Task{Target: target, Ops: []*opcode.Opcode{op}, Shown: o.Shown, Asks: o.Asks}
		if !sh.Flags.DryRun {
			tasks[i].children = o.Children.of(target)
		}
		if (sh.Classic() || o.Aside) && o.Told != nil {
			tasks[i].aside = o.Aside
			tasks[i].told = func(result json.RawMessage) string { return o.Told(target, result) }
		}
	}
	if sh.Classic() && !o.Selects && len(tasks) == 1 {
		tasks[0].Target = "" // the classic tool speaks of one thing, and does not name it
	}
	return tasks, nil
}

// readJSON reads a file of JSON; - is standard input.
func readJSON(sh *shell.Shell, path string) (any, error) {
	text, err := sh.Read(path)
	if err != nil {
		return nil, err
	}
	v, ok := shell.ParseJSON(string(text))
	if !ok {
		return nil, fault.New(fault.Invalid, "%s is no JSON", path)
	}
	return v, nil
}

// sizes are the parameters that may have a unit, as sizes are written everywhere: how much a disk grows, and the memory of what runs.
var sizes = []string{"amount", "runtime_mem"}

func paramValue(p *opcode.Param, text string) any {
	if slices.Contains(sizes, p.Name) {
		if n, ok := cluster.Mebibytes(text); ok {
			return n
		}
	}
	return shell.ParamValue(p, text)
}

// placeValue reads what is given by position as an option of that name would be.
func placeValue(def *opcode.Definition, name, text string) any {
	p, ok := def.Param(name)
	if !ok {
		return text
	}
	return paramValue(p, text)
}

func (o Operation) carryOut(ctx context.Context, sh *shell.Shell, args []string, tasks []Task) error {
	if err := o.sure(ctx, sh, args, tasks); err != nil {
		return err
	}
	o.noteBefore(ctx, sh, tasks)
	return Run(ctx, sh, tasks)
}

// path is how the command is called.
func (o Operation) path() string { return o.Noun + " " + o.Verb }

// sure asks what the table of verbs has the command ask. The classic tools ask less.
func (o Operation) sure(ctx context.Context, sh *shell.Shell, args []string, tasks []Task) error {
	what := ""
	switch {
	case o.Destroys != nil && !sh.Classic():
		what = o.Destroys(tasks[0].Ops[0].Params, args)
	case sh.AlwaysAsks(o.path()) && !(o.Unasked && sh.Classic()):
		what = shell.Several(args, o.thing())
	}
	if what == "" {
		return nil
	}
	if o.Beforehand != nil && !sh.Flags.Yes && !sh.Flags.DryRun {
		if err := o.Beforehand(ctx, sh, tasks[0].Ops[0].Params, args); err != nil {
			return err
		}
	}
	return sh.Sure(o.path(), what)
}

// thing is what the command is about, in words.
func (o Operation) thing() string {
	switch o.Noun {
	case "backup":
		return "instance"
	case "group":
		return "node group"
	}
	return o.Noun
}
