package pyre

import (
	"fmt"
	"strings"
)

// writer builds the text of a pattern for one of the two engines. The parts are written so that they
// mean the same without any option of the engine.
type writer struct {
	strings.Builder

	linear      bool // for the standard library, else for regexp2
	unsupported bool // the standard library cannot express a part
	asciiText   bool // the result is right for ASCII text only
	noFinalLine bool // the result is right only for text that does not end with a newline
	size        int  // about how many instructions the program has
}

func (w *writer) printf(format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

// What Python counts as \w, \d and \s, as the inside of a class.
var categoryText = map[byte]string{'w': `\p{L}\p{N}_`, 'd': `\p{Nd}`, 's': "\t-\r\x1c- \u0085\\p{Z}"}

func (n literal) write(w *writer) {
	if n.flags&IgnoreCase == 0 {
		w.WriteString(quote(n.char))
		return
	}
	set{ranges: []rune{n.char, n.char}, flags: n.flags}.write(w)
}

func quote(c rune) string {
	if strings.ContainsRune(`\.+*?()|[]{}^$-#&~ /`, c) {
		return `\` + string(c)
	}
	return string(c)
}

func (n anyChar) write(w *writer) {
	if n.all {
		w.WriteString(anyClass(w))
		return
	}
	w.WriteString(`[^` + "\n" + `]`)
}

// anyClass matches every character including the newline.
func anyClass(w *writer) string {
	if w.linear {
		return `(?s:.)`
	}
	return `[\s\S]`
}

func (n position) write(w *writer) {
	multi := n.flags&MultiLine != 0
	switch n.kind {
	case '^':
		if multi {
			w.WriteString(`(?m:^)`)
			return
		}
		w.WriteString(`\A`)
	case 'A':
		w.WriteString(`\A`)
	case 'Z':
		w.WriteString(`\z`)
	case '$':
		n.writeEnd(w, multi)
	default:
		n.writeBoundary(w)
	}
}

func (n position) writeEnd(w *writer, multi bool) {
	switch {
	case multi:
		w.WriteString(`(?m:$)`)
	case w.linear:
		w.noFinalLine = true
		w.WriteString(`\z`)
	default:
		w.WriteString(`(?=\n?\z)`)
	}
}

// writeBoundary writes \b or \B; the latter does not match in an empty text.
func (n position) writeBoundary(w *writer) {
	if w.linear && n.kind == 'b' {
		w.asciiText = true
		w.WriteString(`\b`)
		return
	}
	w.unsupported = true
	word := "[" + categoryText['w'] + "]"
	if n.flags&ASCII != 0 {
		word = "[a-zA-Z0-9_]"
	}
	if n.kind == 'b' {
		w.printf("(?:(?<=%[1]s)(?!%[1]s)|(?<!%[1]s)(?=%[1]s))", word)
		return
	}
	w.printf(`(?:(?<=%[1]s)(?=%[1]s)|(?<!%[1]s)(?!%[1]s)(?!\A\z))`, word)
}

func (n sequence) write(w *writer) {
	for _, part := range n {
		w.size++
		part.write(w)
	}
}

func (n alternation) write(w *writer) {
	for i, part := range n {
		if i > 0 {
			w.WriteByte('|')
			w.size++
		}
		part.write(w)
	}
}

func (n repeat) write(w *writer) {
	if n.mode == '+' {
		w.unsupported = true
		w.WriteString("(?>")
		defer w.WriteByte(')')
	}
	w.WriteString("(?:")
	outside := w.size
	n.part.write(w)
	w.size = capped(outside + product(w.size-outside+1, n.written()))
	w.WriteByte(')')
	switch {
	case n.min == 0 && n.max == unlimited:
		w.WriteByte('*')
	case n.min == 1 && n.max == unlimited:
		w.WriteByte('+')
	case n.max == unlimited:
		w.printf("{%d,}", n.min)
	default:
		w.printf("{%d,%d}", n.min, n.max)
	}
	if n.mode == '?' {
		w.WriteByte('?')
	}
	if low, _ := n.part.width(); low == 0 && n.max > 1 {
		w.unsupported = true // engines differ in what an empty repetition captures
	}
}

// written is how often a program holds the part.
func (n repeat) written() int {
	if n.max == unlimited {
		return n.min + 1
	}
	return n.max
}

func (n *group) write(w *writer) {
	switch {
	case n.atomic:
		w.unsupported = true
		w.WriteString("(?>")
	case n.number > 0:
		w.WriteByte('(')
	default:
		w.WriteString("(?:")
	}
	n.part.write(w)
	w.WriteByte(')')
}

func (n look) write(w *writer) {
	w.unsupported = true
	w.WriteString("(?")
	if n.behind {
		w.WriteByte('<')
	}
	if n.negate {
		w.WriteByte('!')
	} else {
		w.WriteByte('=')
	}
	n.part.write(w)
	w.WriteByte(')')
}

func (n reference) write(w *writer) {
	w.unsupported = true
	if n.flags&IgnoreCase != 0 {
		w.printf(`(?i:\%d)`, n.number)
		return
	}
	w.printf(`(?:\%d)`, n.number)
}

func (n conditional) write(w *writer) {
	w.unsupported = true
	w.printf("(?(%d)(?:", n.number)
	n.yes.write(w)
	w.WriteString(")|(?:")
	if n.no != nil {
		n.no.write(w)
	}
	w.WriteString("))")
}
