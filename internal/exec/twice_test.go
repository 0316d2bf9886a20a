package exec

import (
	"maps"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/work"
)

// Each step that may be repeated, run twice in a row, leaves what once leaves; so does what takes one back. It is said of every verb that
// is an order, but for an installation, which begins anew. A change of the inventory is noted with what it changes, so it is repeated
// only where whoever takes over makes the steps anew: then it leaves what once leaves, too.
func TestStepsRunTwiceLeaveWhatOnceLeaves(t *testing.T) {
	seen := map[string]bool{}
	requests := map[string][]params{}
	for id, p := range several {
		requests[id] = []params{p, samples[id]}
	}
	requests["OP_INSTANCE_REBOOT"] = append(requests["OP_INSTANCE_REBOOT"], params{"instance_name": "up", "reboot_type": "soft"})
	requests["OP_INSTANCE_SET_PARAMS"] = append(requests["OP_INSTANCE_SET_PARAMS"],
		params{"instance_name": "up", "hotplug": true, "disks": []any{[]any{"add", 1, params{"size": 4}}, []any{"remove", 0, params{}}}})
	requests["OP_INSTANCE_SET_PARAMS"] = append(requests["OP_INSTANCE_SET_PARAMS"], params{"instance_name": "up", "runtime_mem": 64, "force": true})
	requests["OP_INSTANCE_CREATE"] = append(requests["OP_INSTANCE_CREATE"], creating(params{"disk_template": "drbd", "instance_name": "new", "pnode": "node1", "snode": "node2"}))
	for id, list := range requests {
		for _, p := range list {
			once, twice := killable(t), killable(t)
			plans := map[*rig]*walk{once: once.plan(id, p), twice: twice.plan(id, p)}
			steps := plans[once].work.Steps
			for i := range steps {
				plans[once].step(i, false)
				plans[twice].step(i, false)
				if s := &steps[i]; !s.Anew && (s.Node != "" || plans[once].work.Replanned) {
					seen[s.Verb] = true
					plans[twice].step(i, false)
				}
				if a, b := once.whole(), twice.whole(); a != b {
					t.Fatalf("%s: step %d, %s, leaves\n%s\nand twice\n%s", id, i, steps[i].Text, a, b)
				}
				if steps[i].Undo == nil || steps[i].Keeps {
					continue
				}
				// It is taken back once and twice, also before it was done, and done again.
				plans[once].step(i, true)
				plans[twice].step(i, true)
				plans[twice].step(i, true)
				seen[steps[i].Undo.Verb] = true
				if a, b := once.whole(), twice.whole(); a != b {
					t.Fatalf("%s: step %d, %s, taken back leaves\n%s\nand twice\n%s", id, i, steps[i].Text, a, b)
				}
				plans[once].step(i, false)
				plans[twice].step(i, false)
			}
		}
	}
	for _, verb := range slices.Sorted(maps.Keys(nodeVerbs)) {
		if !seen[verb] && verb != installSystem {
			t.Errorf("the verb %s was not seen", verb)
		}
	}
	if !seen[markInstance] {
		t.Error("no mark of the inventory was seen")
	}
}

// walk carries out the steps of an opcode one by one.
type walk struct {
	*rig

	id   string
	p    params
	work *work.Work
	// found is what a node found that was ordered to look: it is not kept, for whoever takes over orders it again.
	found *agent.Image
}

// plan makes the steps of an opcode.
func (r *rig) plan(id string, p params) *walk {
	r.Helper()
	plan, err := r.all[id].Prepare(r.Context(), r.env(r.opcode(id, p)))
	if err != nil || plan.Work == nil {
		r.Fatalf("%s%v: %+v, %v", id, p, plan, err)
	}
	return &walk{rig: r, id: id, p: p, work: plan.Work}
}

// step carries one out, or takes it back, as a leader of its own does.
func (w *walk) step(i int, undo bool) {
	w.Helper()
	env := w.env(w.opcode(w.id, w.p))
	env.found = w.found
	defer func() { w.found = env.found }()
	env.Epoch = int64(env.Job) // it is another job under another leader, so nodes answer none of its orders from memory
	g := newEngine(env, w.work, work.Progress{Done: i})
	s := &w.work.Steps[i]
	carry := func() error { return g.do(w.Context(), s) }
	if undo {
		carry = func() error { return g.reverse(w.Context(), s, i) }
	}
	if err := carry(); err != nil {
		w.Fatalf("%s: step %d, %s, undo %v: %v", w.id, i, s.Text, undo, err)
	}
}
