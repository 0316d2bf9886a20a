package exec

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hooks"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/placement"
	"github.com/drover-project/drover/internal/work"
)

// pair is one line of what OP_INSTANCE_SET_PARAMS and its siblings answer:
// what changed, and to what.
type pair [2]any

// notYet are the parameters of OP_INSTANCE_SET_PARAMS that cannot be carried
// out yet.
var notYet = []string{"disk_template", "pnode", "pnode_uuid", "remote_node", "remote_node_uuid", "instance_communication"}

// modification is OP_INSTANCE_SET_PARAMS once it is read.
type modification struct {
	env         *Env
	nics, disks []itemChange
	be, hv      cluster.Params
	// live: devices are plugged into the instance, which runs, and pulled out.
	live bool
	// result collects what was changed.
	result []pair
	// unchecked is how many interfaces were added or changed of whose links nobody looks whether they are there.
	unchecked int
}

// modifyArgs are what the step that changes an instance has from its plan; the rest is the opcode's.
type modifyArgs struct {
	// Disks are all of them as they are to be, if they change.
	Disks  []cluster.Disk `json:"disks,omitempty"`
	Change bool           `json:"change_disks,omitempty"`
	// Detach are those that the instance has no more, and that are kept, as they are then; Attach are those, by UUID, that it gets of such.
	Detach []cluster.Disk `json:"detach,omitempty"`
	Attach []string       `json:"attach,omitempty"`
	// Result is what is to be said of them.
	Result []pair `json:"result,omitempty"`
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
	if err := m.check(inst); err != nil {
		return Plan{}, err
	}
	m.warnOfNode(ctx, inst)
	m.live = m.plugs(ctx, inst)
	if err := m.checkOS(ctx, inst); err != nil {
		return Plan{}, err
	}
	disks, err := m.planDisks(ctx, inst)
	if err != nil {
		return Plan{}, err
	}
	balloon, err := m.planMemory(ctx, inst)
	if err != nil {
		return Plan{}, err
	}
	args := modifyArgs{Disks: disks.after, Change: len(m.disks) > 0, Detach: disks.detached, Attach: uuidsOf(disks.attached), Result: disks.result}
	if balloon != nil {
		args.Result = append([]pair{{"runtime_memory", env.Op.Int("runtime_mem")}}, args.Result...)
	}
	// What the step will do later is tried here, so that a refusal comes first.
	after := inst.Clone()
	if _, err := m.apply(env.snapshot(), after, args); err != nil {
		return Plan{}, err
	}
	decided := inst.Clone() // hooks are told of the interfaces as they will be, and of all else as it is
	decided.NICs = after.NICs
	for range m.unchecked {
		env.Infof("OVS links are currently not checked for correctness") // the reference's words
	}
	change := inInventory(modifyInstance, inst.UUID, "change instance "+inst.Name, args)
	change.Keeps = true
	before, behind := disks.onNodes(m.env, inst)
	if m.live {
		before, behind = m.adjusting(inst, slices.Concat(disks.gone, uuidsOf(disks.detached)), before, behind)
	}
	if balloon != nil {
		before = append([]work.Step{*balloon}, before...)
	}
	return Plan{Dry: m.result, Work: &work.Work{Steps: append(append(before, change), behind...)}, Decided: hooks.Subject{Instance: decided}}, nil
}

// modified makes the changes of the opcode in inst.
func modified(env *Env, snap *cluster.Snapshot, inst *cluster.Instance, args modifyArgs) ([]cluster.Change, any, error) {
	m := &modification{env: env}
	if err := m.read(inst); err != nil {
		return nil, nil, err
	}
	changes, err := m.apply(snap, inst, args)
	return changes, m.result, err
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
	if len(m.nics)+len(m.disks)+len(op.Map("beparams"))+len(m.hv)+len(op.Map("osparams"))+len(op.Map("osparams_private")) == 0 &&
		!op.Has("os_name") && !op.Has("offline") && !op.Has("runtime_mem") {
		return fault.New(fault.Invalid, "No changes submitted")
	}
	return nil
}

// check refuses what the instance's state does not allow, and warns of what has no effect.
func (m *modification) check(inst *cluster.Instance) error {
	op := m.env.Op
	if op.Has("offline") {
		if err := requireState(inst, "can't change to offline without being down first", cluster.AdminDown, cluster.AdminOffline); err != nil {
			return err
		}
	}
	return nil
}

// warnOfNode tells of new hypervisor parameters what the instance's node does not take, so that nobody finds out at the next start alone.
func (m *modification) warnOfNode(ctx context.Context, inst *cluster.Instance) {
	node := m.env.snapshot().Node(inst.PrimaryNode)
	if len(m.hv) == 0 || node == nil {
		return
	}
	info, err := m.env.reported(ctx, node)
	if err != nil { // it says so when it is to start it
		return
	}
	next := inst.Clone()
	next.HVParams = cluster.SetParams(inst.HVParams, m.hv)
	if lacks := placement.Lacking(m.env.snapshot().Cluster().FillHV(next), info.Takes); lacks != "" {
		m.env.Warnf("Node %s does not take this: %s. The instance will not start there", node.Name, lacks)
	}
}

// plugs decides whether the instance's devices are changed while it runs, as the opcode asks for. What does not run has them at its start.
func (m *modification) plugs(ctx context.Context, inst *cluster.Instance) bool {
	op := m.env.Op
	if !op.Bool("hotplug") && !op.Bool("hotplug_if_possible") {
		return false
	}
	running, err := m.pluggable(ctx, inst)
	if err != nil { // which is no reason to refuse: newer clients ask for it by default
		m.env.Warnf("%s", err)
		m.env.Infof("Modification will take place without hotplugging.")
	}
	return running && err == nil
}

// pluggable reports whether an instance runs, or why its devices could not be changed if it did.
func (m *modification) pluggable(ctx context.Context, inst *cluster.Instance) (bool, error) {
	_, a, err := m.env.primary(inst)
	if err != nil {
		return false, err
	}
	info, err := a.Info(ctx)
	if err != nil {
		return false, err
	}
	if !info.Plugs(inst.Hypervisor) {
		return false, hypervisor.NoHotplug()
	}
	return active(ctx, a, inst)
}

// adjusting puts the orders in that change what runs: disks are pulled out before anything else, for they are kept if the guest does not let
// go of them; the rest follows when the inventory tells of it, and has its effect at the next start where it fails.
func (m *modification) adjusting(inst *cluster.Instance, gone []string, before, behind []work.Step) (steps, rest []work.Step) {
	if len(gone) > 0 {
		pull := onNode(adjustDevices, inst.PrimaryNode, inst.UUID, "pull the disks out of instance "+inst.Name, adjustArgs{gone})
		pull.Fails = "Could not hotplug device"
		back := onNode(adjustDevices, "", "", "plug the disks of instance "+inst.Name+" in again", adjustArgs{})
		back.Fails = "Could not plug the disks of instance " + inst.Name + " in again: it has them from its next start on"
		pull.Undo = &back
		before = append([]work.Step{pull}, before...)
	}
	if len(m.nics)+len(m.disks) > 0 {
		plug := onNode(adjustDevices, inst.PrimaryNode, inst.UUID, "change the devices of instance "+inst.Name, adjustArgs{})
		plug.Says, plug.Ends = []string{" - INFO: Trying to hotplug device..."}, []string{" - INFO: Hotplug done."}
		plug.Fails, plug.Tolerated = "Could not hotplug device", true
		plug.Left = "Instance " + inst.Name + " has its devices as they are told of from its next start on"
		behind = append([]work.Step{plug}, behind...)
	}
	return before, behind
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
	os, _, err := m.env.findOS(ctx, a, name, op.Bool("force_variant") || !op.Has("os_name"))
	if err != nil {
		return err
	}
	return checkOSParams(os, node.Name, cluster.SetParams(nil, public), cluster.SetParams(nil, private))
}

// planMemory is the step that gives what runs another memory, nil if that is not asked for. It counts between the bounds that the instance is
// to have.
func (m *modification) planMemory(ctx context.Context, inst *cluster.Instance) (*work.Step, error) {
	op := m.env.Op
	if !op.Has("runtime_mem") {
		return nil, nil
	}
	node, a, err := m.env.primary(inst)
	if err != nil {
		return nil, err
	}
	live, err := a.Instance(ctx, thingOf(inst))
	switch {
	case fault.Is(err, fault.NotFound) || err == nil && !live.Active():
		return nil, fault.New(fault.WrongState, "Instance %s is not running", inst.Name).At("runtime_mem")
	case err != nil:
		return nil, fault.New(fault.Environment, "Error checking node %s: %w", node.Name, err)
	}
	next := inst.Clone()
	next.BEParams = cluster.SetParams(inst.BEParams, m.be)
	bounds := m.env.snapshot().Cluster().FillBE(next)
	least, most, memory := intParam(bounds, "minmem"), intParam(bounds, "maxmem"), int(op.Int("runtime_mem"))
	if !op.Bool("force") && (memory < least || memory > most) {
		return nil, fault.New(fault.Invalid, "Instance %s must have memory between %d and %d MB of memory unless --force is given", inst.Name, least, most).At("runtime_mem")
	}
	if more := memory - live.Memory; more > 0 {
		if err := roomFor(ctx, a, "ballooning memory for instance "+inst.Name, more); err != nil {
			return nil, err
		}
	}
	step := onNode(balloonInstance, inst.PrimaryNode, inst.UUID, "have instance "+inst.Name+" use "+sizeText(int64(memory))+" of memory", balloonArgs{inst.Name, memory})
	step.Fails = "Cannot modify instance runtime memory"
	back := onNode(balloonInstance, "", "", "have instance "+inst.Name+" use as much memory as before", balloonArgs{inst.Name, live.Memory})
	back.Fails = "Could not give instance " + inst.Name + " the memory of before"
	step.Undo = &back
	return &step, nil
}

// apply makes all changes in inst, a copy of the newest value, and notes them.
func (m *modification) apply(snap *cluster.Snapshot, inst *cluster.Instance, args modifyArgs) ([]cluster.Change, error) {
	m.result, m.unchecked = []pair{}, 0
	node := snap.Node(inst.PrimaryNode)
	if node == nil {
		return nil, fault.New(fault.WrongState, "Instance '%s' has no primary node", inst.Name)
	}
	m.note(args.Result...)
	if args.Change {
		inst.Disks = args.Disks
		allotDevices(snap, inst)
	}
	w := newWiring(snap, node.Group, m.env.connecting())
	if err := m.changeNICs(w, inst); err != nil {
		return nil, err
	}
	m.setParams(inst)
	if err := cluster.CheckMemory(snap.Cluster().FillBE(inst)); err != nil {
		return nil, err
	}
	if !m.env.Op.Bool("ignore_ipolicy") {
		if err := checkPolicies(snap, node, inst); err != nil {
			return nil, err
		}
	}
	kept, err := m.env.keeping(snap, inst, args)
	return append(w.changes(), kept...), err
}

// checkPolicies refuses an instance that breaks the policy with the memory that it
// may have at most, or at least.
func checkPolicies(snap *cluster.Snapshot, node *cluster.Node, inst *cluster.Instance) error {
	if err := checkPolicy(snap, node, inst, len(inst.NICs)); err != nil {
		return err
	}
	low := inst.Clone()
	low.BEParams = cluster.SetParams(inst.BEParams, cluster.Params{"maxmem": snap.Cluster().FillBE(inst)["minmem"]})
	return checkPolicy(snap, node, low, len(inst.NICs))
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
	for _, name := range slices.Sorted(maps.Keys(op.Map("beparams"))) { // as they were given: "memory", where the two that it stands for are set
		m.note(pair{"be/" + name, op.Map("beparams")[name]})
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

// diskChanges is what becomes of an instance's disks.
type diskChanges struct {
	node          Node
	before, after []cluster.Disk
	added         []hypervisor.Disk
	gone          []string
	// detached are those that the instance has no more, and that are kept, and attached those that it gets of such.
	detached, attached []cluster.Disk
	result             []pair
}

func uuidsOf(disks []cluster.Disk) (out []string) {
	for i := range disks {
		out = append(out, disks[i].UUID)
	}
	return out
}

// planDisks works out the changes to the disks. The instance's lock keeps them
// from changing meanwhile.
func (m *modification) planDisks(ctx context.Context, inst *cluster.Instance) (diskChanges, error) {
	d := diskChanges{before: inst.Disks, after: inst.Clone().Disks}
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
		if err := d.change(c, i, maker, inst); err != nil {
			return d, err
		}
	}
	if err := d.there(ctx, m.env, inst); err != nil {
		return d, err
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
	if slices.ContainsFunc(m.disks, func(c itemChange) bool { return c.action == add }) {
		if err := hasSomething(ctx, d.node, inst); err != nil {
			return err
		}
	}
	if _, err := m.env.secondOnline(inst); err != nil {
		return err
	}
	running, err := active(ctx, d.node, inst)
	if err != nil || !running {
		return err
	}
	for _, c := range m.disks {
		if (c.action == remove || c.action == detach) && !m.live {
			return fault.New(fault.WrongState, "Instance '%s' is marked to be up, can't %s volume from a running instance without using hotplug", inst.Name, c.action).At(c.place).
				WithHint("stop it first")
		}
	}
	if !m.live || slices.ContainsFunc(m.disks, func(c itemChange) bool { return c.action == modify }) {
		m.env.Infof("The changed disks are seen by instance %s after its next start", inst.Name)
	}
	return nil
}

// change makes one change in the list of disks.
func (d *diskChanges) change(c itemChange, i int, maker diskMaker, inst *cluster.Instance) error {
	n := strconv.Itoa(i)
	switch c.action {
	case add:
		if c.values["size"] == nil {
			return fault.New(fault.Invalid, "Required disk parameter 'size' missing").At(c.place + ".size")
		}
		disk, err := maker.disk(i, c.values)
		if err != nil {
			return err
		}
		disk.Nodes = instanceNodes(inst)
		d.after = insert(d.after, i, disk)
		d.added = append(d.added, diskOf(&disk))
		d.result = append(d.result, pair{"disk/" + n, "add:size=" + strconv.FormatInt(disk.Size, 10) + ",mode=" + disk.Mode})
	case attach:
		return d.attach(maker.env, c, i, inst)
	case detach:
		return d.detach(maker.env, c, i)
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

// onNodes are the steps that make the new disks, before the inventory tells of them, and take the removed ones away, when it does not
// tell of them any more: a removal that fails leaves disks that nobody has, and no instance that lacks some.
func (d *diskChanges) onNodes(env *Env, inst *cluster.Instance) (before, behind []work.Step) {
	before = d.handing(inst)
	for i, node := range instanceNodes(inst) {
		which, where := "", " its node"
		if i > 0 {
			which, where = " on its second node", " its second node"
		}
		if len(d.added) > 0 {
			uuids := make([]string, len(d.added))
			for n := range d.added {
				uuids[n] = d.added[n].UUID
			}
			disks := onNode(prepareDisks, node, inst.UUID, "make the new disks of instance "+inst.Name+which, prepareArgs{inst.Name, env.copiesOf(inst, d.added, node)})
			disks.Fails = "Could not create the disks of instance " + inst.Name
			drop := onNode(dropDisks, "", "", "remove the new disks of instance "+inst.Name, dropArgs{inst.Name, uuids})
			drop.Fails = "Could not remove the new disks of instance " + inst.Name + " from" + where
			drop.Left = env.leftDisks(inst, node, uuids)
			disks.Undo = &drop
			before = append(before, disks)
		}
		if len(d.gone) > 0 {
			drop := onNode(dropDisks, node, inst.UUID, "remove disks of instance "+inst.Name+which, dropArgs{inst.Name, d.gone})
			drop.Fails, drop.Tolerated = "can't remove instance's disks", true
			drop.Left = env.leftDisks(inst, node, d.gone)
			behind = append(behind, drop)
		}
	}
	return before, append(behind, d.leaving(env, inst)...)
}

// leaving are the steps that take away what is left of an instance, without disks, on a node that has none of its disks any more.
func (d *diskChanges) leaving(env *Env, inst *cluster.Instance) (steps []work.Step) {
	next := inst.Clone()
	next.Disks = d.after
	for _, node := range instanceNodes(inst) {
		if slices.Contains(instanceNodes(next), node) {
			continue
		}
		name := nodeName(env.snapshot(), node)
		s := onNode(removeFromNode, node, inst.UUID, "remove what its second node has of instance "+inst.Name, meant{inst.Name})
		s.Fails, s.Tolerated = "Could not remove what node "+name+" has of instance "+inst.Name, true
		s.Left = "Node " + name + " has something of instance " + inst.Name + " that has no disks; it goes when the instance has disks there again, and is removed"
		steps = append(steps, s)
	}
	return steps
}

// leftDisks says of disks that an instance does not have that a node may have them, and what to type.
func (e *Env) leftDisks(inst *cluster.Instance, node string, disks []string) string {
	name := nodeName(e.snapshot(), node)
	return "Disks that instance " + inst.Name + " does not have may be left on node " + name + ": " + strings.Join(disks, ", ") +
		"; next: drover node orphans " + name + ", drover node clear-orphans " + name + " " + strings.Join(disks, " ")
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}
