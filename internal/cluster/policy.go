package cluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// Parts of an instance policy.
const (
	PolicyMinMax    = "minmax"
	PolicyStd       = "std"
	PolicyTemplates = "disk-templates"
	PolicyVCPUs     = "vcpu-ratio"
	PolicySpindles  = "spindle-ratio"
)

// PolicySpecs returns the sizes that an instance policy bounds.
func PolicySpecs() []string {
	return []string{"memory-size", "cpu-count", "disk-count", "disk-size", "nic-count", "spindle-use"}
}

// DiskTemplates returns all templates that a policy may allow.
func DiskTemplates() []string {
	return []string{DiskBlock, DiskDiskless, DiskDRBD, DiskExt, DiskFile, DiskGluster, DiskPlain, DiskRBD, DiskSharedFile}
}

// CheckPolicy refuses a cluster's instance policy that is not complete,
// contradicts itself, or says something else than policies can.
func CheckPolicy(policy Params) error { return checkParts(policy, policyParts) }

// CheckGroupPolicy does so for what a group sets over the policy of its
// cluster. The standard sizes are the cluster's alone.
func CheckGroupPolicy(own, cluster Params) error {
	if _, given := own[PolicyStd]; given {
		return fault.New(fault.Invalid, "Invalid instance policy: standard sizes are a setting of the cluster, groups have none").At("ipolicy." + PolicyStd)
	}
	return checkParts(Fill(cluster, own), slices.DeleteFunc(slices.Clone(policyParts), func(p policyPart) bool { return p.name == PolicyStd }))
}

func checkParts(policy Params, parts []policyPart) error {
	for _, part := range parts {
		if problem := part.check(policy[part.name], policy); problem != "" {
			return fault.New(fault.Invalid, "Invalid instance policy: %s", problem).At("ipolicy." + part.name)
		}
	}
	var strange []string
	for name := range policy {
		if !slices.ContainsFunc(policyParts, func(p policyPart) bool { return p.name == name }) {
			strange = append(strange, name)
		}
	}
	if len(strange) > 0 {
		slices.Sort(strange)
		return fault.New(fault.Invalid, "Invalid instance policy: Invalid keys in ipolicy: %s", strings.Join(strange, ", ")).At("ipolicy." + strange[0])
	}
	return nil
}

// policyPart is a part of a policy, with what is wrong with a value of it.
type policyPart struct {
	name  string
	check func(value any, policy Params) string
}

var policyParts = []policyPart{
	{PolicyTemplates, checkPolicyTemplates},
	{PolicyVCPUs, checkRatio},
	{PolicySpindles, checkRatio},
	{PolicyMinMax, checkMinMax},
	{PolicyStd, checkStd},
}

// checkPolicyTemplates lets a policy without the part pass: it allows all.
func checkPolicyTemplates(value any, policy Params) string {
	if _, given := policy[PolicyTemplates]; !given {
		return ""
	}
	list, _ := value.([]any)
	if len(list) == 0 {
		return "Instance policy must contain at least one disk template"
	}
	var strange []string
	for _, t := range list {
		if text := fmt.Sprint(t); !slices.Contains(DiskTemplates(), text) {
			strange = append(strange, text)
		}
	}
	if len(strange) > 0 {
		return "Invalid disk template(s) " + strings.Join(strange, ", ")
	}
	return ""
}

func checkRatio(value any, _ Params) string {
	switch n := value.(type) {
	case int64:
		if n > 0 {
			return ""
		}
	case float64:
		if n > 0 {
			return ""
		}
	}
	return fmt.Sprintf("a ratio must be a number above 0, got %v", value)
}

func checkMinMax(value any, _ Params) string {
	pairs, _ := value.([]any)
	if len(pairs) == 0 {
		return "Empty minmax specifications"
	}
	for _, p := range pairs {
		pair, _ := p.(map[string]any)
		for _, side := range []string{"min", "max"} {
			if problem := checkSpecs(side, pair[side]); problem != "" {
				return problem
			}
		}
		if len(pair) > 2 {
			return "a pair of bounds has the keys min and max only"
		}
		low, _ := pair["min"].(map[string]any)
		high, _ := pair["max"].(map[string]any)
		for _, name := range PolicySpecs() {
			if specOf(low, name) > specOf(high, name) {
				return fmt.Sprintf("Invalid specification of min/max values for %s: %d/%d", name, specOf(low, name), specOf(high, name))
			}
		}
	}
	return ""
}

// checkSpecs refuses a set of sizes that is not complete.
func checkSpecs(what string, value any) string {
	specs, isObject := value.(map[string]any)
	if !isObject {
		return "Missing instance specification: " + what
	}
	var missing []string
	for _, name := range PolicySpecs() {
		switch n, given := specs[name]; {
		case !given:
			missing = append(missing, name)
		case specOf(specs, name) < 0:
			return fmt.Sprintf("%s of %s must be a number from 0, got %v", name, what, n)
		}
	}
	if len(missing) > 0 {
		return "Missing instance specs parameters for " + what + ": " + strings.Join(missing, ", ")
	}
	for name := range specs {
		if !slices.Contains(PolicySpecs(), name) {
			return fmt.Sprintf("Unknown instance specs parameter %s for %s", name, what)
		}
	}
	return ""
}

// specOf returns a size, -1 for anything that is none.
func specOf(specs map[string]any, name string) int64 {
	n, ok := specs[name].(int64)
	if !ok {
		return -1
	}
	return n
}

// checkStd wants the standard sizes within one pair of bounds.
func checkStd(value any, policy Params) string {
	if problem := checkSpecs(PolicyStd, value); problem != "" {
		return problem
	}
	std, _ := value.(map[string]any)
	pairs, _ := policy[PolicyMinMax].([]any)
	for _, p := range pairs {
		pair, _ := p.(map[string]any)
		low, _ := pair["min"].(map[string]any)
		high, _ := pair["max"].(map[string]any)
		if !slices.ContainsFunc(PolicySpecs(), func(name string) bool {
			return specOf(std, name) < specOf(low, name) || specOf(std, name) > specOf(high, name)
		}) {
			return ""
		}
	}
	return "Invalid std specifications: they lie outside all bounds"
}
