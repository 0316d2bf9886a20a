package pyre

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/drover-project/drover/yaql/internal/pytext"
)

// A Part is a piece of a split text, or a group that took no part in the match of a separator.
type Part struct {
	Text    string
	Matched bool
}

// Split cuts text at the matches. What the groups of a separator matched comes between the pieces. A limit
// above zero stops after so many cuts, a limit below zero cuts nothing. The error is ErrTimeout or of the meter.
func (r *Regexp) Split(text string, limit int, meter Meter) ([]Part, error) {
	s := newSubject(text)
	parts := []Part{}
	last := 0
	err := r.each(text, limit, meter, func(m *Match) error {
		if err := pay(meter, partSteps*(1+m.Groups())); err != nil {
			return err
		}
		parts = append(parts, Part{s.slice(last, m.spans[0]), true})
		for number := 1; number <= m.Groups(); number++ {
			g := m.Group(number)
			parts = append(parts, Part{g.Text, g.Matched})
		}
		last = m.spans[1]
		return nil
	})
	return append(parts, Part{s.slice(last, len(s.codePoints())), true}), err
}

// each calls f for the first matches: all when limit is zero, none when it is less.
func (r *Regexp) each(text string, limit int, meter Meter, f func(*Match) error) error {
	if limit < 0 {
		return nil
	}
	n := 0
	for m, err := range r.All(text, meter) {
		if err != nil {
			return err
		}
		if err := f(m); err != nil {
			return err
		}
		if n++; n == limit {
			return nil
		}
	}
	return nil
}

// ReplaceFunc replaces the matches by what f returns for each. The limit is as for Split. Before the result
// grows, grown is told how long it will be; an error of it ends the work. It may be nil.
func (r *Regexp) ReplaceFunc(text string, limit int, meter Meter, grown func(bytes int) error, f func(*Match) (string, error)) (string, error) {
	s := newSubject(text)
	var out strings.Builder
	last := 0
	err := r.each(text, limit, meter, func(m *Match) error {
		replacement, err := f(m)
		if err != nil {
			return err
		}
		kept := s.slice(last, m.spans[0])
		if grown != nil {
			if err := grown(out.Len() + len(kept) + len(replacement)); err != nil {
				return err
			}
		}
		out.WriteString(kept)
		out.WriteString(replacement)
		last = m.spans[1]
		return nil
	})
	if err != nil {
		return "", err
	}
	out.WriteString(s.slice(last, len(s.codePoints())))
	return out.String(), nil
}

// Replace replaces the matches by a template, in which \1, \g<1> and \g<name> stand for groups and \n and
// the like for control characters. The limit is as for Split. A faulty template gives an *Error also when
// nothing matches. What grown is, ReplaceFunc says.
func (r *Regexp) Replace(text, template string, limit int, meter Meter, grown func(bytes int) error) (string, error) {
	pieces, err := r.parseTemplate(template)
	if err != nil {
		return "", err
	}
	return r.ReplaceFunc(text, limit, meter, grown, func(m *Match) (string, error) {
		size := 0
		for _, piece := range pieces {
			size += len(piece.text)
			if piece.group >= 0 {
				size += m.bytes(piece.group)
			}
		}
		if grown != nil {
			if err := grown(size); err != nil {
				return "", err
			}
		}
		if err := pay(meter, partSteps*len(pieces)); err != nil {
			return "", err
		}
		var out strings.Builder
		for _, piece := range pieces {
			out.WriteString(piece.text)
			if piece.group >= 0 {
				out.WriteString(m.Group(piece.group).Text)
			}
		}
		return out.String(), nil
	})
}

// bytes is how many bytes the text of a group has at most.
func (m *Match) bytes(number int) int {
	n := m.spans[2*number+1] - m.spans[2*number]
	if m.text.ascii {
		return n
	}
	return utf8.UTFMax * n
}

// templatePiece is a text and the group that follows it, -1 for none.
type templatePiece struct {
	text  string
	group int
}

type templateParser struct {
	source
	regexp  *Regexp
	pieces  []templatePiece
	literal strings.Builder
}

func (r *Regexp) parseTemplate(template string) (pieces []templatePiece, err error) {
	if !strings.Contains(template, `\`) {
		return []templatePiece{{template, -1}}, nil
	}
	defer catch(&err)
	p := &templateParser{source: source{runes: []rune(template)}, regexp: r}
	for !p.atEnd() {
		start := p.pos
		c, _ := p.take()
		if c == '\\' {
			p.escape(start)
			continue
		}
		p.literal.WriteRune(c)
	}
	return append(p.pieces, templatePiece{p.literal.String(), -1}), nil
}

func (p *templateParser) escape(start int) {
	c := p.takeEscape()
	char, known := letterEscapes[c]
	switch {
	case c == 'g':
		p.groupEscape(start)
	case c == '0':
		p.literal.WriteRune(p.octal("0"+p.takeWhile(2, octalDigits), start))
	case c >= '1' && c <= '9':
		p.numberEscape(c, start)
	case c == 'b':
		p.literal.WriteRune('\b')
	case known:
		p.literal.WriteRune(char)
	case isASCIILetter(c):
		p.fail(start, `bad escape \`+string(c))
	default:
		p.literal.WriteString(`\` + string(c))
	}
}

func (p *templateParser) numberEscape(c rune, start int) {
	digits := string(c) + p.takeWhile(1, decimalDigits)
	if len(digits) == 2 && isOctal(digits) {
		if third := p.takeWhile(1, octalDigits); third != "" {
			p.literal.WriteRune(p.octal(digits+third, start))
			return
		}
	}
	number, err := strconv.Atoi(digits)
	if err != nil {
		p.fail(start+1, "invalid group reference "+digits)
	}
	p.group(number, start+1)
}

func (p *templateParser) groupEscape(start int) {
	if !p.accept('<') {
		p.fail(p.pos, "missing <")
	}
	at := p.pos
	name := p.takeUntil('>', "group name")
	if isIdentifier(name) {
		number, ok := p.regexp.names[name]
		if !ok {
			panic(failure{&Error{IndexError, "unknown group name '" + name + "'", at}})
		}
		p.group(number, at)
		return
	}
	number, err := pytext.ParseInt(name)
	if err != nil || number.Sign() < 0 {
		p.fail(at, "bad character in group name '"+name+"'")
	}
	if !number.IsInt64() {
		p.fail(start+1, "invalid group reference "+name)
	}
	p.group(int(number.Int64()), start+1)
}

func (p *templateParser) group(number, at int) {
	if number > p.regexp.groups {
		p.fail(at, fmt.Sprintf("invalid group reference %d", number))
	}
	p.pieces = append(p.pieces, templatePiece{p.literal.String(), number})
	p.literal.Reset()
}

// Escape returns a pattern that matches text literally, with the same characters escaped as Python
// escapes.
func Escape(text string) string {
	var out strings.Builder
	for _, c := range text {
		if strings.ContainsRune("()[]{}?*+-|^$\\.&~# \t\n\r\v\f", c) {
			out.WriteByte('\\')
		}
		out.WriteRune(c)
	}
	return out.String()
}
