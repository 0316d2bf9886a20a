package machine

import "testing"

// TestDiscardedClones: what a clone shared is changed in place once it is discarded,
// and only if no other clone has it.
func TestDiscardedClones(t *testing.T) {
	for name, c := range map[string]struct {
		clones  int   // made one after the other
		discard []int // of them, in this order
		shared  bool
	}{
		"none":                {0, nil, false},
		"in use":              {1, nil, true},
		"discarded":           {1, []int{0}, false},
		"twice":               {1, []int{0, 0}, false},
		"another came before": {2, []int{1}, true},
		"another came after":  {2, []int{0}, true},
		"the last one first":  {2, []int{1, 0}, false},
		"the first one first": {2, []int{0, 1}, true}, // it costs a copy that nobody needs
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, 0, Loaded{})
			id := d.submit("")
			clones := make([]*Machine, c.clones)
			for i := range clones {
				clones[i] = d.Clone()
			}
			for _, i := range c.discard {
				d.Discard(clones[i])
				clones[i] = &Machine{}
			}
			before, _ := d.jobs.Get(id)
			d.do(ChangePriority{Job: id, Priority: -5})
			if after, _ := d.jobs.Get(id); (after != before) != c.shared {
				t.Errorf("copied: %v", after != before)
			}
			for i, other := range clones {
				if j := other.Job(id); j != nil && j.Priority() != 0 {
					t.Errorf("clone %d noticed it", i)
				}
			}
		})
	}
}
