package exec

import (
	"context"
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
	op, address, err := n.checkNewName(ctx, env, "instance_name", "Cannot do IP address check without a name check")
	if err != nil {
		return Plan{}, err
	}
	env.Op = op
	return instanceCreate(ctx, env, address)
}

// instanceCreate prepares a creation whose name is the one to keep; address is
// what that name was resolved to, if it was.
func instanceCreate(ctx context.Context, env *Env, address string) (Plan, error) {
	inst, err := newInstance(env)
	if err != nil {
		return Plan{}, err
	}
	c := &creation{env: env, inst: inst, secret: env.Op.Map("osparams_secret")}
	if err := c.checkInstallation(); err != nil {
		return Plan{}, err
	}
	if err := c.place(ctx); err != nil {
		return Plan{}, err
	}
	if c.nics, err = readNICs(env.Op.List("nics"), address); err != nil {
		return Plan{}, err
	}
	snap := env.snapshot()
	if _, _, err := c.connect(snap); err != nil {
		return Plan{}, err
	}
	if !env.Op.Bool("ignore_ipolicy") {
		if err := checkPolicy(snap, c.node, inst, len(c.nics)); err != nil {
			return Plan{}, err
		}
	}
	if err := c.checkNode(ctx); err != nil {
		return Plan{}, err
	}
	result := []string{c.node.Name}
	return Plan{Dry: result, Do: func(ctx context.Context) (any, error) { return result, c.run(ctx) }}, nil
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
	var err error
	if op.Has("pnode") || op.Has("pnode_uuid") {
		c.node, err = findNode(op, "pnode", snap)
	} else {
		var why string
		c.node, why, err = c.env.allocate(ctx, snap, op.Str("group_name"), intParam(snap.Cluster().FillBE(c.inst), "maxmem"))
		if err == nil {
			c.env.Infof("Selected nodes for instance %s: %s (%s)", c.inst.Name, c.node.Name, why)
		}
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
	running, err := active(ctx, c.agent, c.inst.Name)
	if err != nil {
		return err
	}
	if running {
		return fault.New(fault.WrongState, "Instance '%s' is not in the cluster, but runs on node %s", c.inst.Name, c.node.Name)
	}
	if !c.start {
		return nil
	}
	spec := specOf(snap.Cluster(), c.inst, nil, nil)
	return roomFor(ctx, c.agent, "creating instance "+c.inst.Name, spec.Memory)
}

// connect gives the interfaces their addresses from the newest inventory.
func (c *creation) connect(snap *cluster.Snapshot) ([]cluster.NIC, []cluster.Change, error) {
	w := newWiring(snap, c.node.Group, c.env.connecting())
	nics, err := w.connectAll(c.nics)
	return nics, w.changes(), err
}

func (c *creation) run(ctx context.Context) error {
	env, inst := c.env, c.inst
	for i := range inst.Disks {
		env.Logf("* disk %d, size %s", i, sizeText(inst.Disks[i].Size))
	}
	env.Logf("* creating instance disks...")
	disks := make([]hypervisor.Disk, len(inst.Disks))
	for i := range inst.Disks {
		disks[i] = diskOf(&inst.Disks[i])
	}
	// The name is new and locked, so whatever the node has under it was left by
	// a creation that died.
	if err := c.agent.Remove(ctx, c.env.Order(), inst.Name); err != nil {
		return failed(err, "Could not clear the disks of an earlier instance %s on node %s", inst.Name, c.node.Name)
	}
	if err := c.agent.Prepare(ctx, c.env.Order(), inst.Name, inst.UUID, disks); err != nil {
		return c.undo(ctx, failed(err, "Could not create the disks of instance %s on node %s", inst.Name, c.node.Name))
	}
	env.Logf("adding instance %s to cluster config", inst.Name)
	if err := c.add(ctx); err != nil {
		return c.undo(ctx, err)
	}
	env.Logf("adding disks to cluster config")
	if len(inst.Disks) > 0 && env.Op.Bool("wait_for_sync") {
		env.Infof("Waiting for instance %s to sync disks", inst.Name)
		env.Infof("Instance %s's disks are in sync", inst.Name)
	}
	return c.bringUp(ctx)
}

// add puts the instance into the inventory, with its interfaces connected as
// the newest state allows.
func (c *creation) add(ctx context.Context) error {
	return c.env.update(ctx, func(snap *cluster.Snapshot) ([]cluster.Change, error) {
		if snap.InstanceNamed(c.inst.Name) != nil {
			return nil, fault.New(fault.Exists, "Instance '%s' is already in the cluster", c.inst.Name)
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
	if err := c.agent.Remove(context.WithoutCancel(ctx), c.env.Order(), c.inst.Name); err != nil {
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
