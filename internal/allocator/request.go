package allocator

import (
	"slices"

	"github.com/drover-project/drover/internal/cluster"
)

// The requests, by their names.
const (
	Allocate      = "allocate"
	MultiAllocate = "multi-allocate"
	Relocate      = "relocate"
	NodeEvacuate  = "node-evacuate"
	ChangeGroup   = "change-group"
	Secondary     = "allocate-secondary"
)

// New is an instance that is to be placed.
type New struct {
	// Instance is what it is to be: name, backend parameters, disks, operating system, hypervisor and tags count.
	Instance *cluster.Instance
	// NICs are its interfaces as documents have them.
	NICs []any
	// Template is that of its disks, and Group the name of the only group that is allowed; empty for any.
	Template, Group string
}

// RequiredNodes is how many nodes it takes.
func (n New) RequiredNodes() int {
	if cluster.MirroringOf(n.Template) == cluster.InternalMirror {
		return 2
	}
	return 1
}

func (n New) request(c *cluster.Cluster) map[string]any {
	be := c.FillBE(n.Instance)
	disks := make([]any, len(n.Instance.Disks))
	for k := range n.Instance.Disks {
		d := &n.Instance.Disks[k]
		disks[k] = map[string]any{"size": d.Size, "mode": d.Mode, "dev_type": n.Template}
	}
	return map[string]any{
		"name": n.Instance.Name, "disk_template": n.Template, "group_name": text(n.Group), "tags": sorted(n.Instance.Tags), "os": n.Instance.OS,
		"vcpus": number(be, "vcpus"), "memory": number(be, "maxmem"), "spindle_use": number(be, "spindle_use"), "disks": disks,
		"disk_space_total": n.Instance.DiskUsage(), "nics": n.NICs, "required_nodes": n.RequiredNodes(), "hypervisor": n.Instance.Hypervisor,
	}
}

// ToAllocate asks for the nodes of a new instance.
func ToAllocate(c *cluster.Cluster, n New) map[string]any {
	r := n.request(c)
	r["type"] = Allocate
	return r
}

// ToMultiAllocate asks for the nodes of several.
func ToMultiAllocate(c *cluster.Cluster, all []New) map[string]any {
	instances := make([]any, len(all))
	for i, n := range all {
		instances[i] = n.request(c)
	}
	return map[string]any{"type": MultiAllocate, "instances": instances}
}

// ToRelocate asks for another node for what an instance with mirrored disks has on some, by name.
func ToRelocate(inst *cluster.Instance, from []string) map[string]any {
	return map[string]any{"type": Relocate, "name": inst.Name, "disk_space_total": inst.DiskUsage(), "required_nodes": 1, "relocate_from": nonNil(from)}
}

// ToEvacuate asks how instances leave their nodes; mode is what of them.
func ToEvacuate(instances []string, mode string) map[string]any {
	return map[string]any{"type": NodeEvacuate, "instances": nonNil(instances), "evac_mode": mode}
}

// ToChangeGroup asks how instances come to other groups, by UUID; none for any.
func ToChangeGroup(instances, groups []string) map[string]any {
	return map[string]any{"type": ChangeGroup, "instances": nonNil(instances), "target_groups": nonNil(groups)}
}

func nonNil(list []string) []string { return append([]string{}, list...) }

func sorted(list []string) []string {
	out := nonNil(list)
	slices.Sort(out)
	return out
}
