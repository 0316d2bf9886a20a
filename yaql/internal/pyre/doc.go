// Package pyre is Python's regular expression dialect: what the module re of CPython 3.11 accepts, refuses
// and matches, for text.
//
// A pattern is parsed here, by Python's rules, and written out again for an engine that does the
// matching: the standard library's regexp where it means the same and takes linear time, else regexp2,
// which knows look-around, back references and atomic groups. Every search of the latter has a time
// limit, so that no pattern can run away. Positions are code points.
package pyre

import (
	"errors"
	"fmt"
)

// The classes of error, by the names that the reference reports.
const (
	ReError       = "re.error"
	IndexError    = "IndexError"
	OverflowError = "OverflowError"
	ValueError    = "ValueError"
)

// ErrTimeout reports a search that was given up because the pattern makes it take too long.
var ErrTimeout = errors.New("the regular expression takes too long")

// An Error is a pattern or a replacement template that Python refuses.
type Error struct {
	Class    string // one of the constants of this package
	Message  string
	Position int // in code points
}

// Error returns the message with its position.
func (e *Error) Error() string { return fmt.Sprintf("%s at position %d", e.Message, e.Position) }

// Flags change what a pattern means.
type Flags uint8

// The flags, by the letters that name them inside a pattern.
const (
	IgnoreCase Flags = 1 << iota // i
	MultiLine                    // m: ^ and $ also match at line ends
	DotAll                       // s: the dot also matches a newline
	Verbose                      // x: white space and comments are skipped
	ASCII                        // a: \w, \d, \s and \b know ASCII only
	Unicode                      // u: accepted, and the default
)

var flagLetters = map[rune]Flags{'i': IgnoreCase, 'm': MultiLine, 's': DotAll, 'x': Verbose, 'a': ASCII, 'u': Unicode}
