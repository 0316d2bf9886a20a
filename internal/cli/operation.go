package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
)

// operation describes a command that makes one opcode per argument, or one in
// all. Its options come from the opcode's definition: one for each parameter,
// with dashes for underscores, described as the catalogue does.
type operation struct {
	noun, verb string
	// aliases are other names of the command.
	aliases []string
	short   string
	// long describes the options that stand for more than one parameter.
	long string
	id   string
	// target is the parameter that the arguments fill, one job for each;
	// empty when the command takes none.
	target string
	// places are further parameters that are given by position, after the
	// target; there is one job then.
	places []string
	// rest is a parameter that takes all arguments behind the target, as a
	// list; there is one job then.
	rest string
	// fixed are parameters that the command sets by itself.
	fixed map[string]any
	// relaxed are parameters that drover sets where the classic tools, and the
	// opcode, have stricter defaults.
	relaxed map[string]any
	// letters and names are further spellings of options: a letter, or a
	// name, for a parameter.
	letters map[string]string
	names   map[string]string
	// selects says that the classic tool looks the arguments up first, and shows
	// their full names.
	selects bool
	// switches are parameters without a default that need no value to be set.
	switches []string
	// hidden parameters have no option.
	hidden []string
	// question is asked before anything is done; %s is the list of targets.
	question string
	// told words the result as the classic tool does.
	told func(name string, result json.RawMessage) string
	// unasked: the classic tool does not ask.
	unasked bool
	// extra registers options of the command's own; the function that it
	// returns puts their values into the parameters.
	extra func(cmd *cobra.Command) func(params map[string]any) error
	// shown says that the result is what the user asked for.
	shown bool
	// children says that the jobs which the result names are waited for too.
	children bool
	// complete names the items that arguments may be, for the shell.
	complete string
}

func (o operation) definition() *opcode.Definition {
	def, ok := opcode.Lookup(o.id)
	if !ok {
		panic("cli: no opcode " + o.id) // a fault of the tables in this package
	}
	return def
}

// command makes the command of an operation.
func (o operation) command(sh *shell) *cobra.Command {
	def := o.definition()
	cmd := heeding(making, &cobra.Command{Use: o.use(), Aliases: o.aliases, Short: o.short, Long: o.long, Args: o.checkArgs})
	if def.Unsupported {
		cmd.Short += " (not in this version)"
		cmd.Long = strings.TrimSpace(fmt.Sprintf("%s.\n\nThis version cannot: %s has no executor, and the controller refuses a job\nwith it.\n\n%s", o.short, def.ID, o.long))
	}
	if o.complete != "" {
		cmd.ValidArgsFunction = sh.completeNames(o.complete, len(o.places) == 0)
	}
	read := o.register(cmd, def)
	sh.completeItems(cmd, o.itemOptions(def))
	var selected selection
	chosen := choice{kind: o.complete}
	switch {
	case o.selects && sh.persona.classic():
		selected.register(cmd)
		cmd.Args = nil
	case o.choosable() && !sh.persona.classic():
		chosen.register(cmd)
		cmd.Args = nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if def.Unsupported && !sh.persona.classic() { // before anything is looked up, or asked
			return opcode.Unsupported(def.ID)
		}
		var err error
		switch {
		case o.selects && sh.persona.classic():
			args, err = sh.selectNames(cmd, o, &selected, args)
		case o.choosable() && !sh.persona.classic():
			args, err = sh.chooseFor(cmd, o, &chosen, args)
		}
		if err != nil || o.choosable() && len(args) == 0 {
			return err
		}
		tasks, err := o.tasks(sh, args, read)
		if err != nil {
			return err
		}
		return o.carryOut(cmd.Context(), sh, args, tasks)
	}
	return cmd
}

// choosable reports whether the command is about any number of items that there
// are.
func (o operation) choosable() bool {
	return o.target != "" && o.complete != "" && len(o.places) == 0 && o.rest == ""
}

// chooseFor returns the items that a command of drover's own is about.
func (sh *shell) chooseFor(cmd *cobra.Command, o operation, c *choice, args []string) ([]string, error) {
	if !c.given() {
		if err := o.checkArgs(cmd, args); err != nil {
			return nil, err
		}
	}
	return sh.choose(cmd.Context(), c, o.verb, args, o.question != "")
}

// selectNames returns the items that a command of a classic tool is about.
func (sh *shell) selectNames(cmd *cobra.Command, o operation, s *selection, args []string) ([]string, error) {
	if !s.given() {
		if err := o.checkArgs(cmd, args); err != nil {
			return nil, err
		}
		return sh.fullNames(cmd.Context(), o.complete, args)
	}
	names, err := s.names(cmd.Context(), sh, args)
	if err != nil || len(names) == 0 {
		return names, err
	}
	return names, sh.confirmMany(s, cmd.CalledAs(), names)
}

// fullNames looks items up by their names or beginnings of them.
func (sh *shell) fullNames(ctx context.Context, kind string, names []string) ([]string, error) {
	filter, err := qlang.FromArguments(names, qlang.ArgOptions{NameField: "name"})
	if err != nil {
		return nil, err
	}
	var found listing.Answer
	err = sh.ask(ctx, "Query", &found, kind, []string{"name"}, qlang.JSON(filter))
	if fault.Is(err, fault.NotFound) || (err == nil && len(found.Data) == 0) {
		return nil, fault.New(fault.Invalid, "Selection filter does not match any %ss", kind)
	}
	out := make([]string, len(found.Data))
	for i, row := range found.Data {
		out[i] = cellText(row[0])
	}
	return out, err
}

func (o operation) use() string {
	words := []string{o.verb}
	if o.target != "" {
		target := strings.ToUpper(strings.TrimSuffix(o.target, "_name"))
		if len(o.places) == 0 && o.rest == "" {
			target += "..."
		}
		words = append(words, target)
	}
	if o.rest != "" {
		words = append(words, strings.ToUpper(strings.TrimSuffix(o.rest, "s"))+"...")
	}
	for _, p := range o.places {
		words = append(words, strings.ToUpper(p))
	}
	return strings.Join(words, " ")
}

func (o operation) checkArgs(cmd *cobra.Command, args []string) error {
	switch {
	case o.target == "" && len(o.places) == 0 && len(args) > 0:
		return usage("%s takes no arguments, got %q", cmd.CommandPath(), args[0])
	case o.target != "" && len(o.places) == 0 && len(args) == 0:
		return usage("%s: missing argument: %s", cmd.CommandPath(), o.use())
	case o.rest != "":
		return nil
	case len(o.places) > 0 && len(args) != o.positional():
		return usage("%s takes %d arguments: %s", cmd.CommandPath(), o.positional(), o.use())
	}
	return nil
}

func (o operation) positional() int {
	n := len(o.places)
	if o.target != "" {
		n++
	}
	return n
}

// register adds the options. The function that it returns reads those that
// were given.
func (o operation) register(cmd *cobra.Command, def *opcode.Definition) func() (map[string]any, error) {
	texts := map[string]*paramText{} // by option
	params := map[string]*opcode.Param{}
	add := func(name, letter string, p *opcode.Param, hide bool) {
		texts[name], params[name] = &paramText{kind: kindOf(p)}, p
		cmd.Flags().VarP(texts[name], name, letter, optionHelp(p))
		flag := cmd.Flags().Lookup(name)
		flag.Hidden = hide
		if p.Type.String() == "bool" || slices.Contains(o.switches, p.Name) {
			flag.NoOptDefVal = "true"
		}
		if words := p.Type.Allowed(); len(words) > 0 {
			_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // the option exists
		}
	}
	for i := range def.Params {
		p := &def.Params[i]
		if o.hasOption(p.Name) {
			add(strings.ReplaceAll(p.Name, "_", "-"), o.letters[p.Name], p, strings.HasSuffix(p.Name, "_uuid"))
			for _, name := range classicNames[p.Name] {
				add(name, "", p, true)
			}
		}
	}
	negated := map[string]*bool{} // by parameter: --no-X for what is on by default
	for i := range def.Params {
		if p := &def.Params[i]; p.Default == true && o.hasOption(p.Name) {
			name := "no-" + strings.ReplaceAll(p.Name, "_", "-")
			negated[p.Name] = cmd.Flags().Bool(name, false, "do not "+p.Doc)
			cmd.Flags().Lookup(name).Hidden = true
		}
	}
	for name, param := range o.names {
		if p, ok := def.Param(param); ok {
			add(name, "", p, true)
		}
	}
	var own func(map[string]any) error
	if o.extra != nil {
		own = o.extra(cmd)
	}
	return func() (map[string]any, error) {
		out := map[string]any{}
		for name, text := range texts {
			if cmd.Flags().Changed(name) {
				out[params[name].Name] = paramValue(params[name], text.text)
			}
		}
		for param, off := range negated {
			if *off {
				out[param] = false
			}
		}
		if own == nil {
			return out, nil
		}
		return out, own(out)
	}
}

// itemOptions are the options whose values are names of items, with their kinds.
func (o operation) itemOptions(def *opcode.Definition) map[string]string {
	out := maps.Clone(optionKinds)
	for i := range def.Params {
		p := def.Params[i].Name
		if kind := paramKinds[p]; kind != "" && o.hasOption(p) {
			out[strings.ReplaceAll(p, "_", "-")] = kind
		}
	}
	for option, param := range o.names {
		out[option] = paramKinds[param]
	}
	return out
}

// hasOption reports whether a parameter is set by an option.
func (o operation) hasOption(param string) bool {
	_, fixed := o.fixed[param]
	return !fixed && param != o.target && !slices.Contains(o.places, param) && !slices.Contains(o.hidden, param)
}

// optionHelp describes an option by its parameter: what it is, which words it
// takes, the default.
func optionHelp(p *opcode.Param) string {
	text := p.Doc
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
func (o operation) tasks(sh *shell, args []string, read func() (map[string]any, error)) ([]task, error) {
	params, err := read()
	if err != nil {
		return nil, err
	}
	defaults := []map[string]any{o.fixed, o.relaxed}
	if sh.persona.classic() {
		defaults = defaults[:1]
	}
	for _, values := range defaults {
		for name, value := range values {
			if _, given := params[name]; !given {
				params[name] = value
			}
		}
	}
	if def := o.definition(); nothingToChange(def, params) {
		switch {
		case !sh.persona.classic():
			return nil, usage("nothing to change is given: see drover %s %s --help", o.noun, o.verb)
		case def.ID != "OP_GROUP_SET_PARAMS":
			return nil, &exitError{status: ExitFailed, err: fault.New(fault.Failed, "Please give at least one of the parameters.")}
		}
	}
	targets := []string{""}
	if o.target != "" {
		targets = args
		if o.rest != "" {
			targets = args[:1]
			if len(args) > 1 {
				params[o.rest] = args[1:]
			}
		}
		if len(o.places) > 0 {
			targets, args = args[:1], args[1:]
		}
	}
	def, _ := opcode.Lookup(o.id)
	for i, place := range o.places {
		params[place] = placeValue(def, place, args[i])
	}
	tasks := make([]task, len(targets))
	for i, target := range targets {
		if o.target != "" {
			params[o.target] = target
		}
		op, err := sh.newOp(o.noun, o.id, params)
		if err != nil {
			return nil, err
		}
		tasks[i] = task{target: target, ops: []*opcode.Opcode{op}, shown: o.shown, children: o.children && !sh.flags.dryRun}
		if sh.persona.classic() && o.told != nil {
			tasks[i].told = func(result json.RawMessage) string { return o.told(target, result) }
		}
	}
	if sh.persona.classic() && !o.selects && len(tasks) == 1 {
		tasks[0].target = "" // the classic tool speaks of one thing, and does not name it
	}
	return tasks, nil
}

// placeValue reads what is given by position as an option of that name would be.
func placeValue(def *opcode.Definition, name, text string) any {
	p, ok := def.Param(name)
	if !ok {
		return text
	}
	if name == "amount" { // of a disk: with a unit, as sizes are written everywhere
		if n, ok := mebibytes(text); ok {
			return n
		}
	}
	return paramValue(p, text)
}

func (o operation) carryOut(ctx context.Context, sh *shell, args []string, tasks []task) error {
	if o.question != "" && !sh.flags.dryRun && !(o.unasked && sh.persona.classic()) {
		if err := sh.confirm(fmt.Sprintf(o.question, listed(args))); err != nil {
			return err
		}
	}
	return sh.run(ctx, tasks)
}
