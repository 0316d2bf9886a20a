// Package fault is Drover's one kind of error: a stable code for programs, a
// message for a person that names the field or position, and a hint where
// there is one.
//
// Invariants:
//   - A code, once released, keeps its meaning.
//   - A message stands on its own: it names what was wrong, not where in the
//     program it was found.
//   - Transports map codes to their own statuses in one table each; an error
//     without a code is Internal.
//   - An error is small, whatever it quotes: no text of it exceeds MaxText.
package fault

import (
	"errors"
	"fmt"
	"strings"
)

// MaxText is how long a message, a field or a hint may be, in bytes; the rest
// is cut. Errors repeat what clients sent, and go into results, logs and
// answers, some of which write one byte as six.
const MaxText = 8 << 10

// Code says what kind of failure it is. Programs may switch on it.
type Code string

// The codes, from "the request is wrong" to "we are wrong".
const (
	// Invalid: the request cannot be understood or breaks a rule of its own
	// (syntax, type, unknown parameter). Sending it again will not help.
	Invalid Code = "invalid"
	// Mistyped: a value within a parameter's object is of the wrong type, or has
	// a name that is not known there.
	Mistyped Code = "mistyped"
	// BadTag: a tag is not written as tags are, or there would be too many.
	BadTag Code = "bad_tag"
	// BadAddress: an address is not one of the network's.
	BadAddress Code = "bad_address"
	// Unresolved: a host name has no address.
	Unresolved Code = "unresolved"
	// NotFound: a named thing does not exist.
	NotFound Code = "not_found"
	// Exists: a thing with that name or identity exists already.
	Exists Code = "exists"
	// Ambiguous: a name matches several things, or a resource is not unique.
	Ambiguous Code = "ambiguous"
	// WrongState: the request is right, but not in the present state.
	WrongState Code = "wrong_state"
	// Unsupported: the request is right and known, and this version cannot carry it
	// out.
	Unsupported Code = "unsupported"
	// Exhausted: no resources are left (memory, disk, addresses).
	Exhausted Code = "exhausted"
	// Busy: resources are taken at the moment; trying again may help.
	Busy Code = "busy"
	// Environment: the surroundings are not as needed (missing program,
	// unreadable file).
	Environment Code = "environment"
	// Failed: the work was begun and failed.
	Failed Code = "failed"
	// Denied: the caller lacks the right.
	Denied Code = "denied"
	// TooLarge: an input is over a limit; the message names the limit.
	TooLarge Code = "too_large"
	// Drained: the queue takes no new jobs.
	Drained Code = "drained"
	// Full: the queue has no room for more jobs until some have ended.
	Full Code = "queue_full"
	// Conflict: somebody else changed the same thing first.
	Conflict Code = "conflict"
	// Compacted: the part of the history that was asked for is no longer kept;
	// read the present state instead.
	Compacted Code = "compacted"
	// Fenced: this controller is no longer the leader and may commit nothing.
	Fenced Code = "fenced"
	// Unavailable: a part that is needed does not answer.
	Unavailable Code = "unavailable"
	// Canceled: the work was cancelled on request.
	Canceled Code = "canceled"
	// Internal: a fault of ours. Also the code of every error without one.
	Internal Code = "internal"
)

// Error is an error with a code. Only Code and Message are always set.
type Error struct {
	Code    Code
	Message string
	// Field names the parameter or the path in the input that is at fault,
	// for example "predicates[0][1][2]"; empty when there is none.
	Field string
	// Hint says what to do next; empty when there is nothing useful to say.
	Hint string
	// Cause is the error beneath, for logs and errors.Is; it is not shown to
	// users by itself.
	Cause error
}

// Error returns the message, and the hint in parentheses when there is one.
func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + " (" + e.Hint + ")"
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// New returns an error with a code and a formatted message. A %w verb sets the
// cause, as in fmt.Errorf.
func New(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: Clip(err.Error(), MaxText), Cause: errors.Unwrap(err)}
}

// Clip shortens a text that is longer than the limit in bytes, at the end of a
// letter, and marks that with "...".
func Clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "..."
}

// At returns a copy of e that names the field at fault.
func (e *Error) At(field string) *Error {
	c := *e
	c.Field = Clip(field, MaxText)
	return &c
}

// WithHint returns a copy of e with a formatted hint.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = Clip(fmt.Sprintf(format, args...), MaxText)
	return &c
}

// CodeOf returns the code of the first Error in err's chain, Internal if there
// is none, and the empty code for a nil error.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}

// Is reports whether err carries the code.
func Is(err error, code Code) bool { return err != nil && CodeOf(err) == code }
