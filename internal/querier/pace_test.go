package querier

import (
	"slices"
	"testing"
)

func TestLongAnswersLetJobsGoFirst(t *testing.T) {
	pieces := [][]byte{[]byte("a"), []byte("b"), []byte("c")}
	for _, c := range []struct {
		name   string
		pieces int
		writes int // how many there still are; one is seen whenever there is a look
		pauses int
	}{
		{"nothing is written", 3, 0, 0},
		{"something was written", 3, 1, 1},
		{"busy for a moment", 3, 4, 4},
		{"busy all the time", 3, 1000, 2 * maxRests},
		{"an answer of one piece", 1, 1000, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			pauses, written := 0, uint64(7)
			left := c.writes + 1 // the first look is for comparison
			writes := func() uint64 {
				if left > 0 {
					left--
					written++
				}
				return written
			}
			var got []string
			for piece := range paced(slices.Values(pieces[:c.pieces]), writes, func() { pauses++ }) {
				got = append(got, string(piece))
			}
			if want := []string{"a", "b", "c"}[:c.pieces]; !slices.Equal(got, want) || pauses != c.pauses {
				t.Errorf("%v with %d pauses, want %v with %d", got, pauses, want, c.pauses)
			}
		})
	}
}

func TestAnswersEndWhenTheReaderLeaves(t *testing.T) {
	computed := 0
	pieces := func(yield func([]byte) bool) {
		for range 3 {
			computed++
			if !yield(nil) {
				return
			}
		}
	}
	for range paced(pieces, func() uint64 { return 0 }, func() {}) {
		break
	}
	if computed != 1 {
		t.Errorf("%d pieces were computed", computed)
	}
}
