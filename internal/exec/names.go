package exec

import (
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
)

// findInstance returns the instance that the opcode names by instance_uuid or
// instance_name. When it gives both they must mean the same one.
func findInstance(op *opcode.Opcode, snap *cluster.Snapshot) (*cluster.Instance, error) {
	name, uuid := op.Str("instance_name"), op.Str("instance_uuid")
	if uuid == "" {
		return namedInstance(name, snap)
	}
	inst := snap.Instance(uuid)
	if inst == nil {
		return nil, unknown("Instance", uuid).At("instance_uuid")
	}
	if named, err := namedInstance(name, snap); name != "" && (err != nil || named != inst) {
		return nil, fault.New(fault.Invalid, "Instance '%s' has not the UUID %s", name, uuid).At("instance_uuid")
	}
	return inst, nil
}

func namedInstance(name string, snap *cluster.Snapshot) (*cluster.Instance, error) {
	inst, err := snap.FindInstance(name)
	if fault.Is(err, fault.NotFound) {
		inst, err = snap.FindInstance(asStored(name))
	}
	return inst, reword(err, "Instance", name, "not known")
}

// asStored returns the form in which names of hosts are kept; what is no such
// name stays as it is.
func asStored(name string) string {
	if normal, err := cluster.NormalName(name); err == nil {
		return normal
	}
	return name
}

// findNode returns the node that the opcode names in the parameters
// PREFIX_name and PREFIX_uuid, or PREFIX and PREFIX_uuid.
func findNode(op *opcode.Opcode, prefix string, snap *cluster.Snapshot) (*cluster.Node, error) {
	name, uuid := op.Str(prefix), op.Str(prefix+"_uuid")
	if op.Has(prefix + "_name") {
		name = op.Str(prefix + "_name")
	}
	if uuid == "" {
		return namedNode(name, snap)
	}
	node := snap.Node(uuid)
	if node == nil {
		return nil, unknown("Node", uuid).At(prefix + "_uuid")
	}
	if named, err := namedNode(name, snap); name != "" && (err != nil || named != node) {
		return nil, fault.New(fault.Invalid, "Node '%s' has not the UUID %s", name, uuid).At(prefix + "_uuid")
	}
	return node, nil
}

func namedNode(name string, snap *cluster.Snapshot) (*cluster.Node, error) {
	node, err := snap.FindNode(name)
	if fault.Is(err, fault.NotFound) {
		node, err = snap.FindNode(asStored(name))
	}
	return node, reword(err, "Node", name, "not known")
}

func findGroup(name string, snap *cluster.Snapshot) (*cluster.Group, error) {
	group, err := snap.FindGroup(name)
	return group, reword(err, "Node group", name, "not found")
}

func findNetwork(name string, snap *cluster.Snapshot) (*cluster.Network, error) {
	network, err := snap.FindNetwork(name)
	return network, reword(err, "Network", name, "not found")
}

func findImage(name string, snap *cluster.Snapshot) (*cluster.Image, error) {
	image := snap.Image(name)
	if image == nil {
		image = snap.ImageNamed(name)
	}
	if image == nil { // no beginning of a name will do: there may be dots in those of images
		return nil, fault.New(fault.NotFound, "Image '%s' not found", name).WithHint("drover image list shows which there are")
	}
	return image, nil
}

// reword gives a failed look-up the words that opcodes use for it.
func reword(err error, what, name, words string) error {
	if fault.Is(err, fault.NotFound) {
		return fault.New(fault.NotFound, "%s '%s' %s", what, name, words)
	}
	return err
}

func unknown(what, name string) *fault.Error {
	return fault.New(fault.NotFound, "%s '%s' not known", what, name)
}

// online refuses a node that is marked offline: nothing may be done there.
func online(node *cluster.Node) error {
	if node.Offline {
		return fault.New(fault.WrongState, "Can't use offline node: %s", node.Name)
	}
	return nil
}

// hosting refuses a node that may take no new instances.
func hosting(node *cluster.Node) error {
	if err := online(node); err != nil {
		return err
	}
	if node.Drained {
		return fault.New(fault.WrongState, "Can't use drained node: %s", node.Name)
	}
	if !node.VMCapable {
		return fault.New(fault.WrongState, "Can't use non-vm_capable node: %s", node.Name)
	}
	return nil
}

// onlineAgent returns the agent of a node that is not marked offline.
func (e *Env) onlineAgent(node *cluster.Node) (Node, error) {
	if err := online(node); err != nil {
		return nil, err
	}
	return e.agent(node)
}

// NodeOf returns the node that a parameter of the opcode names, if it is there and in service.
func (e *Env) NodeOf(field string) (Node, error) {
	node, err := findNode(e.Op, field, e.snapshot())
	if err != nil {
		return nil, err
	}
	return e.onlineAgent(node)
}

// agent returns the agent of a node. A node that does not answer is a failed
// prerequisite.
func (e *Env) agent(node *cluster.Node) (Node, error) {
	e.visit(node.Name)
	a, err := e.Nodes(node.Name)
	if err != nil {
		return nil, fault.New(fault.Environment, "Can't contact node %s: %w", node.Name, err)
	}
	return a, nil
}

// nearAgent is agent for who does not wait for a node that is away.
func (e *Env) nearAgent(node *cluster.Node) (Node, error) {
	a, err := e.agent(node)
	if err == nil && a.Away() > 0 {
		err = fault.New(fault.Environment, "it is away")
	}
	return a, err
}

// primary returns an instance's primary node with its agent.
func (e *Env) primary(inst *cluster.Instance) (*cluster.Node, Node, error) {
	node := e.snapshot().Node(inst.PrimaryNode)
	if node == nil {
		return nil, nil, fault.New(fault.WrongState, "Instance '%s' has no primary node", inst.Name)
	}
	a, err := e.onlineAgent(node)
	return node, a, err
}
