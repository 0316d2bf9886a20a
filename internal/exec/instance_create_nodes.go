package exec

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/placement"
)

// nodes are those that hold anything of the new instance, the primary first.
func (c *creation) nodes() []*cluster.Node {
	if c.second == nil {
		return []*cluster.Node{c.node}
	}
	return []*cluster.Node{c.node, c.second}
}

func (c *creation) nodeNames() []string {
	names := make([]string, 0, 2)
	for _, n := range c.nodes() {
		names = append(names, n.Name)
	}
	return names
}

// place finds the node of the new instance, and that of the second copy of mirrored disks: those that were asked for, or those that placement chooses.
func (c *creation) place(ctx context.Context) error {
	op := c.env.Op
	request := placement.Request{Instance: c.inst, NICs: len(op.List("nics")), Full: c.env.full, IgnorePolicy: op.Bool("ignore_ipolicy")}
	c.second = nil
	var err error
	if named(op, "pnode") {
		err = c.takeNamed(ctx, request)
	} else {
		err = c.choose(ctx, request)
	}
	if err != nil {
		return err
	}
	if c.second != nil && c.second.Group != c.node.Group {
		c.env.firstWarnf("The primary and secondary nodes are in two different node groups; the disk parameters from the first disk's node group will be used")
	}
	c.inst.PrimaryNode = c.node.UUID
	for i := range c.inst.Disks {
		c.inst.Disks[i].Nodes = nil
		for _, n := range c.nodes() {
			c.inst.Disks[i].Nodes = append(c.inst.Disks[i].Nodes, n.UUID)
		}
	}
	if c.agent, err = c.env.agent(c.node); err != nil || c.second == nil {
		return err
	}
	_, err = c.env.agent(c.second)
	return err
}

// takeNamed takes the nodes that the opcode names, whatever speaks against them but that they may take no instances.
func (c *creation) takeNamed(ctx context.Context, request placement.Request) error {
	op, snap := c.env.Op, c.env.snapshot()
	var err error
	if c.node, err = findNode(op, "pnode", snap); err != nil {
		return err
	}
	request.Node = c.node.UUID
	mirrored := cluster.MirroringOf(c.inst.DiskTemplate()) == cluster.InternalMirror
	switch {
	case !mirrored && named(op, "snode"):
		c.env.firstWarnf("Secondary node will be ignored on non-mirrored disk template")
	case mirrored && !named(op, "snode"):
		return fault.New(fault.Invalid, "The networked disk templates need a mirror node").At("snode").
			WithHint("name both nodes, or none: then both are chosen")
	case mirrored:
		if c.second, err = findNode(op, "snode", snap); err != nil {
			return err
		}
		if c.second == c.node {
			return fault.New(fault.Invalid, "The secondary node cannot be the primary node").At("snode")
		}
		request.Second = c.second.UUID
	}
	c.env.decide(ctx, c.places, request)
	for _, n := range c.nodes() {
		if err := hosting(n); err != nil {
			return err
		}
	}
	return nil
}

// choose has the nodes chosen among all that could take the instance.
func (c *creation) choose(ctx context.Context, request placement.Request) error {
	if named(c.env.Op, "snode") {
		return fault.New(fault.Invalid, "A secondary node is named, and no primary node").At("snode").WithHint("name both nodes, or none: then both are chosen")
	}
	if name := c.env.Op.Str("group_name"); name != "" {
		group, err := findGroup(name, c.env.snapshot())
		if err != nil {
			return err
		}
		request.Group = group.UUID
	}
	switch name := cmp.Or(c.env.Op.Str("iallocator"), c.env.snapshot().Cluster().IAllocator); {
	case !c.names.checkAllocator(name): // the cluster's default one was there when it was chosen
		return noAllocator(name).WithHint("it is the cluster's default; the setting iallocators says where programs are, and iallocator=%s is placement", builtinAllocator)
	case c.names.program(name) != "":
		return c.allocate(ctx, name, request)
	}
	d := c.env.decide(ctx, c.places, request)
	if err := d.Err(); err != nil {
		return err
	}
	c.node, c.chosen = c.env.snapshot().Node(d.UUID), true
	if c.node == nil {
		return fault.New(fault.Conflict, "the node %s was removed meanwhile", d.Node)
	}
	if d.Mirror != nil {
		if c.second = c.env.snapshot().Node(d.Mirror.UUID); c.second == nil {
			return fault.New(fault.Conflict, "the node %s was removed meanwhile", d.Mirror.Node)
		}
	}
	c.env.Infof("Selected nodes for instance %s: %s (%s)", c.inst.Name, strings.Join(c.nodeNames(), ", "), d.Why)
	return nil
}

// allocate has a program choose the nodes. They are then taken as nodes that were named: whatever speaks against them but that they may take no instances
// is the program's to know, and is told with the decision.
func (c *creation) allocate(ctx context.Context, program string, request placement.Request) error {
	nodes, info, err := c.names.allocate(ctx, c.env, program, request, c.env.Op.Str("group_name"))
	if err != nil {
		return err
	}
	c.node, request.Node = nodes[0], nodes[0].UUID
	if len(nodes) > 1 {
		c.second, request.Second = nodes[1], nodes[1].UUID
	}
	request.Group = ""
	c.env.decideFor(ctx, c.places, request, fmt.Sprintf("iallocator %s chose it: %s", program, cmp.Or(info, "it does not say why")))
	if v, broken := placement.Misplaced(c.places.seen(c.env.snapshot(), nil), c.inst, c.node); broken {
		return fault.New(fault.Exhausted, "iallocator %s chose node %s for the instance: %s", program, c.node.Name, v.Text()).At("iallocator").
			WithHint("programs do not know the tags %s; placement, which chooses where there is no program, does", placement.CompanyPrefix)
	}
	for _, n := range nodes {
		if err := hosting(n); err != nil {
			return err
		}
	}
	c.env.Infof("Selected nodes for instance %s via iallocator %s: %s (%s)", c.inst.Name, program, strings.Join(c.nodeNames(), ", "), info)
	return nil
}

// checkTemplates refuses nodes that were named and keep no disks of the instance's template; those that are chosen do.
func (c *creation) checkTemplates(ctx context.Context) error {
	template := c.inst.DiskTemplate()
	if c.chosen || template == cluster.DiskDiskless {
		return nil
	}
	for _, n := range c.nodes() {
		a, err := c.env.agent(n)
		if err != nil {
			return err
		}
		info, err := a.Info(ctx)
		if err != nil {
			return fault.New(fault.Environment, "Can't get data from node %s: %w", n.Name, err)
		}
		if len(info.Templates) > 0 && !slices.Contains(info.Templates, template) {
			return fault.New(fault.Invalid, "Node %s keeps no disks of template '%s'", n.Name, template).At("disk_template").
				WithHint("it has: %s", strings.Join(info.Templates, ", "))
		}
	}
	return nil
}

// checkNode asks the node whether it can take the instance.
func (c *creation) checkNode(ctx context.Context) error {
	if err := c.checkTemplates(ctx); err != nil {
		return err
	}
	os, image, err := c.findOS(ctx)
	if err != nil {
		return err
	}
	if c.from != nil {
		if err := c.from.checkContent(ctx, c.node, c.agent); err != nil {
			return err
		}
	}
	snap := c.env.snapshot()
	if os.Name != "" { // what is not there is not needed
		if err := checkOSParams(os, c.node.Name, snap.Cluster().FillOS(c.inst), c.inst.OSParamsPrivate, c.secret); err != nil {
			return err
		}
	}
	if c.image = ""; image != nil {
		c.image = image.UUID
	}
	if image != nil && c.install {
		if err := c.env.checkImage(c.inst, image, c.secret); err != nil {
			return err
		}
	}
	if err := c.checkStrangers(ctx); err != nil {
		return err
	}
	if !c.start {
		return nil
	}
	spec := specOf(snap.Cluster(), c.inst, nil, nil)
	return roomFor(ctx, c.agent, "creating instance "+c.inst.Name, spec.Memory)
}

// leftThing is something that a node has of an earlier creation.
type leftThing struct {
	node string
	hypervisor.Instance
}

// checkStrangers refuses what the nodes have under the new name, but for what an earlier creation has left, which nobody
// uses: the new instance has UUIDs of its own, and is made beside it.
func (c *creation) checkStrangers(ctx context.Context) error {
	c.left = nil
	for _, n := range c.nodes() {
		a, err := c.env.agent(n)
		if err != nil {
			return err
		}
		if err := c.checkStrangersOn(ctx, n, a); err != nil {
			return err
		}
	}
	return nil
}

func (c *creation) checkStrangersOn(ctx context.Context, node *cluster.Node, a Node) error {
	all, err := a.Named(ctx, c.inst.Name)
	if err != nil {
		return fault.New(fault.Environment, "Can't get the state of instance %s from node %s: %w", c.inst.Name, node.Name, err)
	}
	for i := range all {
		there := &all[i]
		const next = "the new one would have the UUID %s; that is left alone: take another name or another node; " +
			"drover cluster verify lists what nodes have and the cluster does not"
		switch {
		case there.UUID == c.inst.UUID: // this creation has come here before
		case there.Active():
			return fault.New(fault.WrongState, "Instance '%s' is not in the cluster, but runs on node %s (%s)", c.inst.Name, node.Name, identity(there)).
				WithHint(next, c.inst.UUID)
		case there.LeftBy(c.env.Life) && c.env.snapshot().Instance(there.UUID) == nil:
			c.left = append(c.left, leftThing{node.Name, *there})
		default:
			return fault.New(fault.Exists, "Instance '%s' is not in the cluster, but node %s has one of that name (%s, %d disks)",
				c.inst.Name, node.Name, identity(there), len(there.Disks)).WithHint(next, c.inst.UUID)
		}
	}
	return nil
}

// identity is the UUID of what a node has, for people.
func identity(i *hypervisor.Instance) string {
	if i.UUID == "" {
		return "without a UUID"
	}
	return i.UUID
}
