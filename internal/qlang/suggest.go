package qlang

import (
	"iter"
	"strings"
)

// longestName is far longer than any that there is.
const longestName = 200

// Suggest returns the candidate that name was probably meant to be, or "" if
// none is near: the one with the fewest letters to insert, delete, replace or
// swap, at most one third of the name, or one. Case counts less than a letter; of
// equally near ones the first wins. Nobody means anything by a name of more than
// longestName bytes.
func Suggest(name string, candidates iter.Seq[string]) string {
	if len(name) > longestName {
		return ""
	}
	best, bestCost := "", 2*max(1, (1+len([]rune(name)))/3)
	for c := range candidates {
		if cost := distance(name, c, bestCost); cost <= bestCost && (cost < bestCost || best == "") {
			best, bestCost = c, cost
		}
	}
	return best
}

// distance counts two per edited letter and one more if only the case of
// something differs; it may stop early with any number above limit.
func distance(a, b string, limit int) int {
	x, y := []rune(strings.ToLower(a)), []rune(strings.ToLower(b))
	if gap := 2 * (len(x) - len(y)); gap > limit || -gap > limit {
		return limit + 1
	}
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = 2 * j
	}
	for i := range x {
		row[0] = 2 * (i + 1)
		for j := range y {
			edit := 2
			if x[i] == y[j] {
				edit = 0
			}
			row[j+1] = min(last[j]+edit, last[j+1]+2, row[j]+2)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+2)
			}
		}
		before, last, row = last, row, before
	}
	cost := last[len(y)]
	if cost == 0 && a != b {
		return 1
	}
	return cost
}
