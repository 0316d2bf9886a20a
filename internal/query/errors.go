package query

import (
	"slices"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qlang"
)

// Error is a query that failed as clients of the reference see it: the class
// of the exception and its arguments. It unwraps to a *fault.Error.
type Error struct {
	// Class is ParameterError, OpPrereqError, GenericError or ProgrammerError.
	Class string
	// Args are the message and, for OpPrereqError, its code.
	Args  []string
	fault *fault.Error
}

// Error returns the message with its hint.
func (e *Error) Error() string { return e.fault.Error() }

// Unwrap returns the coded error.
func (e *Error) Unwrap() error { return e.fault }

func (e *Error) withHint(hint string) *Error {
	if hint == "" {
		return e
	}
	e.fault = e.fault.WithHint("%s", hint)
	return e
}

func newError(class string, code fault.Code, format string, args ...any) *Error {
	f := fault.New(code, format, args...)
	return &Error{Class: class, Args: []string{f.Message}, fault: f}
}

func parameterError(format string, args ...any) *Error {
	return newError("ParameterError", fault.Invalid, format, args...)
}

// GenericError refuses a query in a way of which the reference tells no more.
func GenericError(format string, args ...any) *Error {
	return newError("GenericError", fault.Invalid, format, args...)
}

func programmerError(format string, args ...any) *Error {
	return newError("ProgrammerError", fault.Internal, format, args...)
}

func prereqError(code string, format string, args ...any) *Error {
	e := newError("OpPrereqError", fault.Invalid, format, args...)
	e.Args = append(e.Args, code)
	return e
}

// unknownEntity words a failed look-up of a name: the reference gives the same
// code to names that match nothing and to those that match several.
func unknownEntity(err error) *Error {
	e := newError("OpPrereqError", fault.CodeOf(err), "%s", err.Error())
	e.Args = append(e.Args, "unknown_entity")
	return e
}

// didYouMean is a hint for a name that is not known.
func didYouMean(name string, candidates []string) string {
	if s := qlang.Suggest(name, slices.Values(candidates)); s != "" {
		return "did you mean '" + s + "'?"
	}
	return ""
}
