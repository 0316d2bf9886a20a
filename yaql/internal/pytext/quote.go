package pytext

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quote returns the text of a string inside a container, as Python's repr writes it: single quotes
// unless the string holds one and no double quote, escapes for everything that is not printable.
func Quote(text string) string {
	quote := '\''
	if strings.Contains(text, "'") && !strings.Contains(text, `"`) {
		quote = '"'
	}
	var out strings.Builder
	out.Grow(len(text) + 2)
	out.WriteRune(quote)
	for _, r := range text {
		writeQuoted(&out, r, quote)
	}
	out.WriteRune(quote)
	return out.String()
}

func writeQuoted(out *strings.Builder, r, quote rune) {
	switch {
	case r == quote || r == '\\':
		out.WriteByte('\\')
		out.WriteRune(r)
	case r == '\n':
		out.WriteString(`\n`)
	case r == '\r':
		out.WriteString(`\r`)
	case r == '\t':
		out.WriteString(`\t`)
	case IsPrintable(r):
		out.WriteRune(r)
	case r < 0x100:
		fmt.Fprintf(out, `\x%02x`, r)
	case r < 0x10000:
		fmt.Fprintf(out, `\u%04x`, r)
	default:
		fmt.Fprintf(out, `\U%08x`, r)
	}
}

// IsPrintable reports whether Python prints the character as itself: letters, marks, numbers,
// punctuation, symbols and the ASCII space.
func IsPrintable(r rune) bool { return unicode.IsPrint(r) }

// Len returns the length of text in code points.
func Len(text string) int { return utf8.RuneCountInString(text) }
