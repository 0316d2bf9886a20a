package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/deploy/secret"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hooks"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/placement"
	"github.com/drover-project/drover/internal/work"
)

// createLocks locks the new name, and shares the node it goes to; when that
// is still to be chosen, all nodes.
func createLocks(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	request, err := nameLocks(op.Str("instance_name"))
	if err != nil {
		return nil, err
	}
	nodes := []string{lock.All}
	if named(op, "pnode") {
		nodes = nil
		for _, field := range []string{"pnode", "snode"} {
			if !named(op, field) {
				continue
			}
			n, err := findNode(op, field, snap)
			if err != nil && field == "snode" && op.Str("disk_template") != cluster.DiskDRBD {
				continue // it is ignored where disks are not mirrored
			}
			if err != nil {
				return nil, err
			}
			nodes = append(nodes, n.UUID)
		}
	}
	request = append(request, sharing(nodes...)...)
	source, err := sourceLocks(op, snap, request)
	if err != nil {
		return nil, err
	}
	request = append(request, source...)
	request = append(request, usedImage(op.Str("os_type"), snap)...)
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
	names Names
	inst  *cluster.Instance
	nics  []nicRequest
	node  *cluster.Node
	agent Node
	// second is the node that has the second copy of mirrored disks; nil for other disks.
	second *cluster.Node
	// places are those that creations have chosen. chosen says that this one chose its
	// node.
	places  *places
	chosen  bool
	address string // what the name was resolved to, if it was
	// left is what nodes have of creations of this name that did not end.
	left []leftThing
	// install says whether the operating system is installed, start whether
	// the instance is started.
	install, start bool
	// image is the UUID of the image that is installed; empty for an operating system of the node's.
	image  string
	secret map[string]any
	// from is what the instance is imported from; nil for one that is installed.
	from *importing
}

// create prepares OP_INSTANCE_CREATE.
func (n Names) create(ctx context.Context, env *Env) (Plan, error) {
	if err := n.refuseCreation(env); err != nil {
		return Plan{}, err
	}
	if err := checkGivenOSParams(env.Op); err != nil {
		return Plan{}, err
	}
	var from *importing
	if env.Op.Str("mode") == "import" {
		var err error
		if from, env.Op, err = findExport(ctx, env); err != nil {
			return Plan{}, err
		}
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
	if from != nil {
		if err := from.checkSizes(inst); err != nil {
			return Plan{}, err
		}
	}
	env.places = n.places
	c := &creation{env: env, names: n, inst: inst, from: from, secret: op.Map("osparams_secret"), places: n.places, address: address}
	env.atEnd(func() { c.places.release(inst.UUID) })
	if err := c.checkInstallation(); err != nil {
		return Plan{}, err
	}
	if err := c.settle(ctx); err != nil {
		return Plan{}, err
	}
	return Plan{Dry: c.nodeNames(), Work: c.plan(), Decided: hooks.Subject{Instance: inst}, Again: func(cause error) bool {
		c.places.release(inst.UUID)
		return c.passOver(cause)
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
type takenError struct {
	error
	// node is the UUID of the node; empty for the primary one.
	node string
}

func (e takenError) Unwrap() error { return e.error }

// passOver has a node that has no room not chosen again; false if that is not what is wrong.
func (c *creation) passOver(err error) bool {
	taken, is := errors.AsType[takenError](err)
	if !is || !c.chosen {
		return false
	}
	full := c.node
	if c.second != nil && c.second.UUID == taken.node {
		full = c.second
	}
	c.env.Infof("Node %s is passed over: %v", full.Name, err)
	c.env.passOver(full.UUID, err)
	c.chosen = false
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
		return takenError{err, ""}
	}
	return err
}

// refuseCreation refuses what creation cannot do, or not yet, before anything
// else.
func (n Names) refuseCreation(env *Env) error {
	op, c := env.Op, env.snapshot().Cluster()
	if op.Str("mode") == "import" { // whatever an export has: who has the name is to be told first
		if err := freeInstanceName(op.Str("instance_name"), env.snapshot()); err != nil {
			return err
		}
	}
	switch {
	case op.Str("mode") == "remote-import":
		return fault.New(fault.Invalid, "Instances can't be created by mode '%s'", op.Str("mode")).At("mode").
			WithHint("export it there to a node, copy the directory of the export below export/ of a node here, and import it by mode 'import'")
	case op.Bool("forthcoming"), op.Bool("commit"):
		return fault.New(fault.Invalid, "Forthcoming instances are not supported yet").At("forthcoming")
	case op.Has("iallocator") && named(op, "pnode"):
		return fault.New(fault.Invalid, "Do not specify both, iallocator and node").At("iallocator")
	case !n.checkAllocator(op.Str("iallocator")):
		return noAllocator(op.Str("iallocator"))
	case op.Bool("opportunistic_locking") && !op.Has("iallocator") && named(op, "pnode"):
		return fault.New(fault.Invalid, "Opportunistic locking is only available in combination with an instance allocator").At("opportunistic_locking")
	case op.Bool("instance_communication"): // no network for it can be set yet
		return fault.New(fault.NotFound, "Network '%s' not found", c.CommNetwork).At("instance_communication")
	case op.Str("compress") != none && !slices.Contains(c.CompressionTools, op.Str("compress")):
		return fault.New(fault.Invalid, "Compression tool not allowed, tools allowed are [%s]", strings.Join(c.CompressionTools, ", ")).At("compress")
	}
	return nil
}

// named tells which nodes the opcode names.
func named(op *opcode.Opcode, field string) bool { return op.Has(field) || op.Has(field+"_uuid") }

// freeInstanceName refuses a name that an instance has.
func freeInstanceName(name string, snap *cluster.Snapshot) error {
	if inst := snap.InstanceNamed(strings.ToLower(name)); inst != nil {
		return fault.New(fault.Exists, "Instance '%s' is already in the cluster", inst.Name)
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
	if err := freeInstanceName(name, snap); err != nil {
		return nil, err
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
	if inst.Tags, err = labelled(cluster.KindInstance, nil, op.Strings("tags")); err != nil {
		return nil, err
	}
	if err := setNewParams(op, c, inst); err != nil {
		return nil, err
	}
	if op.Bool("identify_defaults") {
		identifyDefaults(c, inst)
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
	c.install, c.start = !op.Bool("no_install") && len(c.inst.Disks) > 0 && c.from == nil, op.Bool("start")
	if c.inst.OS == "" {
		return fault.New(fault.Invalid, "No guest OS or OS image specified").At("os_type")
	}
	if c.from != nil {
		if op.Bool("no_install") {
			c.env.firstf("No-installation mode has no effect during import")
		}
		return nil
	}
	if op.Bool("no_install") && c.start {
		c.env.firstf("No-installation mode selected, disabling startup")
		c.start = false
	}
	return nil
}

// connect gives the interfaces their addresses from the newest inventory.
func (c *creation) connect(snap *cluster.Snapshot) ([]cluster.NIC, []cluster.Change, error) {
	w := newWiring(snap, c.node.Group, c.env.connecting())
	nics, err := w.connectAll(c.nics)
	return nics, w.changes(), err
}

// addArgs are what the step that puts a new instance into the inventory has from its plan.
type addArgs struct {
	// Instance is the instance but for its interfaces and private parameters, which the opcode has.
	Instance *cluster.Instance `json:"instance"`
	// Address is what its name was resolved to.
	Address string `json:"address,omitempty"`
	// Chosen says that its node was chosen, with so much memory for instances, in MiB.
	Chosen bool  `json:"chosen,omitempty"`
	Total  int64 `json:"total,omitempty"`
	// NICs are its interfaces where the opcode does not have them, but an export: as opcodes have them.
	NICs []any `json:"nics,omitempty"`
}

// The verb that puts a new instance into the inventory.
const addInstance = "add"

var creationVerbs = map[string]verb{addInstance: changing(adding)}

// plan are the steps of the creation. Behind the inventory nothing is taken back: if the installation or the start fails the
// instance stays, stopped, so that the operator can look at it.
func (c *creation) plan() *work.Work {
	inst, name := c.inst, c.inst.Name
	w := &work.Work{Result: encodeArgs(c.nodeNames())}
	if s := c.fetching(); s != nil {
		w.Steps = append(w.Steps, *s)
	}
	for _, n := range c.nodes() {
		w.Steps = append(w.Steps, c.making(n))
	}
	kept := inst.Clone()
	kept.OSParamsPrivate = nil
	args := addArgs{Instance: kept, Address: c.address, Chosen: c.chosen, Total: c.places.total(inst.UUID)}
	if c.from != nil {
		args.NICs = c.env.Op.List("nics")
	}
	adds := inInventory(addInstance, inst.UUID, "add instance "+name+" to the inventory", args)
	adds.Says, adds.Keeps = []string{"adding instance " + name + " to cluster config"}, true
	adds.Ends = []string{"adding disks to cluster config"}
	await := len(inst.Disks) > 0 && c.env.Op.Bool("wait_for_sync")
	if await && c.second == nil {
		adds.Ends = append(adds.Ends, " - INFO: Waiting for instance "+name+" to sync disks", " - INFO: Instance "+name+"'s disks are in sync")
	}
	w.Steps = append(w.Steps, adds)
	if await && c.second != nil {
		w.Steps = append(w.Steps, awaiting(inst, c.second.UUID))
	}
	return c.bringUp(w)
}

// making is the step that makes the disks on a node.
func (c *creation) making(node *cluster.Node) work.Step {
	inst, name := c.inst, c.inst.Name
	text := "make the disks of instance " + name
	if node == c.second {
		text += " on its second node"
	}
	disks := onNode(prepareDisks, node.UUID, inst.UUID, text, prepareArgs{name, c.env.copiesOf(inst, disksOf(inst), node.UUID)})
	if node == c.node {
		for i := range inst.Disks {
			disks.Says = append(disks.Says, fmt.Sprintf("* disk %d, size %s", i, sizeText(inst.Disks[i].Size)))
		}
		disks.Says = append(disks.Says, "* creating instance disks...")
	}
	for i := range c.left {
		if left := &c.left[i]; left.node == node.Name {
			disks.Says = append(disks.Says, fmt.Sprintf(" - INFO: Node %s has another instance %s (%s), %s, whose creation did not end; it is left there until: drover node clear-orphans %s %s",
				node.Name, name, identity(&left.Instance), left.MadeBy, node.Name, left.UUID))
		}
	}
	disks.Fails = "Could not create the disks of instance " + name + " on node " + node.Name
	back := onNode(removeFromNode, "", "", "remove the disks of instance "+name, meant{name})
	back.Fails = "Could not remove the disks of instance " + name + " from node " + node.Name
	back.Left = "Node " + node.Name + " still has what there is of the instance " + name + " (" + inst.UUID + ") that was not created; next: drover node clear-orphans " + node.Name + " " + inst.UUID
	disks.Undo = &back
	return disks
}

// bringUp adds the steps that install and start the instance.
func (c *creation) bringUp(w *work.Work) *work.Work {
	inst, node := c.inst, c.node
	if c.from != nil {
		w.Steps = append(w.Steps, c.importSteps()...)
	}
	if c.install {
		s := onNode(installSystem, node.UUID, inst.UUID, "install "+inst.OS+" on instance "+inst.Name, installArgs{Image: c.image})
		s.Says, s.Anew = []string{"* running the instance OS create scripts..."}, true
		s.Fails = "Could not add os for instance " + inst.Name + " on node " + node.Name
		w.Steps = append(w.Steps, s)
	}
	if c.start {
		s := onNode(startInstance, node.UUID, inst.UUID, "start instance "+inst.Name, startArgs{})
		s.Says, s.Fails = []string{"* starting instance..."}, "Could not start instance"
		mark := inInventory(markInstance, inst.UUID, "mark instance "+inst.Name+" as up", markArgs{State: cluster.AdminUp, Source: cluster.SourceAdmin, Did: true})
		w.Steps = append(w.Steps, s, mark)
	}
	return w
}

func disksOf(inst *cluster.Instance) []hypervisor.Disk {
	disks := make([]hypervisor.Disk, len(inst.Disks))
	for i := range inst.Disks {
		disks[i] = diskOf(&inst.Disks[i])
	}
	return disks
}

// elsewhere reports whether what was kept of a creation was taken back because the node that was chosen for it has no room after all,
// and has that node not chosen again: the creation is planned anew, as it is under the controller that began it.
func (e *Env) elsewhere(err error) bool {
	taken, is := errors.AsType[takenError](err)
	if !is || e.Kept.Work == nil {
		return false
	}
	for i := range e.Kept.Work.Steps {
		s := &e.Kept.Work.Steps[i]
		if s.Verb != addInstance {
			continue
		}
		a, readErr := arguments[addArgs](s)
		if readErr != nil || !a.Chosen || a.Instance == nil {
			return false
		}
		full := cmp.Or(taken.node, a.Instance.PrimaryNode)
		e.Infof("Node %s is passed over: %v", nodeName(e.snapshot(), full), err)
		e.passOver(full, err)
		return true
	}
	return false
}

// adding puts the instance into the inventory, with its interfaces connected as
// the newest state allows.
func adding(env *Env, snap *cluster.Snapshot, _ *work.Step, a addArgs) ([]cluster.Change, any, error) {
	inst := a.Instance.Clone()
	node := snap.Node(inst.PrimaryNode)
	if err := freeInstanceName(inst.Name, snap); err != nil {
		return nil, nil, err
	}
	switch {
	case node == nil:
		return nil, nil, fault.New(fault.NotFound, "the node with UUID %s is not in the cluster any more", inst.PrimaryNode)
	case a.Chosen && env.taken(snap, inst, a.Total):
		return nil, nil, takenError{fault.New(fault.Failed, "The memory that was free for instance %s is promised to others by now", inst.Name), ""}
	}
	// Behind a restart nobody knew of others of its groups that were being made.
	if v, broken := placement.Misplaced(placement.World{Inventory: snap}, inst, node); broken && a.Chosen {
		return nil, nil, takenError{fault.New(fault.Failed, "Instance %s cannot come to node %s any more: %s", inst.Name, node.Name, v.Text()), ""}
	}
	list := env.Op.List("nics")
	if len(list) == 0 {
		list = a.NICs
	}
	nics, err := readNICs(list, a.Address)
	if err != nil {
		return nil, nil, err
	}
	w := newWiring(snap, node.Group, env.connecting())
	if inst.NICs, err = w.connectAll(nics); err != nil {
		return nil, nil, err
	}
	inst.OSParamsPrivate = env.Op.Map("osparams_private")
	allotDevices(snap, inst)
	return append(w.changes(), cluster.Put(inst)), nil, nil
}

// hiddenParams hides what is private or secret of them in what scripts print, which comes into results of jobs and from there into logs.
func hiddenParams(layers ...cluster.Params) *secret.Values {
	return secret.NewValues(slices.Collect(maps.Values(scriptParams(layers...))))
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
