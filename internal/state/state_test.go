package state_test

import (
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/state"
)

// What holds a job is worked out beside its end: a job that has ended is held by
// nothing, whichever of the two is told last.
func TestWhatHasEndedIsNotHeld(t *testing.T) {
	hold := &job.Hold{Rule: "a", Since: 1}
	queued := &job.Job{ID: 1, Ops: []job.Op{{Input: &opcode.Opcode{}, Status: job.Queued}}}
	s := state.Empty().With(&state.Change{Revision: 1, Jobs: []*job.Job{queued}, Holds: []state.Hold{{Job: 1, By: hold}}})
	if got := s.Jobs.Get(1).Hold; got != hold {
		t.Fatalf("held by %v", got)
	}
	ended := s.Jobs.Get(1).Dequeue(5)
	s = s.With(&state.Change{Revision: 2, Jobs: []*job.Job{ended}, Holds: []state.Hold{{Job: 1, By: hold}}})
	if got := s.Jobs.Get(1); !got.Final() || got.Hold != nil {
		t.Errorf("%s and held by %v", got.Status(), got.Hold)
	}
}
