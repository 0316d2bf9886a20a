package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/qlang"
)

// The exit statuses. They are a contract with scripts; docs/cli.md lists them.
const (
	ExitOK           = 0
	ExitFailed       = 1   // the request or the job failed
	ExitUsage        = 2   // the command line is wrong
	ExitUnreachable  = 3   // no controller answers
	ExitWouldChange  = 4   // a preview says that something would change, and was asked to tell
	ExitWouldCancel  = 5   // as before, and jobs would be cancelled or refused
	ExitNotConfirmed = 13  // a question was answered with no, or could not be asked
	ExitUnknownField = 14  // a list was asked for a field that does not exist
	ExitInterrupted  = 130 // stopped by a signal
)

// exitError ends the program with a status. A nil err says nothing: what is
// wrong was shown already.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exitStatus is an error of a command of another package that ends the program with a status of its own.
type exitStatus interface {
	error
	ExitStatus() int
}

// usage is an error of the command line itself.
func usage(format string, args ...any) error {
	return &exitError{status: ExitUsage, err: fmt.Errorf(format, args...)}
}

// notConfirmed ends a command that was not allowed to go on.
func notConfirmed(format string, args ...any) error {
	return &exitError{status: ExitNotConfirmed, err: fmt.Errorf(format, args...)}
}

// failed ends a command whose failure was already shown.
var failed = &exitError{status: ExitFailed}

// statusOf returns the exit status of an error.
func statusOf(ctx context.Context, err error) int {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.status
	}
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

// report shows an error and returns the exit status.
func (sh *shell) report(ctx context.Context, err error) int {
	status := statusOf(ctx, err)
	if err == nil || err.Error() == "" {
		return status
	}
	text := sh.errorText(err)
	if status == ExitInterrupted {
		text = "interrupted" + sh.goingOn()
	}
	_, _ = fmt.Fprintln(sh.err, strings.TrimRight(text, "\n")) // nowhere else to say it
	return status
}

// goingOn says which jobs an interrupted command leaves behind, and how to follow
// them.
func (sh *shell) goingOn() string {
	switch n := len(sh.awaited); {
	case n == 0:
		return ""
	case n == 1:
		return fmt.Sprintf("; job %d goes on (drover job watch %d)", sh.awaited[0], sh.awaited[0])
	case n <= shownJobs:
		return fmt.Sprintf("; jobs %s go on (drover job wait %s)", joinIDs(sh.awaited), strings.ReplaceAll(joinIDs(sh.awaited), ",", ""))
	default:
		return fmt.Sprintf("; %d jobs go on, %d to %d (drover job list --filter 'id >= %d')", n, sh.awaited[0], sh.awaited[n-1], sh.awaited[0])
	}
}

// errorText words an error: our way, or the way of the tools whose name the
// program bears.
func (sh *shell) errorText(err error) string {
	if sh.persona.classic() {
		if text, ok := classicText(err); ok {
			return text
		}
	}
	f, ok := errors.AsType[*fault.Error](err)
	if e, isText := errors.AsType[*qlang.TextError](err); isText {
		text := sh.filterErrorText(e)
		if ok && f.Hint != "" && !sh.persona.classic() {
			text += "\n  hint: " + f.Hint
		}
		return text
	}
	if sh.persona.classic() && ok && statusOf(context.Background(), err) == ExitFailed {
		if f.Code == fault.Invalid {
			return classicPair("OpPrereqError", []any{f.Message, "wrong_input"})
		}
		return f.Message
	}
	if sh.persona.classic() && !ok {
		return sh.persona.name + ": error: " + err.Error()
	}
	if !ok {
		return sh.persona.name + ": " + err.Error()
	}
	text := sh.persona.name + ": " + f.Message
	if f.Field != "" && !strings.Contains(f.Message, f.Field) {
		text += "\n  at: " + f.Field
	}
	if f.Hint != "" {
		text += "\n  hint: " + f.Hint
	}
	return text
}

// filterErrorText shows the place in the text of a filter.
func (sh *shell) filterErrorText(e *qlang.TextError) string {
	report := e.Report()
	if sh.persona.classic() {
		return report
	}
	_, lines, _ := strings.Cut(report, "\n")
	return sh.persona.name + ": the filter cannot be read\n" + lines
}

// classicText words the errors of a controller as operators' scripts know
// them.
func classicText(err error) (string, bool) {
	if p, ok := errors.AsType[*luxiwire.ProtocolError](err); ok {
		return "Unhandled protocol error while talking to the master daemon:\n" + p.Text, true
	}
	if pair, ok := errors.AsType[*luxiwire.Error](err); ok {
		return classicPair(pair.Class, pair.Args), true
	}
	return "", false
}

// classicPair words an error pair, of a request or of an opcode's result.
func classicPair(class string, args []any) string {
	text := fmt.Sprint(first(args))
	switch class {
	case "OpPrereqError":
		if len(args) > 1 {
			return fmt.Sprintf("Failure: prerequisites not met for this operation:\nerror type: %v, error details:\n%s", args[1], text)
		}
		return "Failure: prerequisites not met for this operation:\n" + text
	case "OpExecError":
		return "Failure: command execution error:\n" + text
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

func first(args []any) any {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
