package servertag_test

import (
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/servertag"
)

// TestWhatIsMadeOfASetIsNotShared: two sets that follow from one tell each its own, however much room is behind what they had in common.
func TestWhatIsMadeOfASetIsNotShared(t *testing.T) {
	life := append(make([]servertag.Event, 0, 4), servertag.Event{What: servertag.WasWanted})
	before := servertag.Set{Tags: []servertag.Tag{{Name: "a", Raw: "a", Wanted: true, Life: life}},
		Jobs: []servertag.Job{{Serial: 1, Action: servertag.Add, Tags: []servertag.Ref{{Raw: "a"}}}}}
	one, other := before.Submitted(1, 7, 0), before.Submitted(1, 8, 0)
	for want, set := range map[job.ID]servertag.Set{7: one, 8: other} {
		if got := set.Tags[0].Life; len(got) != 2 || got[1].Job != want || set.Jobs[0].ID != want {
			t.Errorf("of job %d it tells %+v", want, got)
		}
	}
	if len(before.Tags[0].Life) != 1 || before.Jobs[0].ID != 0 {
		t.Errorf("the set of before is %+v", before)
	}
}
