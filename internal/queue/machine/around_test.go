package machine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
)

// told writes what is around a job as lines: of each link who, what, whom.
func (a *Around) told() []string {
	name := func(i int) string {
		p := &a.Points[i]
		if p.Lock != "" {
			return p.Lock
		}
		text := fmt.Sprintf("%d %s", p.Job, p.Status)
		if p.Why != "" {
			text += " (" + p.Why + ")"
		}
		return text
	}
	var out []string
	for _, l := range a.Links {
		out = append(out, strings.Join([]string{name(l.From), strings.TrimSpace(string(l.Kind) + " " + l.Mode), name(l.To)}, ", "))
	}
	slices.Sort(out)
	return out
}

// TestAround: whom a job waits for to the end of the line, through locks and dependencies, and who waits for it.
func TestAround(t *testing.T) {
	h := newHistory(1, t.Logf)
	h.max = 10
	h.apply(h.world())
	submit := func(name string, on ...int64) {
		t.Helper()
		op := parseOp(fmt.Sprintf(`{"OP_ID":"OP_INSTANCE_SHUTDOWN","instance_name":%q}`, name))
		for _, id := range on {
			op.Depends = append(op.Depends, opcode.Dependency{Job: id, Statuses: []string{"success"}})
		}
		prepared, _ := h.m.Prepare(Submit{Jobs: []Submission{{Ops: []*opcode.Opcode{op}}}})
		h.apply(prepared)
	}
	submit("a")                                // 1 runs
	submit("a")                                // 2 waits for its lock
	submit("a")                                // 3, behind it
	submit("b", 2)                             // 4 depends on 2
	submit("c", 4)                             // 5 on that
	submit("b", 3, 4)                          // 6 on both
	submit("b")                                // 7 runs, with the lock that 4 and 6 will want
	behind := map[job.ID]int{2: 1, 4: 1, 5: 1} // who wants the same lock later
	lined := []string{"2 waiting, waits exclusive, the lock instance/a", "the lock instance/a, held, 1 running"}
	for id, want := range map[job.ID][]string{
		1: {"2 waiting, waits exclusive, the lock instance/a", "3 waiting, waits exclusive, the lock instance/a", "the lock instance/a, held exclusive, 1 running"},
		2: append(lined, "4 queued, depends, 2 waiting"),
		3: append(lined, "3 waiting, behind, 2 waiting", "3 waiting, waits exclusive, the lock instance/a", "6 queued, depends, 3 waiting"),
		4: append(lined, "4 queued, depends, 2 waiting", "5 queued, depends, 4 queued", "6 queued, depends, 4 queued", "4 queued, needs exclusive, the lock instance/b", "the lock instance/b, held, 7 running"),
		5: append(lined, "4 queued, depends, 2 waiting", "5 queued, depends, 4 queued"),
	} {
		a, ok := h.m.Around(id)
		slices.Sort(want)
		if got := a.told(); !ok || !slices.Equal(got, want) || a.Points[0].Job != id || a.LeftOut != behind[id] {
			t.Errorf("around job %d, and %d more:\n%s\nnot\n%s", id, a.LeftOut, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	for range 40 {
		submit("a")
	}
	if a, _ := h.m.Around(1); len(a.Links) != mostBeside+1 || a.LeftOut != 42-mostBeside {
		t.Errorf("of 42 jobs that wait it tells %d, and leaves out %d: %s", len(a.Links)-1, a.LeftOut, a.told())
	}
	if a, _ := h.m.Around(47); a.LeftOut != 41-mostBeside {
		t.Errorf("of 41 jobs before it leaves out %d: %s", a.LeftOut, a.told())
	}
	var all []int64
	for id := range int64(45) {
		all = append(all, id+1)
	}
	submit("z", all...)
	if a, _ := h.m.Around(48); len(a.Points) != mostAround || a.LeftOut == 0 || a.Points[0].Job != 48 {
		t.Errorf("of 45 jobs that it depends on there are %d points, %d left out", len(a.Points), a.LeftOut)
	}
	if _, ok := h.m.Around(99); ok {
		t.Error("there is something around a job that is none")
	}
}
