package exec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

// checkPolicy refuses an instance that breaks the policy of its node's group.
func checkPolicy(snap *cluster.Snapshot, node *cluster.Node, inst *cluster.Instance, nics int) error {
	group := snap.Group(node.Group)
	if group == nil {
		return nil
	}
	c := snap.Cluster()
	if broken := violations(c.FillIPolicy(group), c.FillBE(inst), inst, nics); len(broken) > 0 {
		return fault.New(fault.Invalid, "Instance allocation to group %s (%s) violates policy: %s", group.UUID, group.Name, strings.Join(broken, ", "))
	}
	return nil
}

// violations lists how an instance breaks a policy. It breaks none if it lies
// within one of the policy's pairs of bounds; of several pairs the complaints
// are about the first.
func violations(policy, backend cluster.Params, inst *cluster.Instance, nics int) []string {
	var out []string
	if allowed, ok := policy["disk-templates"].([]any); ok && !slices.Contains(allowed, any(inst.DiskTemplate())) {
		out = append(out, fmt.Sprintf("Disk template %s is not allowed (allowed templates: %v)", inst.DiskTemplate(), allowed))
	}
	pairs, _ := policy["minmax"].([]any)
	var first []string
	for i, p := range pairs {
		pair, _ := p.(map[string]any)
		broken := outOfBounds(pair, backend, inst, nics)
		if len(broken) == 0 {
			return out
		}
		if i == 0 {
			first = broken
		}
	}
	return append(out, first...)
}

func outOfBounds(pair map[string]any, backend cluster.Params, inst *cluster.Instance, nics int) []string {
	low, _ := pair["min"].(map[string]any)
	high, _ := pair["max"].(map[string]any)
	var out []string
	check := func(name string, value int) {
		lo, hi := intParam(low, name), intParam(high, name)
		if value < lo || (high[name] != nil && value > hi) {
			out = append(out, fmt.Sprintf("%s value %d is not in range [%d, %d]", name, value, lo, hi))
		}
	}
	check("memory-size", intParam(backend, "maxmem"))
	check("cpu-count", intParam(backend, "vcpus"))
	check("nic-count", nics)
	check("spindle-use", intParam(backend, "spindle_use"))
	if inst.DiskTemplate() == cluster.DiskDiskless {
		return out
	}
	check("disk-count", len(inst.Disks))
	for i := range inst.Disks {
		check("disk-size", int(inst.Disks[i].Size))
	}
	return out
}
