// Package allocator is what a program is asked that chooses nodes, and what it answers, in the protocol of Ganeti's instance allocators: a document of
// the whole cluster with a request, and an answer that is checked strictly. It runs nothing.
package allocator

import (
	"github.com/drover-project/drover/internal/cluster"
)

// Version is that of the documents.
const Version = 2

// Node is what a node has told about itself: memory and disk space in MiB. Used is the memory of what runs there, by UUID.
type Node struct {
	Memory, MemoryReserved, MemoryFree, Disk, DiskFree, CPUs, CPUsReserved int64

	Used map[string]int64
}

// Document is what a program is asked: the cluster, what its nodes have told (those that are not there count as offline), and a request.
func Document(snap *cluster.Snapshot, told map[string]Node, request map[string]any) map[string]any {
	c := snap.Cluster()
	groups, nodes, instances := map[string]any{}, map[string]any{}, map[string]any{}
	for g := range snap.Groups() {
		networks := []string{}
		for uuid := range g.Networks {
			networks = append(networks, uuid)
		}
		groups[g.UUID] = map[string]any{"name": g.Name, "alloc_policy": g.AllocPolicy, "networks": sorted(networks), "ipolicy": c.FillIPolicy(g), "tags": sorted(g.Tags)}
	}
	for n := range snap.Nodes() {
		t, there := told[n.UUID]
		nodes[n.Name] = nodeOf(snap, n, t, there)
	}
	for i := range snap.Instances() {
		instances[i.Name] = instanceOf(snap, i)
	}
	return map[string]any{
		"version": Version, "cluster_name": c.Name, "cluster_tags": sorted(c.Tags), "enabled_hypervisors": c.EnabledHypervisors, "ipolicy": c.IPolicy,
		"nodegroups": groups, "nodes": nodes, "instances": instances, "request": request,
	}
}

// nodeOf is a node of the document. What is to run and does not, or has not all of its memory yet, is taken off what is free.
func nodeOf(snap *cluster.Snapshot, n *cluster.Node, told Node, there bool) map[string]any {
	c := snap.Cluster()
	out := map[string]any{
		"tags": sorted(n.Tags), "primary_ip": n.PrimaryIP, "secondary_ip": n.SecondaryIP, "offline": n.Offline || !there, "drained": n.Drained,
		"master_candidate": n.MasterCandidate, "group": n.Group, "master_capable": n.MasterCapable, "vm_capable": n.VMCapable, "ndparams": c.FillND(snap.Group(n.Group), n),
	}
	if !there || n.Offline || !n.VMCapable {
		return out
	}
	var all, up int64
	free := told.MemoryFree
	for i := range snap.PrimariesOn(n.UUID) {
		memory := number(c.FillBE(i), "maxmem")
		if all += memory; i.AdminState == cluster.AdminUp {
			up += memory
			free -= max(0, memory-told.Used[i.UUID])
		}
	}
	for name, v := range map[string]int64{
		"total_memory": told.Memory, "reserved_memory": told.MemoryReserved, "free_memory": free, "total_disk": told.Disk, "free_disk": told.DiskFree,
		"total_spindles": 0, "free_spindles": 0, "total_cpus": told.CPUs, "reserved_cpus": told.CPUsReserved, "i_pri_memory": all, "i_pri_up_memory": up,
	} {
		out[name] = v
	}
	return out
}

func instanceOf(snap *cluster.Snapshot, i *cluster.Instance) map[string]any {
	be := snap.Cluster().FillBE(i)
	nodes := []string{}
	for _, uuid := range append([]string{i.PrimaryNode}, i.SecondaryNodes()...) {
		if n := snap.Node(uuid); n != nil {
			nodes = append(nodes, n.Name)
		}
	}
	disks := make([]any, len(i.Disks))
	for k := range i.Disks {
		disks[k] = map[string]any{"dev_type": i.Disks[k].Type, "size": i.Disks[k].Size, "mode": i.Disks[k].Mode, "spindles": nil}
	}
	return map[string]any{
		"tags": sorted(i.Tags), "admin_state": i.AdminState, "vcpus": number(be, "vcpus"), "memory": number(be, "maxmem"), "spindle_use": number(be, "spindle_use"),
		"os": i.OS, "nodes": nodes, "nics": NICs(snap, i.NICs), "disks": disks, "disk_template": i.DiskTemplate(), "disks_active": i.DisksActive,
		"hypervisor": i.Hypervisor, "disk_space_total": i.DiskUsage(),
	}
}

// NICs are interfaces as documents have them.
func NICs(snap *cluster.Snapshot, nics []cluster.NIC) []any {
	out := make([]any, len(nics))
	for k := range nics {
		p := cluster.Fill(snap.Cluster().NICParams[cluster.DefaultProfile], nics[k].Params)
		nic := map[string]any{"mac": nics[k].MAC, "ip": text(nics[k].IP), "mode": p["mode"], "link": p["link"]}
		if p["mode"] == cluster.NICBridged {
			nic["bridge"] = p["link"]
		}
		out[k] = nic
	}
	return out
}

func number(p cluster.Params, name string) int64 { n, _ := p[name].(int64); return n }

// text is a text, or null for an empty one.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}
