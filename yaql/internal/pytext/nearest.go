package pytext

import "strings"

// Nearest returns the candidate whose spelling is closest to name, for "did you mean" hints. Case
// counts little, and a candidate that differs in more than a third of the letters is no suggestion.
// Among equally close candidates the first in alphabetical order wins. Nothing is near a name that nobody typed: a long one.
func Nearest(name string, candidates []string) (string, bool) {
	if len(name) > longestName {
		return "", false
	}
	folded := []rune(strings.ToLower(name))
	limit := max(1, len(folded)/3)
	best, bestDistance := "", limit+1
	for _, candidate := range candidates {
		if candidate == name || len(candidate) > 2*longestName {
			continue
		}
		distance := editDistance(folded, []rune(strings.ToLower(candidate)))
		if distance < bestDistance || distance == bestDistance && distance <= limit && candidate < best {
			best, bestDistance = candidate, distance
		}
	}
	return best, bestDistance <= limit
}

// longestName is the length in bytes up to which names are compared: that takes the square of it.
const longestName = 200

// editDistance counts the insertions, deletions, replacements and swaps of neighbours that turn a
// into b.
func editDistance(a, b []rune) int {
	before, previous := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(previous[j]+1, row[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, previous = previous, row
	}
	return previous[len(b)]
}
