package exec

import (
	"context"
	"fmt"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/work"
)

// setActive is the verb that notes whether the disks of an instance are meant to be active.
const setActive = "set-disks-active"

type activeArgs struct {
	Active bool `json:"active"`
}

// activated notes that the disks of an instance are to be active, or not; where that is known already nothing is changed.
func activated(env *Env, snap *cluster.Snapshot, s *work.Step, a activeArgs) ([]cluster.Change, any, error) {
	old := snap.Instance(s.Of)
	switch {
	case old == nil:
		return nil, nil, removedMeanwhile(s.Of)
	case old.DisksActive == a.Active:
		return nil, nil, nil
	}
	inst := old.Clone()
	inst.DisksActive = a.Active
	inst.Touch(env.nanos())
	return []cluster.Change{cluster.Put(inst)}, nil, nil
}

// disksThere are the disks of an instance as a node has them, in the order of the inventory; nil for each that it has not.
func disksThere(ctx context.Context, a Node, inst *cluster.Instance) ([]*hypervisor.Disk, error) {
	out := make([]*hypervisor.Disk, len(inst.Disks))
	live, err := a.Instance(ctx, thingOf(inst))
	switch {
	case fault.Is(err, fault.NotFound):
		return out, nil
	case fault.Is(err, fault.Exists):
		return nil, err
	case err != nil:
		return nil, fault.New(fault.Environment, "Can't get data from node %s: %w", a.Node(), err)
	}
	for i := range inst.Disks {
		for n := range live.Disks {
			if live.Disks[n].UUID == inst.Disks[i].UUID {
				out[i] = &live.Disks[n]
			}
		}
	}
	return out, nil
}

// activateDisks prepares OP_INSTANCE_ACTIVATE_DISKS: each node that has disks of the instance is told to make them available. One that lacks a disk is
// not, for it would make an empty one. The result says where the primary node has them.
func activateDisks(ctx context.Context, env *Env) (Plan, error) {
	inst, err := findInstance(env.Op, env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	node, a, err := env.primary(inst)
	if err != nil {
		return Plan{}, err
	}
	there, step, err := env.activating(ctx, inst, node, a)
	if err != nil {
		return Plan{}, err
	}
	devices, err := devicesOf(ctx, inst, a, there)
	if err != nil {
		return Plan{}, err
	}
	steps := []work.Step{inInventory(setActive, inst.UUID, "note that the disks of instance "+inst.Name+" are to be active", activeArgs{true})}
	if len(inst.Disks) > 0 {
		steps = append([]work.Step{step}, steps...)
	}
	second := env.secondary(inst)
	switch {
	case second == nil:
	case second.Offline:
		env.Warnf("Could not prepare the second copies of the disks of instance %s: node %s is offline", inst.Name, second.Name)
	default:
		if steps, err = env.activateSecond(ctx, inst, second, steps); err != nil {
			return Plan{}, err
		}
	}
	return Plan{Work: &work.Work{Steps: steps, Replanned: true, Result: encodeArgs(devices)}, Dry: devices}, nil
}

// activateSecond puts the order for the node that has the second copies before the other steps, and behind them waits for those, if that is asked for.
func (e *Env) activateSecond(ctx context.Context, inst *cluster.Instance, second *cluster.Node, steps []work.Step) ([]work.Step, error) {
	a, err := e.agent(second)
	if err != nil {
		return nil, err
	}
	_, step, err := e.activating(ctx, inst, second, a)
	if err != nil {
		return nil, err
	}
	steps = append([]work.Step{step}, steps...)
	if !e.Op.Bool("wait_for_sync") {
		return steps, nil
	}
	if i := inst.StaleOn(second.UUID); i >= 0 {
		return nil, fault.New(fault.WrongState, "Some disks of the instance are degraded! The copy of disk %d on node %s is out of date, and nothing copies it", i, second.Name).
			At("wait_for_sync").WithHint("drover instance replace-disks --mode replace_on_secondary %s copies them anew", inst.Name)
	}
	return append(steps, awaiting(inst, second.UUID)), nil
}

// activating is the order for a node to make the disks of an instance available that it has, and which they are.
func (e *Env) activating(ctx context.Context, inst *cluster.Instance, node *cluster.Node, a Node) (there []*hypervisor.Disk, step work.Step, err error) {
	if there, err = disksThere(ctx, a, inst); err != nil {
		return nil, step, err
	}
	disks := e.copiesOf(inst, disksOf(inst), node.UUID)
	for i, d := range there {
		switch {
		case d == nil:
			return nil, step, fault.New(fault.WrongState, "Cannot activate block devices: node %s has no disk %d of instance %s", node.Name, i, inst.Name).
				WithHint("%s", howToMend(inst, node))
		case d.Has() == disks[i].Size:
		case d.Has() > disks[i].Size && d.Size == disks[i].Size: // its volume has whole extents
		case !e.Op.Bool("ignore_size"):
			return nil, step, fault.New(fault.WrongState, "Cannot activate block devices: disk %d of instance %s is recorded with %s, and has %s on node %s",
				i, inst.Name, sizeText(int64(disks[i].Size)), sizeText(int64(d.Has())), node.Name).
				WithHint("drover cluster repair-disk-sizes records what it has; --ignore-size leaves it as it is")
		default:
			disks[i].Size = d.Has()
		}
	}
	step = onNode(prepareDisks, node.UUID, inst.UUID, "make the disks of instance "+inst.Name+" available", prepareArgs{inst.Name, disks})
	step.Fails = "Could not prepare block devices on node " + node.Name
	return there, step, nil
}

// howToMend says how a disk comes back that a node lacks.
func howToMend(inst *cluster.Instance, node *cluster.Node) string {
	if inst.Mirroring() != cluster.InternalMirror {
		return "drover instance recreate-disks " + inst.Name + " makes the disks that are missing anew, empty"
	}
	mode := replaceOnSecondary
	if node.UUID == inst.PrimaryNode {
		mode = replaceOnPrimary
	}
	return "drover instance replace-disks --mode " + mode + " " + inst.Name + " copies its disks from the other node"
}

// devicesOf says for each disk what it is called on the primary node: the node's name, disk/N, and the path; null where only the node knows that.
func devicesOf(ctx context.Context, inst *cluster.Instance, a Node, there []*hypervisor.Disk) ([][3]any, error) {
	info, err := a.Info(ctx)
	if err != nil {
		return nil, fault.New(fault.Environment, "Can't get data from node %s: %w", a.Node(), err)
	}
	out := make([][3]any, len(inst.Disks))
	for i := range inst.Disks {
		d := &inst.Disks[i]
		path := there[i].Path
		if path == "" && info.StandsIn {
			path = pathOf(d, inst.PrimaryNode)
		}
		out[i] = [3]any{a.Node(), d.IVName, orNull(path)}
	}
	return out, nil
}

// pathOf is where the reference's nodes have a disk of such a name; empty where that is for others to know.
func pathOf(d *cluster.Disk, node string) string {
	if id, ok := readDRBD(d); ok {
		return fmt.Sprintf("/dev/drbd%d", id.minor(node))
	}
	if len(d.LogicalID) != 2 {
		return ""
	}
	first, _ := d.LogicalID[0].(string)
	second, _ := d.LogicalID[1].(string)
	switch d.Type {
	case cluster.DiskFile, cluster.DiskSharedFile:
		return second
	case cluster.DiskPlain:
		return "/dev/" + first + "/" + second
	}
	return ""
}

// deactivateDisks prepares OP_INSTANCE_DEACTIVATE_DISKS: it is noted that the disks are not meant to be active. Nodes do nothing: a disk that nothing runs on
// is used by nobody.
func deactivateDisks(ctx context.Context, env *Env) (Plan, error) {
	inst, err := findInstance(env.Op, env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	if !env.Op.Bool("force") {
		if err := env.notRunning(ctx, inst, "cannot shutdown disks", cluster.AdminDown); err != nil {
			return Plan{}, err
		}
	}
	return again(inInventory(setActive, inst.UUID, "note that the disks of instance "+inst.Name+" are not to be active", activeArgs{false})), nil
}

// notRunning refuses what is done to stopped instances: to one whose wanted state is none of these, and to one that runs. A primary node that is marked
// offline is not asked.
func (e *Env) notRunning(ctx context.Context, inst *cluster.Instance, consequence string, states ...string) error {
	if err := requireState(inst, consequence, states...); err != nil {
		return err
	}
	if node := e.snapshot().Node(inst.PrimaryNode); node != nil && node.Offline {
		e.Warnf("Primary node offline, ignoring check that instance is down")
		return nil
	}
	_, a, err := e.primary(inst)
	if err != nil {
		return err
	}
	running, err := active(ctx, a, inst)
	if err == nil && running {
		err = fault.New(fault.WrongState, "Instance %s is running, %s", inst.Name, consequence)
	}
	return err
}
