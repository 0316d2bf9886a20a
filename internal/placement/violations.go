package placement

import (
	"fmt"
	"slices"

	"github.com/drover-project/drover/internal/cluster"
)

// Violation is one way in which an instance breaks an instance policy.
type Violation struct {
	// Text says it as Ganeti does.
	Text string
	// Value is what the instance has of it and Bound what it may have; zero where that is no number.
	Value, Bound int64
}

// Violations lists how an instance with these backend parameters breaks a policy. It breaks none if it lies
// within one of the policy's pairs of bounds; of several pairs the complaints
// are about the first.
func Violations(policy, backend cluster.Params, inst *cluster.Instance, nics int) []Violation {
	var out []Violation
	if allowed, ok := policy[cluster.PolicyTemplates].([]any); ok && !slices.Contains(allowed, any(inst.DiskTemplate())) {
		out = append(out, Violation{Text: fmt.Sprintf("Disk template %s is not allowed (allowed templates: %v)", inst.DiskTemplate(), allowed)})
	}
	pairs, _ := policy[cluster.PolicyMinMax].([]any)
	var first []Violation
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

func outOfBounds(pair map[string]any, backend cluster.Params, inst *cluster.Instance, nics int) []Violation {
	low, _ := pair["min"].(map[string]any)
	high, _ := pair["max"].(map[string]any)
	var out []Violation
	check := func(name string, value int64) {
		lo, _ := low[name].(int64)
		hi, _ := high[name].(int64)
		if value < lo || (high[name] != nil && value > hi) {
			bound := lo
			if value >= lo {
				bound = hi
			}
			out = append(out, Violation{fmt.Sprintf("%s value %d is not in range [%d, %d]", name, value, lo, hi), value, bound})
		}
	}
	param := func(name string) int64 { n, _ := backend[name].(int64); return n }
	check("memory-size", param("maxmem"))
	check("cpu-count", param("vcpus"))
	check("nic-count", int64(nics))
	check("spindle-use", param("spindle_use"))
	if inst.DiskTemplate() == cluster.DiskDiskless {
		return out
	}
	check("disk-count", int64(len(inst.Disks)))
	for i := range inst.Disks {
		check("disk-size", inst.Disks[i].Size)
	}
	return out
}
