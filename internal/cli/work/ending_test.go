package work

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/job"
)

func TestVerdicts(t *testing.T) {
	for _, tc := range []struct {
		status, result, ours, classic string
	}{
		{"error", `["OpPrereqError",["no","wrong_input"]]`, "failed: no (wrong_input)",
			"Failure: prerequisites not met for this operation:\nerror type: wrong_input, error details:\nno"},
		{"error", `["OpExecError",["broken"]]`, "failed: broken", "Failure: command execution error:\nbroken"},
		{"error", `"detected death of job 1"`, "failed: detected death of job 1", "detected death of job 1"},
		{"canceled", `"Job canceled by request"`, "was canceled", "Unhandled Ganeti error: Job was canceled"},
		{"canceled", `["OpExecError",["Rejected by x"]]`, "was canceled: Rejected by x", "Unhandled Ganeti error: Job was canceled"},
	} {
		e := Ending{Status: tc.status, Statuses: []string{tc.status}, Results: []json.RawMessage{json.RawMessage(tc.result)}}
		if got := e.Verdict(); got != tc.ours {
			t.Errorf("%s: %q", tc.result, got)
		}
		if got := e.ClassicVerdict(); got != tc.classic {
			t.Errorf("%s: %q", tc.result, got)
		}
	}
	if got := fmt.Sprint(shell.JoinIDs([]job.ID{1, 2})); got != "1, 2" {
		t.Error(got)
	}
}
