package exec

import (
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

// checkHV checks hypervisor parameters for one instance. Those that belong to
// the whole cluster are refused.
func checkHV(hypervisor string, given map[string]any) (cluster.Params, error) {
	var global []string
	for name := range given {
		if cluster.IsGlobalHVParam(name) {
			global = append(global, name)
		}
	}
	if len(global) > 0 {
		slices.Sort(global)
		return nil, fault.New(fault.Invalid, "The following hypervisor parameters are global and cannot be customized at instance level,"+
			" please modify them at cluster level: %s", strings.Join(global, ", ")).At("hvparams." + global[0])
	}
	return cluster.CheckParams(given, cluster.HVTypes(hypervisor), true)
}
