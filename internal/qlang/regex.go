package qlang

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"

	"github.com/drover-project/drover/internal/fault"
)

// MatchLimit is how long one match of a pattern that needs backtracking may
// take; patterns within RE2 take linear time and need no limit.
const MatchLimit = 100 * time.Millisecond

// maxStrikes is how many matches may exceed the limit before the pattern is
// given up: a filter is asked of very many rows, and 100 ms each is too long.
const maxStrikes = 3

const slowHint = "write it without look-around, back-references and possessive quantifiers"

// Regex is a compiled pattern in the dialect of the reference's PCRE build:
// unanchored search, "^" and "$" also match at line breaks, "." stops at them.
// Unlike there, "." matches a whole letter of any script.
type Regex struct {
	pattern string
	linear  *regexp.Regexp
	// backtracking is set, and linear nil, for what RE2 lacks: look-around,
	// back-references, possessive quantifiers.
	backtracking *regexp2.Regexp
	// steps is how many instructions the program has, which each byte of a text
	// may have to pass through.
	steps int
	// strikes counts the matches that exceeded their limits.
	strikes atomic.Int32
	// simple, if set, answers the same without an engine.
	simple func(s string) bool
}

// maxProgram is how large all patterns of one filter may be together, in
// instructions of their programs. A repetition is written out in the program:
// a{1000} takes 40 kB, and a filter within MaxBytes could hold 300,000 of it.
const maxProgram = 200_000

// allowance is what is left of maxProgram.
type allowance struct{ left int }

// CompileRegex compiles a pattern. Its error is a *RegexError, or has code
// TooLarge.
func CompileRegex(pattern string) (*Regex, error) {
	a := allowance{left: maxProgram}
	return a.compile(pattern)
}

// compile is CompileRegex for one pattern of several.
func (a *allowance) compile(pattern string) (*Regex, error) {
	tree, err := syntax.Parse("(?m)"+pattern, syntax.Perl)
	size := len(pattern)
	if err == nil {
		size = programSize(tree)
	}
	if a.left -= size; a.left < 0 {
		return nil, fault.New(fault.TooLarge, "the regular expressions of the filter are too large; the limit is %d steps, where {1000} counts a thousand times", maxProgram).
			WithHint("compare with == or =[] instead, or repeat less")
	}
	var linear *regexp.Regexp
	if err == nil {
		linear, err = regexp.Compile("(?m)" + pattern)
	}
	if err == nil {
		return &Regex{pattern: pattern, linear: linear, steps: programSteps(tree), simple: literalSearch(tree)}, nil
	}
	second, err2 := regexp2.Compile(pattern, regexp2.Multiline)
	if err2 != nil {
		return nil, newRegexError(pattern, err)
	}
	second.MatchTimeout = MatchLimit
	return &Regex{pattern: pattern, backtracking: second}, nil
}

// Pattern returns the source of the pattern.
func (r *Regex) Pattern() string { return r.pattern }

// Linear reports whether matching takes time linear in the text.
func (r *Regex) Linear() bool { return r.linear != nil }

// Steps is what matching takes at most for each byte of the text, in steps of
// some nanoseconds: the size of the program. A pattern that needs backtracking
// is limited by time instead, and counts as one that is large.
func (r *Regex) Steps() int {
	switch {
	case r.simple != nil:
		return 1
	case r.linear != nil:
		return r.steps
	}
	return BacktrackingSteps
}

// BacktrackingSteps is what a pattern that needs backtracking counts for.
const BacktrackingSteps = 250

// Strikes is how many matches have exceeded their limits so far; only patterns
// that need backtracking have any.
func (r *Regex) Strikes() int { return int(r.strikes.Load()) }

// MatchString reports whether the pattern is found in s. Only a pattern that
// needs backtracking can fail, with code TooLarge, by exceeding its limits;
// when it has done so a few times, it fails at once.
func (r *Regex) MatchString(s string) (bool, error) { return r.Match(s, nil) }

// Match is MatchString for somebody who may lose interest: the function
// interrupted, unless it is nil, is asked again and again while the match takes
// long, and its error ends it.
func (r *Regex) Match(s string, interrupted func() error) (bool, error) {
	if r.simple != nil {
		return r.simple(s), nil
	}
	if r.linear != nil {
		const long = 1 << 20
		if interrupted == nil || r.steps*len(s) < long {
			return r.linear.MatchString(s), nil
		}
		text := &interruptible{text: s, interrupted: interrupted, every: max(long/r.steps, 1)}
		found := r.linear.MatchReader(text)
		return found && text.err == nil, text.err
	}
	if interrupted != nil { // it is limited by time, and so asked about once
		if err := interrupted(); err != nil {
			return false, err
		}
	}
	if r.strikes.Load() >= maxStrikes {
		return false, fault.New(fault.TooLarge, "the regular expression %q is given up: matching it took more than %s several times", clip(r.pattern), MatchLimit).
			WithHint(slowHint)
	}
	return r.backtrack(s)
}

// Search is MatchString for somebody who decides by the strikes what to do with a pattern
// that exceeds its limits: it is never given up.
func (r *Regex) Search(s string) (bool, error) {
	if r.Linear() {
		return r.Match(s, nil)
	}
	return r.backtrack(s)
}

// backtrack is a match of a pattern that needs it.
func (r *Regex) backtrack(s string) (bool, error) {
	ok, err := r.backtracking.MatchString(s)
	if err != nil {
		r.strikes.Add(1)
		return false, fault.New(fault.TooLarge, "matching the regular expression %q took more than %s: %w", clip(r.pattern), MatchLimit, err).
			WithHint(slowHint)
	}
	return ok, nil
}

// interruptible is a text that ends early when nobody wants the answer any more.
type interruptible struct {
	text        string
	interrupted func() error
	// every is after how many letters to ask, read how many were read.
	every, read int
	err         error
}

// ReadRune returns the next letter.
func (t *interruptible) ReadRune() (rune, int, error) {
	if t.read++; t.err == nil && t.read%t.every == 0 {
		t.err = t.interrupted()
	}
	if t.text == "" || t.err != nil {
		return 0, 0, io.EOF
	}
	r, size := utf8.DecodeRuneInString(t.text)
	t.text = t.text[size:]
	return r, size, nil
}

// programSize is about how many instructions the program of a pattern has.
func programSize(tree *syntax.Regexp) int {
	size := len(tree.Rune)
	for _, part := range tree.Sub {
		size += programSize(part)
	}
	if tree.Op == syntax.OpRepeat {
		return size * max(tree.Min+1, tree.Max)
	}
	return 1 + size
}

// programSteps is about how many instructions a text goes through: a class of
// letters is one, however many it has.
func programSteps(tree *syntax.Regexp) int {
	steps := 1
	if tree.Op == syntax.OpLiteral {
		steps = len(tree.Rune)
	}
	for _, part := range tree.Sub {
		steps += programSteps(part)
	}
	if tree.Op == syntax.OpRepeat {
		return (steps - 1) * max(tree.Min+1, tree.Max)
	}
	return max(steps, 1)
}

// literalSearch recognises the patterns that most filters use, a literal text
// with or without anchors, and searches for it directly, several times as fast
// as the engine does. It returns nil for all others.
func literalSearch(tree *syntax.Regexp) func(s string) bool {
	parts := []*syntax.Regexp{tree}
	if tree.Op == syntax.OpConcat {
		parts = tree.Sub
	}
	begin := len(parts) > 0 && parts[0].Op == syntax.OpBeginLine
	if begin {
		parts = parts[1:]
	}
	end := len(parts) > 0 && parts[len(parts)-1].Op == syntax.OpEndLine
	if end {
		parts = parts[:len(parts)-1]
	}
	if len(parts) != 1 || parts[0].Op != syntax.OpLiteral || parts[0].Flags&syntax.FoldCase != 0 {
		return nil
	}
	text := string(parts[0].Rune)
	switch {
	case strings.ContainsAny(text, "\n\uFFFD"):
		return nil // a line break meets the anchors; U+FFFD stands for broken UTF-8 too
	case begin && end:
		return func(s string) bool { return s == text || strings.Contains(s, "\n") && lineIs(s, text) }
	case begin:
		inner := "\n" + text
		return func(s string) bool { return strings.HasPrefix(s, text) || strings.Contains(s, inner) }
	case end:
		inner := text + "\n"
		return func(s string) bool { return strings.HasSuffix(s, text) || strings.Contains(s, inner) }
	}
	return func(s string) bool { return strings.Contains(s, text) }
}

func lineIs(s, text string) bool {
	for line := range strings.SplitSeq(s, "\n") {
		if line == text {
			return true
		}
	}
	return false
}

// RegexError says why a pattern does not compile.
type RegexError struct {
	Pattern string
	code    syntax.ErrorCode
	part    string // the part of the pattern at fault
}

func newRegexError(pattern string, err error) *RegexError {
	e := &RegexError{Pattern: pattern}
	if detail, ok := errors.AsType[*syntax.Error](err); ok {
		e.code, e.part = detail.Code, strings.TrimPrefix(detail.Expr, "(?m)") // ours
	}
	return e
}

// Error words the commonest faults as the reference's server does (a pair of
// offset and text), others in our words.
func (e *RegexError) Error() string {
	switch e.code {
	case syntax.ErrMissingBracket:
		return fmt.Sprintf(`(%d,"missing terminating ] for character class")`, len(e.Pattern))
	case syntax.ErrMissingParen:
		return fmt.Sprintf(`(%d,"missing )")`, len(e.Pattern))
	}
	return fmt.Sprintf("bad regular expression %q: %s", clip(e.Pattern), e.detail())
}

// short words the commonest faults as the reference's command line does.
func (e *RegexError) short() string {
	if e.code == syntax.ErrMissingBracket {
		return fmt.Sprintf("unterminated character set at position %d", len([]rune(e.Pattern))-len([]rune(e.part)))
	}
	return e.detail()
}

func (e *RegexError) detail() string {
	if e.part == "" {
		return string(e.code)
	}
	return fmt.Sprintf("%s: %s", e.code, clip(e.part))
}
