package exec

import (
	"context"

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
		var live *hypervisor.Instance
		if !env.Op.Bool("static") {
			live = env.lookAt(ctx, inst)
		}
		result[inst.Name] = describeInstance(snap, inst, live)
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

func describeInstance(snap *cluster.Snapshot, inst *cluster.Instance, live *hypervisor.Instance) map[string]any {
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
		"disk_template": inst.DiskTemplate(), "nics": describeNICs(snap, inst), "disks": describeDisks(snap, inst, live),
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

func describeDisks(snap *cluster.Snapshot, inst *cluster.Instance, live *hypervisor.Instance) []map[string]any {
	out := make([]map[string]any, len(inst.Disks))
	for i := range inst.Disks {
		d := &inst.Disks[i]
		nodes := make([]string, len(d.Nodes))
		for n, uuid := range d.Nodes {
			nodes[n] = nodeName(snap, uuid)
		}
		out[i] = map[string]any{
			"iv_name": d.IVName, "dev_type": d.Type, "logical_id": d.LogicalID, "drbd_info": nil, "nodes": nodes,
			"pstatus": diskStatus(d, live), "sstatus": nil, "children": []any{}, "mode": d.Mode, "size": d.Size,
			"spindles": orNullInt(d.Spindles), "name": orNull(d.Name), "uuid": d.UUID,
		}
	}
	return out
}

// diskStatus is [path, major, minor, percent in sync, seconds to sync,
// degraded, status] of a disk of a running instance, else null.
func diskStatus(d *cluster.Disk, live *hypervisor.Instance) any {
	if live == nil || !live.Active() || len(d.LogicalID) == 0 {
		return nil
	}
	return []any{d.LogicalID[len(d.LogicalID)-1], nil, nil, nil, nil, false, 0}
}
