package course

import (
	"slices"
	"testing"
)

// Who asked for a stop finds the deployment stopped, to be resumed, also when something failed or was cancelled meanwhile; one that came to its
// end all the same is done, and one that too many failures stopped has failed.
func TestWhatAStopComesTo(t *testing.T) {
	c := &Course{Steps: []Step{{Task: "a", Node: "1", Run: true}, {Task: "b", Node: "2", Run: true}, {Task: "c", Node: "3", Run: true}},
		After: [][]int32{nil, nil, {0, 1}}, Groups: []Group{{Name: "g", Nodes: []string{"1", "2"}, Tolerance: 0}}}
	for name, test := range map[string]struct {
		asked bool
		late  bool // asked when the first has ended
		ends  [3]State
		want  Status
		why   string
	}{
		"a stop, one fails and one is cancelled": {true, false, [3]State{Failed, Stopped, Stopped}, Halted, "stopped by alice"},
		"a stop, all are cancelled":              {true, false, [3]State{Stopped, Stopped, Stopped}, Halted, "stopped by alice"},
		"a stop that comes too late":             {true, false, [3]State{Ready, Ready, Ready}, Done, ""},
		"too many failures, the rest is stopped": {false, false, [3]State{Failed, Stopped, Stopped}, Broken, "1 of 2 nodes of the group g failed, of which 0 may"},
		"too many failures, and then a stop":     {false, true, [3]State{Failed, Stopped, Stopped}, Halted, "1 of 2 nodes of the group g failed, of which 0 may"},
	} {
		m := NewMachine(c, nil)
		if d := m.Begin(); len(d.Start) != 3 {
			t.Fatalf("%d begin", len(d.Start))
		}
		if test.asked {
			if d := m.Stop("stopped by alice"); d.Over || !slices.Equal(d.Cancel, []int32{0, 1, 2}) {
				t.Errorf("%s: asked to stop it cancels %v, over %v", name, d.Cancel, d.Over)
			}
		}
		var last Decision
		for i, s := range test.ends {
			last = m.Ended(int32(i), s)
			if i == 0 && test.late {
				m.Stop("stopped by alice")
			}
		}
		if !last.Over || last.Status != test.want || last.Why != test.why {
			t.Errorf("%s: it comes to %v, %s (%s)", name, last.Over, last.Status, last.Why)
		}
	}
}
