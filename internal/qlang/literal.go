package qlang

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/fault"
)

// keyword reads a whole word and returns the position behind it.
func (p *parser) keyword(i int, word string) (int, bool) {
	i = p.skip(i)
	end := i + len(word)
	if !strings.HasPrefix(p.text[i:], word) ||
		i > 0 && isWord(p.text[i-1]) || end < len(p.text) && isWord(p.text[end]) {
		return i, false
	}
	return end, true
}

func (p *parser) field(i int) (string, int) {
	end := i
	for end < len(p.text) && (isAlpha(p.text[end]) || end > i && isFieldByte(p.text[end])) {
		end++
	}
	return p.text[i:end], end
}

func (p *parser) value(i int) (Value, int, bool) {
	if s, end, ok := p.quoted(i); ok {
		return TextValue(s), end, true
	}
	if end := quantityEnd(p.text, i); end > i {
		return TextValue(p.text[i:end]), end, true
	}
	end := i
	if end < len(p.text) && (p.text[end] == '-' || p.text[end] == '+') {
		end++
	}
	digits := end
	for end < len(p.text) && isDigit(p.text[end]) {
		end++
	}
	if end == digits {
		return Value{}, i, false
	}
	n, ok := new(big.Int).SetString(p.text[i:end], 10)
	return Value{Int: n}, end, ok
}

// quantityUnits are the letters of units: of durations and of sizes.
const quantityUnits = "smhdwMGTgtiBb"

// quantityEnd returns where a number with a unit ends that begins at i, such as
// -1h30m or 1.5G; i itself if there is none. It means the same as in quotes, and
// which of them a field understands is its matter.
func quantityEnd(text string, i int) int {
	at := i
	if at < len(text) && (text[at] == '-' || text[at] == '+') {
		at++
	}
	for parts := 0; ; parts++ {
		begin := at
		for at < len(text) && (isDigit(text[at]) || at > begin && text[at] == '.') {
			at++
		}
		if at == begin {
			if parts == 0 || at < len(text) && isWord(text[at]) {
				return i
			}
			return at
		}
		unit := at
		for at < len(text) && strings.IndexByte(quantityUnits, text[at]) >= 0 {
			at++
		}
		if at == unit {
			return i
		}
	}
}

func (p *parser) quoted(i int) (string, int, bool) {
	n := quotedLen(p.text[i:])
	if n == 0 {
		return "", i, false
	}
	return p.text[i+1 : i+n-1], i + n, true
}

// quotedLen returns the length of the quoted string that s begins with, quotes
// included, or 0. A doubled quote and one behind a backslash do not end it,
// and nothing of the inside is changed. If no end is found behind a doubled
// quote, the last such pair was the end after all.
func quotedLen(s string) int {
	if s == "" || s[0] != '"' && s[0] != '\'' {
		return 0
	}
	fallback := 0
	for i := 1; i < len(s); {
		switch c := s[i]; {
		case c == s[0] && i+1 < len(s) && s[i+1] == c:
			fallback = i + 1
			i += 2
		case c == s[0]:
			return i + 1
		case c == '\n' || c == '\r':
			return fallback
		case c == '\\':
			n := escapeLen(s[i:])
			if n == 0 {
				return fallback
			}
			i += n
		default:
			i++
		}
	}
	return fallback
}

// escapeLen returns the length of an escape in a string: a backslash and any
// letter, but behind x there must be a hexadecimal digit.
func escapeLen(s string) int {
	if len(s) < 2 {
		return 0
	}
	if s[1] != 'x' {
		_, n := utf8.DecodeRuneInString(s[1:])
		return 1 + n
	}
	if len(s) > 2 && strings.IndexByte("0123456789abcdefABCDEF", s[2]) >= 0 {
		return 3
	}
	return 0
}

// rawRegex is a pattern as written: the inside of the delimiters, and the
// letters behind them.
type rawRegex struct{ body, flags string }

// regex reads [m] D pattern D [letters].
func (p *parser) regex(i int) (rawRegex, int, bool) {
	if strings.HasPrefix(p.text[i:], "m") {
		i = p.skip(i + 1)
	}
	if i == len(p.text) || strings.IndexByte("/#^|", p.text[i]) < 0 {
		return rawRegex{}, i, false
	}
	delimiter, end := p.text[i], i+1
	for end < len(p.text) && p.text[end] != delimiter {
		switch p.text[end] {
		case '\n', '\r':
			return rawRegex{}, i, false
		case '\\':
			end++
			if end == len(p.text) || p.text[end] == '\n' {
				return rawRegex{}, i, false
			}
		}
		end++
	}
	if end >= len(p.text) {
		return rawRegex{}, i, false
	}
	flags := p.skip(end + 1)
	after := flags
	for after < len(p.text) && isAlpha(p.text[after]) {
		after++
	}
	r := rawRegex{body: p.text[i+1 : end], flags: p.text[flags:after]}
	if (r.flags == "and" || r.flags == "or") && p.skip(after) < len(p.text) {
		r.flags = "" // the reference takes the word for flags, and refuses it
	}
	if r.flags == "" {
		after = end + 1
	}
	return r, after, true
}

// compile takes one level of backslashes away and sets the flags in front. A
// reason tells why it is impossible, large that the filter holds too much.
func (r rawRegex) compile(patterns *allowance) (re *Regex, reason string, large *fault.Error) {
	flags := []rune(r.flags)
	unknown := slices.DeleteFunc(slices.Clone(flags), func(f rune) bool { return f == 's' || f == 'i' })
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return nil, fmt.Sprintf("Unknown regular expression flags: '%s'", string(slices.Compact(unknown))), nil
	}
	pattern := unescape(r.body)
	if len(flags) > 0 {
		slices.Sort(flags)
		pattern = "(?" + string(flags) + ")" + pattern
	}
	re, err := patterns.compile(pattern)
	if err == nil {
		return re, "", nil
	}
	if large, ok := errors.AsType[*fault.Error](err); ok {
		return nil, "", large
	}
	if bad, ok := errors.AsType[*RegexError](err); ok {
		reason = bad.short()
	}
	return nil, fmt.Sprintf("Invalid regular expression (%s)", reason), nil
}

var controlEscapes = map[rune]rune{'t': '\t', 'n': '\n', 'r': '\r', 'f': '\f'}

func unescape(s string) string {
	var b strings.Builder
	escaped := false
	for _, c := range s {
		switch control, ok := controlEscapes[c]; {
		case !escaped && c == '\\':
			escaped = true
			continue
		case escaped && ok:
			b.WriteRune(control)
		default:
			b.WriteRune(c)
		}
		escaped = false
	}
	return b.String()
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isAlpha(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isAlnum(c byte) bool { return isAlpha(c) || isDigit(c) }

// isWord tells the bytes that a keyword must not touch.
func isWord(c byte) bool { return isAlnum(c) || c == '_' || c == '$' }

// isFieldByte tells what may follow the first letter of a field.
func isFieldByte(c byte) bool { return isAlnum(c) || c == '_' || c == '/' || c == '.' }
