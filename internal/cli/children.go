package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/drover-project/drover/internal/cli/classic"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
)

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
func children(result json.RawMessage) ([]answer, error) {
	var r struct {
		Jobs []answer `json:"jobs"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return nil, fault.New(fault.Internal, "the result does not name the jobs that were made: %w", err)
	}
	return r.Jobs, nil
}

// awaitChildren waits for the jobs that a job made and shows what they log, which
// is what the user asked for. It reports whether all was well.
func (sh *shell) awaitChildren(ctx context.Context, result json.RawMessage) ([]childOutcome, bool, error) {
	made, err := children(result)
	if err != nil {
		return nil, false, err
	}
	if err := sh.announceChildren(made); err != nil {
		return nil, false, err
	}
	out := make([]childOutcome, len(made))
	failures, findings := 0, 0
	for i, a := range made {
		if out[i], err = sh.awaitChild(ctx, a); err != nil {
			return nil, false, err
		}
		switch {
		case out[i].Status != string(job.Success):
			failures++
		case !out[i].good():
			findings++
		}
	}
	if failures > 0 && sh.persona.classic() {
		err = sh.printf("%d job(s) failed while verifying the cluster.\n", failures)
	} else if failures+findings > 0 && !sh.persona.classic() {
		sh.notef("%s failed, %s found errors\n", counted(failures, "job"), counted(findings, "job"))
	}
	return out, failures+findings == 0, err
}

func (sh *shell) announceChildren(made []answer) error {
	if !sh.persona.classic() {
		return nil
	}
	ids := make([]any, 0, len(made))
	for _, a := range made {
		if a.ok {
			ids = append(ids, a.value)
		}
	}
	return sh.printf("Submitted jobs %s\n", classic.Joined(ids, ""))
}

func (sh *shell) awaitChild(ctx context.Context, a answer) (childOutcome, error) {
	if !a.ok {
		sh.notef("%v\n", a.value)
		return childOutcome{Status: "refused", Error: fmt.Sprint(a.value), Log: []string{}}, nil
	}
	id, err := job.ParseID(fmt.Sprint(a.value))
	if err != nil {
		return childOutcome{}, err
	}
	out := childOutcome{Job: id, Log: []string{}}
	if sh.persona.classic() {
		if err := sh.printf("Waiting for job %d ...\n", id); err != nil {
			return out, err
		}
	}
	end, err := sh.follow(ctx, id, func(e logEntry) error {
		out.Log = append(out.Log, e.text())
		switch {
		case sh.structured():
			return nil
		case sh.persona.classic():
			return sh.printf("%s\n", e.line())
		}
		return sh.printf("%s\n", e.text())
	})
	if err != nil {
		return out, err
	}
	out.Status = end.Status
	if end.Status != string(job.Success) {
		out.Error = end.failure(false)
		sh.notef("%s\n", sh.failedTask(task{}, end))
		return out, nil
	}
	if len(end.Results) == 1 {
		out.Result, _ = parseJSON(string(end.Results[0]))
	}
	return out, nil
}
