package deployments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/deploy/report"
	"github.com/drover-project/drover/internal/fault"
)

// deployWish are the options that say what a deployment is to do.
type deployWish struct {
	graphs, only, nodes []string
	events, refreshed   []string
	kind                string // of graphs
	noop, force, drift  bool
}

// driftUsage says what the option is for that asks machines.
const driftUsage = "ask the machines about the tasks that would not run, by their checks and the content of files, and let those run of which something differs"

func (w *deployWish) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&w.only, "task", nil, "let only these tasks run")
	f.StringSliceVar(&w.nodes, "node", nil, "let only these nodes take part, by uid")
	f.StringSliceVar(&w.events, "event", nil, "execute again the tasks that name one of these events in reexecute_on")
	f.StringSliceVar(&w.refreshed, "refresh", nil, "let only the tasks run that name one of these resources in refresh_on")
	f.StringVar(&w.kind, "type", "", "deploy by the environment's graphs of this type")
	f.BoolVar(&w.noop, "noop", false, "run tasks in the way of their type that changes nothing")
	f.BoolVar(&w.force, "force", false, "evaluate conditions as in a first deployment")
	f.BoolVar(&w.drift, "drift", false, driftUsage)
}

// parameters are the wish as the controller takes it.
func (w *deployWish) parameters(environment string, dry bool) map[string]any {
	mode := course.Earnest
	switch {
	case dry:
		mode = course.DryRun
	case w.noop:
		mode = course.Noop
	}
	return map[string]any{"environment": environment, "graphs": shell.NonNil(w.graphs), "only": shell.NonNil(w.only), "nodes": shell.NonNil(w.nodes), "mode": mode, "force": w.force,
		"events": shell.NonNil(w.events), "refreshed": shell.NonNil(w.refreshed), "type": w.kind, "drift": w.drift}
}

// options are the names of the options that give the parts of a wish.
var options = map[string]string{"graphs": "--graph", "only": "--task", "nodes": "--node", "events": "--event", "refreshed": "--refresh", "type": "--type", "drift": "--drift"}

// asOption names the option in an error about a part of a wish.
func asOption(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || options[f.Field] == "" {
		return err
	}
	return f.At(options[f.Field])
}

// planned is a plan: one that the controller has stored, or one that it has only shown, which has the tasks.
type planned struct {
	Deployment course.Deployment `json:"deployment"`
	Tasks      []course.Task     `json:"tasks"`
	Warnings   []string          `json:"warnings"`
	Drift      *course.Drift     `json:"drift"` // nil if the machines were not asked
}

// planOptions are those of plans of environments that the controller has.
type planOptions struct {
	form                string
	save, all, detailed bool
}

// planStored lets the command that plans from files plan what the controller has, if it is given an environment.
func planStored(sh *shell.Shell, cmd *cobra.Command) {
	var w deployWish
	var o planOptions
	fromFiles := cmd.RunE
	cmd.Use = "plan ENVIRONMENT | --env FILE --graph PATH... [--old FILE]"
	cmd.Long += "\n\nOf an ENVIRONMENT that the controller keeps nothing is stored, unless --save says so: then the plan has a number, and can be\n" +
		"run with: drover deploy run --plan ID."
	cmd.Args = shell.Between(0, 1)
	cmd.Flags().Lookup("graph").Usage += "; of a stored environment: name of a stored task graph, instead of its own"
	cmd.Flags().StringSliceVar(&w.nodes, "node", nil, "of a stored environment: let only these nodes take part, by uid")
	cmd.Flags().StringVar(&w.kind, "type", "", "of a stored environment: plan by its graphs of this type")
	cmd.Flags().BoolVar(&w.noop, "noop", false, "of a stored environment: plan to run tasks in the way of their type that changes nothing")
	cmd.Flags().BoolVar(&w.force, "force", false, "of a stored environment: evaluate conditions as in a first deployment")
	cmd.Flags().BoolVar(&w.drift, "drift", false, "of a stored environment: "+driftUsage)
	cmd.Flags().BoolVar(&o.save, "save", false, "of a stored environment: keep the plan, to be run as it is")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			if o.save {
				return shell.Usage("--save is for plans of environments that the controller has; of files nothing is stored")
			}
			if err := shell.WithoutEffect(cmd, "it is for plans of environments that the controller has", storedOnly...); err != nil {
				return err
			}
			return fromFiles(cmd, args)
		}
		if err := notOfFiles(cmd); err != nil {
			return err
		}
		var err error
		if w.graphs, err = cmd.Flags().GetStringArray("graph"); err != nil {
			return err
		}
		for flag, to := range map[string]*[]string{"task": &w.only, "event": &w.events, "refresh": &w.refreshed} {
			if *to, err = cmd.Flags().GetStringSlice(flag); err != nil {
				return err
			}
		}
		for flag, to := range map[string]*bool{"detailed-exitcode": &o.detailed, "all": &o.all} {
			if *to, err = cmd.Flags().GetBool(flag); err != nil {
				return err
			}
		}
		if o.form, err = cmd.Flags().GetString("output"); err != nil {
			return err
		}
		return planOf(cmd.Context(), sh, &w, args[0], &o)
	}
}

// Options of commands that compute on files or on what the controller has, and that only one of the two ways reads.
var (
	storedOnly = []string{"node", "type", "noop", "force", "drift", "luxi", "reason"}
	filesOnly  = []string{"env", "old", "functions", "check-versions"}
)

// notOfFiles refuses the options of plans from files, and the others that a stored plan does not read. It never shows secrets.
func notOfFiles(cmd *cobra.Command, others ...string) error {
	if cmd.Flags().Changed(revealFlag) {
		return shell.Usage("--%s is for plans from files: stored plans tell no secrets; drover deploy env show --%s does", revealFlag, revealFlag)
	}
	return shell.WithoutEffect(cmd, "what the controller has was named, and not files", append(others, filesOnly...)...)
}

func planOf(ctx context.Context, sh *shell.Shell, w *deployWish, environment string, o *planOptions) error {
	if names := formNames(func(f planForm) bool { return f.stored }); !slices.Contains(names, o.form) {
		return shell.Usage("the plan of a stored environment is shown as %s, not as %q", shell.Alternatives(names, " or "), o.form)
	}
	p, err := planWith(ctx, sh, w.parameters(environment, false), o.save)
	if err != nil {
		return err
	}
	warnAll(sh, p.Warnings)
	told := map[string]any{"deployment": p.Deployment, "tasks": p.Tasks}
	if p.Drift != nil {
		told["drift"] = p.Drift
	}
	value, err := shell.Timed(told, stampKeys)
	if err != nil {
		return err
	}
	switch data := shell.FormatNamed(o.form).Data; {
	case data != nil:
		err = data(sh.Out, value)
	case o.form == formTree:
		if err = planTree(sh, p); err == nil {
			err = sh.Printf("%s", driftPage(p.Drift, o.all, sh.Line))
		}
	default:
		err = sh.Printf("%s", p.page(o.all, sh.Line))
	}
	if err == nil && o.save {
		sh.Notef("%s", keptPlan(p.Deployment.ID))
	}
	switch {
	case err != nil || !o.detailed:
		return err
	case p.Deployment.Runs > 0:
		return errSomethingToDo
	case p.Drift != nil && len(p.Drift.Unknown) > 0: // whether there is nothing to do
		return shell.ErrFailed
	}
	return nil
}

// keptPlan says that a plan is kept.
func keptPlan(id int64) string {
	return fmt.Sprintf("plan %d is kept: drover deploy run --plan %d carries it out\n", id, id)
}

// planWith has a plan made, and stored if it is to be.
func planWith(ctx context.Context, sh *shell.Shell, wish map[string]any, save bool) (*planned, error) {
	p := &planned{}
	if !save && wish["drift"] == true {
		return p, asOption(sh.Do(ctx, "CompareDeployment", p, wish, sh.UserTrail()))
	}
	if !save {
		return p, asOption(sh.Ask(ctx, "PreviewDeployment", p, wish, sh.UserTrail()))
	}
	if err := sh.Do(ctx, "PlanDeployment", p, wish, sh.UserTrail()); err != nil {
		return nil, asOption(err)
	}
	return p, sh.Do(ctx, "QueryDeploymentTasks", &p.Tasks, p.Deployment.ID)
}

// rows are the tasks that run, as pages tell of them.
func (p *planned) rows() []report.Row {
	return report.RowsWith(p.Deployment.Nodes, p.Tasks, p.Drift)
}

// page tells what the plan runs.
func (p *planned) page(all bool, width int) string {
	return planPage(p.head(), p.Deployment.Steps, p.rows(), all, width) + driftPage(p.Drift, all, width)
}

// head says what the plan is of.
func (p *planned) head() string {
	if p.Deployment.ID == 0 {
		return p.Deployment.Environment + ": "
	}
	return fmt.Sprintf("deployment %d of %s: ", p.Deployment.ID, p.Deployment.Environment)
}

func planTree(sh *shell.Shell, p *planned) error {
	if err := sh.Printf("%s%d of %d tasks run\n", p.head(), p.Deployment.Runs, p.Deployment.Steps); err != nil {
		return err
	}
	byNode := map[string][]course.Task{}
	for _, t := range p.Tasks {
		if t.State != course.Skipped {
			byNode[t.Node] = append(byNode[t.Node], t)
		}
	}
	for _, uid := range slices.SortedFunc(maps.Keys(byNode), byNumber) {
		if err := sh.Printf("node %s\n", uid); err != nil {
			return err
		}
		for i, t := range byNode[uid] {
			mark := "├─"
			if i == len(byNode[uid])-1 {
				mark = "└─"
			}
			if err := sh.Printf("%s %s (%s): %s\n", mark, t.Task, t.Type, t.Why); err != nil {
				return err
			}
		}
	}
	return nil
}

// explainStored lets the command that explains plans of files explain those that the controller has.
func explainStored(sh *shell.Shell, cmd *cobra.Command) {
	fromFiles := cmd.RunE
	cmd.Use = "explain DEPLOYMENT TASK NODE | --env FILE --graph PATH... [--old FILE] TASK NODE"
	cmd.Long += "\n\nOf a DEPLOYMENT that the controller has planned, it tells what has become of the task, too."
	cmd.Args = shell.Between(2, 3) //nolint:mnd // task and node, after a deployment or files
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 2 { //nolint:mnd // see above
			if !cmd.Flags().Changed("env") && !cmd.Flags().Changed("graph") {
				return shell.Usage("%s: give a deployment, a task and a node; or --env FILE and --graph PATH before a task and a node", cmd.CommandPath())
			}
			if err := shell.WithoutEffect(cmd, "a plan from files asks no controller", storedOnly...); err != nil {
				return err
			}
			return fromFiles(cmd, args)
		}
		if err := notOfFiles(cmd, "graph", "task", "event", "refresh"); err != nil {
			return err
		}
		id, err := deploymentID(args[0])
		if err != nil {
			return err
		}
		var x course.Explanation
		if err := sh.Do(cmd.Context(), "ExplainDeploymentTask", &x, id, args[1], args[2]); err != nil {
			return err
		}
		return sh.ShowTimes(x, stampKeys, func() error { return sh.Printf("%s", listing.Fold(explanationPage(&x, sh.Now()), sh.Width)) })
	}
}

func deployRun(sh *shell.Shell) *cobra.Command {
	var w deployWish
	var plan int64
	cmd := shell.Heeding([]string{"luxi", "output", "reason", "dry-run", "submit", "yes"}, &cobra.Command{
		Use: "run ENVIRONMENT | --plan ID", Short: "Plan a deployment and carry it out", Args: shell.Between(0, 1),
		Long: "Plan a deployment of an environment and carry it out, or carry out a plan that was stored; that is refused if\n" +
			"what it was computed from has changed. What is to run is told first, and on a terminal it is asked whether to go on,\n" +
			"unless --yes is given. With --dry-run nodes only report what they would do; with --noop tasks\n" +
			"run in the way of their type that changes nothing. Neither counts as a success of its tasks.\n" +
			"A stored plan is carried out as it is: of these options it takes none.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if (plan != 0) == (len(args) == 1) {
				return shell.Usage("give either an environment or --plan ID")
			}
			err := asItIs(cmd, plan)
			if err != nil {
				return err
			}
			if plan == 0 {
				plan, err = planToRun(cmd.Context(), sh, w.parameters(args[0], sh.Flags.DryRun))
			} else {
				err = showStored(cmd.Context(), sh, plan)
			}
			if err != nil {
				return err
			}
			return goOn(cmd.Context(), sh, "BeginDeployment", plan, sh.UserTrail())
		},
	})
	w.register(cmd)
	cmd.Flags().StringArrayVarP(&w.graphs, "graph", "g", nil, "name of a stored task graph, instead of those of the environment")
	cmd.Flags().Int64Var(&plan, "plan", 0, "number of a stored plan")
	return cmd
}

// wishOptions are the names of all options that say what a deployment is to do.
var wishOptions = []string{"graph", "task", "node", "event", "refresh", "type", "noop", "force", "drift"}

// asItIs refuses what would have a stored plan do something else: it is carried out as it is, in earnest or not, as it was made.
func asItIs(cmd *cobra.Command, plan int64) error {
	if plan == 0 {
		return nil
	}
	why := fmt.Sprintf("--plan carries a plan out as it was made; drover deploy status %d tells of it, and drover deploy run ENVIRONMENT plans anew", plan)
	return shell.WithoutEffect(cmd, why, append([]string{"dry-run"}, wishOptions...)...)
}

// planToRun has a plan stored that is to be run, and returns its number. On a terminal it is shown before, and asked about; what is stored then is
// what was shown.
func planToRun(ctx context.Context, sh *shell.Shell, wish map[string]any) (int64, error) {
	ask := asks(sh)
	if ask && wish["drift"] == true {
		return compareToRun(ctx, sh, wish)
	}
	if ask {
		shown, err := planWith(ctx, sh, wish, false)
		if err != nil {
			return 0, err
		}
		if err := sure(sh, shown); err != nil {
			return 0, err
		}
		wish["basis"] = shown.Deployment.Basis
	}
	var p planned
	if err := sh.Do(ctx, "PlanDeployment", &p, wish, sh.UserTrail()); err != nil {
		return 0, asOption(err)
	}
	warnAll(sh, p.Warnings)
	if ask || sh.Structured() || sh.Flags.Submit {
		return p.Deployment.ID, nil
	}
	return p.Deployment.ID, showTasks(ctx, sh, &p)
}

// compareToRun has a plan stored that the machines were asked for, and asks whether it is to run. Asked again they might tell something else: so what is
// shown is the plan that runs, now or later.
func compareToRun(ctx context.Context, sh *shell.Shell, wish map[string]any) (int64, error) {
	p, err := planWith(ctx, sh, wish, true)
	if err != nil {
		return 0, err
	}
	warnAll(sh, p.Warnings)
	if err := sure(sh, p); err != nil {
		sh.Notef("%s", keptPlan(p.Deployment.ID))
		return 0, err
	}
	return p.Deployment.ID, nil
}

// asks tells whether it is asked before a deployment is begun: of a person, where something is to be done.
func asks(sh *shell.Shell) bool {
	return sh.Person && !sh.Structured() && !sh.Flags.Yes && !sh.Flags.DryRun
}

// sure shows what is to run, and asks whether it is to.
func sure(sh *shell.Shell, p *planned) error {
	sh.Notef("%s", p.page(false, sh.Line))
	if p.Deployment.Runs == 0 {
		return nil
	}
	return sh.Confirm("Run " + shell.Counted(p.Deployment.Runs, "task") + "?")
}

// showTasks shows what a stored plan runs.
func showTasks(ctx context.Context, sh *shell.Shell, p *planned) error {
	if err := sh.Do(ctx, "QueryDeploymentTasks", &p.Tasks, p.Deployment.ID); err != nil {
		return err
	}
	sh.Notef("%s", p.page(false, sh.Line))
	return nil
}

// showStored shows what a plan runs that was stored before, and asks on a terminal whether it is to.
func showStored(ctx context.Context, sh *shell.Shell, id int64) error {
	if sh.Structured() || sh.Flags.Submit && !asks(sh) {
		return nil
	}
	p := &planned{}
	if err := sh.Do(ctx, "QueryDeployment", &p.Deployment, id); err != nil {
		return err
	}
	if p.Deployment.Status != course.Planned { // to begin it is refused with a better reason
		return nil
	}
	if !asks(sh) {
		return showTasks(ctx, sh, p)
	}
	if err := sh.Do(ctx, "QueryDeploymentTasks", &p.Tasks, id); err != nil {
		return err
	}
	return sure(sh, p)
}

// goOn has a deployment begun or resumed, and follows it unless told otherwise.
func goOn(ctx context.Context, sh *shell.Shell, method string, id int64, args ...any) error {
	if err := sh.Do(ctx, method, nil, append([]any{id}, args...)...); err != nil {
		return err
	}
	if sh.Flags.Submit {
		return sh.Show(map[string]int64{"id": id}, func() error { return sh.Printf("%d\n", id) })
	}
	sh.Notef("deployment %d\n", id)
	return followDeployment(ctx, sh, id, false)
}

func deployWatch(sh *shell.Shell) *cobra.Command {
	return shell.Heeding(shell.Asking, &cobra.Command{
		Use: "watch ID", Short: "Follow a deployment to its end, task by task", Args: shell.Exactly(1),
		Long: "Follow a deployment to its end: tell of each task when it has ended on all nodes, and of failures at once. The exit\n" +
			"status is that of drover deploy run.",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := deploymentID(args[0])
			if err != nil {
				return err
			}
			return followDeployment(cmd.Context(), sh, id, true)
		},
	})
}

func deployGoOn(sh *shell.Shell, verb, short string, retry bool) *cobra.Command {
	return shell.Heeding([]string{"luxi", "output", "reason", "submit"}, &cobra.Command{
		Use: verb + " ID", Short: short, Args: shell.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := deploymentID(args[0])
			if err != nil {
				return err
			}
			var p course.Progress
			if err := sh.Do(cmd.Context(), "QueryDeployment", &p, id); err != nil {
				return err
			}
			if p.Moved != "" {
				sh.Notef("note: what deployment %d was planned from has changed: %s; it goes on as planned, and drover deploy run %s plans anew\n",
					id, p.Moved, p.Environment)
			}
			return goOn(cmd.Context(), sh, "ResumeDeployment", id, retry, sh.UserTrail())
		},
	})
}

func deployStop(sh *shell.Shell) *cobra.Command {
	return shell.Heeding([]string{"luxi", "reason"}, &cobra.Command{
		Use: "stop ID", Short: "Let nothing more of a deployment begin; what runs comes to its end", Args: shell.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := deploymentID(args[0])
			if err != nil {
				return err
			}
			return sh.Do(cmd.Context(), "StopDeployment", nil, id, sh.UserTrail())
		},
	})
}

func deploymentID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, shell.Usage("a deployment is named by its number, got %q", text)
	}
	return id, nil
}

func deployStatus(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{
		Use: "status ID", Short: "Tell how far a deployment is, and what it waits for", Args: shell.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := deploymentID(args[0])
			if err != nil {
				return err
			}
			return deploymentStatus(cmd.Context(), sh, id)
		},
	}
}

func deploymentStatus(ctx context.Context, sh *shell.Shell, id int64) error {
	var whole json.RawMessage
	if err := sh.Do(ctx, "QueryDeployment", &whole, id); err != nil {
		return err
	}
	var p course.Progress
	if err := json.Unmarshal(whole, &p); err != nil {
		return err
	}
	return sh.ShowTimes(whole, stampKeys, func() error { return sh.Printf("%s", listing.Fold(progressPage(&p, sh.Now()), sh.Width)) })
}

// progressLine tells in a line how far a deployment is.
func progressLine(p *course.Progress) string {
	text := fmt.Sprintf("deployment %d: %s, %d of %d tasks done, %d running", p.ID, p.Status, p.Done(), p.Runs, len(p.Running))
	if n := p.States[course.Failed]; n > 0 {
		text += fmt.Sprintf(", %d failed", n)
	}
	if n := len(p.Held); n > 0 {
		text += fmt.Sprintf(", %d held", n)
	}
	if len(p.Longest) > 0 {
		text += ", longest chain " + strconv.Itoa(len(p.Longest)) + ": " + p.Longest[0]
	}
	return text
}

// lookAgain is how often a deployment that is followed is looked at.
const lookAgain = 500 * time.Millisecond

// followDeployment waits for the end of a deployment, and shows on a terminal how far it is; with lines it tells of tasks and failures as they
// end. One that did not succeed is a failure of the command.
func followDeployment(ctx context.Context, sh *shell.Shell, id int64, lines bool) error {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	told := &tidings{}
	for {
		var p course.Progress
		if err := sh.Stay(ctx, "QueryDeployment", &p, id); err != nil {
			return err
		}
		if p.Status == course.Planned {
			return fault.New(fault.WrongState, "deployment %d has not begun", id).WithHint("drover deploy run --plan %d begins it", id)
		}
		if sh.Person {
			sh.Rawf("%s", work.EraseLine)
		}
		if lines && !sh.Structured() {
			if err := sh.Printf("%s", listing.Fold(told.since(&p), sh.Width)); err != nil {
				return err
			}
		}
		if !p.Status.Active() {
			if err := deploymentStatus(ctx, sh, id); err != nil {
				return err
			}
			if p.Status != course.Done {
				return shell.ErrFailed
			}
			return nil
		}
		if sh.Person {
			sh.Rawf("%s", listing.Cut(listing.Printable(progressLine(&p)), sh.Line-1))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			sh.Notef("deployment %d goes on; drover deploy watch %d follows it\n", id, id)
			return context.Cause(ctx)
		}
	}
}

// tidings are what was told of a deployment that is followed.
type tidings struct {
	ended  map[string]bool // tasks
	failed map[int32]bool  // steps
}

// since tells what is new: tasks that have ended on all nodes, and failures.
func (x *tidings) since(p *course.Progress) string {
	if x.ended == nil {
		x.ended, x.failed = map[string]bool{}, map[int32]bool{}
	}
	b := &strings.Builder{}
	for i := range p.Unsuccessful {
		if t := &p.Unsuccessful[i]; !x.failed[t.Step] {
			x.failed[t.Step] = true
			failure(b, t)
		}
	}
	for _, t := range p.ByTask {
		if t.Ended == t.Runs && !x.ended[t.Task] {
			x.ended[t.Task] = true
			fmt.Fprintf(b, "%s: %s\n", t.Task, tally(&t))
		}
	}
	return b.String()
}
