package pyre

import "strings"

// source is the text of a pattern or template as it is read. An escape is read as one unit of two
// characters.
type source struct {
	runes []rune
	pos   int
}

// failure carries an *Error from the depth of the parser to its entry.
type failure struct{ err *Error }

func (s *source) fail(at int, message string) { panic(failure{&Error{ReError, message, at}}) }

// catch turns a failure into an error.
func catch(err *error) {
	switch f := recover().(type) {
	case nil:
	case failure:
		*err = f.err
	default:
		panic(f)
	}
}

func (s *source) atEnd() bool { return s.pos >= len(s.runes) }

// peek returns the next character, 0 at the end. A backslash means an escape.
func (s *source) peek() rune {
	if s.atEnd() {
		return 0
	}
	return s.runes[s.pos]
}

// take returns the next character and steps over it.
func (s *source) take() (rune, bool) {
	if s.atEnd() {
		return 0, false
	}
	s.pos++
	return s.runes[s.pos-1], true
}

// takeEscape returns the character after a backslash, which has been taken.
func (s *source) takeEscape() rune {
	c, ok := s.take()
	if !ok {
		s.fail(s.pos-1, "bad escape (end of pattern)")
	}
	return c
}

// accept steps over c if it comes next.
func (s *source) accept(c rune) bool {
	if s.atEnd() || s.runes[s.pos] != c {
		return false
	}
	s.pos++
	return true
}

// takeWhile steps over at most limit characters of the set and returns them.
func (s *source) takeWhile(limit int, chars string) string {
	start := s.pos
	for s.pos < len(s.runes) && s.pos-start < limit && strings.ContainsRune(chars, s.runes[s.pos]) {
		s.pos++
	}
	return string(s.runes[start:s.pos])
}

// takeUntil returns the text up to a closing character, which it steps over; what names the text.
func (s *source) takeUntil(closing rune, what string) string {
	start := s.pos
	for i := start; i < len(s.runes); i++ {
		if s.runes[i] != closing {
			continue
		}
		if i == start {
			s.fail(start, "missing "+what)
		}
		s.pos = i + 1
		return string(s.runes[start:i])
	}
	if start == len(s.runes) {
		s.fail(start, "missing "+what)
	}
	s.fail(start, "missing "+string(closing)+", unterminated name")
	return ""
}

const (
	octalDigits   = "01234567"
	decimalDigits = "0123456789"
	hexDigits     = "0123456789abcdefABCDEF"
)

func isASCIILetter(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
