package job_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/job"
)

// How the node of a new instance was chosen is kept with the opcode when it is over, however it ends.
func TestPlacementsAreKeptAtTheEnd(t *testing.T) {
	decision := `{"node":"node1"}`
	runs := job.New(3, delays(t, 1), "", submitted).BeginWait(0, 3).BeginSteps(0, 4).WithPlacement(0, []byte(decision))
	if strings.Contains(string(runs.Encode()), "node1") {
		t.Error("it is stored while the opcode runs, and its work has it, too")
	}
	if again := runs.Requeue(0); again.Ops[0].Placement != nil {
		t.Error("what was not begun has a node")
	}
	for name, ended := range map[string]*job.Job{"success": runs.Succeed(0, nil, 7), "error": runs.Fail(0, errors.New("no"), 7)} {
		kept := shelf{}
		kept.write(ended.Parts())
		if got, err := kept.read(); err != nil || string(got.Ops[0].Placement) != decision {
			t.Errorf("%s: %s, %v", name, got.Ops[0].Placement, err)
		}
	}
}

// What an opcode did is kept with it when it is over; while it runs its steps are shown, and stored elsewhere.
func TestStepsAreKeptAtTheEnd(t *testing.T) {
	steps := []job.Step{
		{Verb: "stop", Node: "node1", Of: "u", Text: "stop instance one", State: job.StepDone, From: 5, To: 6},
		{Verb: "mark", Of: "u", Text: "mark it down", State: job.StepPlanned},
	}
	for i := range 2 {
		waits := job.New(3, delays(t, 2), "", submitted).BeginRun(0, 1).Succeed(0, nil, 2).BeginWait(1, 3)
		runs := waits.BeginSteps(1, 4).WithSteps(1, steps)
		if i == 0 {
			waits = job.New(3, delays(t, 2), "", submitted).BeginWait(0, 3)
			runs = waits.BeginSteps(0, 4).WithSteps(0, steps)
		}
		kept := shelf{}
		kept.write(waits.Parts())
		kept.write(runs.Parts(waits))
		got, err := kept.read()
		if err != nil || !got.Ops[i].Stepwise || got.Ops[i].Steps != nil || strings.Contains(string(runs.Encode()), "node1") {
			t.Errorf("opcode %d runs: %+v, %v", i, got.Ops[i], err)
		}
		if again := runs.Requeue(i); again.Ops[i].Stepwise || !runs.Resume(i).BeginRun(i, 9).Ops[i].Stepwise {
			t.Error("what was not begun is marked as begun, or what goes on is not")
		}
		ended := runs.Fail(i, errors.New("no"), 7)
		kept.write(ended.Parts(runs))
		if got, err = kept.read(); err != nil || !reflect.DeepEqual(got.Ops[i].Steps, steps) {
			t.Errorf("opcode %d ended: %+v, %v", i, got.Ops[i].Steps, err)
		}
	}
}
