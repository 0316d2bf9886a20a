package exec

import (
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/job"
)

// specOf returns what a node needs to run an instance as the inventory
// describes it, with hypervisor and backend parameters for this start only
// over its own.
func specOf(c *cluster.Cluster, inst *cluster.Instance, hv, be cluster.Params) hypervisor.Spec {
	backend := cluster.Fill(c.FillBE(inst), be)
	spec := hypervisor.Spec{
		Name: inst.Name, UUID: inst.UUID, Hypervisor: inst.Hypervisor,
		Memory: intParam(backend, "maxmem"), MinMemory: intParam(backend, "minmem"), VCPUs: intParam(backend, "vcpus"),
		Disks: make([]hypervisor.Disk, len(inst.Disks)), NICs: make([]hypervisor.NIC, len(inst.NICs)),
		Params: cluster.Fill(c.FillHV(inst), hv),
	}
	for i := range inst.Disks {
		spec.Disks[i] = diskOf(&inst.Disks[i])
	}
	for i := range inst.NICs {
		nic := &inst.NICs[i]
		spec.NICs[i] = hypervisor.NIC{UUID: nic.UUID, MAC: nic.MAC, IP: nic.IP,
			Mode: c.NICParam(nic, "mode"), Link: c.NICParam(nic, "link"), VLAN: c.NICParam(nic, "vlan")}
	}
	return spec
}

// thingOf says to nodes which instance is meant.
func thingOf(inst *cluster.Instance) hypervisor.Thing {
	return hypervisor.Thing{UUID: inst.UUID, Name: inst.Name}
}

func diskOf(d *cluster.Disk) hypervisor.Disk {
	out := hypervisor.Disk{UUID: d.UUID, Size: int(d.Size), Template: d.Type, ReadOnly: d.Mode == "ro", External: externalOf(d)}
	if d.Type != cluster.DiskExt {
		out.Format, _ = d.Params[formatKey].(string)
	}
	return out
}

// externalOf says who makes a disk of template ext; nil for others.
func externalOf(d *cluster.Disk) *hypervisor.External {
	if d.Type != cluster.DiskExt || len(d.LogicalID) != 2 {
		return nil
	}
	out := &hypervisor.External{Label: d.Name, Params: map[string]string{}}
	out.Provider, _ = d.LogicalID[0].(string)
	out.Name, _ = d.LogicalID[1].(string)
	for name, value := range d.Params {
		out.Params[name], _ = value.(string)
	}
	return out
}

func intParam(p cluster.Params, name string) int {
	n, _ := p[name].(int64)
	return int(n)
}

// stopWithin asks the guest to stop and forces it after a timeout in seconds.
func stopWithin(timeout int64) hypervisor.Stop {
	return hypervisor.Stop{Timeout: job.Seconds(float64(timeout)), Force: timeout == 0}
}
