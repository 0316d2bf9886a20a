package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/cli/classic"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
)

// task is one job that a command wants: its opcodes and what it is for.
type task struct {
	target string // shown with the job's id; empty for the command as a whole
	ops    []*opcode.Opcode
	key    string // submission key; empty for one of our own
	shown  bool   // the result is what the user asked for
	// children: the result names jobs that are waited for too, and what they
	// find is what the user asked for.
	children bool
	// told words the result for a person; nil if there is nothing to tell.
	told func(result json.RawMessage) string
}

// submissionKey returns the key of a task. Without one of the user's it is one
// that no other submission has.
func (t task) submissionKey() string {
	if t.key != "" {
		return t.key
	}
	return "cli-" + rand.Text()
}

// newOp makes an opcode of this command: its parameters, the options that all
// commands share, and the trail.
func (sh *shell) newOp(noun, id string, params map[string]any) (*opcode.Opcode, error) {
	op, err := opcode.FromMap(id, params)
	if err != nil {
		return nil, &exitError{status: ExitUsage, err: withChoices(id, err)}
	}
	return sh.finishOp(op, sh.trail(noun))
}

// withChoices adds the words that a parameter takes to the error of one that it
// does not take.
func withChoices(id string, err error) error {
	wrong, ok := opcode.AsParamError(err)
	def, known := opcode.Lookup(id)
	if !ok || !known || wrong.Kind != opcode.Mismatch {
		return err
	}
	p, has := def.Param(wrong.Param)
	f, isFault := errors.AsType[*fault.Error](err)
	if !has || !isFault || f.Hint != "" || len(p.Type.Allowed()) == 0 {
		return err
	}
	return f.WithHint("one of %s", strings.Join(p.Type.Allowed(), ", "))
}

// finishOp gives an opcode the options that all commands share and adds the
// entries to its trail.
func (sh *shell) finishOp(op *opcode.Opcode, trail reason.Trail) (*opcode.Opcode, error) {
	c := op.WithReason(op.Reason.Append(trail...))
	if sh.flags.dryRun {
		c.DryRun = true
	}
	c.DebugLevel = max(c.DebugLevel, sh.flags.debug)
	if sh.flags.priority != "" {
		p, err := priorityOf(sh.flags.priority)
		if err != nil {
			return nil, err
		}
		c.Priority = p
	}
	return c, nil
}

// outcome is what became of a task.
type outcome struct {
	Target string `json:"target,omitempty"`
	Job    job.ID `json:"job,omitempty"`
	Status string `json:"status"`
	Result any    `json:"result,omitempty"`
	Error  string `json:"error,omitempty"`
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
func (sh *shell) warnOfLimits(tasks []task) {
	var all reason.Trail
	for _, t := range tasks {
		for _, op := range t.ops {
			all = append(all, op.Reason...)
		}
	}
	if sh.persona.classic() {
		return
	}
	for _, text := range all.Misread() {
		sh.notef("warning: the reason %q limits nothing: a limit is %sN:LABEL, with N from 1\n", text, reason.LimitPrefix)
	}
}

// submit sends the tasks, each as a job. The keys make it safe to repeat the
// request after a lost connection.
func (sh *shell) submit(ctx context.Context, tasks []task) ([]submitted, error) {
	sh.warnOfLimits(tasks)
	if len(tasks) == 1 {
		var id job.ID
		err := sh.ask(ctx, "SubmitJob", &id, tasks[0].ops, tasks[0].submissionKey())
		if err == nil {
			sh.awaited = append(sh.awaited, id)
		}
		return []submitted{{id: id}}, err
	}
	jobs, keys := make([][]*opcode.Opcode, len(tasks)), make([]string, len(tasks))
	for i, t := range tasks {
		jobs[i], keys[i] = t.ops, t.submissionKey()
	}
	var answers []answer
	if err := sh.ask(ctx, "SubmitManyJobs", &answers, jobs, keys); err != nil {
		return nil, err
	}
	if len(answers) != len(tasks) {
		return nil, fmt.Errorf("%d jobs were submitted and %d answers came", len(tasks), len(answers))
	}
	out := make([]submitted, len(answers))
	for i, a := range answers {
		if !a.ok {
			out[i].error = fmt.Sprint(a.value)
			continue
		}
		id, err := job.ParseID(fmt.Sprint(a.value))
		if err != nil {
			return nil, err
		}
		out[i].id = id
		sh.awaited = append(sh.awaited, id)
	}
	return out, nil
}

// run submits the tasks and, unless --submit says otherwise, waits until all
// have ended. A task that failed makes the command fail.
func (sh *shell) run(ctx context.Context, tasks []task) error {
	subs, err := sh.submit(ctx, tasks)
	if err != nil {
		return err
	}
	if err := sh.announceMany(tasks, subs); err != nil {
		return err
	}
	if sh.flags.printJobID {
		for _, s := range subs {
			if s.error == "" {
				if err := sh.printf("%d\n", s.id); err != nil {
					return err
				}
			}
		}
	}
	if sh.flags.submit {
		return sh.showSubmitted(tasks, subs)
	}
	outcomes := make([]outcome, len(tasks))
	bad := false
	for i, t := range tasks {
		if outcomes[i], err = sh.finish(ctx, t, subs[i]); err != nil {
			return err
		}
		bad = bad || outcomes[i].bad || outcomes[i].Status != string(job.Success)
	}
	if sh.structured() {
		if err := sh.show(outcomes, nil); err != nil {
			return err
		}
	}
	if bad {
		return failed
	}
	return nil
}

// finish waits for one task's job and tells how it ended.
func (sh *shell) finish(ctx context.Context, t task, s submitted) (outcome, error) {
	if s.error != "" {
		sh.notef("%s\n", prefixed(t.target, s.error))
		return outcome{Target: t.target, Status: "refused", Error: s.error}, nil
	}
	if err := sh.announce(t, s.id); err != nil {
		return outcome{}, err
	}
	end, err := sh.follow(ctx, s.id, func(e logEntry) error {
		if sh.persona.classic() {
			return sh.printf("%s\n", e.line())
		}
		sh.notef("%s\n", e.line())
		return nil
	})
	if err != nil {
		return outcome{}, err
	}
	out := outcome{Target: t.target, Job: s.id, Status: end.Status}
	if end.Status != string(job.Success) {
		out.Error = end.failure(false)
		sh.notef("%s\n", sh.failedTask(t, end))
		return out, nil
	}
	out.Result = end.result()
	sh.succeeded(t.target, end)
	if t.children && len(end.Results) == 1 {
		var good bool
		out.Jobs, good, err = sh.awaitChildren(ctx, end.Results[0])
		out.bad = !good
		return out, err
	}
	if t.told != nil && len(end.Results) == 1 && !sh.structured() {
		return out, sh.printf("%s", t.told(end.Results[0]))
	}
	if t.shown && !sh.structured() {
		return out, sh.printResults(end.Results)
	}
	return out, nil
}

// succeeded says that a job has done its work. The classic tools say nothing then.
func (sh *shell) succeeded(target string, end ending) {
	if !sh.persona.classic() && !sh.structured() {
		sh.notef("%s\n", prefixed(target, fmt.Sprintf("job %d succeeded after %s", end.ID, end.Took.Round(100*time.Millisecond))))
	}
}

// result runs a job of one opcode and reads what it returned.
func (sh *shell) result(ctx context.Context, op *opcode.Opcode, into any) error {
	subs, err := sh.submit(ctx, []task{{ops: []*opcode.Opcode{op}}})
	if err != nil {
		return err
	}
	end, err := sh.follow(ctx, subs[0].id, func(logEntry) error { return nil })
	if err != nil {
		return err
	}
	if end.Status != string(job.Success) {
		sh.notef("%s\n", sh.failedTask(task{}, end))
		return failed
	}
	return json.Unmarshal(end.Results[0], into)
}

// failedTask says that a task's job did not succeed. The classic tools name
// the job only where there may be several.
func (sh *shell) failedTask(t task, end ending) string {
	switch {
	case !sh.persona.classic():
		return prefixed(t.target, fmt.Sprintf("Job %d %s", end.ID, end.verdict()))
	case t.target == "":
		return end.classicVerdict()
	default:
		return fmt.Sprintf("Job %d for %s has failed: %s", end.ID, t.target, end.classicVerdict())
	}
}

// printResults shows what opcodes returned, those that returned something.
func (sh *shell) printResults(results []json.RawMessage) error {
	for _, result := range results {
		v, ok := parseJSON(string(result))
		if !ok || v == nil {
			continue
		}
		if err := sh.printf("%s", classic.Outline(v)); err != nil {
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
func (sh *shell) announceMany(tasks []task, subs []submitted) error {
	var ids []string
	for i, s := range subs {
		if s.error == "" && tasks[i].target != "" {
			ids = append(ids, s.id.String())
		}
	}
	if !sh.persona.classic() || sh.flags.submit || len(ids) < 2 {
		return nil
	}
	return sh.printf("Submitted jobs %s\n", strings.Join(ids, ", "))
}

// announce says that a job is being waited for. Scripts that call the classic
// names read it from standard output.
func (sh *shell) announce(t task, id job.ID) error {
	if t.target == "" {
		return nil
	}
	text := fmt.Sprintf("Waiting for job %d for %s ...\n", id, t.target)
	if sh.persona.classic() {
		return sh.printf("%s", text)
	}
	if sh.person {
		sh.notef("%s", text)
	}
	return nil
}

func (sh *shell) showSubmitted(tasks []task, subs []submitted) error {
	outcomes := make([]outcome, len(tasks))
	var result error
	for i, t := range tasks {
		outcomes[i] = outcome{Target: t.target, Job: subs[i].id, Status: "submitted", Error: subs[i].error}
		if subs[i].error != "" {
			outcomes[i].Status, result = "refused", failed
			sh.notef("%s\n", prefixed(t.target, subs[i].error))
		}
	}
	err := sh.show(outcomes, func() error {
		for _, o := range outcomes {
			if err := sh.printSubmitted(o); err != nil {
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

func (sh *shell) printSubmitted(o outcome) error {
	switch {
	case o.Error != "":
		return nil
	case o.Target == "" && sh.persona.classic(): // those tools end with it as they do with an error
		sh.notef("JobID: %d\n", o.Job)
		return nil
	case o.Target == "":
		return sh.printf("%d\n", o.Job)
	default:
		return sh.printf("%d: %s\n", o.Job, o.Target)
	}
}
