package work

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cli/classic"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
)

// Task is one job that a command wants: its opcodes and what it is for.
type Task struct {
	Target string // shown with the job's id; empty for the command as a whole
	Ops    []*opcode.Opcode
	Key    string // submission key; empty for one of our own
	Shown  bool   // the result is what the user asked for
	AsIs   bool   // the user wrote the opcodes: they are not asked about before
	Asks   bool   // the opcodes only ask: no job is made of them, but by the classic tools
	// children has the jobs waited for, too, that the result names; nil for none.
	children *Children
	// explain: what is said of each node is what the user asked for.
	explain bool
	// told words the result for a person; nil if there is nothing to tell.
	told func(result json.RawMessage) string
	// aside: that goes to standard error.
	aside bool
	// Read words the result of the last opcode, which is what the user asked for, and tells whether all of it is well; nil if nothing is to be read.
	Read func(result json.RawMessage) (text string, good bool, err error)
	// before says that it was as it should be before the job was made; empty where that is not known.
	before string
}

// submissionKey returns the key of a task. Without one of the user's it is one
// that no other submission has.
func (t Task) submissionKey() string {
	if t.Key != "" {
		return t.Key
	}
	return "cli-" + rand.Text()
}

// NewOp makes an opcode of this command: its parameters, the options that all
// commands share, and the trail.
func NewOp(sh *shell.Shell, noun, id string, params map[string]any) (*opcode.Opcode, error) {
	op, err := opcode.FromMap(id, params)
	if err != nil {
		return nil, &shell.ExitError{Status: shell.ExitUsage, Err: WithChoices(id, err, func(param string) string {
			return "--" + strings.ReplaceAll(param, "_", "-") + " gives it"
		})}
	}
	return FinishOp(sh, op, sh.Trail(noun))
}

// WithChoices adds what helps to the error of a parameter: the words that it takes, to one of
// another value; how it is given, to one that is missing.
func WithChoices(id string, err error, given func(param string) string) error {
	wrong, ok := opcode.AsParamError(err)
	def, known := opcode.Lookup(id)
	f, isFault := errors.AsType[*fault.Error](err)
	if !ok || !known || !isFault || f.Hint != "" {
		return err
	}
	p, has := def.Param(wrong.Param)
	switch {
	case wrong.Kind == opcode.Missing:
		return f.WithHint("%s", given(wrong.Param))
	case wrong.Kind != opcode.Mismatch || !has:
	case len(p.Type.Allowed()) > 0:
		return f.WithHint("one of %s", strings.Join(p.Type.Allowed(), ", "))
	case slices.Contains(sizes, p.Name):
		return f.WithHint("a size such as 512M or 10G")
	case shell.KindOf(p) == shell.KindBool:
		return f.WithHint("yes or no")
	}
	return err
}

// FinishOp gives an opcode the options that all commands share and adds the
// entries to its trail.
func FinishOp(sh *shell.Shell, op *opcode.Opcode, trail reason.Trail) (*opcode.Opcode, error) {
	c := op.WithReason(op.Reason.Append(trail...))
	if sh.Flags.DryRun {
		c.DryRun = true
	}
	c.DebugLevel = max(c.DebugLevel, sh.Flags.Debug)
	if sh.Flags.Priority != "" {
		p, err := shell.PriorityOf(sh.Flags.Priority)
		if err != nil {
			return nil, err
		}
		c.Priority = p
	}
	return c, nil
}

// Outcome is what became of a task.
type Outcome struct {
	Target string `json:"target,omitempty"`
	Job    job.ID `json:"job,omitempty"`
	Status string `json:"status"`
	Result any    `json:"result,omitempty"`
	Error  string `json:"error,omitempty"`
	// Note is what else is to be known of it.
	Note string `json:"note,omitempty"`
	// Rule says what a filter rule would do with a job of it.
	Rule string `json:"rule,omitempty"`
	// Steps are what it would do, if that is several things.
	Steps []Step `json:"steps,omitempty"`
	// Placement is how the node of a new instance would be chosen, or why none would.
	Placement *Placement `json:"placement,omitempty"`
	// Jobs are those that the job made, if the command waits for them too.
	Jobs []childOutcome `json:"jobs,omitempty"`
	bad  bool
}

// submitted is what a task's submission returned: an id, or a refusal.
type submitted struct {
	id    job.ID
	error string
}

// warnOfLimits tells of reasons that seem to limit and do not.
func warnOfLimits(sh *shell.Shell, tasks []Task) {
	var all reason.Trail
	for _, t := range tasks {
		for _, op := range t.Ops {
			all = append(all, op.Reason...)
		}
	}
	if sh.Classic() {
		return
	}
	for _, text := range all.Misread() {
		sh.Notef("warning: the reason %q limits nothing: a limit is %sN:LABEL, with N from 1\n", text, reason.LimitPrefix)
	}
}

// submit sends the tasks, each as a job. The keys make it safe to repeat the
// request after a lost connection.
func submit(ctx context.Context, sh *shell.Shell, tasks []Task) ([]submitted, error) {
	warnOfLimits(sh, tasks)
	refused := refusals(ctx, sh, tasks)
	out := make([]submitted, len(tasks))
	var rest []Task
	for i, t := range tasks {
		if err := refused[i]; err != nil && len(tasks) == 1 {
			return nil, err
		} else if err != nil {
			out[i].error = refusalText(err)
			continue
		}
		rest = append(rest, t)
	}
	if len(rest) == 0 {
		return out, nil
	}
	taken, err := handIn(ctx, sh, rest)
	for i := range out {
		if refused[i] == nil && err == nil {
			out[i], taken = taken[0], taken[1:]
		}
	}
	return out, err
}

// handIn submits tasks.
func handIn(ctx context.Context, sh *shell.Shell, tasks []Task) ([]submitted, error) {
	if len(tasks) == 1 {
		var id job.ID
		err := sh.Ask(ctx, "SubmitJob", &id, tasks[0].Ops, tasks[0].submissionKey())
		if err == nil {
			sh.Awaited = append(sh.Awaited, id)
		}
		return []submitted{{id: id}}, err
	}
	jobs, keys := make([][]*opcode.Opcode, len(tasks)), make([]string, len(tasks))
	for i, t := range tasks {
		jobs[i], keys[i] = t.Ops, t.submissionKey()
	}
	var answers []Answer
	if err := sh.Ask(ctx, "SubmitManyJobs", &answers, jobs, keys); err != nil {
		return nil, err
	}
	if len(answers) != len(tasks) {
		return nil, fmt.Errorf("%d jobs were submitted and %d answers came", len(tasks), len(answers))
	}
	out := make([]submitted, len(answers))
	for i, a := range answers {
		if !a.OK {
			out[i].error = fmt.Sprint(a.Value)
			continue
		}
		id, err := job.ParseID(fmt.Sprint(a.Value))
		if err != nil {
			return nil, err
		}
		out[i].id = id
		sh.Awaited = append(sh.Awaited, id)
	}
	return out, nil
}

// Run submits the tasks, unless they are answered without a job, and, unless --submit says otherwise, waits until all
// have ended. A task that failed makes the command fail.
func Run(ctx context.Context, sh *shell.Shell, tasks []Task) error {
	if !sh.Classic() && len(tasks) > 0 && (sh.Flags.DryRun || tasks[0].Asks) {
		return withoutJobs(ctx, sh, tasks)
	}
	subs, err := submit(ctx, sh, tasks)
	if err != nil {
		return err
	}
	if err := announceMany(sh, tasks, subs); err != nil {
		return err
	}
	if sh.Flags.PrintJobID {
		for _, s := range subs {
			if s.error == "" {
				if err := sh.Printf("%d\n", s.id); err != nil {
					return err
				}
			}
		}
	}
	if sh.Flags.Submit {
		return showSubmitted(sh, tasks, subs)
	}
	outcomes := make([]Outcome, len(tasks))
	bad := false
	for i, t := range tasks {
		if outcomes[i], err = finish(ctx, sh, t, subs[i]); err != nil {
			return err
		}
		bad = bad || outcomes[i].bad || outcomes[i].Status != string(job.Success)
	}
	if sh.Structured() {
		if err := sh.Show(outcomes, nil); err != nil {
			return err
		}
	}
	if bad {
		return shell.ErrFailed
	}
	return nil
}

// finish waits for one task's job and tells how it ended.
func finish(ctx context.Context, sh *shell.Shell, t Task, s submitted) (Outcome, error) {
	if s.error != "" {
		sh.Notef("%s\n", prefixed(t.Target, s.error))
		return Outcome{Target: t.Target, Status: "refused", Error: s.error}, nil
	}
	if err := announce(sh, t, s.id); err != nil {
		return Outcome{}, err
	}
	end, err := Follow(ctx, sh, s.id, func(e LogEntry) error {
		if sh.Classic() {
			return sh.Printf("%s\n", e.Line())
		}
		sh.Notef("%s\n", e.Line())
		return nil
	})
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Target: t.Target, Job: s.id, Status: end.Status}
	if end.Status != string(job.Success) {
		out.Error = end.Failure(false)
		sh.Notef("%s\n", failedTask(sh, t, end))
		return out, nil
	}
	out.Result = end.Result()
	out.Note = t.before
	succeeded(sh, t, end)
	if t.children != nil && len(end.Results) == 1 {
		var good bool
		out.Jobs, good, err = t.children.await(ctx, sh, end.Results[0])
		out.bad = !good
		return out, err
	}
	if t.Read != nil && len(end.Results) > 0 {
		text, good, err := t.Read(end.Results[len(end.Results)-1])
		if out.bad = !good; err != nil || sh.Structured() {
			return out, err
		}
		return out, sh.Printf("%s", text)
	}
	if t.told != nil && len(end.Results) == 1 && !sh.Structured() {
		text := t.told(end.Results[0])
		if t.aside {
			sh.Notef("%s", text)
			return out, nil
		}
		return out, sh.Printf("%s", text)
	}
	if t.Shown && !sh.Structured() {
		return out, printResults(sh, end.Results)
	}
	return out, nil
}

// Result reads what an opcode returns that only asks. The classic tools run a job of it.
func Result(ctx context.Context, sh *shell.Shell, op *opcode.Opcode, into any) error {
	if !sh.Classic() {
		_, err := Told(ctx, sh, op, into)
		return err
	}
	return Made(ctx, sh, op, into)
}

// Told reads what an opcode returns that only asks, without a job. What is to be known beside that is told, and whether there was anything.
func Told(ctx context.Context, sh *shell.Shell, op *opcode.Opcode, into any) (said bool, err error) {
	found, err := check(ctx, sh, []*opcode.Opcode{op})
	if err != nil {
		return false, err
	}
	for _, e := range found[0].Log {
		sh.Notef("%s\n", e.Text())
	}
	if err := found[0].refusal(ctx, sh); err != nil {
		return false, err
	}
	return len(found[0].Log) > 0, json.Unmarshal(found[0].Result, into)
}

// Made has a job carry out an opcode, waits for it, and reads its result.
func Made(ctx context.Context, sh *shell.Shell, op *opcode.Opcode, into any) error {
	subs, err := submit(ctx, sh, []Task{{Ops: []*opcode.Opcode{op}}})
	if err != nil {
		return err
	}
	end, err := Follow(ctx, sh, subs[0].id, func(LogEntry) error { return nil })
	if err != nil {
		return err
	}
	if end.Status != string(job.Success) {
		sh.Notef("%s\n", failedTask(sh, Task{}, end))
		return shell.ErrFailed
	}
	return json.Unmarshal(end.Results[0], into)
}

// printResults shows what opcodes returned, those that returned something.
func printResults(sh *shell.Shell, results []json.RawMessage) error {
	for _, result := range results {
		v, ok := shell.ParseJSON(string(result))
		if !ok || v == nil {
			continue
		}
		if err := sh.Printf("%s", classic.Outline(v)); err != nil {
			return err
		}
	}
	return nil
}

func prefixed(target, text string) string {
	if target == "" {
		return text
	}
	return target + ": " + text
}

// announceMany lists the jobs when there are several, as the classic tools do.
func announceMany(sh *shell.Shell, tasks []Task, subs []submitted) error {
	var ids []string
	for i, s := range subs {
		if s.error == "" && tasks[i].Target != "" {
			ids = append(ids, s.id.String())
		}
	}
	if !sh.Classic() || sh.Flags.Submit || len(ids) < 2 {
		return nil
	}
	return sh.Printf("Submitted jobs %s\n", strings.Join(ids, ", "))
}

// announce says that a job is being waited for. Scripts that call the classic
// names read it from standard output.
func announce(sh *shell.Shell, t Task, id job.ID) error {
	if t.Target == "" {
		return nil
	}
	text := fmt.Sprintf("Waiting for job %d for %s ...\n", id, t.Target)
	if sh.Classic() {
		return sh.Printf("%s", text)
	}
	if sh.Person {
		sh.Notef("%s", text)
	}
	return nil
}

func showSubmitted(sh *shell.Shell, tasks []Task, subs []submitted) error {
	outcomes := make([]Outcome, len(tasks))
	var result error
	for i, t := range tasks {
		outcomes[i] = Outcome{Target: t.Target, Job: subs[i].id, Status: "submitted", Error: subs[i].error}
		if subs[i].error != "" {
			outcomes[i].Status, result = "refused", shell.ErrFailed
			sh.Notef("%s\n", prefixed(t.Target, subs[i].error))
		}
	}
	err := sh.Show(outcomes, func() error {
		for _, o := range outcomes {
			if err := printSubmitted(sh, o); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return result
}

func printSubmitted(sh *shell.Shell, o Outcome) error {
	switch {
	case o.Error != "":
		return nil
	case o.Target == "" && sh.Classic():
		sh.Notef("JobID: %d\n", o.Job)
		return nil
	case o.Target == "":
		return sh.Printf("%d\n", o.Job)
	default:
		return sh.Printf("%d: %s\n", o.Job, o.Target)
	}
}
