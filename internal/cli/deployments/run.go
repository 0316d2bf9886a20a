package deployments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
)

// deployWish are the options that say what a deployment is to do.
type deployWish struct {
	graphs, only, nodes []string
	events, refreshed   []string
	kind                string // of graphs
	noop, force         bool
}

func (w *deployWish) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&w.only, "task", nil, "let only these tasks run")
	f.StringSliceVar(&w.nodes, "node", nil, "let only these nodes take part, by uid")
	f.StringSliceVar(&w.events, "event", nil, "execute again the tasks that name one of these events in reexecute_on")
	f.StringSliceVar(&w.refreshed, "refresh", nil, "let only the tasks run that name one of these resources in refresh_on")
	f.StringVar(&w.kind, "type", "", "deploy by the environment's graphs of this type")
	f.BoolVar(&w.noop, "noop", false, "run tasks in the way of their type that changes nothing")
	f.BoolVar(&w.force, "force", false, "evaluate conditions as in a first deployment")
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
		"events": shell.NonNil(w.events), "refreshed": shell.NonNil(w.refreshed), "type": w.kind}
}

// options are the names of the options that give the parts of a wish.
var options = map[string]string{"graphs": "--graph", "only": "--task", "nodes": "--node", "events": "--event", "refreshed": "--refresh", "type": "--type"}

// asOption names the option in an error about a part of a wish.
func asOption(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || options[f.Field] == "" {
		return err
	}
	return f.At(options[f.Field])
}

// planned is a plan that the controller has stored.
type planned struct {
	Deployment course.Deployment `json:"deployment"`
	Warnings   []string          `json:"warnings"`
}

// planStored lets the command that plans from files plan what the controller has, if it is given an environment.
func planStored(sh *shell.Shell, cmd *cobra.Command) {
	var w deployWish
	fromFiles := cmd.RunE
	cmd.Use = "plan ENVIRONMENT | --env FILE --graph PATH... [--old FILE]"
	cmd.Long += "\n\nOf an ENVIRONMENT that the controller keeps, the plan is stored, and can be run with: drover deploy run --plan ID."
	cmd.Args = shell.Between(0, 1)
	cmd.Flags().StringSliceVar(&w.nodes, "node", nil, "of a stored environment: let only these nodes take part, by uid")
	cmd.Flags().StringVar(&w.kind, "type", "", "of a stored environment: plan by its graphs of this type")
	cmd.Flags().BoolVar(&w.noop, "noop", false, "of a stored environment: plan to run tasks in the way of their type that changes nothing")
	cmd.Flags().BoolVar(&w.force, "force", false, "of a stored environment: evaluate conditions as in a first deployment")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fromFiles(cmd, args)
		}
		if err := neverRevealed(cmd); err != nil {
			return err
		}
		var err error
		for flag, to := range map[string]*[]string{"task": &w.only, "event": &w.events, "refresh": &w.refreshed} {
			if *to, err = cmd.Flags().GetStringSlice(flag); err != nil {
				return err
			}
		}
		form, err := cmd.Flags().GetString("output")
		if err != nil {
			return err
		}
		detailed, err := cmd.Flags().GetBool("detailed-exitcode")
		if err != nil {
			return err
		}
		return planOf(cmd.Context(), sh, &w, args[0], form, detailed)
	}
}

// neverRevealed refuses the option that shows secrets: what is stored of plans never does.
func neverRevealed(cmd *cobra.Command) error {
	if cmd.Flags().Changed(revealFlag) {
		return shell.Usage("--%s is for plans from files: stored plans tell no secrets; drover deploy env show --%s does", revealFlag, revealFlag)
	}
	return nil
}

func planOf(ctx context.Context, sh *shell.Shell, w *deployWish, environment, form string, detailed bool) error {
	var p planned
	if err := sh.Do(ctx, "PlanDeployment", &p, w.parameters(environment, false), sh.UserTrail()); err != nil {
		return asOption(err)
	}
	warnAll(sh, p.Warnings)
	var tasks []course.Task
	if err := sh.Do(ctx, "QueryDeploymentTasks", &tasks, p.Deployment.ID); err != nil {
		return err
	}
	value, err := shell.Timed(map[string]any{"deployment": p.Deployment, "tasks": tasks}, stampKeys)
	if err != nil {
		return err
	}
	switch form {
	case "json":
		err = sh.ShowJSON(value)
	case "yaml":
		err = sh.ShowYAML(value)
	case "tree":
		err = planTree(sh, &p.Deployment, tasks)
	default:
		return shell.Usage("a stored plan is shown as tree, json or yaml, not as %q", form)
	}
	if err == nil && detailed && p.Deployment.Runs > 0 {
		return errSomethingToDo
	}
	return err
}

func planTree(sh *shell.Shell, d *course.Deployment, tasks []course.Task) error {
	if err := sh.Printf("deployment %d of %s: %d of %d tasks run\n", d.ID, d.Environment, d.Runs, d.Steps); err != nil {
		return err
	}
	byNode := map[string][]course.Task{}
	for _, t := range tasks {
		if t.State != course.Skipped {
			byNode[t.Node] = append(byNode[t.Node], t)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(byNode)) {
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
			return fromFiles(cmd, args)
		}
		if err := neverRevealed(cmd); err != nil {
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
	cmd := shell.Heeding([]string{"luxi", "output", "reason", "dry-run", "submit"}, &cobra.Command{
		Use: "run ENVIRONMENT | --plan ID", Short: "Plan a deployment and carry it out", Args: shell.Between(0, 1),
		Long: "Plan a deployment of an environment and carry it out, or carry out a plan that was stored; that is refused if\n" +
			"what it was computed from has changed. With --dry-run nodes only report what they would do; with --noop tasks\n" +
			"run in the way of their type that changes nothing. Neither counts as a success of its tasks.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if (plan != 0) == (len(args) == 1) {
				return shell.Usage("give either an environment or --plan ID")
			}
			if plan == 0 {
				var p planned
				if err := sh.Do(cmd.Context(), "PlanDeployment", &p, w.parameters(args[0], sh.Flags.DryRun), sh.UserTrail()); err != nil {
					return asOption(err)
				}
				warnAll(sh, p.Warnings)
				plan = p.Deployment.ID
			}
			return goOn(cmd.Context(), sh, "BeginDeployment", plan, sh.UserTrail())
		},
	})
	w.register(cmd)
	cmd.Flags().StringArrayVarP(&w.graphs, "graph", "g", nil, "name of a stored task graph, instead of those of the environment")
	cmd.Flags().Int64Var(&plan, "plan", 0, "number of a stored plan")
	return cmd
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
	return followDeployment(ctx, sh, id)
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

// followDeployment waits for the end of a deployment, and shows on a terminal how far it is. One that did not succeed is a
// failure of the command.
func followDeployment(ctx context.Context, sh *shell.Shell, id int64) error {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		var p course.Progress
		if err := sh.Stay(ctx, "QueryDeployment", &p, id); err != nil {
			return err
		}
		if sh.Person {
			sh.Rawf("%s%s", work.EraseLine, listing.Cut(listing.Printable(progressLine(&p)), sh.Line-1))
		}
		if !p.Status.Active() {
			if sh.Person {
				sh.Rawf("%s", work.EraseLine)
			}
			if err := deploymentStatus(ctx, sh, id); err != nil {
				return err
			}
			if p.Status != course.Done {
				return shell.ErrFailed
			}
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			sh.Notef("deployment %d goes on; drover deploy status %d tells how far it is\n", id, id)
			return context.Cause(ctx)
		}
	}
}
