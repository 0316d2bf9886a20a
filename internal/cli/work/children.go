package work

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/drover-project/drover/internal/cli/classic"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
)

// Children is how the jobs that a job makes are waited for.
type Children struct {
	// Finds: what they find is what the user asked for. They succeed with the result false when something is wrong.
	Finds bool
	// Good and Bad are what the classic tool says in the end: of all, and with the number of those that failed. TARGET stands for what the command
	// was about.
	Good, Bad string
}

// of is how those of a job about an item are waited for.
func (c *Children) of(target string) *Children {
	if c == nil {
		return nil
	}
	out := *c
	out.Good, out.Bad = strings.ReplaceAll(c.Good, "TARGET", target), strings.ReplaceAll(c.Bad, "TARGET", strings.ReplaceAll(target, "%", "%%"))
	return &out
}

// ended says what became of them in all.
func (c *Children) ended(sh *shell.Shell, failures, findings int) error {
	switch {
	case failures > 0 && sh.Classic():
		return sh.Printf(c.Bad+"\n", failures)
	case failures+findings == 0 && sh.Classic() && c.Good != "":
		return sh.Printf("%s\n", c.Good)
	case failures+findings == 0 || sh.Classic():
	case c.Finds:
		sh.Notef("%s failed, %s found errors\n", shell.Counted(failures, "job"), shell.Counted(findings, "job"))
	default:
		sh.Notef("%s failed\n", shell.Counted(failures, "job"))
	}
	return nil
}

// childOutcome is what became of a job that another one submitted.
type childOutcome struct {
	Job    job.ID   `json:"job"`
	Status string   `json:"status"`
	Result any      `json:"result,omitempty"`
	Error  string   `json:"error,omitempty"`
	Log    []string `json:"log"`
}

// good reports whether the job did its work and found nothing wrong: a check
// that finds something succeeds with the result false.
func (c *childOutcome) good() bool { return c.Status == string(job.Success) && c.Result != false }

// children are the jobs that the result of a job names: {"jobs": [[true, ID],
// [false, WHY], ...]}.
func children(result json.RawMessage) ([]Answer, error) {
	var r struct {
		Jobs []Answer `json:"jobs"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return nil, fault.New(fault.Internal, "the result does not name the jobs that were made: %w", err)
	}
	return r.Jobs, nil
}

// await waits for the jobs that a job made and shows what they log, which
// is what the user asked for. It reports whether all was well.
func (c *Children) await(ctx context.Context, sh *shell.Shell, result json.RawMessage) ([]childOutcome, bool, error) {
	made, err := children(result)
	if err != nil {
		return nil, false, err
	}
	if err := announceChildren(sh, made); err != nil {
		return nil, false, err
	}
	out := make([]childOutcome, len(made))
	failures, findings := 0, 0
	for i, a := range made {
		if out[i], err = awaitChild(ctx, sh, a); err != nil {
			return nil, false, err
		}
		switch {
		case out[i].Status != string(job.Success):
			failures++
		case c.Finds && !out[i].good():
			findings++
		}
	}
	return out, failures+findings == 0, c.ended(sh, failures, findings)
}

func announceChildren(sh *shell.Shell, made []Answer) error {
	if !sh.Classic() {
		return nil
	}
	ids := make([]any, 0, len(made))
	for _, a := range made {
		if a.OK {
			ids = append(ids, a.Value)
		}
	}
	return sh.Printf("Submitted jobs %s\n", classic.Joined(ids, ""))
}

func awaitChild(ctx context.Context, sh *shell.Shell, a Answer) (childOutcome, error) {
	if !a.OK {
		sh.Notef("%v\n", a.Value)
		return childOutcome{Status: "refused", Error: fmt.Sprint(a.Value), Log: []string{}}, nil
	}
	id, err := job.ParseID(fmt.Sprint(a.Value))
	if err != nil {
		return childOutcome{}, err
	}
	out := childOutcome{Job: id, Log: []string{}}
	if sh.Classic() {
		if err := sh.Printf("Waiting for job %d ...\n", id); err != nil {
			return out, err
		}
	}
	end, err := Follow(ctx, sh, id, func(e LogEntry) error {
		out.Log = append(out.Log, e.Text())
		switch {
		case sh.Structured():
			return nil
		case sh.Classic():
			return sh.Printf("%s\n", e.Line())
		}
		return sh.Printf("%s\n", e.Text())
	})
	if err != nil {
		return out, err
	}
	out.Status = end.Status
	if end.Status != string(job.Success) {
		out.Error = end.Failure(false)
		sh.Notef("%s\n", failedTask(sh, Task{}, end))
		return out, nil
	}
	if len(end.Results) == 1 {
		out.Result, _ = shell.ParseJSON(string(end.Results[0]))
	}
	return out, nil
}
