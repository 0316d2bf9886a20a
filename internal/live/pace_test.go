package live

import (
	"errors"
	"slices"
	"testing"
)

func newTestPacer(writes func() uint64, pauses *int) *pacer {
	return &pacer{writes: writes, pause: func() { *pauses++ }, seen: writes(), short: func() bool { return false }}
}

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
			for piece := range newTestPacer(writes, &pauses).paced(slices.Values(pieces[:c.pieces])) {
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
	for range newTestPacer(func() uint64 { return 0 }, new(int)).paced(pieces) {
		break
	}
	if computed != 1 {
		t.Errorf("%d pieces were computed", computed)
	}
}

func TestLongScansLetJobsGoFirst(t *testing.T) {
	stop := errors.New("stop")
	for _, busy := range []bool{false, true} {
		pauses, written, looks := 0, uint64(0), 0
		writes := func() uint64 {
			if busy {
				written++
			}
			return written
		}
		look := newTestPacer(writes, &pauses).pacing(func() error {
			if looks++; looks == 3*looksPerRest {
				return stop
			}
			return nil
		})
		for n := 1; n < 3*looksPerRest; n++ {
			if err := look(); err != nil {
				t.Fatalf("look %d: %v", n, err)
			}
		}
		if err := look(); !errors.Is(err, stop) {
			t.Errorf("interrupted: %v", err)
		}
		if want := map[bool]int{true: 3 * maxRests}[busy]; pauses != want {
			t.Errorf("busy %v: %d pauses, want %d", busy, pauses, want)
		}
	}
}

// TestAShortQueryDoesNotRest: rests would take it several times as long as it keeps others from computing.
func TestAShortQueryDoesNotRest(t *testing.T) {
	pauses, n, short := 0, uint64(0), true
	p := newTestPacer(func() uint64 { n++; return n }, &pauses)
	p.short = func() bool { return short }
	p.giveWay()
	if pauses != 0 {
		t.Errorf("a short query rested %d times", pauses)
	}
	short = false
	p.giveWay()
	if pauses == 0 {
		t.Error("a long query did not rest")
	}
}

// TestNoListWaitsForEver: beside a queue that is never still, a list gets a fair part
// of a processor in the end.
func TestNoListWaitsForEver(t *testing.T) {
	pauses, n := 0, uint64(0)
	p := newTestPacer(func() uint64 { n++; return n }, &pauses)
	for pauses < manyRests {
		before := pauses
		if p.giveWay(); pauses != before+maxRests {
			t.Fatalf("%d rests after %d", pauses-before, before)
		}
	}
	for range 10 {
		before := pauses
		if p.giveWay(); pauses != before+1 {
			t.Fatalf("%d rests after %d", pauses-before, before)
		}
	}
}
