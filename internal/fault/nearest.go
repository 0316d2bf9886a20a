package fault

// Nearest returns the candidate that a person most probably meant by word, for
// a did-you-mean hint: the one with the fewest edits, if those are few for the
// word's length (one edit in three letters, at least one). Of equals the first
// wins; without one ok is false.
func Nearest(word string, candidates []string) (best string, ok bool) {
	limit := max(1, len(word)/3)
	for _, c := range candidates {
		if d := edits(word, c, limit); d <= limit {
			best, ok, limit = c, true, d-1
		}
	}
	return best, ok
}

// edits counts the letters to insert, delete or replace to turn a into b; it
// gives up with limit+1 when the lengths alone need more than limit.
func edits(a, b string, limit int) int {
	if diff := len(a) - len(b); diff > limit || -diff > limit {
		return limit + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
