// Package pytime holds the dates and time spans of YAQL, which are Python's: a calendar of the years 1
// to 9999, microseconds, fixed offsets from UTC or none at all, and the texts that Python's strftime,
// strptime and isoformat and the dateutil parser read and write.
//
// Values are immutable and every function is pure: where "today" matters the caller passes it.
package pytime

import "fmt"

// The classes of error, by the names that YAQL's users know.
const (
	ValueError        = "ValueError"
	OverflowError     = "OverflowError"
	TypeError         = "TypeError"
	ParserError       = "ParserError"
	OSError           = "OSError"
	ZeroDivisionError = "ZeroDivisionError"
)

// An Error is a refused operation with the class that the reference engine reports for it.
type Error struct {
	Class   string // one of the constants of this package
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

func fail(class, format string, args ...any) error {
	return &Error{Class: class, Message: fmt.Sprintf(format, args...)}
}

func outOfRange() error { return fail(OverflowError, "date value out of range") }
