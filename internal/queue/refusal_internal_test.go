package queue

import (
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
)

// TestJobsThatWereNeverTakenAreForgotten, the oldest of them, so that a store that refuses much fills no memory.
func TestJobsThatWereNeverTakenAreForgotten(t *testing.T) {
	q := &Queue{lost: map[job.ID]error{}}
	last := job.ID(3 * keptLost)
	for id := range last {
		q.lose(id+1, fault.New(fault.TooLarge, "too large"))
	}
	if len(q.lost) > keptLost {
		t.Errorf("%d are remembered, want %d at most", len(q.lost), keptLost)
	}
	for id := last - keptLost/2 + 1; id <= last; id++ {
		if q.lost[id] == nil {
			t.Fatalf("job %d is forgotten, and its submission may not have been answered", id)
		}
	}
}
