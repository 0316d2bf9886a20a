package exec

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/work"
)

// What DRBD has of a mirrored disk on each of its nodes, beside the data, in MiB, and the first of its TCP ports.
const (
	drbdMeta      = 128
	firstDRBDPort = 11000
)

// drbdID is the logical id of a mirrored disk: its two nodes by UUID, the TCP port that they use, the number of its device on each, and a place for a
// secret that the reference has and nothing here needs.
type drbdID struct {
	a, b                   string
	port, minorOnA, minorB int64
}

// readDRBD reads the logical id of a disk; false if it is none of a mirrored one, or was not allotted yet.
func readDRBD(d *cluster.Disk) (id drbdID, ok bool) {
	if d.Type != cluster.DiskDRBD || len(d.LogicalID) < 5 {
		return id, false
	}
	number := func(v any) int64 {
		switch n := v.(type) {
		case int64:
			return n
		case float64: // as it is read from the store
			return int64(n)
		}
		return 0
	}
	id.a, _ = d.LogicalID[0].(string)
	id.b, _ = d.LogicalID[1].(string)
	id.port, id.minorOnA, id.minorB = number(d.LogicalID[2]), number(d.LogicalID[3]), number(d.LogicalID[4])
	return id, true
}

func (id drbdID) logicalID() []any { return []any{id.a, id.b, id.port, id.minorOnA, id.minorB, ""} }

// minor is the number of the disk's device on a node.
func (id drbdID) minor(node string) int64 {
	if node == id.a {
		return id.minorOnA
	}
	return id.minorB
}

// allotDevices gives the mirrored disks of an instance that have none the numbers of their devices, and a port: the first that are free on both nodes.
func allotDevices(snap *cluster.Snapshot, inst *cluster.Instance) {
	minors, ports := map[string]map[int64]bool{}, map[int64]bool{}
	take := func(d *cluster.Disk) {
		id, ok := readDRBD(d)
		for _, node := range []string{id.a, id.b} {
			if ok && minors[node] != nil {
				minors[node][id.minor(node)], ports[id.port] = true, true
			}
		}
	}
	look := func(node string) {
		if minors[node] != nil {
			return
		}
		minors[node] = map[int64]bool{}
		for other := range snap.PrimariesOn(node) {
			eachDisk(other, take)
		}
		for other := range snap.SecondariesOn(node) {
			eachDisk(other, take)
		}
		for d := range snap.DisksOn(node) {
			take(&d.Disk)
		}
	}
	for i := range inst.Disks {
		d := &inst.Disks[i]
		if d.Type != cluster.DiskDRBD || len(d.Nodes) != 2 || len(d.LogicalID) > 0 {
			continue
		}
		look(d.Nodes[0])
		look(d.Nodes[1])
		eachDisk(inst, take)
		d.LogicalID = drbdID{d.Nodes[0], d.Nodes[1], firstFree(ports, firstDRBDPort), firstFree(minors[d.Nodes[0]], 0), firstFree(minors[d.Nodes[1]], 0)}.logicalID()
	}
}

func eachDisk(inst *cluster.Instance, do func(*cluster.Disk)) {
	for i := range inst.Disks {
		do(&inst.Disks[i])
	}
}

func firstFree(taken map[int64]bool, from int64) int64 {
	for taken[from] {
		from++
	}
	return from
}

// volumesOf are the volumes of a mirrored disk on each of its nodes.
func (m diskMaker) volumesOf(d *cluster.Disk) []cluster.Disk {
	volume := func(suffix string, size int64) cluster.Disk {
		uuid := m.env.NewUUID()
		return cluster.Disk{UUID: uuid, CTime: d.CTime, MTime: d.MTime, Type: cluster.DiskPlain, Size: size, Mode: d.Mode, Params: cluster.Params{},
			LogicalID: []any{m.cluster.VolumeGroup, uuid + d.IVName[len("disk/"):] + suffix}}
	}
	return []cluster.Disk{volume("_data", d.Size), volume("_meta", drbdMeta)}
}

// copiesOf are disks as a node of their instance makes them: what is mirrored is copied from its primary node.
func (e *Env) copiesOf(inst *cluster.Instance, disks []hypervisor.Disk, node string) []hypervisor.Disk {
	if node == inst.PrimaryNode {
		return disks
	}
	out := slices.Clone(disks)
	for i := range out {
		if out[i].Template == cluster.DiskDRBD {
			out[i].From = nodeName(e.snapshot(), inst.PrimaryNode)
		}
	}
	return out
}

// secondary returns the node that has the second copy of an instance's disks; nil if none has.
func (e *Env) secondary(inst *cluster.Instance) *cluster.Node {
	for _, uuid := range inst.SecondaryNodes() {
		return e.snapshot().Node(uuid)
	}
	return nil
}

// secondOnline is secondary, and an error where that node is marked offline: nothing may be done to its copy.
func (e *Env) secondOnline(inst *cluster.Instance) (*cluster.Node, error) {
	second := e.secondary(inst)
	if second == nil {
		return nil, nil
	}
	_, err := e.onlineAgent(second)
	return second, err
}

// awaitSync is the verb that waits until the copies of mirrored disks on a node are complete.
const awaitSync = "await-sync"

// awaitArgs are the arguments of awaitSync: what the instance is called, and its disks by UUID, with the names that they are told by.
type awaitArgs struct {
	Name  string     `json:"name"`
	Disks []diskName `json:"disks"`
}

type diskName struct {
	UUID   string `json:"uuid"`
	IVName string `json:"iv_name"`
}

// awaiting is the step that waits for the copies of an instance's mirrored disks on a node.
func awaiting(inst *cluster.Instance, node string) work.Step {
	args := awaitArgs{Name: inst.Name}
	for i := range inst.Disks {
		if inst.Disks[i].Type == cluster.DiskDRBD {
			args.Disks = append(args.Disks, diskName{inst.Disks[i].UUID, inst.Disks[i].IVName})
		}
	}
	s := onNode(awaitSync, node, inst.UUID, "wait until the disks of instance "+inst.Name+" are in sync", args)
	s.Says = []string{" - INFO: Waiting for instance " + inst.Name + " to sync disks"}
	s.Ends = []string{" - INFO: Instance " + inst.Name + "'s disks are in sync"}
	s.Fails = "Cannot wait for the disks of instance " + inst.Name
	return s
}

// The time between two looks at copies that are not complete: no less and no more, whatever is expected.
const (
	leastLook   = 100 * time.Millisecond
	longestLook = 5 * time.Second
)

// awaitCopies waits until the copies are complete, and tells how far they came.
func (e *Env) awaitCopies(ctx context.Context, node Node, of hypervisor.Thing, disks []diskName) error {
	before := map[string]int{}
	looked := e.Now()
	for {
		live, err := node.Instance(ctx, of)
		if err != nil {
			return err
		}
		now, wait, behind := e.Now(), leastLook, false
		for _, d := range disks {
			i := slices.IndexFunc(live.Disks, func(l hypervisor.Disk) bool { return l.UUID == d.UUID })
			if i < 0 {
				return fault.New(fault.WrongState, "node %s has no copy of %s", node.Node(), d.IVName)
			}
			left := live.Disks[i].Behind
			if left == 0 {
				continue
			}
			behind = true
			remaining := "no time estimate"
			if was, known := before[d.UUID]; known && was > left {
				rest := time.Duration(float64(now.Sub(looked)) * float64(left) / float64(was-left))
				remaining = rest.Round(time.Second).String() + " remaining (estimated)"
				wait = max(wait, rest)
			}
			before[d.UUID] = left
			e.Infof("- device %s: %5.2f%% done, %s", d.IVName, 100*(1-float64(left)/float64(live.Disks[i].Size)), remaining)
		}
		if !behind {
			return nil
		}
		looked = now
		select {
		case <-time.After(min(wait, longestLook)):
		case <-ctx.Done():
			return fault.New(fault.Canceled, "the disks are not in sync yet: %w", context.Cause(ctx))
		}
	}
}

// degraded returns the index of the first disk of an instance whose copy on a node is not up to date, and why; -1 if all are.
func (e *Env) degraded(ctx context.Context, inst *cluster.Instance, node Node, uuid string, disks []int) (index int, why string, err error) {
	for _, i := range disks {
		if slices.Contains(inst.Disks[i].Stale, uuid) {
			return i, "what node " + node.Node() + " has was left behind while the disk was used, or removed", nil
		}
	}
	if inst.DiskTemplate() != cluster.DiskDRBD {
		return -1, "", nil
	}
	live, err := node.Instance(ctx, thingOf(inst))
	if err != nil && !fault.Is(err, fault.NotFound) {
		return 0, "", fault.New(fault.Environment, "Can't get data from node %s: %w", node.Node(), err)
	}
	for _, i := range disks {
		n := slices.IndexFunc(live.Disks, func(d hypervisor.Disk) bool { return d.UUID == inst.Disks[i].UUID })
		switch {
		case n < 0:
			return i, "node " + node.Node() + " has no copy of it", nil
		case live.Disks[n].Behind > 0:
			return i, fmt.Sprintf("%s of %s are not copied yet", sizeText(int64(live.Disks[n].Behind)), sizeText(int64(live.Disks[n].Size))), nil
		}
	}
	return -1, "", nil
}
