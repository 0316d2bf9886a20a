package pyre

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/drover-project/drover/yaql/internal/pytext"
)

// letterEscapes stand for one control character each, in patterns and templates.
var letterEscapes = map[rune]rune{'a': '\a', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', '\\': '\\'}

// escape reads what follows a backslash outside of classes.
func (p *parser) escape(start int, flags Flags) node {
	c := p.takeEscape()
	switch {
	case strings.ContainsRune("AZbB", c):
		return position{kind: byte(c), flags: flags}
	case strings.ContainsRune("dswDSW", c):
		return set{categories: []byte{byte(c)}, flags: flags}
	case c == '0':
		return literal{char: p.octal("0"+p.takeWhile(2, octalDigits), start), flags: flags}
	case c >= '1' && c <= '9':
		return p.numberEscape(c, start, flags)
	}
	if char, ok := p.charEscape(c, start); ok {
		return literal{char: char, flags: flags}
	}
	if isASCIILetter(c) {
		p.fail(start, `bad escape \`+string(c))
	}
	return literal{char: c, flags: flags}
}

// charEscape reads the escapes that mean the same inside and outside of classes. It reports false for
// others.
func (p *parser) charEscape(c rune, start int) (rune, bool) {
	if char, ok := letterEscapes[c]; ok {
		return char, true
	}
	widths := map[rune]int{'x': 2, 'u': 4, 'U': 8}
	if width, ok := widths[c]; ok {
		digits := p.takeWhile(width, hexDigits)
		if len(digits) != width {
			p.fail(start, `incomplete escape \`+string(c)+digits)
		}
		value, err := strconv.ParseUint(digits, 16, 32)
		if err != nil || value > utf8.MaxRune {
			p.fail(start, `bad escape \`+string(c)+digits)
		}
		return rune(value), true
	}
	if c != 'N' {
		return 0, false
	}
	if !p.accept('{') {
		p.fail(p.pos, "missing {")
	}
	name := p.takeUntil('}', "character name")
	char, ok := pytext.RuneByName(name)
	if !ok {
		p.fail(start, "undefined character name '"+name+"'")
	}
	return char, true
}

// numberEscape reads a reference to a group, or a character by three octal digits.
func (p *parser) numberEscape(c rune, start int, flags Flags) node {
	digits := string(c) + p.takeWhile(1, decimalDigits)
	if len(digits) == 2 && isOctal(digits) {
		if third := p.takeWhile(1, octalDigits); third != "" {
			return literal{char: p.octal(digits+third, start), flags: flags}
		}
	}
	number, err := strconv.Atoi(digits)
	if err != nil || number > len(p.groups) {
		p.fail(start+1, fmt.Sprintf("invalid group reference %s", digits))
	}
	p.refer(number, start)
	return reference{number: number, to: p.groups[number-1], flags: flags}
}

func isOctal(digits string) bool { return strings.Trim(digits, octalDigits) == "" }

func (s *source) octal(digits string, start int) rune {
	value, err := strconv.ParseUint(digits, 8, 32)
	if err != nil || value > 0o377 {
		s.fail(start, `octal escape value \`+digits+` outside of range 0-0o377`)
	}
	return rune(value)
}
