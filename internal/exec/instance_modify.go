package exec

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// pair is one line of what OP_INSTANCE_SET_PARAMS and its siblings answer:
// what changed, and to what.
type pair [2]any

// notYet are the parameters of OP_INSTANCE_SET_PARAMS that cannot be carried
// out yet.
var notYet = []string{"runtime_mem", "disk_template", "pnode", "pnode_uuid", "remote_node", "remote_node_uuid", "instance_communication"}

// modification is OP_INSTANCE_SET_PARAMS once it is read.
type modification struct {
	env         *Env
	nics, disks []itemChange
	be, hv      cluster.Params
	// result collects what was changed.
	result []pair
}

func instanceModify(ctx context.Context, env *Env) (Plan, error) {
	inst, err := findInstance(env.Op, env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	m := &modification{env: env}
	if err := m.read(inst); err != nil {
		return Plan{}, err
	}
	if err := m.checkOS(ctx, inst); err != nil {
		return Plan{}, err
	}
	disks, err := m.planDisks(ctx, inst)
	if err != nil {
		return Plan{}, err
	}
	// What Update will do later is tried here, so that a refusal comes first.
	next := inst.Clone()
	if _, err := m.apply(env.snapshot(), next, disks); err != nil {
		return Plan{}, err
	}
	return Plan{Dry: m.result, Do: func(ctx context.Context) (any, error) {
		if err := disks.onNode(ctx, env, inst); err != nil {
			return nil, err
		}
		err := env.changeInstance(ctx, inst.UUID, func(snap *cluster.Snapshot, inst *cluster.Instance) ([]cluster.Change, error) {
			return m.apply(snap, inst, disks)
		})
		return m.result, err
	}}, nil
}

// read checks the parameters by themselves.
func (m *modification) read(inst *cluster.Instance) error {
	op := m.env.Op
	for _, name := range notYet {
		if op.Has(name) {
			return fault.New(fault.Invalid, "Parameter '%s' can't be changed yet", name).At(name)
		}
	}
	err := checkGivenOSParams(op)
	if err != nil {
		return err
	}
	if m.nics, err = readChanges("nics", "NIC", op.List("nics")); err != nil {
		return err
	}
	if m.disks, err = readChanges("disks", "disk", op.List("disks")); err != nil {
		return err
	}
	if m.be, err = cluster.CheckBEParams(op.Map("beparams")); err != nil {
		return err
	}
	if m.hv, err = checkHV(inst.Hypervisor, op.Map("hvparams")); err != nil {
		return err
	}
	if len(m.nics)+len(m.disks)+len(m.be)+len(m.hv)+len(op.Map("osparams"))+len(op.Map("osparams_private")) == 0 &&
		!op.Has("os_name") && !op.Has("offline") {
		return fault.New(fault.Invalid, "No changes submitted")
	}
	if op.Has("offline") {
		if err := requireState(inst, "can't change to offline", cluster.AdminDown, cluster.AdminOffline); err != nil {
			return err
		}
	}
	if op.Bool("hotplug") || op.Bool("hotplug_if_possible") {
		m.env.Warnf("Hotplug is not supported by this hypervisor")
		m.env.Infof("Modification will take place without hotplugging.")
	}
	return nil
}

// checkOS checks a new operating system, and new parameters for its scripts.
func (m *modification) checkOS(ctx context.Context, inst *cluster.Instance) error {
	op := m.env.Op
	public, private := op.Map("osparams"), op.Map("osparams_private")
	if op.Bool("force") || (!op.Has("os_name") && len(public)+len(private) == 0) {
		return nil
	}
	node, a, err := m.env.primary(inst)
	if err != nil {
		return err
	}
	name := inst.OS
	if op.Has("os_name") {
		name = op.Str("os_name")
	}
	os, err := a.FindOS(ctx, name, op.Bool("force_variant") || !op.Has("os_name"))
	if err != nil {
		return err
	}
	return checkOSParams(os, node.Name, cluster.SetParams(nil, public), cluster.SetParams(nil, private))
}

// apply makes all changes in inst, a copy of the newest value, and notes them.
func (m *modification) apply(snap *cluster.Snapshot, inst *cluster.Instance, disks diskChanges) ([]cluster.Change, error) {
	m.result = []pair{}
	node := snap.Node(inst.PrimaryNode)
	if node == nil {
		return nil, fault.New(fault.WrongState, "Instance '%s' has no primary node", inst.Name)
	}
	m.note(disks.result...)
	inst.Disks = disks.after
	w := newWiring(snap, node.Group, m.env.connecting())
	if err := m.changeNICs(w, inst); err != nil {
		return nil, err
	}
	m.setParams(inst)
	if err := cluster.CheckMemory(snap.Cluster().FillBE(inst)); err != nil {
		return nil, err
	}
	if !m.env.Op.Bool("ignore_ipolicy") {
		if err := checkPolicy(snap, node, inst, len(inst.NICs)); err != nil {
			return nil, err
		}
	}
	return w.changes(), nil
}

func (m *modification) note(lines ...pair) { m.result = append(m.result, lines...) }

// setParams changes everything that is no list.
func (m *modification) setParams(inst *cluster.Instance) {
	op := m.env.Op
	set := func(prefix string, own *cluster.Params, changes cluster.Params, show bool) {
		if len(changes) == 0 {
			return
		}
		*own = cluster.SetParams(*own, changes)
		for _, name := range slices.Sorted(maps.Keys(changes)) {
			value := changes[name]
			if !show {
				value = "<redacted>"
			}
			m.note(pair{prefix + name, value})
		}
	}
	set("hv/", &inst.HVParams, m.hv, true)
	inst.BEParams = cluster.SetParams(inst.BEParams, m.be)
	for _, name := range slices.Sorted(maps.Keys(op.Map("beparams"))) { // "memory", where the two that it stands for are set
		m.note(pair{"be/" + name, shownBE(m.be, name)})
	}
	if op.Has("os_name") {
		inst.OS = op.Str("os_name")
		m.note(pair{"os", inst.OS})
	}
	set("os/", &inst.OSParams, op.Map("osparams"), true)
	set("os_private/", &inst.OSParamsPrivate, op.Map("osparams_private"), false)
	if op.Has("offline") {
		inst.AdminState = cluster.AdminDown
		if op.Bool("offline") {
			inst.AdminState = cluster.AdminOffline
		}
		inst.AdminStateSource = cluster.SourceAdmin
		m.note(pair{"admin_state", inst.AdminState})
	}
}

// shownBE returns the value of a backend parameter under the name it was given
// by.
func shownBE(be cluster.Params, name string) any {
	if name == "memory" {
		name = "maxmem"
	}
	return be[name]
}

// diskChanges is what becomes of an instance's disks.
type diskChanges struct {
	node   Node
	after  []cluster.Disk
	added  []hypervisor.Disk
	gone   []string
	result []pair
}

// planDisks works out the changes to the disks. The instance's lock keeps them
// from changing meanwhile.
func (m *modification) planDisks(ctx context.Context, inst *cluster.Instance) (diskChanges, error) {
	d := diskChanges{after: inst.Clone().Disks}
	if len(m.disks) == 0 {
		return d, nil
	}
	if err := m.diskAgent(ctx, inst, &d); err != nil {
		return d, err
	}
	template := inst.DiskTemplate()
	if template == cluster.DiskDiskless && slices.ContainsFunc(m.disks, func(c itemChange) bool { return c.action == add }) {
		return d, fault.New(fault.Invalid, "Must specify disk type on diskless instance").At("disks").
			WithHint("disks are added to instances that were made with a disk template")
	}
	maker := diskMaker{env: m.env, cluster: m.env.snapshot().Cluster(), instance: inst.Name, template: template}
	for _, c := range m.disks {
		i, err := c.find(len(d.after), func(i int) (string, string) { return d.after[i].Name, d.after[i].UUID })
		if err != nil {
			return d, err
		}
		if err := d.change(c, i, maker, inst.PrimaryNode); err != nil {
			return d, err
		}
	}
	names := map[string]bool{}
	for i := range d.after {
		d.after[i].IVName = "disk/" + strconv.Itoa(i)
		if err := freeName(names, "disk", d.after[i].Name, "disks"); err != nil {
			return d, err
		}
	}
	return d, nil
}

// diskAgent finds the node of the disks. Disks of a running instance are not
// taken away.
func (m *modification) diskAgent(ctx context.Context, inst *cluster.Instance, d *diskChanges) error {
	var err error
	if _, d.node, err = m.env.primary(inst); err != nil {
		return err
	}
	running, err := active(ctx, d.node, inst.Name)
	if err != nil || !running {
		return err
	}
	for _, c := range m.disks {
		if c.action == remove {
			return fault.New(fault.WrongState, "Instance '%s' is running, its disks can't be removed", inst.Name).At(c.place).
				WithHint("stop it first")
		}
	}
	m.env.Infof("The changed disks are seen by instance %s after its next start", inst.Name)
	return nil
}

// change makes one change in the list of disks.
func (d *diskChanges) change(c itemChange, i int, maker diskMaker, node string) error {
	n := strconv.Itoa(i)
	switch c.action {
	case add:
		disk, err := maker.disk(i, c.values)
		if err != nil {
			return err
		}
		disk.Nodes = []string{node}
		d.after = insert(d.after, i, disk)
		d.added = append(d.added, diskOf(&disk))
		d.result = append(d.result, pair{"disk/" + n, "add:size=" + strconv.FormatInt(disk.Size, 10) + ",mode=" + disk.Mode})
	case remove:
		d.gone = append(d.gone, d.after[i].UUID)
		d.after = cut(d.after, i)
		d.result = append(d.result, pair{"disk/" + n, "remove"})
	default:
		return d.alter(c, &d.after[i], n, maker.env.nanos())
	}
	return nil
}

// alter changes what can be changed of a disk: its name and its mode.
func (d *diskChanges) alter(c itemChange, disk *cluster.Disk, n string, now int64) error {
	for _, key := range slices.Sorted(maps.Keys(c.values)) {
		switch key {
		case "name":
			disk.Name = nameParam(c.values)
			d.result = append(d.result, pair{"disk.name/" + n, orNull(disk.Name)})
		case "mode":
			disk.Mode, _ = c.values["mode"].(string)
			d.result = append(d.result, pair{"disk.mode/" + n, disk.Mode})
		case "size":
			return fault.New(fault.Invalid, "Disk size change not possible, use grow-disk").At(c.place + ".size")
		default:
			return fault.New(fault.Mistyped, "Unknown parameter '%s'", key).At(c.place + "." + key).WithHint("name and mode of a disk can be changed")
		}
		disk.MTime = now
	}
	return nil
}

// onNode makes the new disks and takes the removed ones away.
func (d *diskChanges) onNode(ctx context.Context, env *Env, inst *cluster.Instance) error {
	if len(d.added) > 0 {
		if err := d.node.Prepare(ctx, env.Order(), inst.Name, inst.UUID, d.added); err != nil {
			return failed(err, "Could not create the disks of instance %s", inst.Name)
		}
	}
	if len(d.gone) == 0 {
		return nil
	}
	return failedUnlessNil(d.node.Drop(ctx, env.Order(), inst.Name, d.gone), "Can't remove instance's disks")
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}
