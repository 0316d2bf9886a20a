package shell

import (
	"strings"
	"unicode/utf8"
)

// Table aligns texts in columns, one blank between them. No line ends with
// blanks.
type Table struct {
	rows  [][]string
	right []bool // columns that are aligned to the right
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// String returns the lines of the table.
func (t *Table) String() string {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		line := make([]string, len(row))
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i < len(t.right) && t.right[i] {
				line[i] = pad + cell
			} else {
				line[i] = cell + pad
			}
		}
		b.WriteString(strings.TrimRight(strings.Join(line, " "), " ") + "\n")
	}
	return b.String()
}
