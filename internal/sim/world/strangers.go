package world

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/sim/check"
	"github.com/drover-project/drover/internal/sim/plan"
)

// strangers is how many there are on nodes, at the most.
const strangers = 3

// estrange puts strangers on nodes, under names that clients ask for, and among the instances of servers, and
// has an operator list what jobs left, and clear it.
func (w *world) estrange(parts *sync.WaitGroup) {
	draw := w.streams.Of("strangers")
	for range 1 + draw.IntN(strangers) {
		n := w.nodes[draw.IntN(len(w.nodes))]
		i := w.stranger(instanceName(draw.IntN(w.plan.Size.Instances+furtherNames)), kindOfThing(draw.IntN(4)))
		n.mu.Lock()
		n.machines[i.UUID] = i
		n.mu.Unlock()
		if i.LeftBy(lifeOfStore) && !w.plan.Has(plan.Group) {
			w.leftovers[i.UUID] = true
		} else {
			w.strangers = append(w.strangers, lonely{n, i})
		}
		w.tellf(n.name, "has something from the beginning: %+v", i)
	}
	c := w.beside("orphans", 0)
	parts.Go(func() { c.rounds(c.clear) })
}

// lonely is a stranger on its node.
type lonely struct {
	on *node
	is hypervisor.Instance
}

// kindOfThing is what something is that is on a node from the beginning.
type kindOfThing int

// The kinds: nobody's job made it, or one of another store, or nobody knows why it runs. The last is no stranger, but what
// a job left, in a group whose store has the life of its mark.
const (
	nobodys kindOfThing = iota
	anothers
	running
	leftOver
)

// stranger is something that is on a node from the beginning.
func (w *world) stranger(name string, kind kindOfThing) hypervisor.Instance {
	i := hypervisor.Instance{Name: name, UUID: w.newUUID(), State: hypervisor.Stopped, Disks: []hypervisor.Disk{{UUID: w.newUUID(), Size: diskSize}}}
	switch kind {
	case nobodys:
	case anothers:
		i.MadeBy = hypervisor.Mark{Life: "another", Job: 1}
	case leftOver:
		i.MadeBy = hypervisor.Mark{Life: lifeOfStore, Job: 1}
	case running:
		i.MadeBy, i.State, i.Memory, i.VCPUs = hypervisor.Mark{Life: lifeOfStore, Job: 1}, hypervisor.Running, 128, 1
	}
	return i
}

// clear asks what a node has that the inventory does not know, and has cleared what jobs left of that. A group refuses that until
// its store has the format that knows of it.
func (c *client) clear(n int) {
	id := "OP_NODE_ORPHANS"
	if c.draw.IntN(2) == 0 {
		id = "OP_NODE_CLEAR_ORPHANS"
	}
	on := c.w.nodes[c.draw.IntN(len(c.w.nodes))]
	err := c.handIn(fmt.Sprintf("%s-%d", c.name, n), id+" "+on.name, opcodeOf(id, map[string]any{"node_name": on.full()}))
	if err != nil {
		c.w.tellf(c.name, "is refused: %v", fault.CodeOf(err))
	}
}

// strangersAgree holds strangers to being what they were. What else the inventory does not know is gone when somebody asks for that.
func (t *term) strangersAgree() {
	w := t.life.w
	for _, x := range w.strangers {
		there := hypervisor.Instance{}
		for _, m := range x.on.all() {
			if m.UUID == x.is.UUID {
				there = m
			}
		}
		if !reflect.DeepEqual(there, x.is) {
			w.verdict.Breakf(check.LeftAlone, "on %s there was a stranger, %+v, and now it is %+v", x.on.name, x.is, there)
		}
	}
	for _, n := range w.nodes {
		t.clears(n)
	}
}

// isStranger tells whether something on a node was there from the beginning.
func (w *world) isStranger(uuid string) bool {
	return slices.ContainsFunc(w.strangers, func(x lonely) bool { return x.is.UUID == uuid })
}

// clears has cleared what jobs have left on a node.
func (t *term) clears(n *node) {
	w := t.life.w
	c := &client{w: w, name: "clear"}
	c.draw = w.streams.Of(c.name)
	left := t.orphansOn(n)
	err := c.ask(func(ctx context.Context, t *term) error {
		j, err := t.ended(ctx, "clear-"+n.name, opcodeOf("OP_NODE_CLEAR_ORPHANS", map[string]any{"node_name": n.full()}))
		if err == nil && (j.Status() == job.Success) != (len(left) > 0) {
			w.verdict.Breakf(check.Cleared, "what jobs left on %s is %v, and the job that clears it is %s", n.name, left, j.Status())
		}
		return err
	})
	if still := t.orphansOn(n); err != nil || len(still) > 0 {
		w.verdict.Breakf(check.Cleared, "jobs left %v on %s, and %v is there when it was cleared: %v", left, n.name, still, err)
	}
	if len(left) > 0 {
		w.Reached.Add("what a job left is cleared")
	}
}

// orphansOn are the UUIDs of what jobs left on a node.
func (t *term) orphansOn(n *node) (all []string) {
	for _, m := range n.all() {
		if t.keeper.Snapshot().Instance(m.UUID) == nil && !t.life.w.isStranger(m.UUID) {
			all = append(all, m.UUID)
		}
	}
	return all
}
