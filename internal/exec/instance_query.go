package exec

import (
	"context"
	"slices"
	"strconv"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/hypervisor"
)

// instanceQueryData prepares OP_INSTANCE_QUERY_DATA: everything known about
// instances, from the nodes too unless only the configuration is asked for.
func instanceQueryData(ctx context.Context, env *Env) (Plan, error) {
	snap := env.snapshot()
	var wanted []*cluster.Instance
	for _, name := range env.Op.Strings("instances") {
		inst, err := namedInstance(name, snap)
		if err != nil {
			return Plan{}, err
		}
		wanted = append(wanted, inst)
	}
	if len(wanted) == 0 {
		for inst := range snap.Instances() {
			wanted = append(wanted, inst)
		}
	}
	result := make(map[string]any, len(wanted))
	for _, inst := range wanted {
		var live, second *hypervisor.Instance
		if !env.Op.Bool("static") {
			live, second = env.lookAt(ctx, inst), env.lookAtSecond(ctx, inst)
		}
		result[inst.Name] = describeInstance(snap, inst, live, second)
	}
	return answer(result), nil
}

// lookAt asks the node about an instance; nil when the node cannot tell, or has something else under its name.
func (e *Env) lookAt(ctx context.Context, inst *cluster.Instance) *hypervisor.Instance {
	node, a, err := e.primary(inst)
	if err != nil {
		e.Warnf("%v, considering the state of instance %s as unknown", err, inst.Name)
		return nil
	}
	running, err := active(ctx, a, inst)
	if err != nil {
		e.Warnf("%v", err)
		return nil
	}
	if !running {
		return &hypervisor.Instance{Name: inst.Name, State: hypervisor.Stopped}
	}
	live, err := a.Instance(ctx, thingOf(inst))
	if err != nil {
		e.Warnf("Can't get the state of instance %s from node %s: %v", inst.Name, node.Name, err)
		return nil
	}
	return &live
}

// lookAtSecond asks the node that has the second copy of an instance's disks; nil when there is none, or it cannot tell.
func (e *Env) lookAtSecond(ctx context.Context, inst *cluster.Instance) *hypervisor.Instance {
	node := e.secondary(inst)
	if node == nil {
		return nil
	}
	a, err := e.onlineAgent(node)
	var live hypervisor.Instance
	if err == nil {
		live, err = a.Instance(ctx, thingOf(inst))
	}
	if err != nil {
		e.Warnf("Can't get the state of the second copies of instance %s from node %s: %v", inst.Name, node.Name, err)
		return nil
	}
	return &live
}

func describeInstance(snap *cluster.Snapshot, inst *cluster.Instance, live, second *hypervisor.Instance) map[string]any {
	c := snap.Cluster()
	group, groupName := groupOf(snap, inst.PrimaryNode)
	secondaries, groups, groupNames := []string{}, []string{}, []string{}
	for _, uuid := range inst.SecondaryNodes() {
		g, name := groupOf(snap, uuid)
		secondaries, groups, groupNames = append(secondaries, nodeName(snap, uuid)), append(groups, g), append(groupNames, name)
	}
	out := map[string]any{
		"name": inst.Name, "uuid": inst.UUID, "config_state": inst.AdminState, "run_state": runState(live),
		"pnode": nodeName(snap, inst.PrimaryNode), "pnode_group_uuid": group, "pnode_group_name": groupName,
		"snodes": secondaries, "snodes_group_uuids": groups, "snodes_group_names": groupNames,
		"os": inst.OS, "hypervisor": inst.Hypervisor, "network_port": orNullInt(inst.NetworkPort),
		"disk_template": inst.DiskTemplate(), "nics": describeNICs(snap, inst), "disks": describeDisks(snap, inst, live, second),
		"hv_instance": inst.HVParams, "hv_actual": c.FillHV(inst), "be_instance": inst.BEParams, "be_actual": c.FillBE(inst),
		"os_instance": inst.OSParams, "os_actual": c.FillOS(inst),
		"serial_no": inst.Serial, "mtime": epochSeconds(inst.MTime), "ctime": epochSeconds(inst.CTime),
	}
	return out
}

func runState(live *hypervisor.Instance) any {
	switch {
	case live == nil:
		return nil
	case live.Active():
		return "up"
	}
	return "down"
}

// nodeName returns the name of a node, or its UUID if there is no such node.
func nodeName(snap *cluster.Snapshot, uuid string) string {
	if n := snap.Node(uuid); n != nil {
		return n.Name
	}
	return uuid
}

// epochSeconds turns nanoseconds into the seconds that clients see.
func epochSeconds(ns int64) float64 { return float64(ns/1000) / 1e6 }

func groupOf(snap *cluster.Snapshot, node string) (uuid, name string) {
	n := snap.Node(node)
	if n == nil {
		return "", ""
	}
	g := snap.Group(n.Group)
	if g == nil {
		return n.Group, ""
	}
	return g.UUID, g.Name
}

func orNullInt(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

// describeNICs lists each interface as [name, UUID, IP, MAC, mode, link, VLAN,
// network, details of the network].
func describeNICs(snap *cluster.Snapshot, inst *cluster.Instance) [][]any {
	c := snap.Cluster()
	out := make([][]any, len(inst.NICs))
	for i := range inst.NICs {
		nic := &inst.NICs[i]
		out[i] = []any{orNull(nic.Name), nic.UUID, orNull(nic.IP), nic.MAC,
			c.NICParam(nic, "mode"), c.NICParam(nic, "link"), c.NICParam(nic, "vlan"), orNull(nic.Network), describeNetwork(snap, nic.Network)}
	}
	return out
}

// describeNetwork returns a network as clients know it from the
// configuration; what is not set is left out. Null for no network.
func describeNetwork(snap *cluster.Snapshot, uuid string) any {
	n := snap.Network(uuid)
	if n == nil {
		return nil
	}
	out := map[string]any{"name": n.Name, "uuid": n.UUID, "serial_no": n.Serial, "ctime": epochSeconds(n.CTime), "mtime": epochSeconds(n.MTime),
		"tags": n.Labels(), "network": n.Network, "reservations": n.Reserved, "ext_reservations": n.External}
	for key, value := range map[string]string{"mac_prefix": n.MACPrefix, "gateway": n.Gateway, "network6": n.Network6, "gateway6": n.Gateway6} {
		if value != "" {
			out[key] = value
		}
	}
	return out
}

func describeDisks(snap *cluster.Snapshot, inst *cluster.Instance, live, second *hypervisor.Instance) []map[string]any {
	out := make([]map[string]any, len(inst.Disks))
	for i := range inst.Disks {
		d := &inst.Disks[i]
		nodes := make([]string, len(d.Nodes))
		for n, uuid := range d.Nodes {
			nodes[n] = nodeName(snap, uuid)
		}
		out[i] = describeDisk(d, nodes)
		out[i]["iv_name"], out[i]["drbd_info"] = d.IVName, describeDRBD(snap, inst, d)
		out[i]["pstatus"], out[i]["sstatus"] = diskStatus(d, live), mirrorStatus(d, second)
	}
	return out
}

// describeDisk is what is said of a disk, and of each volume that it consists of.
func describeDisk(d *cluster.Disk, nodes []string) map[string]any {
	children := make([]any, len(d.Children))
	for i := range d.Children {
		children[i] = describeDisk(&d.Children[i], nodes)
	}
	return map[string]any{
		"iv_name": nil, "dev_type": d.Type, "logical_id": d.LogicalID, "drbd_info": nil, "nodes": nodes, "pstatus": nil, "sstatus": nil,
		"children": children, "mode": d.Mode, "size": d.Size, "spindles": orNullInt(d.Spindles), "name": orNull(d.Name), "uuid": d.UUID,
	}
}

// describeDRBD tells of the two ends of a mirrored disk; null for another.
func describeDRBD(snap *cluster.Snapshot, inst *cluster.Instance, d *cluster.Disk) any {
	id, is := readDRBD(d)
	if !is {
		return nil
	}
	second := id.a
	if second == inst.PrimaryNode {
		second = id.b
	}
	return map[string]any{"primary_node": nodeName(snap, inst.PrimaryNode), "primary_minor": id.minor(inst.PrimaryNode),
		"secondary_node": nodeName(snap, second), "secondary_minor": id.minor(second), "port": id.port}
}

// diskStatus is [path, major, minor, percent in sync, seconds to sync,
// degraded, status] of a disk of a running instance, else null.
func diskStatus(d *cluster.Disk, live *hypervisor.Instance) any {
	if live == nil || !live.Active() || len(d.LogicalID) == 0 {
		return nil
	}
	if id, mirrored := readDRBD(d); mirrored {
		minor := id.minor(d.Nodes[0])
		return []any{"/dev/drbd" + strconv.FormatInt(minor, 10), drbdMajor, minor, nil, nil, len(d.Stale) > 0, 0}
	}
	return []any{d.LogicalID[len(d.LogicalID)-1], nil, nil, nil, nil, false, 0}
}

// mirrorStatus is that of the second copy of a disk, as its node tells it; null where that was not asked.
func mirrorStatus(d *cluster.Disk, live *hypervisor.Instance) any {
	id, mirrored := readDRBD(d)
	if live == nil || !mirrored {
		return nil
	}
	i := slices.IndexFunc(live.Disks, func(l hypervisor.Disk) bool { return l.UUID == d.UUID })
	if i < 0 {
		return nil
	}
	minor, degraded := id.minor(d.Nodes[1]), slices.Contains(d.Stale, d.Nodes[1])
	var percent any
	if behind := live.Disks[i].Behind; behind > 0 {
		percent, degraded = 100*(1-float64(behind)/float64(live.Disks[i].Size)), true
	}
	return []any{"/dev/drbd" + strconv.FormatInt(minor, 10), drbdMajor, minor, percent, nil, degraded, 0}
}

// drbdMajor is the number of DRBD's devices.
const drbdMajor = 147
