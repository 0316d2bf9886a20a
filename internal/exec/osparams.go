package exec

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
)

// checkOSParams refuses parameters that an operating system does not know, in
// any of the layers.
func checkOSParams(os agent.OS, node string, layers ...cluster.Params) error {
	var strange []string
	for _, params := range layers {
		for name := range params {
			known := slices.ContainsFunc(os.Parameters, func(p agent.Parameter) bool { return p.Name == name })
			if !known && !slices.Contains(strange, name) {
				strange = append(strange, name)
			}
		}
	}
	if len(strange) == 0 {
		return nil
	}
	slices.Sort(strange)
	// Clients know this as a failed execution: the reference asks the node.
	return fault.New(fault.Failed, "OS Parameters validation failed on node %s: The following parameters are not supported by the OS %s: %s",
		node, os.Name, strings.Join(strange, ", "))
}

// osParamNames are the parameters of opcodes that hold those of operating systems.
var osParamNames = []string{"osparams", "osparams_private", "osparams_secret"}

// checkGivenOSParams refuses a secret that is given in another way, too, so that one of both
// would be dropped, and values that are no texts, as scripts get them.
func checkGivenOSParams(op *opcode.Opcode) error {
	seen := map[string]string{}
	for _, param := range osParamNames {
		given := op.Map(param)
		for _, name := range slices.Sorted(maps.Keys(given)) {
			place := param + "." + name
			if before := seen[name]; before != "" && param == "osparams_secret" {
				return fault.New(fault.Invalid, "The OS parameter '%s' is given in %s and in %s", name, before, param).At(place)
			}
			seen[name] = param
			if _, text := given[name].(string); !text {
				return fault.New(fault.Mistyped, "The OS parameter '%s' must be a text, got %s", name, jsonText(given[name])).At(place)
			}
		}
	}
	return nil
}

// jsonText is a value as clients wrote it.
func jsonText(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return "what is no JSON"
	}
	return string(out)
}

// checkClusterOSParams checks the parameters that the cluster sets for
// operating systems, by the definitions that its master node has: at each change of the
// cluster all that are set behind it, as there. What is taken away is not checked, nor is
// what no definition is there for, which the job's log says.
func (e *Env) checkClusterOSParams(ctx context.Context) error {
	after := e.snapshot().Cluster().Clone()
	for _, name := range []string{"osparams", "osparams_private_cluster"} {
		if err := setOSParams(after, e.Op, name, nil); err != nil {
			return err
		}
	}
	all := map[string]bool{}
	for _, params := range []map[string]cluster.Params{after.OSParams, after.OSParamsPrivate} {
		for os := range params {
			all[os] = true
		}
	}
	for _, os := range slices.Sorted(maps.Keys(all)) {
		if err := e.checkMasterOS(ctx, os, after.OSParams[os], after.OSParamsPrivate[os]); err != nil {
			return err
		}
	}
	return nil
}

func (e *Env) checkMasterOS(ctx context.Context, os string, layers ...cluster.Params) error {
	node := e.snapshot().Node(e.snapshot().Cluster().MasterNode)
	if node == nil {
		return nil
	}
	a, err := e.agent(node)
	if err != nil {
		return err
	}
	definition, err := a.FindOS(ctx, os, true)
	if base, _ := cluster.OSName(os); fault.Is(err, fault.NotFound) && base == cluster.ImageOS {
		definition, err = agent.ImageOS(nil), nil
	}
	if fault.Is(err, fault.NotFound) {
		e.Infof("OS %s not found on node %s, validation skipped", os, node.Name)
		return nil
	}
	if err != nil {
		return err
	}
	return checkOSParams(definition, node.Name, layers...)
}
