package yaql

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/drover-project/drover/yaql/internal/pytime"
	"github.com/drover-project/drover/yaql/internal/syntax"
)

// The classes of errors, by the names of the reference.
const (
	YaqlLexicalException          = "YaqlLexicalException"
	YaqlGrammarException          = "YaqlGrammarException"
	NoFunctionRegisteredException = "NoFunctionRegisteredException"
	NoMethodRegisteredException   = "NoMethodRegisteredException"
	NoMatchingFunctionException   = "NoMatchingFunctionException"
	NoMatchingMethodException     = "NoMatchingMethodException"
	AmbiguousFunctionException    = "AmbiguousFunctionException"
	AmbiguousMethodException      = "AmbiguousMethodException"
	MappingTranslationException   = "MappingTranslationException"
	ArgumentException             = "ArgumentException"
	CollectionTooLargeException   = "CollectionTooLargeException"
	MemoryQuotaExceededException  = "MemoryQuotaExceededException"
	InvalidOperatorTableException = "InvalidOperatorTableException"
	InvalidMethodException        = "InvalidMethodException"
	TypeError                     = "TypeError"
	ValueError                    = "ValueError"
	KeyError                      = "KeyError"
	IndexError                    = "IndexError"
	AttributeError                = "AttributeError"
	AssertionError                = "AssertionError"
	StopIteration                 = "StopIteration"
	ZeroDivisionError             = "ZeroDivisionError"
	OverflowError                 = "OverflowError"
	RecursionError                = "RecursionError"
	RegexError                    = "re.error"
	// StepBudgetExceeded and DeadlineExceeded have no counterpart in the reference.
	StepBudgetExceeded = "StepBudgetExceededException"
	DeadlineExceeded   = "DeadlineExceededException"
)

// Error is what parsing and evaluation fail with.
type Error struct {
	Class   string // see the constants
	Message string // as the reference would say it, where it has a message; see Plain
	Hint    string // what may help: expected tokens, the nearest name, the overloads that exist
	Source  string // the expression, if the place is known
	Offset  int    // place in Source in bytes, or -1
	cause   error
}

// Error returns the plain message, the place and the hint on one line.
func (e *Error) Error() string {
	s := e.Plain()
	if s == "" {
		s = e.Class
	}
	if e.Offset >= 0 && e.Source != "" {
		line, col := e.Place()
		s += fmt.Sprintf(" (line %d, column %d)", line, col)
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// Unwrap returns the error of the host that caused this one, or nil.
func (e *Error) Unwrap() error { return e.cause }

// Place returns line and column of the error, both counted from 1, or zeros if the place is not known.
func (e *Error) Place() (line, column int) {
	if e.Offset < 0 || e.Source == "" {
		return 0, 0
	}
	return (&syntax.Error{Source: e.Source, Offset: e.Offset}).Place()
}

// Caret returns the line of the expression that holds the error, and below it a caret under the place; it is
// empty if the place is not known.
func (e *Error) Caret() string {
	if e.Offset < 0 || e.Source == "" {
		return ""
	}
	return (&syntax.Error{Source: e.Source, Offset: e.Offset}).Caret()
}

func errorf(class, format string, args ...any) *Error {
	return &Error{Class: class, Message: fmt.Sprintf(format, args...), Offset: -1}
}

func parseError(e *syntax.Error) *Error {
	out := &Error{Class: string(e.Class), Message: e.Message, Source: e.Source, Offset: e.Offset}
	if out.Hint = slipAt(e.Source, e.Offset); out.Hint == "" && e.Expected != "" {
		out.Hint = "expected " + e.Expected
	}
	return out
}

// asError gives any error of the host a class.
func asError(err error) *Error {
	var e *Error
	var te *pytime.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &te):
		return &Error{Class: te.Class, Message: te.Message, Offset: -1, cause: err}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &Error{Class: DeadlineExceeded, Message: err.Error(), Offset: -1, cause: err}
	}
	return &Error{Class: "Exception", Message: err.Error(), Offset: -1, cause: err}
}

// isClass reports whether err is of one of the classes.
func isClass(err error, classes ...string) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	return slices.Contains(classes, e.Class)
}
