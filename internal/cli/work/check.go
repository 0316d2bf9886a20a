package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/opcode"
)

// What is asked of the controller without a job: dry runs, questions, and whether a
// request is right before a job is made of it. The classic tools have jobs for all of it,
// and their users see them.

// checked is what an opcode would come to.
type checked struct {
	OK     bool            `json:"ok"`
	Result json.RawMessage `json:"result"`
	Fault  *luxiwire.Fault `json:"fault"`
	Steps  []Step          `json:"steps"`
	Log    []LogEntry      `json:"log"`
	// Placement is how the node of a new instance would be chosen, or why none would.
	Placement *Placement `json:"placement"`
	// Rule says what a filter rule would do with a job of it.
	Rule    string   `json:"rule"`
	Pending []job.ID `json:"pending"`
}

// refusal is why an opcode would not be carried out, nil if nothing is known against it.
func (c checked) refusal(ctx context.Context, sh *shell.Shell) error {
	if c.OK || c.Fault == nil {
		return nil
	}
	err := fault.Error{Code: c.Fault.Code, Message: c.Fault.Message, Field: c.Fault.Field, Hint: c.Fault.Hint}
	if len(c.Pending) > 0 && err.Hint == "" {
		err.Hint = pendingText(c.Pending)
	}
	return sh.WithNearest(ctx, &err)
}

func pendingText(ids []job.ID) string {
	if len(ids) == 1 {
		return fmt.Sprintf("job %d is about the same and has not ended: it may be different then", ids[0])
	}
	return fmt.Sprintf("%d jobs are about the same and have not ended (job %d, ...): it may be different then", len(ids), ids[0])
}

// Asked is what an opcode that only asks is answered with, or why it is not.
type Asked struct {
	Result  json.RawMessage
	Refused error
}

// Answers asks opcodes, or what would come of them, without a job.
func Answers(ctx context.Context, sh *shell.Shell, ops []*opcode.Opcode) ([]Asked, error) {
	found, err := check(ctx, sh, ops)
	if err != nil {
		return nil, err
	}
	out := make([]Asked, len(found))
	for i := range found {
		out[i] = Asked{found[i].Result, found[i].refusal(ctx, sh)}
	}
	return out, nil
}

// checksAtOnce is how many opcodes are asked about in one request.
const checksAtOnce = 500

// check asks what opcodes would come to.
func check(ctx context.Context, sh *shell.Shell, ops []*opcode.Opcode) ([]checked, error) {
	var all []checked
	for part := range slices.Chunk(ops, checksAtOnce) {
		var answers []checked
		if err := sh.Ask(ctx, "CheckJob", &answers, part); err != nil {
			return nil, err
		}
		if len(answers) != len(part) {
			return nil, fmt.Errorf("%d opcodes were asked about and %d answers came", len(part), len(answers))
		}
		all = append(all, answers...)
	}
	return all, nil
}

// wrongRequest are the codes of what is wrong with a request whatever the cluster does
// meanwhile. The rest (no memory left, a node that is away) is for the job to find out.
var wrongRequest = []fault.Code{
	fault.Invalid, fault.Mistyped, fault.BadTag, fault.BadAddress, fault.Unresolved,
	fault.NotFound, fault.Exists, fault.Ambiguous, fault.Unsupported,
}

// noteBefore notes of instances that are as the verb would have them that they are, so that
// whoever took one for another sees it in the end. What cannot be asked is left out.
func (o Operation) noteBefore(ctx context.Context, sh *shell.Shell, tasks []Task) {
	if o.Before == nil || sh.Classic() || sh.Flags.DryRun || sh.Flags.Submit {
		return
	}
	names := make([]string, len(tasks))
	for i, t := range tasks {
		names[i] = t.Target
	}
	var rows [][]string
	if err := sh.Ask(ctx, "QueryInstances", &rows, names, []string{"name", "status"}, false); err != nil {
		return
	}
	status := map[string]string{} // by the whole name, and by the first part of it
	for _, row := range rows {
		short, _, _ := strings.Cut(row[0], ".")
		status[row[0]], status[short] = row[1], row[1]
	}
	for i := range tasks {
		tasks[i].before = o.Before[status[tasks[i].Target]]
	}
}

// refusals tells which tasks are not worth a job, by their places: what is wrong with them
// is known already, and no job that is on its way can mend it. What cannot be asked is left to
// the jobs.
func refusals(ctx context.Context, sh *shell.Shell, tasks []Task) map[int]error {
	if sh.Classic() {
		return nil
	}
	var ops []*opcode.Opcode
	var places []int
	for i, t := range tasks {
		if t.Key == "" && !t.AsIs && len(t.Ops) == 1 && len(t.Ops[0].Depends) == 0 {
			ops, places = append(ops, t.Ops[0]), append(places, i)
		}
	}
	found, err := check(ctx, sh, ops)
	if err != nil {
		return nil
	}
	out := map[int]error{}
	for n, c := range found {
		if !c.OK && c.Fault != nil && len(c.Pending) == 0 && slices.Contains(wrongRequest, c.Fault.Code) {
			out[places[n]] = c.refusal(ctx, sh)
		}
	}
	return out
}

// withoutJobs tells what the tasks would come to, or answers those that only ask. No job is
// made, so no rule holds it and nothing is left behind.
func withoutJobs(ctx context.Context, sh *shell.Shell, tasks []Task) error {
	var ops []*opcode.Opcode
	for _, t := range tasks {
		ops = append(ops, t.Ops...)
	}
	found, err := check(ctx, sh, ops)
	if err != nil {
		return err
	}
	outcomes := make([]Outcome, len(tasks))
	var failed error
	for i, t := range tasks {
		var refused error
		if outcomes[i], refused = answered(ctx, sh, t, found[:len(t.Ops)]); refused != nil {
			failed = shell.ErrFailed
			if len(tasks) == 1 && !sh.Structured() {
				return errors.Join(showPlacement(sh, t, outcomes[0].Placement), refused)
			}
			sh.Notef("%s\n", prefixed(t.Target, outcomes[i].Error))
		}
		found = found[len(t.Ops):]
	}
	if err := sh.Show(outcomes, func() error { return showAnswers(sh, tasks, outcomes) }); err != nil {
		return err
	}
	return failed
}

// answered is what a task would come to, with why it would be refused.
func answered(ctx context.Context, sh *shell.Shell, t Task, found []checked) (Outcome, error) {
	out := Outcome{Target: t.Target, Status: "possible"}
	if t.Asks {
		out.Status = string(job.Success)
	}
	var results []json.RawMessage
	for _, c := range found {
		for _, e := range c.Log {
			sh.Notef("%s\n", prefixed(t.Target, e.Text()))
		}
		if c.Placement != nil {
			out.Placement = c.Placement
		}
		if err := c.refusal(ctx, sh); err != nil {
			out.Status, out.Error = "refused", refusalText(err)
			return out, err
		}
		if !t.Asks && c.Rule != "" {
			out.Rule = c.Rule
		}
		results = append(results, c.Result)
		out.Steps = append(out.Steps, c.Steps...)
	}
	out.Result = Ending{Results: results}.Result()
	return out, nil
}

// refusalText is a refusal on one line.
func refusalText(err error) string {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err.Error()
	}
	c := *f
	c.Message = shell.Reworded(f.Message)
	return c.Error()
}

// showPlacement tells of each node, if that is what the user asked for.
func showPlacement(sh *shell.Shell, t Task, p *Placement) error {
	if !t.explain || p == nil {
		return nil
	}
	return sh.Printf("%s", listing.Fold(p.Table(sh), sh.Width))
}

func showAnswers(sh *shell.Shell, tasks []Task, outcomes []Outcome) error {
	for i, o := range outcomes {
		var err error
		switch result, one := o.Result.(json.RawMessage); {
		case o.Error != "":
			err = showPlacement(sh, tasks[i], o.Placement)
		case tasks[i].Asks && one:
			err = printResults(sh, []json.RawMessage{result})
		default:
			err = sh.Printf("%s\n", prefixed(o.Target, "could be done; nothing was changed"))
			if err == nil && o.Rule != "" {
				err = sh.Printf("  %s\n", o.Rule)
			}
			if err == nil && len(o.Steps) > 0 {
				err = sh.Printf("%s", StepTable(sh, o.Steps))
			}
			if err == nil && o.Placement != nil && !tasks[i].explain {
				err = sh.Printf("  %s\n", o.Placement.Summary())
			}
			if err == nil {
				err = showPlacement(sh, tasks[i], o.Placement)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
