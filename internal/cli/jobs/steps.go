package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/drover-project/drover/internal/job"
)

// jobSteps is what a job does and did, opcode by opcode.
type jobSteps struct {
	ID     job.ID    `json:"id"`
	Status string    `json:"status"`
	Ops    []opSteps `json:"ops"`
}

type opSteps struct {
	Opcode string `json:"opcode"`
	Status string `json:"status"`
	// Error is why it failed, Warnings are what it says of what it left.
	Error    string      `json:"error,omitempty"`
	Warnings []string    `json:"warnings,omitempty"`
	Steps    []work.Step `json:"steps"`
}

// showSteps shows what jobs do and did: what was done, what was taken back, what is left where, and what to type.
func showSteps(ctx context.Context, sh *shell.Shell, ids []job.ID) error {
	var rows [][]json.RawMessage
	fields := []string{"id", "status", "summary", "opstatus", "opresult", "oplog", "opsteps"}
	if err := sh.Ask(ctx, "QueryJobs", &rows, ids, fields); err != nil {
		return err
	}
	all, missing := []jobSteps{}, []job.ID{}
	for i, row := range rows {
		if i < len(ids) && (len(row) < 2 || string(row[1]) == "null") {
			missing = append(missing, ids[i])
			continue
		}
		j, err := readSteps(row)
		if err != nil {
			return err
		}
		all = append(all, j)
	}
	if err := sh.Show(all, func() error {
		for _, j := range all {
			if err := sh.Printf("%s", listing.Fold(j.text(sh), sh.Width)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return missingJobs(ctx, sh, missing)
}

func readSteps(row []json.RawMessage) (j jobSteps, err error) {
	var summaries, statuses []string
	var results []json.RawMessage
	var logs [][]work.LogEntry
	var steps [][]work.Step
	places := []any{&j.ID, &j.Status, &summaries, &statuses, &results, &logs, &steps}
	if len(row) != len(places) {
		return j, fmt.Errorf("a job has %d fields instead of %d", len(row), len(places))
	}
	for i, place := range places {
		if err := json.Unmarshal(row[i], place); err != nil {
			return j, err
		}
	}
	for i, opcode := range summaries {
		if i >= len(statuses) || i >= len(results) || i >= len(logs) || i >= len(steps) {
			return j, fmt.Errorf("job %d has %d opcodes and tells less of them", j.ID, len(summaries))
		}
		op := opSteps{Opcode: opcode, Status: statuses[i], Steps: steps[i]}
		if statuses[i] == string(job.Error) {
			_, op.Error, _ = job.DecodeError(results[i])
		}
		for _, e := range logs[i] {
			if text, warns := strings.CutPrefix(e.Text(), " - WARNING: "); warns {
				op.Warnings = append(op.Warnings, text)
			}
		}
		j.Ops = append(j.Ops, op)
	}
	return j, nil
}

func (j jobSteps) text(sh *shell.Shell) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", sh.Paint(shell.Bold, fmt.Sprintf("Job %d: %s", j.ID, j.Status)))
	for _, op := range j.Ops {
		fmt.Fprintf(&b, "%s: %s\n", op.Opcode, op.Status)
		switch {
		case len(op.Steps) > 0:
			b.WriteString(work.StepTable(sh, op.Steps))
		case op.Status == string(job.Queued) || op.Status == string(job.Waiting):
			b.WriteString("  it has not begun\n")
		default:
			b.WriteString("  no steps are told of it\n")
		}
		if op.Error != "" {
			fmt.Fprintf(&b, "  %s\n", sh.Paint(shell.Red, "failed: "+shell.Reworded(op.Error)))
		}
		for _, w := range op.Warnings {
			fmt.Fprintf(&b, "  %s\n", sh.Paint(shell.Yellow, w))
		}
	}
	return b.String()
}
