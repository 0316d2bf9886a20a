package rollout

import (
	"testing"

	"github.com/drover-project/drover/internal/deploy/course"
)

// TestWhichPlansStayInMemory: those that were asked for last, as far as there is room, and always the newest.
func TestWhichPlansStayInMemory(t *testing.T) {
	p := NewPlans(nil)
	keep := func(id int64, size int) { p.keep(kept{id, &course.Course{}, size}) }
	stay := func(when string, ids ...int64) {
		t.Helper()
		there, size := map[int64]bool{}, 0
		for _, k := range p.kept {
			there[k.deployment] = true
			size += k.size
		}
		for _, id := range ids {
			if !there[id] {
				t.Errorf("%s: plan %d is not in memory", when, id)
			}
		}
		if len(there) != len(ids) || size != p.size {
			t.Errorf("%s: in memory are %v, %d bytes, and %d are counted", when, there, size, p.size)
		}
	}
	keep(1, mostKept/2)
	keep(2, mostKept/4)
	keep(2, mostKept/4) // read twice at a time
	if p.find(1) == nil || p.find(9) != nil {
		t.Error("it is not the plan that is found")
	}
	keep(3, mostKept/2)
	stay("the second was asked for longest ago", 1, 3)
	keep(4, 2*mostKept)
	stay("one that is larger than the room", 4)
	keep(5, 1)
	stay("a small one behind it", 5)
}
