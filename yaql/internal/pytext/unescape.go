package pytext

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// simpleEscapes are the escapes of one letter.
var simpleEscapes = map[byte]byte{
	'\\': '\\', '\'': '\'', '"': '"', 'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v',
}

// hexWidths are the escapes that take a fixed number of hexadecimal digits.
var hexWidths = map[byte]int{'x': 2, 'u': 4, 'U': 8}

// An EscapeError reports an escape that has the right shape and no meaning: digits that are not
// hexadecimal, a code point beyond Unicode, a name that no character has.
type EscapeError struct {
	Escape string // as written, with its backslash
	Offset int    // of the backslash in code points, counted within the text given to Unescape
	Reason string
}

// Error says which escape is at fault, and why.
func (e *EscapeError) Error() string {
	return fmt.Sprintf("cannot decode escape %s at position %d: %s", e.Escape, e.Offset, e.Reason)
}

// Unescape decodes the escapes of a quoted YAQL string, given without its quotes. A backslash that
// begins no escape stays as written. The error is an *EscapeError.
func Unescape(body string) (string, error) {
	if !strings.Contains(body, `\`) {
		return body, nil
	}
	var out strings.Builder
	for at := 0; at < len(body); {
		if body[at] != '\\' || at+1 == len(body) {
			out.WriteByte(body[at])
			at++
			continue
		}
		decoded, width, reason := escape(body[at:])
		if reason != "" {
			return "", &EscapeError{Escape: body[at : at+width], Offset: Len(body[:at]), Reason: reason}
		}
		out.WriteString(decoded)
		at += width
	}
	return out.String(), nil
}

// escape decodes what the backslash at the start of text begins. It returns the decoded text, the
// bytes consumed, and for a faulty escape the reason.
func escape(text string) (decoded string, width int, reason string) {
	letter := text[1]
	if plain, ok := simpleEscapes[letter]; ok {
		return string(plain), 2, ""
	}
	if letter >= '0' && letter <= '7' {
		return octalEscape(text)
	}
	if letter == 'N' {
		return namedEscape(text)
	}
	if digits, ok := hexWidths[letter]; ok {
		return hexEscape(text, digits)
	}
	return `\`, 1, ""
}

func octalEscape(text string) (string, int, string) {
	end := 1
	value := rune(0)
	for end < len(text) && end < 4 && text[end] >= '0' && text[end] <= '7' {
		value = value*8 + rune(text[end]-'0')
		end++
	}
	return string(value), end, ""
}

// hexEscape takes any characters but a newline for digits, as the reference does: whether they are
// hexadecimal is decided afterwards. Too short an escape is none.
func hexEscape(text string, digits int) (string, int, string) {
	width := 2
	for range digits {
		r, size := utf8.DecodeRuneInString(text[width:])
		if size == 0 || r == '\n' {
			return `\`, 1, ""
		}
		width += size
	}
	value, err := strconv.ParseUint(text[2:width], 16, 32)
	if err != nil {
		return "", width, "not hexadecimal digits"
	}
	if value > utf8.MaxRune {
		return "", width, "beyond the last Unicode character"
	}
	return string(rune(value)), width, ""
}

func namedEscape(text string) (string, int, string) {
	end := strings.IndexByte(text, '}')
	if !strings.HasPrefix(text, `\N{`) || end <= 3 {
		return `\`, 1, ""
	}
	r, ok := RuneByName(text[3:end])
	if !ok {
		return "", end + 1, "unknown Unicode character name"
	}
	return string(r), end + 1, ""
}
