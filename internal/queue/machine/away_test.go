package machine

import (
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/schedule"
)

// away is the desk's world in which opcodes work with the node that their comments name, and some nodes are waited for.
func (d *desk) away(slots int, nodes ...string) World {
	w := d.world(slots)
	w.Nodes = func(op *opcode.Opcode) []string {
		if op.Comment == nil {
			return nil
		}
		return []string{*op.Comment}
	}
	w.Away = map[string]*schedule.Absence{}
	for _, n := range nodes {
		w.Away[n] = &schedule.Absence{UUID: n, Node: n + ".example.com", Since: job.At(d.now), Lost: true}
	}
	return w
}

// TestOthersDoNotWaitForANode fills the line with jobs on a node that is away: those on others go on, also behind them in the line, and the first ones
// when the node has come, by priority.
func TestOthersDoNotWaitForANode(t *testing.T) {
	d := newDesk(t, 1, Loaded{})
	d.do(d.away(1, "n1"))
	first, second, other := d.submit("n1"), d.submit("n1"), d.submit("n2")
	if c := d.Census(); c.Node.Jobs != 2 || c.Node.Oldest != first || c.Running.Jobs != 1 || d.Job(other).Status() != job.Waiting && d.Job(other).Status() != job.Running {
		t.Fatalf("%+v", c)
	}
	x, _ := d.Explain(first)
	if x.Step != schedule.WaitNode || x.Why != "waits for node n1.example.com, which is away" || x.Away == nil || x.Held != nil || x.Change[0].On != "n1.example.com" {
		t.Errorf("%+v", x)
	}
	if e := d.Expect(first, Durations{"OP_TEST_DELAY": {1}}, d.now); e == nil || !strings.Contains(e.Text, "when node n1.example.com comes") {
		t.Errorf("%+v", e)
	}
	d.do(ChangePriority{Job: second, Priority: -10})
	d.do(Done{Log: Log{Job: other}, Result: []byte("null")})
	if got := starts(d.do(d.away(1))); !slices.Equal(got, []job.ID{second}) {
		t.Errorf("when the node has come %v begin", got)
	}
	if spans := d.Job(second).Timeline(); !slices.ContainsFunc(spans, func(s job.Span) bool {
		return s.Kind == job.WaitForNode && s.On == "n1.example.com" && s.To > s.From
	}) {
		t.Errorf("the timeline is %+v", spans)
	}
}

// TestWhatRunsOnANodeThatIsAwaySaysSo.
func TestWhatRunsOnANodeThatIsAwaySaysSo(t *testing.T) {
	d := newDesk(t, 1, Loaded{})
	d.do(d.away(1))
	id := d.submit("n1")
	d.do(Log{Job: id, Steps: []job.Step{{Text: "make the disks", Node: "n1.example.com", State: job.StepRunning}, {Text: "start it", Node: "n2.example.com", State: job.StepPlanned}}})
	d.do(d.away(1, "n1"))
	x, _ := d.Explain(id)
	if x.Step != schedule.InFlight || !strings.HasSuffix(x.Why, "at step 1 of 2: make the disks on n1.example.com; it waits for node n1.example.com, which is away") || x.Away == nil {
		t.Errorf("%+v", x)
	}
}
