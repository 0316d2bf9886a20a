package work

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/luxiwire"
)

// Ending is how a job ended.
type Ending struct {
	ID       job.ID
	Status   string
	Statuses []string
	Results  []json.RawMessage
	Took     time.Duration // from when it was received to its end
}

// EndingFields are the fields of a job that ReadEnding reads, in its order; a job that begins is news, too.
var EndingFields = []string{"status", "start_ts", "opstatus", "opresult", "received_ts", "end_ts"}

// ReadEnding reads the fields EndingFields of a job.
func ReadEnding(id job.ID, fields []json.RawMessage) (Ending, error) {
	end := Ending{ID: id}
	var received, ended *shell.Pair
	into := []any{&end.Status, new(any), &end.Statuses, &end.Results, &received, &ended}
	if len(fields) != len(into) {
		return end, fault.New(fault.Internal, "the controller returned %d fields of job %d instead of %d", len(fields), id, len(into))
	}
	if string(fields[0]) == "null" {
		return end, fault.New(fault.NotFound, "Job %d not found", id)
	}
	var err error
	for i, value := range into {
		err = errors.Join(err, json.Unmarshal(fields[i], value))
	}
	if received != nil && ended != nil {
		end.Took = time.Duration(shell.Elapsed(received, ended) * float64(time.Second))
	}
	return end, err
}

// Result is what the job's opcode returned; of several opcodes, the list of it.
func (e Ending) Result() any {
	if len(e.Results) == 1 {
		return e.Results[0]
	}
	return e.Results
}

// Failure is the text of the first opcode that did not succeed, in our words
// or in the classic ones.
func (e Ending) Failure(classic bool) string {
	for i, status := range e.Statuses {
		if status == string(job.Success) || i >= len(e.Results) {
			continue
		}
		return resultText(e.Results[i], classic)
	}
	return ""
}

// Verdict says how a job that did not succeed ended.
func (e Ending) Verdict() string {
	text := e.Failure(false)
	if e.Status == string(job.Canceled) {
		if text == "" || text == "null" || text == "Job canceled by request" {
			return "was canceled"
		}
		return "was canceled: " + text
	}
	return "failed: " + text
}

// ClassicVerdict says it in the classic way.
func (e Ending) ClassicVerdict() string {
	if e.Status == string(job.Canceled) {
		return "Unhandled Ganeti error: Job was canceled"
	}
	return e.Failure(true)
}

// resultText words an opcode's result as a failure.
func resultText(result json.RawMessage, classic bool) string {
	var pair luxiwire.Error
	var text string
	switch {
	case json.Unmarshal(result, &pair) == nil && classic:
		return shell.ClassicPair(pair.Class, pair.Args)
	case json.Unmarshal(result, &pair) == nil && pair.Class == "HooksAbort":
		return shell.HooksAbort(pair.Args)
	case json.Unmarshal(result, &pair) == nil && len(pair.Args) > 1:
		return fmt.Sprintf("%s (%v)", pair.Error(), pair.Args[1])
	case json.Unmarshal(result, &pair) == nil:
		return pair.Error()
	case json.Unmarshal(result, &text) == nil:
		return text
	default:
		return string(result)
	}
}

// Succeeded says that a job has done its work. The classic tools say nothing then.
func Succeeded(sh *shell.Shell, end Ending) { succeeded(sh, Task{}, end) }

func succeeded(sh *shell.Shell, t Task, end Ending) {
	if sh.Classic() || sh.Structured() {
		return
	}
	text := fmt.Sprintf("job %d succeeded after %s", end.ID, end.Took.Round(100*time.Millisecond))
	if t.before != "" {
		text += ": " + t.before
	}
	sh.Notef("%s\n", prefixed(t.Target, text))
}

// failedTask says that a task's job did not succeed. The classic tools name
// the job only where there may be several.
func failedTask(sh *shell.Shell, t Task, end Ending) string {
	switch {
	case !sh.Classic():
		return prefixed(t.Target, fmt.Sprintf("Job %d %s", end.ID, end.Verdict()))
	case t.Target == "":
		return end.ClassicVerdict()
	default:
		return fmt.Sprintf("Job %d for %s has failed: %s", end.ID, t.Target, end.ClassicVerdict())
	}
}
