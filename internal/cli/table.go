package cli

import (
	"strings"
	"unicode/utf8"
)

// table aligns texts in columns, one blank between them. The last column is
// not padded.
type table struct {
	rows  [][]string
	right []bool // columns that are aligned to the right
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// String returns the lines of the table.
func (t *table) String() string {
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
		for i, cell := range row {
			if i > 0 {
				b.WriteByte(' ')
			}
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			switch {
			case i < len(t.right) && t.right[i]:
				b.WriteString(pad + cell)
			case i == len(row)-1:
				b.WriteString(cell)
			default:
				b.WriteString(cell + pad)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
