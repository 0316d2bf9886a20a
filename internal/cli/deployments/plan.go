package deployments

import (
	"cmp"
	"io"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/deploy/environment"
	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/deploy/report"
	"github.com/drover-project/drover/internal/deploy/secret"
	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/internal/fault"
)

// planInput is what a plan is computed from, as flags.
type planInput struct {
	environment string
	old         string
	graphs      []string
	functions   string
	only        []string
	events      []string
	refreshed   []string
	versions    bool
	reveal      bool
}

// planForm is a form in which a plan is shown, as --output names it.
type planForm struct {
	name string
	// stored: plans of stored environments are shown so, too, by the format of the name if it is one.
	stored bool
	// write writes a plan from files; nil for the forms for people.
	write func(out io.Writer, p *plan.Plan) error
}

// The forms for people.
const (
	formText = "text"
	formTree = "tree"
)

// forms are all of them, the usual one first.
var forms = []planForm{
	{formText, true, nil}, {formTree, true, nil}, {"json", true, report.JSON}, {"yaml", true, report.YAML}, {"dot", false, report.DOT}, {"mermaid", false, report.Mermaid},
}

// formNames are the names of the forms that are meant.
func formNames(meant func(planForm) bool) (names []string) {
	for _, f := range forms {
		if meant(f) {
			names = append(names, f.name)
		}
	}
	return names
}

// allForms are the names of all forms.
func allForms() []string { return formNames(func(planForm) bool { return true }) }

// errSomethingToDo ends a command that was asked to tell whether there is something to do.
var errSomethingToDo = &shell.ExitError{Status: shell.ExitWouldChange}

func newPlan() *cobra.Command {
	in := &planInput{}
	var output string
	var detailed, all bool
	cmd := &cobra.Command{
		Use:   "plan --env FILE --graph PATH... [--old FILE]",
		Short: "Compute what a deployment would do",
		Long: "Compute which tasks of a graph would run on which nodes of an environment, in what order, with what\n" +
			"parameters, and why. The old state is that of the last success of every task on every node that is in it;\n" +
			"without one no task ever ran.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if names := allForms(); !slices.Contains(names, output) {
				return shell.Usage("--output must be one of %s, got %q", strings.Join(names, ", "), output)
			}
			if err := in.given(); err != nil {
				return err
			}
			language, err := languageWith(in.functions)
			if err != nil {
				return err
			}
			g, err := loadGraph(language, in.graphs)
			if err != nil {
				return err
			}
			warn(cmd.ErrOrStderr(), g.Warnings)
			p, order, hide, err := in.compute(cmd, language, g)
			if err != nil {
				return err
			}
			if err := show(cmd, p, order, output, all, hide); err != nil {
				return err
			}
			if detailed && p.Len() > 0 {
				return errSomethingToDo
			}
			return nil
		},
	}
	in.register(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&output, "output", "o", forms[0].name, "form of the plan: "+strings.Join(allForms(), ", "))
	flags.BoolVar(&all, "all", false, "as text: tell of all tasks and reasons, however many they are")
	flags.BoolVar(&detailed, "detailed-exitcode", false, "end with status 0 if there is nothing to do, and 4 if there is something")
	return cmd
}

// register adds the flags that say what a plan is computed from.
func (in *planInput) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&in.environment, "env", "e", "", "file with the state to be reached (- for standard input)")
	flags.StringVar(&in.old, "old", "", "file with the state of the last success")
	flags.StringArrayVarP(&in.graphs, "graph", "g", nil, "file or directory of a task graph; later ones override earlier ones")
	functionsFlag(flags, &in.functions)
	flags.StringSliceVar(&in.only, "task", nil, "let only these tasks run")
	flags.StringSliceVar(&in.events, "event", nil, "execute again the tasks that name one of these events in reexecute_on")
	flags.StringSliceVar(&in.refreshed, "refresh", nil, "let only the tasks run that name one of these resources in refresh_on")
	flags.BoolVar(&in.versions, "check-versions", false, "refuse tasks whose version knows no relations between nodes")
	flags.BoolVar(&in.reveal, revealFlag, false, "of files: show secrets to people, too")
}

// revealFlag is the option that shows secrets.
const revealFlag = "show-secrets"

// given refuses a command line that lacks what a plan is computed from.
func (in *planInput) given() error {
	if in.environment == "" || len(in.graphs) == 0 {
		return shell.Usage("a plan needs the file of an environment, --env FILE, and --graph PATH; or the name of an environment that the controller has")
	}
	return nil
}

// Plans of many nodes make much that stays until the end. Collecting garbage less often than usual saves a third of the
// time, as long as there is room.
const (
	garbagePercent = 400
	garbageRoom    = 800 << 20
)

// hiding returns what hides secrets.
type hiding func() (*secret.Veil, error)

// compute makes the plan and its order, with what hides the secrets of its states.
func (in *planInput) compute(cmd *cobra.Command, language *expression.Language, g *graph.Graph) (*plan.Plan, []int32, hiding, error) {
	debug.SetGCPercent(garbagePercent)
	debug.SetMemoryLimit(garbageRoom)
	space := state.NewSpace()
	env, old, err := in.states(space, cmd.InOrStdin())
	if err != nil {
		return nil, nil, nil, err
	}
	warn(cmd.ErrOrStderr(), env.Warnings)
	status := environment.New
	if old != nil {
		status = environment.Operational
	}
	from := plan.Input{Tasks: g.Tasks, Space: space, Common: env.Common.Beside(env.About(status)), Parts: env.Parts, Nodes: env.Nodes, Settings: env.Settings,
		CheckVersions: in.versions, Only: in.only, Events: in.events, Refreshed: in.refreshed}
	if err := known(g, in.only); err != nil {
		return nil, nil, nil, err
	}
	if old != nil {
		warn(cmd.ErrOrStderr(), old.Warnings)
		from.OldCommon = old.Common.Beside(old.About(environment.New))
		from.Old = lastSuccess(old, from.OldCommon)
	}
	p, err := plan.Build(cmd.Context(), language, from)
	hide := func() (*secret.Veil, error) {
		if in.reveal {
			return nil, nil
		}
		return environment.Veil(p, env, old)
	}
	if err != nil {
		veil, wrong := hide()
		return nil, nil, nil, cmp.Or(wrong, veil.Error(err))
	}
	order, err := p.Order()
	return p, order, hide, err
}

// states reads the state to be reached and the old one, if there is one, at the same time.
func (in *planInput) states(space *state.Space, stdin io.Reader) (env, old *environment.Environment, err error) {
	if in.environment == "-" && in.old == "-" {
		return nil, nil, fault.New(fault.Invalid, "standard input can be one of the two states only").At("old")
	}
	type answer struct {
		old *environment.Environment
		err error
	}
	reading := make(chan answer, 1)
	go func() {
		var a answer
		if in.old != "" {
			a.old, a.err = loadEnvironment(space, in.old, stdin)
		}
		reading <- a
	}()
	env, err = loadEnvironment(space, in.environment, stdin)
	before := <-reading
	return env, before.old, cmp.Or(err, before.err)
}

// lastSuccess is one state for all tasks on all nodes that are in it.
func lastSuccess(old *environment.Environment, common *state.Part) func(task, uid string) (common, node *state.Part, ok bool) {
	return func(_, uid string) (*state.Part, *state.Part, bool) {
		node, ok := old.Parts[uid]
		return common, node, ok
	}
}

// known refuses tasks that the graph lacks.
func known(g *graph.Graph, ids []string) error {
	for _, id := range ids {
		if !slices.ContainsFunc(g.Tasks, func(t *graph.Task) bool { return t.ID == id }) {
			return fault.New(fault.NotFound, "the graph has no task %q", id).At("--task")
		}
	}
	return nil
}

func show(cmd *cobra.Command, p *plan.Plan, order []int32, form string, all bool, hide hiding) error {
	out := cmd.OutOrStdout()
	if i := slices.IndexFunc(forms, func(f planForm) bool { return f.name == form }); i >= 0 && forms[i].write != nil {
		for _, w := range p.Warnings {
			warnText(cmd.ErrOrStderr(), w)
		}
		return forms[i].write(out, p)
	}
	veil, err := hide()
	if err != nil {
		return err
	}
	if form == formTree {
		return report.Tree(out, p, order, veil)
	}
	for _, w := range p.Warnings {
		warnText(cmd.ErrOrStderr(), veil.Text(w))
	}
	_, err = io.WriteString(out, planPage("", len(p.Steps), report.Rows(p, order, veil), all, shell.UsualWidth))
	return err
}
