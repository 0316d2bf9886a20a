package top

import (
	"strings"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/cli/listing"
)

// column is a column of a sheet: so wide, or with a share of what the others leave.
type column struct {
	title string
	width int
	share bool // width is the least that it is worth having
	right bool
}

// sheet is a table whose columns depend on the width alone, so that they stay where
// they are when rows come and go.
type sheet struct {
	columns []column
	rows    [][]string
	colours []string
}

func (t *sheet) add(colour string, cells ...string) {
	t.rows = append(t.rows, cells)
	t.colours = append(t.colours, colour)
}

// widths are those of the columns on a screen; 0 for those that are left out, the last
// ones first.
func (t *sheet) widths(width int) []int {
	for shown := len(t.columns); ; shown-- {
		rest, shares := width-(shown-1), 0
		for _, c := range t.columns[:shown] {
			rest -= c.width
			if c.share {
				shares++
			}
		}
		if shown > 1 && rest < 0 {
			continue
		}
		out := make([]int, len(t.columns))
		for i, c := range t.columns[:shown] {
			if out[i] = c.width; c.share && rest > 0 {
				more := rest / shares
				out[i] += more
				rest -= more
				shares--
			}
		}
		return out
	}
}

// lines are the heading and the rows on a screen.
func (t *sheet) lines(width int) (string, []line) {
	widths := t.widths(width)
	titles := make([]string, len(t.columns))
	for i, c := range t.columns {
		titles[i] = c.title
	}
	rows := make([]line, len(t.rows))
	for i, cells := range t.rows {
		rows[i] = line{t.row(cells, widths), t.colours[i]}
	}
	return t.row(titles, widths), rows
}

// row is one row, without blanks at its end.
func (t *sheet) row(cells []string, widths []int) string {
	var parts []string
	for i, cell := range cells {
		if widths[i] == 0 {
			continue
		}
		text := listing.Cut(listing.Printable(cell), widths[i])
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text))
		if t.columns[i].right {
			text = pad + text
		} else {
			text += pad
		}
		parts = append(parts, text)
	}
	return strings.TrimRight(strings.Join(parts, " "), " ")
}
