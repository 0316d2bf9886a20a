package dump

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// style is how a text may be written.
type style struct {
	text      string
	multiline bool
	plain     bool // without quotes
	single    bool // in single quotes
}

// breaks are the characters that end lines, besides which only spaces are white space that need not be escaped.
const breaks = "\n\r\u0085\u2028\u2029"

func isBreak(r rune) bool { return strings.ContainsRune(breaks, r) }

func isBlank(r rune) bool { return r == ' ' || r == '\t' || isBreak(r) }

// analyze finds out how a text may be written, by the rules of libyaml's emitter for text outside of brackets.
func analyze(s string) style {
	out := style{text: s}
	if s == "" {
		out.plain, out.single = true, true
		return out
	}
	if simple(s) {
		out.plain, out.single = true, true
		return out
	}
	indicators := strings.HasPrefix(s, "---") || strings.HasPrefix(s, "...")
	var special, edge, broken, spoiled bool
	previous := ' '
	wasSpace, wasBreak := false, false
	for i, r := range s {
		next, size := utf8.DecodeRuneInString(s[i+utf8.RuneLen(r):])
		last := size == 0
		followed := last || isBlank(next)
		indicators = indicators || indicates(r, i == 0, followed, i == 0 || isBlank(previous))
		special = special || r != '\n' && (r < ' ' || r > '~')
		switch {
		case r == ' ':
			edge = edge || i == 0 || last
			spoiled = spoiled || wasBreak
			wasSpace, wasBreak = true, false
		case isBreak(r):
			broken = true
			edge = edge || i == 0 || last
			spoiled = spoiled || wasSpace
			wasSpace, wasBreak = false, true
		default:
			wasSpace, wasBreak = false, false
		}
		previous = r
	}
	out.multiline = broken
	out.single = !spoiled && !special
	out.plain = out.single && !indicators && !edge && !broken
	return out
}

// simple recognizes texts that are nothing but letters, digits, and signs that mean nothing wherever they stand.
func simple(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '/':
		case i > 0 && (c == '.' || c == '-'):
		default:
			return false
		}
	}
	return true
}

// indicates tells whether a character would be taken for syntax where it stands.
func indicates(r rune, first, followed, preceded bool) bool {
	if first {
		if strings.ContainsRune("#,[]{}&*!|>'\"%@`", r) {
			return true
		}
		return followed && (r == '?' || r == ':' || r == '-')
	}
	return r == ':' && followed || r == '#' && preceded
}

// scalar writes a text; of a string it is told, so that it does not read as anything else.
func (e *emitter) scalar(s style, c context, isString bool) {
	inner := c.indent + step
	if c.indent < 0 {
		inner = step
	}
	plain := s.plain && !(isString && Reads(s.text))
	folds := !c.key
	switch {
	case c.key && s.multiline:
		e.double(s.text, inner, folds)
	case plain:
		e.plain(s.text, inner, folds)
	case s.single:
		e.single(s.text, inner, folds)
	default:
		e.double(s.text, inner, folds)
	}
}

func (e *emitter) plain(s string, indent int, folds bool) {
	if !e.blank && e.out.Len() > 0 {
		e.put(' ')
	}
	e.blank, e.indents = false, false
	if strings.IndexByte(s, ' ') < 0 {
		e.text(s)
		return
	}
	spaces := false
	for i, r := range s {
		if r != ' ' {
			e.put(r)
			e.indents, spaces = false, false
			continue
		}
		if folds && !spaces && e.column > width && !strings.HasPrefix(s[i+1:], " ") {
			e.indent(indent)
		} else {
			e.put(r)
		}
		spaces = true
	}
	e.blank, e.indents = false, false
}

func (e *emitter) single(s string, indent int, folds bool) {
	e.indicator("'", true, false)
	spaces, broken := false, false
	for i, r := range s {
		switch {
		case r == ' ':
			if folds && !spaces && e.column > width && i > 0 && i < len(s)-1 && s[i+1] != ' ' {
				e.indent(indent)
			} else {
				e.put(r)
			}
			spaces = true
		case r == '\n':
			if !broken {
				e.newline()
			}
			e.newline()
			broken = true
		default:
			if broken {
				e.indent(indent)
			}
			if r == '\'' {
				e.put(r)
			}
			e.put(r)
			e.indents, spaces, broken = false, false, false
		}
	}
	if broken {
		e.indent(indent)
	}
	e.blank = false
	e.indicator("'", false, false)
}

// escapes are the characters with an escape of their own.
var escapes = map[rune]string{0: `\0`, '\a': `\a`, '\b': `\b`, '\t': `\t`, '\n': `\n`, '\v': `\v`, '\f': `\f`, '\r': `\r`,
	0x1b: `\e`, '"': `\"`, '\\': `\\`, 0x85: `\N`, 0xa0: `\_`, 0x2028: `\L`, 0x2029: `\P`}

func (e *emitter) double(s string, indent int, folds bool) {
	e.indicator("\"", true, false)
	spaces := false
	for i, r := range s {
		switch short, ok := escapes[r]; {
		case ok:
			e.text(short)
			spaces = false
		case r < ' ' || r > '~':
			e.text(escape(r))
			spaces = false
		case r == ' ':
			if folds && !spaces && e.column > width && i > 0 && i < len(s)-1 {
				e.indent(indent)
				if s[i+1] == ' ' {
					e.put('\\')
				}
			} else {
				e.put(r)
			}
			spaces = true
		default:
			e.put(r)
			spaces = false
		}
	}
	e.blank = false
	e.indicator("\"", false, false)
}

func escape(r rune) string {
	switch {
	case r <= 0xff:
		return fmt.Sprintf(`\x%02X`, r)
	case r <= 0xffff:
		return fmt.Sprintf(`\u%04X`, r)
	}
	return fmt.Sprintf(`\U%08X`, r)
}

// implicit are the texts that YAML 1.1 reads as null, truth values, numbers, times and the keys of merges.
var implicit = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:` + strings.Join([]string{
		`~|null|Null|NULL|<<|=|[!&*]`,
		`yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF`,
		`[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?`,
		`[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)`,
		`[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+`,
		`[0-9]{4}-[0-9]{2}-[0-9]{2}`,
		`[0-9]{4}-[0-9][0-9]?-[0-9][0-9]?(?:[Tt]|[ \t]+)[0-9][0-9]?:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9][0-9]?(?::[0-9]{2})?))?`,
	}, "|") + `)$`)
})

// Reads tells whether YAML 1.1 would read a text without quotes as something else than a string.
func Reads(s string) bool {
	switch {
	case s == "":
		return true
	case strings.IndexByte("-+0123456789.yYnNtTfFoO~<=!&*", s[0]) < 0:
		return false
	case s[0] >= 'A' && len(s) > len("false"): // a word, and too long for any that means something
		return false
	case strings.Count(s, ".") > 1 && strings.IndexByte(s, ':') < 0: // an address
		return false
	}
	return implicit().MatchString(s)
}
