package machine

import (
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
)

// Jobs are taken as long as there is memory for those that have not ended, and
// again when some have; how many there are makes no difference.
func TestTheQueueIsBounded(t *testing.T) {
	d := newDesk(t, 0, Loaded{})
	op := *dummyOp
	large := strings.Repeat("x", job.MaxInput)
	op.Comment = &large // one text for all of them: they count as if each had its own
	s := Submission{Ops: []*opcode.Opcode{&op}}
	var taken []job.ID
	for {
		out := d.submitOps(s)[0]
		if out.Err != nil {
			if !fault.Is(out.Err, fault.Full) {
				t.Fatal(out.Err)
			}
			break
		}
		if taken = append(taken, out.ID); len(taken)*job.MaxInput > MaxUnfinished {
			t.Fatalf("%d jobs of %d bytes were taken; the limit is %d in all", len(taken), job.MaxInput, MaxUnfinished)
		}
	}
	if (len(taken)+2)*job.MaxInput < MaxUnfinished {
		t.Errorf("no more than %d jobs were taken", len(taken))
	}
	small := Submission{Ops: []*opcode.Opcode{dummyOp}}
	if out := d.submitOps(small, s, small); out[0].Err != nil || !fault.Is(out[1].Err, fault.Full) || out[2].Err != nil {
		t.Errorf("beside small jobs, for which there is room: %+v", out)
	}
	d.do(Cancel{Job: taken[0]})
	if out := d.submitOps(s, s); out[0].Err != nil || !fault.Is(out[1].Err, fault.Full) {
		t.Errorf("when one has ended: %+v", out)
	}
	again := newDesk(t, 0, Loaded{Jobs: []*job.Job{d.Job(taken[1])}, LastID: d.LastID()})
	if again.weight < job.MaxInput {
		t.Errorf("after a restart a job counts as %d bytes", again.weight)
	}
}
