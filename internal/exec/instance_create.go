package exec

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
)

// createLocks locks the new name, and shares the node it goes to; when that
// is still to be chosen, all nodes.
func createLocks(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	request, err := nameLocks(op.Str("instance_name"))
	if err != nil {
		return nil, err
	}
	node := lock.All
	if op.Has("pnode") || op.Has("pnode_uuid") {
		n, err := findNode(op, "pnode", snap)
		if err != nil {
			return nil, err
		}
		node = n.UUID
	}
	request = append(request, want(lock.Node, node, lock.Shared), want(lock.NodeRes, node, lock.Shared))
	for _, nic := range op.List("nics") {
		m, _ := nic.(map[string]any)
		if text, _ := m["network"].(string); text != "" && text != none {
			network, err := findNetwork(text, snap)
			if err != nil {
				return nil, err
			}
			request = append(request, want(lock.Network, network.UUID, lock.Shared))
		}
	}
	return request, nil
}

// automatic is what clients say for a value that is to be chosen for them.
const automatic = "auto"

// creation is OP_INSTANCE_CREATE once its checks are done.
type creation struct {
	env   *Env
	inst  *cluster.Instance
	nics  []nicRequest
	node  *cluster.Node
	agent Node
	// places are those that creations have chosen. chosen says that this one chose its
	// node, full are the nodes that had no room after all.
	places  *places
	chosen  bool
	full    map[string]bool // by UUID
	address string          // what the name was resolved to, if it was
	// leftover is the UUID under which the node has what a creation of this name left
	// that did not end; empty if it has nothing.
	leftover string
	// install says whether the operating system is installed, start whether
	// the instance is started.
	install, start bool
	secret         map[string]any
}

// create prepares OP_INSTANCE_CREATE.
func (n Names) create(ctx context.Context, env *Env) (Plan, error) {
	if err := refuseCreation(env); err != nil {
		return Plan{}, err
	}
	if err := checkGivenOSParams(env.Op); err != nil {
		return Plan{}, err
	}
	op, address, err := n.checkNewName(ctx, env, "instance_name", "Cannot do IP address check without a name check")
	if err != nil {
		return Plan{}, err
	}
	env.Op = op
	inst, err := newInstance(env)
	if err != nil {
		return Plan{}, err
	}
	c := &creation{env: env, inst: inst, secret: op.Map("osparams_secret"), places: n.places, full: map[string]bool{}, address: address}
	env.atEnd(func() { c.places.release(inst.UUID) })
	if err := c.checkInstallation(); err != nil {
		return Plan{}, err
	}
	if err := c.settle(ctx); err != nil {
		return Plan{}, err
	}
	return Plan{Dry: []string{c.node.Name}, Do: func(ctx context.Context) (any, error) {
		err := c.run(ctx)
		return []string{c.node.Name}, err
	}}, nil
}

// settle finds the node of the new instance and checks what can be checked there. If a node
// that was chosen has no room after all, another one is.
func (c *creation) settle(ctx context.Context) error {
	for {
		if err := c.tryNode(ctx); !c.passOver(err) {
			return err
		}
	}
}

// takenError is that of an instance whose node was chosen and has no room after all.
// Nothing is left of it there.
type takenError struct{ error }

func (e takenError) Unwrap() error { return e.error }

// passOver has a node that has no room not chosen again; false if that is not what is wrong.
func (c *creation) passOver(err error) bool {
	taken, ok := errors.AsType[takenError](err)
	if !ok || !c.chosen {
		return false
	}
	c.env.Infof("Node %s is passed over: %v", c.node.Name, taken.error)
	c.full[c.node.UUID], c.chosen = true, false
	return true
}

func (c *creation) tryNode(ctx context.Context) error {
	if err := c.place(ctx); err != nil {
		return err
	}
	var err error
	if c.nics, err = readNICs(c.env.Op.List("nics"), c.address); err != nil {
		return err
	}
	snap := c.env.snapshot()
	if _, _, err := c.connect(snap); err != nil {
		return err
	}
	if !c.env.Op.Bool("ignore_ipolicy") {
		if err := checkPolicy(snap, c.node, c.inst, len(c.nics)); err != nil {
			return err
		}
	}
	err = c.checkNode(ctx)
	if fault.Is(err, fault.Exhausted) {
		return takenError{err}
	}
	return err
}

// refuseCreation refuses what creation cannot do, or not yet, before anything
// else.
func refuseCreation(env *Env) error {
	op, c := env.Op, env.snapshot().Cluster()
	switch {
	case op.Str("mode") != "create":
		return fault.New(fault.Invalid, "Instances can't be created by mode '%s' yet", op.Str("mode")).At("mode").WithHint("use 'create'")
	case op.Bool("forthcoming"), op.Bool("commit"):
		return fault.New(fault.Invalid, "Forthcoming instances are not supported yet").At("forthcoming")
	case op.Has("iallocator") && (op.Has("pnode") || op.Has("pnode_uuid")):
		return fault.New(fault.Invalid, "Do not specify both, iallocator and node").At("iallocator")
	case !checkAllocator(op.Str("iallocator")):
		return fault.New(fault.Failed, "Failure while running the iallocator script: iallocator module '%s' not found in the search path",
			op.Str("iallocator")).At("iallocator")
	case op.Bool("opportunistic_locking") && !op.Has("iallocator") && (op.Has("pnode") || op.Has("pnode_uuid")):
		return fault.New(fault.Invalid, "Opportunistic locking is only available in combination with an instance allocator").At("opportunistic_locking")
	case op.Bool("instance_communication"): // no network for it can be set yet
		return fault.New(fault.NotFound, "Network '%s' not found", c.CommNetwork).At("instance_communication")
	case op.Str("compress") != none && !slices.Contains(c.CompressionTools, op.Str("compress")):
		return fault.New(fault.Invalid, "Compression tool not allowed, tools allowed are [%s]", strings.Join(c.CompressionTools, ", ")).At("compress")
	}
	if op.Has("snode") || op.Has("snode_uuid") {
		env.Warnf("Secondary node will be ignored on non-mirrored disk template")
	}
	return nil
}

// newInstance builds the instance's value from the opcode, without its node
// and interfaces.
func newInstance(env *Env) (*cluster.Instance, error) {
	op, snap := env.Op, env.snapshot()
	c := snap.Cluster()
	name, err := cluster.NormalName(op.Str("instance_name"))
	if err != nil {
		return nil, err
	}
	if err := hypervisor.CheckName(name); err != nil {
		return nil, err
	}
	if snap.InstanceNamed(name) != nil {
		return nil, fault.New(fault.Exists, "Instance '%s' is already in the cluster", name)
	}
	now := env.nanos()
	inst := &cluster.Instance{
		Meta: cluster.NewMeta(env.NewUUID(), now), Name: name, OS: op.Str("os_type"), Hypervisor: c.Hypervisor(),
		OSParams: op.Map("osparams"), OSParamsPrivate: op.Map("osparams_private"),
		AdminState: cluster.AdminDown, AdminStateSource: cluster.SourceAdmin,
	}
	if op.Has("hypervisor") {
		inst.Hypervisor = op.Str("hypervisor")
	}
	if !slices.Contains(c.EnabledHypervisors, inst.Hypervisor) {
		return nil, fault.New(fault.WrongState, "Selected hypervisor (%s) not enabled in the cluster (%s)",
			inst.Hypervisor, strings.Join(c.EnabledHypervisors, ", "))
	}
	if inst.Tags, err = cluster.AddTags(nil, op.Strings("tags")); err != nil {
		return nil, err
	}
	if err := setNewParams(op, c, inst); err != nil {
		return nil, err
	}
	inst.Disks, err = newDisks(env, c, inst)
	return inst, err
}

// setNewParams fills in the instance's own parameters; those that say
// "default", or "auto" as clients of a creation do, are left out.
func setNewParams(op *opcode.Opcode, c *cluster.Cluster, inst *cluster.Instance) error {
	given := cluster.Params(op.Map("beparams")).Clone()
	maps.DeleteFunc(given, func(_ string, v any) bool { return v == automatic })
	be, err := cluster.CheckBEParams(given)
	if err != nil {
		return err
	}
	hv, err := checkHV(inst.Hypervisor, op.Map("hvparams"))
	if err != nil {
		return err
	}
	inst.BEParams, inst.HVParams = cluster.SetParams(nil, be), cluster.SetParams(nil, hv)
	return cluster.CheckMemory(c.FillBE(inst))
}

// checkInstallation decides whether the operating system is installed and the
// instance started.
func (c *creation) checkInstallation() error {
	op := c.env.Op
	c.install, c.start = !op.Bool("no_install") && len(c.inst.Disks) > 0, op.Bool("start")
	if c.inst.OS == "" {
		return fault.New(fault.Invalid, "No guest OS or OS image specified").At("os_type")
	}
	if op.Bool("no_install") && c.start {
		c.env.Infof("No-installation mode selected, disabling startup")
		c.start = false
	}
	return nil
}

// place finds the node of the new instance.
func (c *creation) place(ctx context.Context) error {
	op, snap := c.env.Op, c.env.snapshot()
	need := intParam(snap.Cluster().FillBE(c.inst), "maxmem")
	var err error
	if op.Has("pnode") || op.Has("pnode_uuid") {
		if c.node, err = findNode(op, "pnode", snap); err == nil {
			c.places.claim(c.inst.UUID, claim{node: c.node.UUID, memory: need})
		}
	} else {
		err = c.choose(ctx, op.Str("group_name"), need)
	}
	if err != nil {
		return err
	}
	if err := hosting(c.node); err != nil {
		return err
	}
	c.inst.PrimaryNode = c.node.UUID
	for i := range c.inst.Disks {
		c.inst.Disks[i].Nodes = []string{c.node.UUID}
	}
	c.agent, err = c.env.agent(c.node)
	return err
}

// choose chooses the node among all that could take the instance.
func (c *creation) choose(ctx context.Context, group string, need int) error {
	candidates, err := c.env.candidates(ctx, group)
	if err != nil {
		return err
	}
	candidates = slices.DeleteFunc(candidates, func(k candidate) bool { return c.full[k.node.UUID] })
	node, why, err := c.places.choose(c.env.snapshot, candidates, c.inst.UUID, need)
	if err != nil {
		return err
	}
	c.node, c.chosen = node, true
	c.env.Infof("Selected nodes for instance %s: %s (%s)", c.inst.Name, node.Name, why)
	return nil
}

// checkNode asks the node whether it can take the instance.
func (c *creation) checkNode(ctx context.Context) error {
	os, err := c.agent.FindOS(ctx, c.inst.OS, c.env.Op.Bool("force_variant"))
	if err != nil {
		return err
	}
	snap := c.env.snapshot()
	if err := checkOSParams(os, c.node.Name, snap.Cluster().FillOS(c.inst), c.inst.OSParamsPrivate, c.secret); err != nil {
		return err
	}
	if err := c.checkStranger(ctx); err != nil {
		return err
	}
	if !c.start {
		return nil
	}
	spec := specOf(snap.Cluster(), c.inst, nil, nil)
	return roomFor(ctx, c.agent, "creating instance "+c.inst.Name, spec.Memory)
}

// checkStranger refuses what the node has under the new name. Only what a creation
// left that did not end can be cleared away.
func (c *creation) checkStranger(ctx context.Context) error {
	there, err := c.agent.Instance(ctx, c.inst.Name)
	c.leftover = ""
	switch {
	case fault.Is(err, fault.NotFound):
		return nil
	case err != nil:
		return fault.New(fault.Environment, "Can't get the state of instance %s from node %s: %w", c.inst.Name, c.node.Name, err)
	case there.Active():
		return fault.New(fault.WrongState, "Instance '%s' is not in the cluster, but runs on node %s", c.inst.Name, c.node.Name)
	case there.Blank && c.env.snapshot().Instance(there.UUID) == nil:
		c.leftover = there.UUID
		return nil
	}
	return fault.New(fault.Exists, "Instance '%s' is not in the cluster, but node %s has one of that name (%s, %d disks)",
		c.inst.Name, c.node.Name, there.UUID, len(there.Disks)).
		WithHint("it is left alone: take another name or another node; drover cluster verify lists what nodes have and the cluster does not")
}

// connect gives the interfaces their addresses from the newest inventory.
func (c *creation) connect(snap *cluster.Snapshot) ([]cluster.NIC, []cluster.Change, error) {
	w := newWiring(snap, c.node.Group, c.env.connecting())
	nics, err := w.connectAll(c.nics)
	return nics, w.changes(), err
}

// run makes the instance, on another node if the one that was chosen has no room by then.
func (c *creation) run(ctx context.Context) error {
	for {
		err := c.make(ctx)
		if err == nil {
			return c.bringUp(ctx)
		}
		if !c.passOver(err) {
			return err
		}
		if err := c.settle(ctx); err != nil {
			return err
		}
	}
}

// make makes the disks of the instance and puts it into the inventory.
func (c *creation) make(ctx context.Context) error {
	env, inst := c.env, c.inst
	for i := range inst.Disks {
		env.Logf("* disk %d, size %s", i, sizeText(inst.Disks[i].Size))
	}
	env.Logf("* creating instance disks...")
	disks := make([]hypervisor.Disk, len(inst.Disks))
	for i := range inst.Disks {
		disks[i] = diskOf(&inst.Disks[i])
	}
	if c.leftover != "" {
		env.Infof("Node %s has disks of an instance %s (%s) whose creation did not end, and which nothing has used: they are removed",
			c.node.Name, inst.Name, c.leftover)
		if err := c.agent.Remove(ctx, c.env.Order(), inst.Name); err != nil {
			return failed(err, "Could not clear the disks of an earlier instance %s on node %s", inst.Name, c.node.Name)
		}
	}
	if err := c.agent.Prepare(ctx, c.env.Order(), inst.Name, inst.UUID, disks); err != nil {
		full := fault.Is(err, fault.Exhausted)
		err = c.undo(ctx, failed(err, "Could not create the disks of instance %s on node %s", inst.Name, c.node.Name))
		if full {
			return takenError{err}
		}
		return err
	}
	env.Logf("adding instance %s to cluster config", inst.Name)
	if err := c.add(ctx); err != nil {
		if unsure(err) {
			env.Warnf("Whether instance %s was added is not known; its disks on node %s are left as they are", inst.Name, c.node.Name)
			return err
		}
		return c.undo(ctx, err)
	}
	if err := c.agent.Keep(ctx, env.Order(), inst.Name, inst.UUID); err != nil {
		env.Warnf("Node %s did not take note that instance %s is wanted: %v", c.node.Name, inst.Name, err)
	}
	env.Logf("adding disks to cluster config")
	if len(inst.Disks) > 0 && env.Op.Bool("wait_for_sync") {
		env.Infof("Waiting for instance %s to sync disks", inst.Name)
		env.Infof("Instance %s's disks are in sync", inst.Name)
	}
	return nil
}

// add puts the instance into the inventory, with its interfaces connected as
// the newest state allows.
func (c *creation) add(ctx context.Context) error {
	return c.env.update(ctx, func(snap *cluster.Snapshot) ([]cluster.Change, error) {
		if snap.InstanceNamed(c.inst.Name) != nil {
			return nil, fault.New(fault.Exists, "Instance '%s' is already in the cluster", c.inst.Name)
		}
		if c.chosen && c.places.taken(snap, c.inst.UUID) {
			return nil, takenError{fault.New(fault.Failed, "The memory that was free for instance %s is promised to others by now", c.inst.Name)}
		}
		nics, others, err := c.connect(snap)
		if err != nil {
			return nil, err
		}
		inst := c.inst.Clone()
		inst.NICs = nics
		return append(others, cluster.Put(inst)), nil
	})
}

// undo takes the disks away again when the instance could not be added. It
// does so even when the job is being ended.
func (c *creation) undo(ctx context.Context, cause error) error {
	ctx = context.WithoutCancel(ctx)
	there, err := c.agent.Instance(ctx, c.inst.Name)
	if err == nil && there.UUID == c.inst.UUID {
		err = c.agent.Remove(ctx, c.env.Order(), c.inst.Name)
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		c.env.Warnf("Could not remove the disks of instance %s from node %s: %v", c.inst.Name, c.node.Name, err)
	}
	return cause
}

// bringUp installs and starts the instance. If that fails the instance stays,
// stopped, so that the operator can look at it.
func (c *creation) bringUp(ctx context.Context) error {
	env, snap := c.env, c.env.snapshot()
	inst := snap.Instance(c.inst.UUID)
	if inst == nil {
		return fault.New(fault.Conflict, "instance %s was removed meanwhile", c.inst.Name)
	}
	spec := specOf(snap.Cluster(), inst, nil, nil)
	if c.install {
		env.Logf("* running the instance OS create scripts...")
		params := scriptParams(snap.Cluster().FillOS(inst), inst.OSParamsPrivate, c.secret)
		if err := c.agent.Install(ctx, env.Order(), spec, inst.OS, params); err != nil {
			return failed(err, "Could not add os for instance %s on node %s", inst.Name, c.node.Name)
		}
	}
	if !c.start {
		return nil
	}
	env.Logf("* starting instance...")
	if err := c.agent.Start(ctx, env.Order(), spec, env.Op.Reason); err != nil {
		return failed(err, "Could not start instance")
	}
	return env.setState(ctx, inst.UUID, cluster.AdminUp, cluster.SourceAdmin, true)
}

// scriptParams merges parameters for operating system scripts into texts.
func scriptParams(layers ...cluster.Params) map[string]string {
	out := map[string]string{}
	for _, l := range layers {
		for name, v := range l {
			out[name] = fmt.Sprint(v)
		}
	}
	return out
}
