package syntax

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drover-project/drover/yaql/internal/pytext"
)

type tokenKind uint8

const (
	tokEnd    tokenKind = iota
	tokVar              // text is the name with its dollar
	tokConst            // value
	tokWord             // a bare word
	tokFunc             // text is the name; the parenthesis is part of the token
	tokOp               // text is the operator, the pair sign or a punctuation character
	tokString           // like tokConst, but a string in quotes
)

type token struct {
	kind  tokenKind
	text  string
	value any
	pos   int
}

// shown is how the reference names the token in a message.
func (t token) shown() string {
	switch v := t.value.(type) {
	case nil:
		if t.kind == tokConst {
			return "None"
		}
		return t.text
	case bool:
		if v {
			return "True"
		}
		return "False"
	case float64:
		return pytext.FormatFloat(v)
	default:
		return fmt.Sprint(v)
	}
}

type lexer struct {
	g   *grammar
	src string
	pos int
}

func (l *lexer) fail(class Class, pos int, format string, args ...any) *Error {
	return &Error{Class: class, Message: fmt.Sprintf(format, args...), Source: l.src, Offset: pos}
}

func (l *lexer) illegal(pos int) *Error {
	r, _ := utf8.DecodeRuneInString(l.src[pos:])
	return l.fail(Lexical, pos, "Lexical error: illegal character '%c' at position %d", r, utf8.RuneCountInString(l.src[:pos]))
}

// next returns the next token. The rules are tried in the order of the reference: variable, number, function,
// word, strings, operators, punctuation.
func (l *lexer) next() (token, *Error) {
	for l.pos < len(l.src) {
		switch l.src[l.pos] {
		case ' ', '\t', '\r', '\n':
			l.pos++
			continue
		}
		break
	}
	start := l.pos
	if start == len(l.src) {
		return token{kind: tokEnd, pos: start}, nil
	}
	switch c := l.src[start]; c {
	case '$':
		l.pos = start + 1 + wordLen(l.src[start+1:])
		return token{kind: tokVar, text: l.src[start:l.pos], pos: start}, nil
	case '\'', '"', '`':
		return l.str(c)
	}
	if n := wordLen(l.src[start:]); n > 0 {
		if t, ok := l.number(); ok {
			return t, nil
		}
		if first, _ := utf8.DecodeRuneInString(l.src[start:]); !unicode.Is(unicode.Nd, first) {
			if t, ok := l.word(n); ok {
				return t, nil
			}
		}
		return token{}, l.illegal(start)
	}
	for _, op := range l.g.symbols {
		if strings.HasPrefix(l.src[start:], op) {
			l.pos += len(op)
			return token{kind: tokOp, text: op, pos: start}, nil
		}
	}
	switch c := l.src[start]; c {
	case '(', ')', ']', ',', '}', '[', '{':
		if c == '[' && !l.g.lists || c == '{' && !l.g.maps {
			break
		}
		l.pos++
		return token{kind: tokOp, text: l.src[start:l.pos], pos: start}, nil
	}
	return token{}, l.illegal(start)
}

// word lexes a function name, a constant, an operator word or a bare word of n bytes.
func (l *lexer) word(n int) (token, bool) {
	start := l.pos
	text := l.src[start : start+n]
	if start+n < len(l.src) && l.src[start+n] == '(' {
		l.pos += n + 1
		return token{kind: tokFunc, text: text, pos: start}, true
	}
	if strings.HasPrefix(text, "__") {
		return token{}, false
	}
	l.pos += n
	t := token{kind: tokWord, text: text, pos: start}
	switch text {
	case "true":
		t.kind, t.value = tokConst, true
	case "false":
		t.kind, t.value = tokConst, false
	case "null":
		t.kind = tokConst
	default:
		if l.g.words[text] {
			t.kind = tokOp
		}
	}
	return t, true
}

// number lexes digits with an optional fraction that end at a word boundary.
func (l *lexer) number() (token, bool) {
	start := l.pos
	n := digitsLen(l.src[start:])
	if n == 0 {
		return token{}, false
	}
	if rest := l.src[start+n:]; strings.HasPrefix(rest, ".") {
		if f := digitsLen(rest[1:]); f > 0 && wordLen(rest[1+f:]) == 0 {
			l.pos = start + n + 1 + f
			v, _ := strconv.ParseFloat(asciiDigits(l.src[start:l.pos]), 64) // out of range gives infinity, as in the reference
			return token{kind: tokConst, value: v, pos: start}, true
		}
	}
	if wordLen(l.src[start+n:]) > 0 {
		return token{}, false
	}
	l.pos = start + n
	text := asciiDigits(l.src[start:l.pos])
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return token{kind: tokConst, value: v, pos: start}, true
	}
	v, err := pytext.ParseInt(text)
	if err != nil {
		return token{}, false
	}
	return token{kind: tokConst, value: v, pos: start}, true
}

// escapeError places an error of the escapes of a string whose text begins at offset at.
func (l *lexer) escapeError(err error, at int) *Error {
	if e, ok := errors.AsType[*pytext.EscapeError](err); ok {
		at += runesLen(l.src[at:], e.Offset)
	}
	return l.fail(Decode, at, "%s", err)
}

// runesLen returns the length in bytes of the first n characters of s.
func runesLen(s string, n int) int {
	i := 0
	for ; n > 0 && i < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return i
}

// str lexes a string in the quotes q. A backslash takes any character but a newline with it.
func (l *lexer) str(q byte) (token, *Error) {
	start := l.pos
	escaped := false
	for i := start + 1; i < len(l.src); i++ {
		switch c := l.src[i]; {
		case c == q:
			l.pos = i + 1
			text := l.src[start+1 : i]
			if q == '`' {
				text = strings.ReplaceAll(text, "\\`", "`")
			} else if escaped {
				plain, err := pytext.Unescape(text)
				if err != nil {
					return token{}, l.escapeError(err, start+1)
				}
				text = plain
			}
			return token{kind: tokString, value: text, pos: start}, nil
		case c == '\\':
			escaped = true
			i++
			if i < len(l.src) && l.src[i] == '\n' {
				return token{}, l.illegal(start)
			}
		}
	}
	return token{}, l.illegal(start)
}

// isWord reports whether s consists of word characters only.
func isWord(s string) bool { return s != "" && wordLen(s) == len(s) }

// wordLen returns the length of the longest prefix of s made of letters, numbers and underscores.
func wordLen(s string) int {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c != '_' && !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9') {
				return i
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if !unicode.IsLetter(r) && !unicode.IsNumber(r) {
			return i
		}
		i += n
	}
	return len(s)
}

func digitsLen(s string) int {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c < '0' || c > '9' {
				return i
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if !unicode.Is(unicode.Nd, r) {
			return i
		}
		i += n
	}
	return len(s)
}

// asciiDigits rewrites the decimal digits of other scripts.
func asciiDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf {
			return r
		}
		v, _ := pytext.DigitValue(r)
		return '0' + rune(v)
	}, s)
}
