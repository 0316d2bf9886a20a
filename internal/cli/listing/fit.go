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
