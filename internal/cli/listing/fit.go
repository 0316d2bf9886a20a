package listing

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// narrowest is the width below which a column is not made smaller.
const narrowest = 10

// fit makes columns smaller until they fit the width of a terminal, with a blank
// between: the last one alone if it is to be wrapped, else always the widest of
// those that need not stay entire. A width of 0 fits everything.
func fit(widths []int, entire []bool, width int, last bool) {
	if width <= 0 {
		return
	}
	total := len(widths) - 1
	for _, w := range widths {
		total += w
	}
	for total > width {
		widest := len(widths) - 1
		if !last {
			widest = widestOf(widths, entire)
		}
		if widest < 0 || widths[widest] <= narrowest {
			return
		}
		widths[widest]--
		total--
	}
}

// widestOf is the widest column that may be cut, -1 if there is none.
func widestOf(widths []int, entire []bool) int {
	widest := -1
	for i, w := range widths {
		if !entire[i] && (widest < 0 || w > widths[widest]) {
			widest = i
		}
	}
	return widest
}

// lines are the lines of a row: one, in which what is too wide ends with a mark,
// or several, in which the last column is wrapped.
func (t *table) lines(row []entry, widths []int) [][]entry {
	if t.width <= 0 || t.separator != "" {
		return [][]entry{row}
	}
	first := slices.Clone(row)
	last := len(row) - 1
	out := [][]entry{first}
	for i := range first {
		if t.wraps && i == last {
			parts := Wrap(first[i].text, widths[i])
			first[i].text = parts[0]
			for _, part := range parts[1:] {
				line := make([]entry, len(row))
				line[last] = entry{text: part, color: first[i].color}
				out = append(out, line)
			}
			continue
		}
		first[i].text = Cut(first[i].text, widths[i])
	}
	return out
}

// Cut shortens a text to a width; what was cut is marked at its end.
func Cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(width-1, 0)]) + "…"
}

// Wrap breaks a text at blanks into lines of a width; words that are longer have
// lines of their own. There is one line at least.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.SplitSeq(text, " ") {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

// Fold breaks lines that do not fit a width at blanks. What goes on stands two
// columns behind where its line begins; words that are longer than the width stay
// whole. Colours take no room. A width of 0 leaves everything as it is.
func Fold(text string, width int) string {
	if width <= 0 {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		indent := strings.Repeat(" ", len(line)-len(strings.TrimLeft(line, " "))+2)
		for at := breakAt(line, width); at < len(line); at = breakAt(line, width) {
			b.WriteString(line[:at] + "\n")
			line = indent + strings.TrimLeft(line[at:], " ")
		}
		b.WriteString(line)
	}
	return b.String()
}

// breakAt returns where a line is to be broken: at the last blank behind a word up to which it fits, or at the
// first one if none does; its length if it need not or cannot be.
func breakAt(line string, width int) int {
	last, column, begun, colour := len(line), 0, false, false
	for i, r := range line {
		switch {
		case r == '\x1b' || colour:
			colour = r != 'm'
			continue
		case r == '\n':
			return len(line)
		case r == ' ' && begun && (column <= width || last == len(line)):
			last = i
		case r != ' ':
			begun = true
			if column >= width && last < len(line) {
				return last
			}
		}
		column++
	}
	return len(line)
}
