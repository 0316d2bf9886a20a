package cluster

// Promises are what the instances whose primary node a node is may use of it, running or not: memory and disk space in MiB, and virtual
// processors. Those that are marked offline keep their disks alone.
type Promises struct {
	Memory, VCPUs, Disk int64
	// memoryDefaults and vcpuDefaults count the instances that have what is the cluster's default, which may change.
	memoryDefaults, vcpuDefaults int64
}

// PromisesOn sums up what the primary instances of a node may use of it, at a cost that does not grow with their number.
func (s *Snapshot) PromisesOn(node string) Promises {
	p, _ := s.promises.Get(node)
	if s.cluster != nil {
		byDefault := s.cluster.BEParams[DefaultProfile]
		p.Memory += p.memoryDefaults * whole(byDefault["maxmem"])
		p.VCPUs += p.vcpuDefaults * whole(byDefault["vcpus"])
	}
	return p
}

// whole is a parameter that is a whole number; 0 for any other.
func whole(v any) int64 {
	n, _ := v.(int64)
	return n
}

// promise adds what an instance may use to what is promised on its node, so many times: 1, or -1 to take it back.
func (s *Snapshot) promise(inst *Instance, times int64) {
	p, _ := s.promises.Get(inst.PrimaryNode)
	p.Disk += times * inst.LocalDiskUsage()
	if inst.AdminState != AdminOffline {
		add := func(sum, defaults *int64, name string) {
			if v, own := inst.BEParams[name]; own {
				*sum += times * whole(v)
			} else {
				*defaults += times
			}
		}
		add(&p.Memory, &p.memoryDefaults, "maxmem")
		add(&p.VCPUs, &p.vcpuDefaults, "vcpus")
	}
	if p == (Promises{}) {
		s.promises.Delete(inst.PrimaryNode)
		return
	}
	s.promises.Set(inst.PrimaryNode, p)
}
