package queue

import (
	"testing"
	"time"
)

// TestPortionsGoByWhoWaits: few jobs go at a time while others write, with long rests, and more where nobody does and the store is quick.
func TestPortionsGoByWhoWaits(t *testing.T) {
	const quick, slow = time.Millisecond, longPortion + 1
	for name, c := range map[string]struct {
		size   int
		took   time.Duration
		others bool
		want   pace
	}{
		"nobody writes":                    {leastPortion, quick, false, pace{2 * leastPortion, quick}},
		"nobody writes for long":           {mostPortion, quick, false, pace{mostPortion, quick}},
		"nobody writes, and it takes long": {mostPortion, slow, false, pace{mostPortion / 2, slow}},
		"it takes long at any size":        {leastPortion, slow, false, pace{leastPortion, slow}},
		"somebody writes":                  {mostPortion, quick, true, pace{leastPortion, restForOthers * quick}},
		"somebody writes to a slow store":  {mostPortion, slow, true, pace{leastPortion, restForOthers * slow}},
		"a store that hardly answers":      {mostPortion, 2 * longestRest, true, pace{leastPortion, longestRest}},
	} {
		if got := (pace{size: c.size}).next(c.took, c.others); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
