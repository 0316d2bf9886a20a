package listing

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Printable is a text on one line that changes nothing but what is seen: line
// breaks, control characters, and marks that turn the direction of writing are
// escaped, as are bytes that are no UTF-8. Whoever wrote the text may have meant
// harm: it may be the reason of a job.
func Printable(text string) string { return escaped(text, "") }

// escaped escapes what must not reach a terminal, except the characters in keep.
func escaped(text, keep string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return harmful(r) || r == utf8.RuneError }) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case !harmful(r) || strings.ContainsRune(keep, r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += size
	}
	return b.String()
}

// harmful reports whether a character does something to a terminal: controls of
// both sets, line and paragraph separators, overrides of the direction.
func harmful(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// Terminal is a writer to a terminal. What passes through it is text with line
// breaks, tabs and colours; everything else that a terminal would obey is
// escaped.
type Terminal struct{ To io.Writer }

// colour is the one kind of control sequence that output may have.
var colour = regexp.MustCompile("\x1b\\[[0-9;]{0,5}m")

// Write writes whole characters.
func (t Terminal) Write(data []byte) (int, error) {
	var b strings.Builder
	text, done := string(data), 0
	for _, at := range colour.FindAllStringIndex(text, -1) {
		b.WriteString(escaped(text[done:at[0]], "\n\t"))
		b.WriteString(text[at[0]:at[1]])
		done = at[1]
	}
	b.WriteString(escaped(text[done:], "\n\t"))
	if _, err := io.WriteString(t.To, b.String()); err != nil {
		return 0, err
	}
	return len(data), nil
}
