package exec

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/export"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/work"
)

// importing is what a creation of the mode import has from an export.
type importing struct {
	export.Export

	// node has the export, whose name or path is at.
	node *cluster.Node
	at   string
	// id is what the dumps are under on the node of the instance, if that is another.
	id string
}

// sourceLocks shares the node that has the export of an import, or all nodes where that is to be found, and the name of the exported instance: while it
// is held no other export takes the place of that one.
func sourceLocks(op *opcode.Opcode, snap *cluster.Snapshot, had lock.Request) (lock.Request, error) {
	if op.Str("mode") != "import" {
		return nil, nil
	}
	request, err := furtherNode(op, "src_node", true, snap)
	if err != nil {
		return nil, err
	}
	name := strings.ToLower(path.Base(exportPath(op)))
	if !slices.ContainsFunc(had, func(w lock.Want) bool { return w.Name == lock.Name{Level: lock.Instance, Item: name} }) {
		request = append(request, typed(lock.Instance, name, lock.Shared)...)
	}
	return request, nil
}

// exportPath is how the export is meant: by its path, or by the name of the instance.
func exportPath(op *opcode.Opcode) string {
	if op.Has("src_path") {
		return op.Str("src_path")
	}
	return op.Str("instance_name")
}

// ownExport is how a node knows an export that is named by its place among those of the reference's nodes: DIRECTORY/ganeti/export/NAME.
func ownExport(at string) string {
	dir, name := path.Split(path.Clean(at))
	if path.IsAbs(at) && strings.HasSuffix(dir, "/ganeti/export/") {
		return name
	}
	return at
}

// findExport finds the export of an import, and fills the opcode in with what it says and the opcode does not.
func findExport(ctx context.Context, env *Env) (*importing, *opcode.Opcode, error) {
	op := env.Op
	if err := uncompressed(op); err != nil {
		return nil, nil, err
	}
	x := &importing{at: exportPath(op), id: env.NewUUID()}
	a, err := x.findNode(ctx, env)
	if err != nil {
		return nil, nil, err
	}
	x.at = ownExport(x.at)
	if x.Export, err = a.Export(ctx, x.at); err != nil {
		return nil, nil, fault.New(fault.CodeOf(err), "No export or invalid export found in dir %s: %w", x.at, err).At("src_path")
	}
	if op, err = x.fill(op); err != nil {
		return nil, nil, err
	}
	return x, op, x.check(op)
}

// findNode finds the node that has the export: the one that was named, or the first that has it.
func (x *importing) findNode(ctx context.Context, env *Env) (Node, error) {
	if named(env.Op, "src_node") {
		node, err := findNode(env.Op, "src_node", env.snapshot())
		if err != nil {
			return nil, err
		}
		x.node = node
		return env.onlineAgent(node)
	}
	if path.IsAbs(x.at) {
		return nil, fault.New(fault.Invalid, "Importing an instance from a path requires a source node option").At("src_node")
	}
	with := env.nodesWithExport(ctx, x.at, nil)
	if len(with) == 0 {
		return nil, fault.New(fault.Invalid, "No export found for relative path %s", x.at).At("src_path").WithHint("drover backup list shows which there are")
	}
	x.node = with[0]
	return env.agent(x.node)
}

// fill puts into the opcode what the export says and the opcode does not.
func (x *importing) fill(op *opcode.Opcode) (*opcode.Opcode, error) {
	if x.OS != "" {
		op = op.With("os_type", x.OS)
	}
	if len(op.List("disks")) == 0 {
		disks := make([]any, len(x.Disks))
		for i, d := range x.Disks {
			disks[i] = map[string]any{"size": d.Size}
			if d.Name != "" {
				disks[i] = map[string]any{"size": d.Size, "name": d.Name}
			}
		}
		if len(disks) == 0 && op.Str("disk_template") != cluster.DiskDiskless {
			return nil, fault.New(fault.Invalid, "No disk info specified and the export is missing the disk information").At("disks")
		}
		op = op.With("disks", disks)
	}
	if len(op.List("nics")) == 0 {
		nics := make([]any, len(x.NICs))
		for i := range x.NICs {
			nics[i] = nicOf(&x.NICs[i])
		}
		op = op.With("nics", nics)
	}
	if op.Str("instance_name") == x.Name { // it is that machine again, which its network knows by its addresses
		op = op.With("nics", x.sameMACs(op.List("nics")))
	}
	if len(op.List("tags")) == 0 {
		tags := make([]any, len(x.Tags))
		for i, tag := range x.Tags {
			tags[i] = tag
		}
		op = op.With("tags", tags)
	}
	if !op.Has("hypervisor") && x.Hypervisor != "" {
		op = op.With("hypervisor", x.Hypervisor)
	}
	for param, said := range map[string]map[string]string{"hvparams": x.HVParams, "beparams": x.BEParams, "osparams": x.OSParams} {
		op = op.With(param, filled(op.Map(param), said))
	}
	return op.With("force_variant", true), nil
}

// filled are parameters that were given, and of those that an export says the others.
func filled(given map[string]any, said map[string]string) map[string]any {
	out := make(map[string]any, len(said)+len(given))
	for name, v := range said {
		out[name] = v
	}
	maps.Copy(out, given)
	return out
}

// nicOf is a network card of an export as an opcode has it.
// sameMACs are interfaces of which those that are given none have the address that they had when they were exported.
func (x *importing) sameMACs(nics []any) []any {
	out := slices.Clone(nics)
	for i := range out {
		nic, ok := out[i].(map[string]any)
		if given, _ := nic["mac"].(string); !ok || i >= len(x.NICs) || x.NICs[i].MAC == "" || given != "" && given != "auto" {
			continue
		}
		nic = maps.Clone(nic)
		nic["mac"] = x.NICs[i].MAC
		out[i] = nic
	}
	return out
}

func nicOf(n *export.NIC) map[string]any {
	out := map[string]any{}
	pairs := map[string]string{"mac": n.MAC, "ip": n.IP, "name": n.Name, "network": n.Network}
	if n.Network == "" { // which says these
		pairs["mode"], pairs["link"], pairs["vlan"] = n.Mode, n.Link, n.VLAN
	}
	for key, v := range pairs {
		if v != "" {
			out[key] = v
		}
	}
	return out
}

// check refuses an import that would leave something of the export behind.
func (x *importing) check(op *opcode.Opcode) error {
	disks := op.List("disks")
	if len(disks) < len(x.Disks) {
		return fault.New(fault.Invalid, "The export has %d disks, and %d were asked for", len(x.Disks), len(disks)).At("disks").WithHint("leave the disks out, and they are made as they were")
	}
	private := op.Map("osparams_private")
	secret := op.Map("osparams_secret")
	for _, name := range x.Private {
		if private[name] == nil && secret[name] == nil {
			return fault.New(fault.Invalid, "The export has the private OS parameter %s, and private parameters are not taken from a file", name).At("osparams_private").
				WithHint("give it: --os-parameters-private %s=VALUE", name)
		}
	}
	return nil
}

// checkSizes refuses disks that have no room for the content of those that were exported.
func (x *importing) checkSizes(inst *cluster.Instance) error {
	for i, d := range x.Disks {
		if d.Form == export.Raw && inst.Disks[i].Size < d.Size {
			return fault.New(fault.Invalid, "Disk %d is to have %s, and its dump has %s", i, sizeText(inst.Disks[i].Size), sizeText(d.Size)).At("disks[" + strconv.Itoa(i) + "].size")
		}
	}
	return nil
}

// scripted reports whether the operating system's own script reads a dump.
func (x *importing) scripted() bool {
	return slices.ContainsFunc(x.Disks, func(d export.Disk) bool { return d.Dump != "" && d.Form == export.Script })
}

// findOS finds the operating system of an import. One whose dumps need no script comes from them, so it need not be there any more.
func (c *creation) findOS(ctx context.Context) (agent.OS, *cluster.Image, error) {
	os, image, err := c.env.findOS(ctx, c.agent, c.inst.OS, c.env.Op.Bool("force_variant"))
	x := c.from
	switch {
	case x == nil:
		return os, image, err
	case fault.Is(err, fault.NotFound) && !x.scripted():
		c.env.firstWarnf("%v; %s comes from its dumps, and cannot be installed anew as long as that is so", err, c.inst.Name)
		return os, nil, nil
	case err == nil && x.scripted() && !slices.Contains(os.Scripts, "import"):
		return os, image, fault.New(fault.WrongState, "The dumps were made by the export script of the OS '%s', and node %s has no import script of it", c.inst.OS, c.node.Name).At("os_type")
	}
	return os, image, err
}

// checkContent refuses to make a machine of an export of which nobody has the content.
func (x *importing) checkContent(ctx context.Context, node *cluster.Node, a Node) error {
	if !slices.ContainsFunc(x.Disks, func(d export.Disk) bool { return d.Form == export.Pretended }) {
		return nil
	}
	info, err := a.Info(ctx)
	switch {
	case err != nil:
		return fault.New(fault.Environment, "Can't get data from node %s: %w", node.Name, err)
	case info.Hypervisor != "" && !info.StandsIn:
		return fault.New(fault.Unsupported, "The export is of an instance that was only pretended: its disks had no content, and node %s runs machines", node.Name).At("src_path")
	}
	return nil
}

// importSteps write the dumps on the disks of the new instance.
func (c *creation) importSteps() (steps []work.Step) {
	x, inst := c.from, c.inst
	elsewhere := x.node != c.node
	for i, d := range x.Disks {
		if d.Dump == "" {
			continue
		}
		a := dumpArgs{Disk: i, Form: d.Form, Export: x.at, File: d.Dump}
		if elsewhere {
			a.ID, a.Export = x.id, ""
		}
		s := onNode(importDisk, c.node.UUID, inst.UUID, fmt.Sprintf("import disk %d of instance %s", i, inst.Name), a)
		s.Says, s.Anew = []string{fmt.Sprintf("Importing disk/%d of %s", i, inst.Name)}, true
		s.Fails = fmt.Sprintf("Could not import disk %d of instance %s on node %s", i, inst.Name, c.node.Name)
		steps = append(steps, s)
	}
	if len(steps) == 0 {
		return nil
	}
	steps[0].Says = append([]string{"* running the instance OS import scripts..."}, steps[0].Says...)
	if x.scripted() {
		s := tellName(c.node, inst, x.Name, inst.Name)
		s.Says = []string{"Running rename script for " + inst.Name}
		steps = append(steps, s)
	}
	if elsewhere {
		s := onNode(discardExport, c.node.UUID, "", "discard the dumps of "+x.Name+" that were copied", exportArgs{x.id})
		s.Tolerated = true
		s.Fails, s.Left = leftOfExport(c.node, x.Name, x.id)
		steps = append(steps, s)
	}
	return steps
}

// fetching has the node of the new instance fetch the dumps from the one that has the export; nil if it has it itself.
func (c *creation) fetching() *work.Step {
	x := c.from
	if x == nil || x.node == c.node {
		return nil
	}
	a := fetchedArgs{From: x.node.UUID, Export: x.at, ID: x.id}
	for _, d := range x.Disks {
		if d.Dump != "" {
			a.Files = append(a.Files, d.Dump)
		}
	}
	if len(a.Files) == 0 {
		return nil
	}
	s := onNode(copyDumps, c.node.UUID, "", "copy the dumps of "+x.Name+" from "+x.node.Name, a)
	s.Fails = "Could not copy the dumps of " + x.Name + " from " + x.node.Name + " to " + c.node.Name
	back := onNode(discardExport, "", "", "discard the dumps of "+x.Name+" that were copied", exportArgs{x.id})
	back.Fails, back.Left = leftOfExport(c.node, x.Name, x.id)
	s.Undo = &back
	return &s
}

// identifyDefaults has parameters that are as the defaults follow those.
func identifyDefaults(c *cluster.Cluster, inst *cluster.Instance) {
	bare := inst.Clone()
	bare.HVParams, bare.BEParams, bare.OSParams = nil, nil, nil
	for _, pair := range []struct{ own, defaults cluster.Params }{
		{inst.HVParams, c.FillHV(bare)}, {inst.BEParams, c.FillBE(bare)}, {inst.OSParams, c.FillOS(bare)},
	} {
		maps.DeleteFunc(pair.own, func(name string, v any) bool {
			is, there := pair.defaults[name]
			return there && is == v
		})
	}
}
