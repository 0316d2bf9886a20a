package cluster

import (
	"maps"
	"slices"
)

// DefaultProfile is the section of beparams and nicparams that is in use.
const DefaultProfile = "default"

// GlobalHVParams are hypervisor parameters that belong to the cluster only;
// the effective parameters of an instance leave them out.
func GlobalHVParams() []string {
	return []string{"migration_port", "migration_bandwidth", "migration_mode"}
}

// IsGlobalHVParam reports whether a hypervisor parameter belongs to the
// cluster only.
func IsGlobalHVParam(name string) bool { return slices.Contains(GlobalHVParams(), name) }

// HVLayers returns where the effective hypervisor parameters of an instance
// come from, the strongest first: its own, those of its OS (with variant, then
// without), the cluster's.
func (c *Cluster) HVLayers(i *Instance) [4]Params {
	name, _ := OSName(i.OS)
	layers := [4]Params{i.HVParams, c.OSHVP[i.OS][i.Hypervisor], nil, c.HVParams[i.Hypervisor]}
	if name != i.OS {
		layers[2] = c.OSHVP[name][i.Hypervisor]
	}
	return layers
}

// FillHV returns the effective hypervisor parameters of an instance.
func (c *Cluster) FillHV(i *Instance) Params {
	l := c.HVLayers(i)
	out := Fill(l[3], l[2], l[1], l[0])
	for _, name := range GlobalHVParams() {
		delete(out, name)
	}
	return out
}

// FillBE returns the effective backend parameters of an instance.
func (c *Cluster) FillBE(i *Instance) Params {
	return Fill(c.BEParams[DefaultProfile], i.BEParams)
}

// FillOS returns the effective public OS parameters of an instance.
func (c *Cluster) FillOS(i *Instance) Params {
	name, _ := OSName(i.OS)
	if name == i.OS {
		return Fill(c.OSParams[name], i.OSParams)
	}
	return Fill(c.OSParams[name], c.OSParams[i.OS], i.OSParams)
}

// NICParam returns one effective parameter of a NIC as text, empty if unset.
func (c *Cluster) NICParam(n *NIC, name string) string {
	v, ok := n.Params[name]
	if !ok {
		v = c.NICParams[DefaultProfile][name]
	}
	text, _ := v.(string)
	return text
}

// FillND returns the effective node parameters of a node in a group. A nil
// node gives those of the group.
func (c *Cluster) FillND(g *Group, n *Node) Params {
	if n == nil {
		return Fill(c.NDParams, g.NDParams)
	}
	return Fill(c.NDParams, g.NDParams, n.NDParams)
}

// FillDisk returns the effective disk parameters of a group, by template.
func (c *Cluster) FillDisk(g *Group) map[string]Params {
	out := make(map[string]Params, len(c.DiskParams))
	for template, p := range c.DiskParams {
		out[template] = Fill(p, g.DiskParams[template])
	}
	return out
}

// FillIPolicy returns the effective instance policy of a group.
func (c *Cluster) FillIPolicy(g *Group) Params {
	return Fill(c.IPolicy, g.IPolicy)
}

// Clone returns a deep copy that may be altered.
func (c *Cluster) Clone() *Cluster {
	d := *c
	d.Tags = slices.Clone(c.Tags)
	d.EnabledHypervisors = slices.Clone(c.EnabledHypervisors)
	d.EnabledDiskTemplates = slices.Clone(c.EnabledDiskTemplates)
	d.HVParams = cloneParamsMap(c.HVParams)
	d.BEParams = cloneParamsMap(c.BEParams)
	d.OSParams = cloneParamsMap(c.OSParams)
	d.NICParams = cloneParamsMap(c.NICParams)
	d.DiskParams = cloneParamsMap(c.DiskParams)
	d.OSParamsPrivate = cloneParamsMap(c.OSParamsPrivate)
	d.NDParams = c.NDParams.Clone()
	d.IPolicy = c.IPolicy.Clone()
	d.IAllocatorParams = c.IAllocatorParams.Clone()
	d.OSHVP = make(map[string]map[string]Params, len(c.OSHVP))
	for os, byHV := range c.OSHVP {
		d.OSHVP[os] = cloneParamsMap(byHV)
	}
	d.UIDPool = slices.Clone(c.UIDPool)
	d.ReservedLVs = slices.Clone(c.ReservedLVs)
	d.HiddenOS = slices.Clone(c.HiddenOS)
	d.BlacklistedOS = slices.Clone(c.BlacklistedOS)
	d.CompressionTools = slices.Clone(c.CompressionTools)
	d.Collectors = maps.Clone(c.Collectors)
	return &d
}
