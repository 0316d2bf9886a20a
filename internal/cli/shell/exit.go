package shell

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/qlang"
)

// The exit statuses. They are a contract with scripts: Statuses says what each
// means.
const (
	ExitOK           = 0
	ExitFailed       = 1
	ExitUsage        = 2
	ExitUnreachable  = 3
	ExitWouldChange  = 4
	ExitWouldCancel  = 5
	ExitNotWell      = 6
	ExitNotConfirmed = 13
	ExitUnknownField = 14
	ExitInterrupted  = 130
)

// Status is what an exit status means: in a word, and in full.
type Status struct {
	Code       int
	Word, Text string
}

// Statuses are all exit statuses there are. Help texts and docs/cli.md are made of
// them.
var Statuses = []Status{
	{ExitOK, "done", "done"},
	{ExitFailed, "failed", "the request was refused, or the job failed or was cancelled"},
	{ExitUsage, "wrong usage", "the command line is wrong: an unknown command or option, a missing argument, a value of the wrong type. Nothing was sent"},
	{ExitUnreachable, "no controller", "no controller answers"},
	{ExitWouldChange, "would change", "a preview says that something would change, or is not as it should be, and was asked to tell: " +
		"`filter test` and `deploy plan` with `--detailed-exitcode`, `server reconcile`"},
	{ExitWouldCancel, "would cancel", "as 4, and jobs would be cancelled or refused"},
	{ExitNotWell, "not well", "`cluster health` found a problem, which it tells"},
	{ExitNotConfirmed, "not confirmed", "not confirmed: a question was answered with no, or could not be asked"},
	{ExitUnknownField, "unknown field", "a list was asked for a field that does not exist; the others are shown. (In a filter or an order it is 1: nothing can be shown)"},
	{ExitInterrupted, "interrupted", "interrupted; jobs that were submitted go on"},
}

// StatusWords are the statuses in a few words.
func StatusWords() string {
	words := make([]string, len(Statuses))
	for i, s := range Statuses {
		words[i] = strconv.Itoa(s.Code) + " " + s.Word
	}
	return strings.Join(words, ", ")
}

// ExitError ends the program with a status. A nil err says nothing: what is
// wrong was shown already.
type ExitError struct {
	Status int
	Err    error
}

// Error returns what there is to say; empty if it was said.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap returns the error that ends the program.
func (e *ExitError) Unwrap() error { return e.Err }

// ExitStatus returns the status that the program ends with.
func (e *ExitError) ExitStatus() int { return e.Status }

// exitStatus is an error that ends the program with a status of its own.
type exitStatus interface {
	error
	ExitStatus() int
}

// Usage is an error of the command line itself.
func Usage(format string, args ...any) error {
	return &ExitError{Status: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// notConfirmed ends a command that was not allowed to go on.
func notConfirmed(format string, args ...any) error {
	return &ExitError{Status: ExitNotConfirmed, Err: fmt.Errorf(format, args...)}
}

// ErrFailed ends a command whose failure was already shown.
var ErrFailed = &ExitError{Status: ExitFailed}

// statusOf returns the exit status of an error.
func statusOf(ctx context.Context, err error) int {
	if e, ok := errors.AsType[exitStatus](err); ok {
		return e.ExitStatus()
	}
	switch {
	case err == nil:
		return ExitOK
	case ctx.Err() != nil || errors.Is(err, context.Canceled):
		return ExitInterrupted
	case fault.Is(err, fault.Unavailable):
		return ExitUnreachable
	default:
		return ExitFailed
	}
}

// Report shows an error and returns the exit status.
func (sh *Shell) Report(ctx context.Context, err error) int {
	status := statusOf(ctx, err)
	if err == nil || err.Error() == "" {
		return status
	}
	text := sh.ErrorText(err)
	if status == ExitInterrupted {
		text = "interrupted" + sh.goingOn()
	}
	_, _ = fmt.Fprintln(sh.Err, strings.TrimRight(text, "\n")) // nowhere else to say it
	return status
}

// goingOn says which jobs an interrupted command leaves behind, and how to follow
// them.
func (sh *Shell) goingOn() string {
	switch n := len(sh.Awaited); {
	case n == 0:
		return ""
	case n == 1:
		return fmt.Sprintf("; job %d goes on (drover job watch %d)", sh.Awaited[0], sh.Awaited[0])
	case n <= ShownJobs:
		return fmt.Sprintf("; jobs %s go on (drover job wait %s)", JoinIDs(sh.Awaited), strings.ReplaceAll(JoinIDs(sh.Awaited), ",", ""))
	default:
		return fmt.Sprintf("; %d jobs go on, %d to %d (drover job list --filter 'id >= %d')", n, sh.Awaited[0], sh.Awaited[n-1], sh.Awaited[0])
	}
}

// ErrorText words an error: our way, or the way of the tools whose name the
// program bears.
func (sh *Shell) ErrorText(err error) string {
	if sh.Classic() {
		if text, ok := classicText(err); ok {
			return text
		}
	}
	f, ok := errors.AsType[*fault.Error](err)
	if e, isText := errors.AsType[*qlang.TextError](err); isText {
		text := sh.filterErrorText(e)
		if ok && f.Hint != "" && !sh.Classic() {
			text += "\n  hint: " + f.Hint
		}
		return text
	}
	if sh.Classic() && ok && statusOf(context.Background(), err) == ExitFailed {
		if f.Code == fault.Invalid {
			return ClassicPair("OpPrereqError", []any{f.Message, "wrong_input"})
		}
		return f.Message
	}
	if sh.Classic() && !ok {
		return sh.Persona.Name + ": error: " + err.Error()
	}
	if !ok {
		return sh.Persona.Name + ": " + err.Error()
	}
	text := sh.Persona.Name + ": " + Reworded(f.Message)
	if f.Field != "" && !strings.Contains(f.Message, f.Field) {
		text += "\n  at: " + f.Field
	}
	if f.Hint != "" {
		text += "\n  hint: " + f.Hint
	}
	return text
}

// filterErrorText shows the place in the text of a filter.
func (sh *Shell) filterErrorText(e *qlang.TextError) string {
	report := e.Report()
	if sh.Classic() {
		return report
	}
	_, shown, _ := strings.Cut(report, "\n")
	lines := strings.Split(strings.TrimRight(shown, "\n"), "\n")
	lines[len(lines)-1] = ownReason(lines[len(lines)-1])
	return sh.Persona.Name + ": the filter cannot be read\n" + strings.Join(lines, "\n")
}

// classicText words the errors of a controller as operators' scripts know
// them.
func classicText(err error) (string, bool) {
	if p, ok := errors.AsType[*luxiwire.ProtocolError](err); ok {
		return "Unhandled protocol error while talking to the master daemon:\n" + p.Text, true
	}
	if pair, ok := errors.AsType[*luxiwire.Error](err); ok {
		return ClassicPair(pair.Class, pair.Args), true
	}
	return "", false
}

// ClassicPair words an error pair, of a request or of an opcode's result.
func ClassicPair(class string, args []any) string {
	text := fmt.Sprint(first(args))
	switch class {
	case "OpPrereqError":
		if len(args) > 1 {
			return fmt.Sprintf("Failure: prerequisites not met for this operation:\nerror type: %v, error details:\n%s", args[1], text)
		}
		return "Failure: prerequisites not met for this operation:\n" + text
	case "OpExecError":
		return "Failure: command execution error:\n" + text
	case "HooksAbort":
		return "Failure: " + HooksAbort(args)
	case "TypeEnforcementError":
		return "Parameter Error: " + text
	case "TagError":
		return "Failure: invalid tag(s) given:\n" + text
	case "JobQueueDrainError":
		return "Failure: the job queue is marked for drain and doesn't accept new requests\n"
	case "JobLost":
		return "Error checking job status: " + text
	default:
		return "Unhandled Ganeti error: " + text
	}
}

// HooksAbort words which scripts refused something: the first argument is a list of them, each as [node, script, output].
func HooksAbort(args []any) string {
	lines := []string{"hooks execution failed:"}
	refusals, _ := first(args).([]any)
	for _, item := range refusals {
		if r, ok := item.([]any); ok && len(r) == 3 {
			line := fmt.Sprintf("  node: %v, script: %v, output: %v", r...)
			if r[2] == "" {
				line = fmt.Sprintf("  node: %v, script: %v (no output)", r[0], r[1])
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func first(args []any) any {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
