package syntax

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Class is the reference's name for a kind of parse error.
type Class string

// The classes of parse errors.
const (
	Lexical Class = "YaqlLexicalException"
	Grammar Class = "YaqlGrammarException"
	Decode  Class = "UnicodeDecodeError"
	TooDeep Class = "RecursionError"
)

// Error is a text that is no expression.
type Error struct {
	Class    Class
	Message  string
	Source   string
	Offset   int    // bytes from the start of Source
	Expected string // what would have been right there; may be empty
}

// Error returns the message, the place and what was expected, on one line.
func (e *Error) Error() string {
	line, col := e.Place()
	s := fmt.Sprintf("%s (line %d, column %d)", e.Message, line, col)
	if e.Expected != "" {
		s += "; expected " + e.Expected
	}
	return s
}

// Place returns the line and the column of the error, both counted from 1, columns in code points.
func (e *Error) Place() (line, column int) {
	before := e.Source[:min(e.Offset, len(e.Source))]
	start := strings.LastIndexByte(before, '\n') + 1
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[start:]) + 1
}

// Of a line longer than maxCaretLine, only caretRoom characters stand on each side of the place of an error.
const (
	maxCaretLine = 200
	caretRoom    = 60
)

// Caret returns the line of the error, of a long one the part around the place, and below it a caret under the place.
func (e *Error) Caret() string {
	line, col := e.Place()
	text, at := []rune(strings.Split(e.Source, "\n")[line-1]), col-1
	if len(text) > maxCaretLine {
		if end := at + caretRoom; end < len(text) {
			text = append(text[:end:end], '…')
		}
		if start := at - caretRoom; start > 0 {
			text, at = append([]rune{'…'}, text[start:]...), caretRoom+1
		}
	}
	return string(text) + "\n" + strings.Repeat(" ", at) + "^"
}

// RuneOffset returns the place of the error in code points from the start, counted from 0.
func (e *Error) RuneOffset() int {
	return utf8.RuneCountInString(e.Source[:min(e.Offset, len(e.Source))])
}
