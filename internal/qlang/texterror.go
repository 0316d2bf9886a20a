package qlang

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/fault"
)

// TextError says where and why a text filter does not parse. It is the cause
// of the error that ParseText returns.
type TextError struct {
	Text   string
	Reason string
	// Char counts letters from 0, Line and Column from 1.
	Char, Line, Column int
}

// Error is the reference's one-line message.
func (e *TextError) Error() string {
	return fmt.Sprintf("Failed to parse query filter '%s': %s", e.Text, e.where())
}

func (e *TextError) where() string {
	return fmt.Sprintf("%s  (at char %d), (line:%d, col:%d)", e.Reason, e.Char, e.Line, e.Column)
}

// Report returns what a command prints for the error: the message, the line,
// a caret under the place, and the reason again. It has no line break at its
// end.
func (e *TextError) Report() string {
	return "Error while parsing query filter: " + e.Error() + "\n" + e.line() + "\n" +
		strings.Repeat(" ", e.Column-1) + "^\n" + e.where()
}

func (e *TextError) line() string {
	lines := strings.Split(e.Text, "\n")
	return lines[e.Line-1]
}

func newTextError(text, reason string, offset int) *TextError {
	before := text[:offset]
	lineStart := strings.LastIndexByte(before, '\n') + 1
	return &TextError{
		Text:   text,
		Reason: reason,
		Char:   utf8.RuneCountInString(before),
		Line:   1 + strings.Count(before, "\n"),
		Column: 1 + utf8.RuneCountInString(before[lineStart:]),
	}
}

// failure is why a part of the grammar does not match at a place. Another
// alternative may still match, unless the failure is final.
type failure struct {
	at     int
	reason string
	final  bool
	cause  *fault.Error // set when a limit is exceeded
}

func (p *parser) report(f *failure) error {
	if f.cause != nil {
		return f.cause
	}
	reason := f.reason
	if !f.final {
		if reason == "" {
			reason = "Expected Suppress:('or') term"
		}
		reason += p.found(f.at)
	}
	e := newTextError(p.text, reason, f.at)
	return fault.New(fault.Invalid, "%w", e).WithHint("%s", hintFor(p.text, f.at))
}

// hintFor says what to write instead of what stands where a text cannot be read
// on, if that is one of the usual slips; else nothing.
func hintFor(text string, at int) string {
	rest := strings.TrimLeft(text[at:], " \t\n\r")
	op := ""
	for _, o := range textOps {
		if strings.HasPrefix(rest, o) {
			op = o
			break
		}
	}
	operand := strings.TrimLeft(rest[len(op):], " \t\n\r=")
	word := operand
	if n := strings.IndexAny(operand, " \t\n\r()"); n >= 0 {
		word = operand[:n]
	}
	switch {
	case op == "":
		return joinHint(text[:at], rest)
	case strings.HasPrefix(operand, ">") || strings.HasPrefix(operand, "<"):
		return "at least is >=, at most is <="
	case (strings.HasPrefix(operand, `"`) || strings.HasPrefix(operand, "'")) && quotedLen(operand) == 0:
		return "the text that begins with " + operand[:1] + " does not end with it"
	case word == "":
		return "a value is missing behind " + op
	case op == "=~" || op == "!~":
		return "a pattern stands between slashes: " + op + " m/" + strings.Trim(word, `"'`) + "/"
	case word[0] == '[':
		return `a list is tested for what is in it: "VALUE" in FIELD`
	case strings.EqualFold(word, "true"):
		return "a truth value is tested by the name of the field alone: FIELD"
	case strings.EqualFold(word, "false"):
		return "a truth value is tested by the name of the field alone: not FIELD"
	case strings.HasPrefix(rest, "==="):
		return "equality is =="
	case !isAlpha(word[0]):
		return ""
	}
	return "texts stand in quotes: " + op + ` "` + word + `"`
}

// joinHint is hintFor for what stands where neither an operator nor and, or do:
// the signs of other languages for them, and in behind a field.
func joinHint(before, rest string) string {
	word, behind := rest, ""
	if n := strings.IndexAny(rest, " \t\n\r([\"'"); n >= 0 {
		word, behind = rest[:n], strings.TrimLeft(rest[n:], " \t\n\r")
	}
	switch {
	case strings.HasPrefix(rest, "&"), word == "AND":
		return "tests are joined by and: TEST and TEST"
	case strings.HasPrefix(rest, "|"), word == "OR":
		return "alternatives are joined by or: TEST or TEST"
	case strings.HasPrefix(rest, "!"), (word == "and" || word == "or") && strings.HasPrefix(behind, "!"):
		return "a test is negated by not: not TEST"
	case word == "not" && strings.HasPrefix(behind, "in"):
		return inHint(lastWord(before), "not in", strings.TrimSpace(behind[len("in"):]))
	case word == "in":
		return inHint(lastWord(before), "in", behind)
	case strings.EqualFold(word, "like"), strings.EqualFold(word, "matches"), strings.EqualFold(word, "contains"):
		return lastWord(before) + ` =* "*PART*" compares with a pattern for names, ` + lastWord(before) + ` =~ m/PART/ with a regular expression`
	case strings.HasPrefix(rest, "?"):
		return "a truth value is tested by the name of the field alone: FIELD"
	case word != "" && len(word) <= 3 && strings.Trim(word, quantityUnits) == "" && lastNumber(before) != "":
		return "a unit stands right behind its number: " + lastNumber(before) + word
	}
	return ""
}

// inHint says how a test with in is written, by what stands on both its sides.
func inHint(left, in, right string) string {
	switch {
	case left == "":
		return ""
	case strings.HasPrefix(right, "(") || strings.HasPrefix(right, "["):
		return "each of several values is a test: " + left + ` == "A" or ` + left + ` == "B"`
	}
	if n := quotedLen(right); n > 0 {
		return "the value stands before the field: " + right[:n] + " " + in + " " + left
	}
	return in + " asks whether a field, which is a list, has a value, which stands in quotes: \"" + left + `" ` + in + " FIELD"
}

// lastNumber is the number that a text ends with, empty for none.
func lastNumber(text string) string {
	word := lastWord(text)
	if strings.Trim(word, "0123456789.") != "" {
		return ""
	}
	return word
}

// lastWord is the name of a field that a text ends with.
func lastWord(text string) string {
	text = strings.TrimRight(text, " \t\n\r")
	begin := len(text)
	for begin > 0 && isFieldByte(text[begin-1]) {
		begin--
	}
	return text[begin:]
}

// found names the word at a place as the reference's parser does.
func (p *parser) found(at int) string {
	rest := p.text[at:]
	switch {
	case p.text == "":
		return ""
	case rest == "":
		return ", found end of text"
	}
	n := 0
	for n < len(rest) && n < 16 && isAlnum(rest[n]) {
		n++
	}
	if n == 0 {
		_, n = utf8.DecodeRuneInString(rest)
	}
	return ", found " + strings.ReplaceAll(pyQuote(rest[:n]), `\\`, `\`)
}
