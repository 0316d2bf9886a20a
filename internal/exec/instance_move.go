package exec

import (
	"context"
	"fmt"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/export"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/work"
)

// moving is OP_INSTANCE_MOVE: an instance whose disks are on one node alone is stopped, its disks are copied to another node, by dumps as exports have
// them, and it is started there.
type moving struct {
	relocation

	form export.Form
	// id is what the dumps are made under.
	id string
}

// moveLocks lock an instance, and share its node and the one that it goes to.
func moveLocks(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	request, err := ownInstance(op, snap)
	if err != nil {
		return nil, err
	}
	node, err := findNode(op, "target_node", snap)
	if err != nil {
		return nil, err
	}
	return append(request, sharing(node.UUID)...), nil
}

// instanceMove prepares OP_INSTANCE_MOVE.
func instanceMove(ctx context.Context, env *Env) (Plan, error) {
	if err := uncompressed(env.Op); err != nil {
		return Plan{}, err
	}
	m := &moving{relocation: relocation{env: env, failover: true}, id: env.NewUUID()}
	var err error
	if m.inst, err = findInstance(env.Op, env.snapshot()); err != nil {
		return Plan{}, err
	}
	for i := range m.inst.Disks {
		if t := m.inst.Disks[i].Type; t != cluster.DiskPlain && t != cluster.DiskFile {
			return Plan{}, fault.New(fault.WrongState, "Instance disk %d has disk type %s and is not suitable for copying", i, t).
				WithHint("drover instance migrate, or failover, takes it where its disks are or are reached")
		}
	}
	if m.to, err = findNode(env.Op, "target_node", env.snapshot()); err != nil {
		return Plan{}, err
	}
	var source Node
	if m.from, source, err = env.primary(m.inst); err != nil {
		return Plan{}, err
	}
	if m.to == m.from {
		return Plan{}, fault.New(fault.WrongState, "Instance %s is already on the node %s", m.inst.Name, m.to.Name).At("target_node")
	}
	if err := hosting(m.to); err != nil {
		return Plan{}, err
	}
	if err := m.checkTarget(ctx); err != nil {
		return Plan{}, err
	}
	if err := m.checkDisksOn(ctx, source); err != nil {
		return Plan{}, err
	}
	if m.runs, err = active(ctx, source, m.inst); err != nil {
		return Plan{}, err
	}
	return Plan{Work: &work.Work{Steps: m.steps()}}, nil
}

// checkDisksOn refuses what lacks a disk, and a machine that keeps something beside its disks, which would stay behind; it decides how disks are copied.
func (m *moving) checkDisksOn(ctx context.Context, source Node) error {
	there, err := disksThere(ctx, source, m.inst)
	if err != nil {
		return err
	}
	for i, d := range there {
		if d == nil {
			return fault.New(fault.WrongState, "Node %s has no disk %d of instance %s, so it cannot be copied from there", m.from.Name, i, m.inst.Name).
				WithHint("%s", howToMend(m.inst, m.from))
		}
	}
	info, err := source.Info(ctx)
	if err != nil {
		return fault.New(fault.Environment, "Can't get data from node %s: %w", m.from.Name, err)
	}
	to, err := m.target.Info(ctx)
	if err != nil {
		return fault.New(fault.Environment, "Can't get data from node %s: %w", m.to.Name, err)
	}
	if info.StandsIn != to.StandsIn {
		return fault.New(fault.Unsupported, "Of nodes %s and %s one runs machines, and one only pretends to", m.from.Name, m.to.Name).At("target_node")
	}
	if m.form = export.Pretended; info.StandsIn {
		return nil
	}
	m.form = export.Raw
	if what := keptBeside(m.env.snapshot().Cluster(), m.inst); what != "" {
		return fault.New(fault.Unsupported, "Instance %s can't be moved yet: %s on node %s alone", m.inst.Name, what, m.from.Name)
	}
	return nil
}

// keptBeside says what a machine keeps beside its disks; empty for nothing.
func keptBeside(c *cluster.Cluster, inst *cluster.Instance) string {
	filled := c.FillHV(inst)
	base, _ := cluster.OSName(inst.OS)
	firmware, _ := filled["firmware"].(string)
	tpm, _ := filled["tpm"].(string)
	switch {
	case base == cluster.ImageOS:
		return "what it is told at its first start is"
	case firmware != "" && firmware != "bios":
		return "the variables of its firmware are"
	case tpm != "" && tpm != none:
		return "what its TPM keeps is"
	}
	return ""
}

// steps stop the instance, copy its disks, start it where they are, and remove the old ones.
func (m *moving) steps() []work.Step {
	inst, op := m.inst, m.env.Op
	stop := onNode(stopInstance, m.from.UUID, inst.UUID, "stop instance "+inst.Name, stopArgs{inst.Name, op.Int("shutdown_timeout")})
	stop.Says = []string{fmt.Sprintf(" - INFO: Shutting down instance %s on source node %s", inst.Name, m.from.Name)}
	stop.Fails, stop.Tolerated = "Could not shutdown instance "+inst.Name+" on node "+m.from.Name, op.Bool("ignore_consistency")
	if m.runs {
		stop.Undo = m.backAgain()
	}
	prepare := onNode(prepareDisks, m.to.UUID, inst.UUID, "make the disks of instance "+inst.Name, prepareArgs{inst.Name, disksOf(inst)})
	prepare.Fails = "Could not create the disks on node " + m.to.Name
	back := onNode(removeFromNode, "", "", "remove the copies of the disks of instance "+inst.Name, meant{inst.Name})
	back.Fails = "Could not remove the copies of the disks of instance " + inst.Name + " from node " + m.to.Name
	back.Left = "Node " + m.to.Name + " still has them (" + inst.UUID + "), and nothing uses them: a move of the instance there takes them, else whoever looks after the node removes them"
	prepare.Undo = &back
	steps := append([]work.Step{stop, prepare}, m.copying()...)
	if inst.AdminState == cluster.AdminUp {
		start := m.starting()
		start.Says = []string{fmt.Sprintf(" - INFO: Starting instance %s on node %s", inst.Name, m.to.Name)}
		steps = append(steps, start)
	}
	remove := onNode(removeFromNode, m.from.UUID, inst.UUID, "remove the disks of instance "+inst.Name, meant{inst.Name})
	remove.Says = []string{" - INFO: Removing the disks on the original node"}
	remove.Fails, remove.Tolerated = "Could not remove the disks of instance "+inst.Name+" from node "+m.from.Name, true
	remove.Left = "Node " + m.from.Name + " still has the disks of instance " + inst.Name + " (" + inst.UUID + ") as they were, and nothing uses them: a move of the instance back there takes them, else whoever looks after the node removes them"
	return append(steps, m.relocation.moving(), remove)
}

// copying are the steps that copy the content of the disks.
func (m *moving) copying() (steps []work.Step) {
	inst := m.inst
	if len(inst.Disks) == 0 {
		return nil
	}
	x := &exporting{env: m.env, inst: inst, from: m.from, to: m.to, form: m.form, id: m.id}
	for i := range inst.Disks {
		steps = append(steps, x.dumping(i))
	}
	steps = append(steps, x.copying(), x.discarding(m.from))
	for i := range inst.Disks {
		s := onNode(importDisk, m.to.UUID, inst.UUID, fmt.Sprintf("fill disk %d of instance %s", i, inst.Name), dumpArgs{Disk: i, Form: m.form, ID: m.id, File: inst.Disks[i].UUID})
		s.Fails, s.Anew = fmt.Sprintf("Could not fill disk %d of instance %s on node %s", i, inst.Name, m.to.Name), true
		steps = append(steps, s)
	}
	return append(steps, x.discarding(m.to))
}
