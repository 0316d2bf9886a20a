package world

import (
	"context"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/sim/check"
)

// tally is what jobs did to an instance that are counted: how many of a kind came to a success, and how many failed, which may
// have done it, too.
type tally struct{ done, failed int64 }

func (c *tally) count(j *job.Job) {
	if j.Status() == job.Success {
		c.done++
	} else {
		c.failed++
	}
}

// changes are what jobs did to an instance.
type changes struct{ grown, added, removed tally }

// changesOf counts what jobs did to each instance, by UUID.
func (t *term) changesOf() map[string]*changes {
	all := map[string]*changes{}
	for j := range t.queue.Jobs().All() {
		op := j.Ops[0].Input
		uuid := op.Str("instance_uuid")
		if uuid == "" {
			continue
		}
		if all[uuid] == nil {
			all[uuid] = &changes{}
		}
		switch {
		case op.ID == "OP_INSTANCE_GROW_DISK":
			all[uuid].grown.count(j)
		case adds(op):
			all[uuid].added.count(j)
		default:
			all[uuid].removed.count(j)
		}
	}
	return all
}

// adds tells whether a job adds a disk, of those that change them.
func adds(op *opcode.Opcode) bool {
	change, _ := op.List("disks")[0].([]any)
	return change[0] == "add"
}

// removals are the names of instances whose removal failed: what is left of them the job has told.
func (t *term) removals() map[string]bool {
	all := map[string]bool{}
	for j := range t.queue.Jobs().All() {
		if op := j.Ops[0]; j.Status() == job.Error && op.Input.ID == "OP_INSTANCE_REMOVE" {
			all[op.Input.Str("instance_name")] = true
		}
	}
	return all
}

// agreesWithNodes holds each instance of the inventory against the nodes, and against the jobs that changed it.
func (t *term) agreesWithNodes(snap *cluster.Snapshot) {
	w, removed, done := t.life.w, t.removals(), t.changesOf()
	for inst := range snap.Instances() {
		did := done[inst.UUID]
		if did == nil {
			did = &changes{}
		}
		t.onItsNode(inst, snap, removed[inst.Name], *did)
		if inst.Name != taggedInstance {
			w.doneOnce(inst, *did)
		}
	}
	for _, n := range w.nodes {
		for _, m := range n.all() {
			if snap.Instance(m.UUID) == nil && !w.isStranger(m.UUID) && !w.leftovers[m.UUID] {
				t.toldOf(n, &m)
			}
		}
	}
}

// toldOf holds a job that left something on a node to having told of it.
func (t *term) toldOf(n *node, m *hypervisor.Instance) {
	w := t.life.w
	w.Reached.Add("something is left by a job that failed")
	j, err := t.queue.Job(context.Background(), job.ID(m.MadeBy.Job))
	if err != nil {
		w.verdict.Breakf(check.LeftTold, "%s has %s (%s), and its job cannot be read: %v", n.name, m.Name, m.UUID, err)
		return
	}
	if !j.Ops[0].Stepwise { // it began below the format that keeps what opcodes do
		w.Reached.Add("something is left by a job of which nothing was kept")
		return
	}
	if log := logOf(j); !strings.Contains(log, m.UUID) {
		w.verdict.Breakf(check.LeftTold, "%s has %s (%s) of job %d, which is %s and says: %s %s", n.name, m.Name, m.UUID, j.ID, j.Status(), j.Ops[0].Result, log)
	}
}

// logOf is what a job of one opcode logged.
func logOf(j *job.Job) string {
	var log strings.Builder
	for _, e := range j.Ops[0].Log {
		log.Write(e.Payload)
	}
	return log.String()
}

// toldOfDisk tells whether a job that changed the disks of an instance told that it leaves one.
func (t *term) toldOfDisk(inst *cluster.Instance, disk string) bool {
	for live := range t.queue.Jobs().All() {
		if live.Ops[0].Input.Str("instance_uuid") != inst.UUID {
			continue
		}
		if j, err := t.queue.Job(context.Background(), live.ID); err == nil && strings.Contains(logOf(j), disk) {
			t.life.w.Reached.Add("a disk is left by a job that says so")
			return true
		}
	}
	return false
}

// all is what is on the node.
func (n *node) all() (all []hypervisor.Instance) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range n.machines {
		m.Disks = slices.Clone(m.Disks)
		all = append(all, m)
	}
	return all
}

// onItsNode holds an instance of the inventory against the nodes.
func (t *term) onItsNode(inst *cluster.Instance, snap *cluster.Snapshot, removed bool, did changes) {
	w := t.life.w
	primary, on := snap.Node(inst.PrimaryNode).Name, []string{}
	var there hypervisor.Instance
	for _, n := range w.nodes {
		for _, m := range n.all() {
			if m.UUID == inst.UUID {
				on, there = append(on, n.full()), m
			}
		}
	}
	switch {
	case len(on) == 0 && removed:
		w.Reached.Add("an instance is left half removed")
		return
	case len(on) != 1 || on[0] != primary:
		w.verdict.Breakf(check.OnItsNode, "%s (%s) is in the inventory on %s, and there on %v", inst.Name, inst.UUID, primary, on)
		return
	case there.Name != inst.Name:
		w.verdict.Breakf(check.OnItsNode, "%s (%s) is called %s on its node", inst.Name, inst.UUID, there.Name)
	}
	t.hasItsDisks(inst, &there, did)
}

// hasItsDisks holds the disks of an instance against those that it has on its node. Where a job failed that had one grow, it
// may be larger than the inventory says; and one that a job could not take back is there, if the job told of it.
func (t *term) hasItsDisks(inst *cluster.Instance, there *hypervisor.Instance, did changes) {
	w := t.life.w
	for _, d := range there.Disks {
		known := slices.ContainsFunc(inst.Disks, func(k cluster.Disk) bool { return k.UUID == d.UUID })
		if !known && !t.toldOfDisk(inst, d.UUID) {
			w.verdict.Breakf(check.OnItsNode, "%s (%s) has %d disks in the inventory, and %v on its node", inst.Name, inst.UUID, len(inst.Disks), there.Disks)
			return
		}
	}
	for i := range inst.Disks {
		d := &inst.Disks[i]
		at := slices.IndexFunc(there.Disks, func(have hypervisor.Disk) bool { return have.UUID == d.UUID })
		if at < 0 || int64(there.Disks[at].Size) != d.Size && did.grown.failed == 0 {
			w.verdict.Breakf(check.OnItsNode, "disk %s of %s (%s) has %d MiB in the inventory, and on its node there is %v", d.UUID, inst.Name, inst.UUID, d.Size, there.Disks)
		}
	}
}

// doneOnce holds the disks of an instance, and the size of the first, against the jobs that changed them: one that
// a controller's end interrupted counts once, and one that failed may count.
func (w *world) doneOnce(inst *cluster.Instance, did changes) {
	if len(inst.Disks) == 0 {
		return
	}
	if grown := inst.Disks[0].Size - diskSize; grown < did.grown.done*diskGrowth || grown > (did.grown.done+did.grown.failed)*diskGrowth {
		w.verdict.Breakf(check.DoneOnce, "the disk of %s has grown by %d, by %d jobs that had it grow by %d and %d that failed", inst.Name, grown, did.grown.done, int64(diskGrowth), did.grown.failed)
	}
	more := int64(len(inst.Disks)) - 1
	if more < did.added.done-did.removed.done-did.removed.failed || more > did.added.done+did.added.failed-did.removed.done {
		w.verdict.Breakf(check.DoneOnce, "%s has %d further disks: of the jobs that added one %d came to a success and %d failed, and of those that removed one %d and %d",
			inst.Name, more, did.added.done, did.added.failed, did.removed.done, did.removed.failed)
	}
	for place, times := range map[string]int64{"a disk has grown": did.grown.done, "a disk was added": did.added.done, "a disk was removed": did.removed.done} {
		if times > 0 {
			w.Reached.Add(place)
		}
	}
}
