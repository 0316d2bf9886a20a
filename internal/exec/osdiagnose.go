package exec

import (
	"context"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

// osSummary is an operating system as the nodes together have it.
type osSummary struct {
	name string
	// valid: it is there and usable on every node that was asked.
	valid               bool
	hidden, blacklisted bool
	variants            []string
	parameters          [][2]string
	versions            []int
	nodes               map[string][][]any
}

// osFields are the columns of OP_OS_DIAGNOSE.
var osFields = map[string]func(*osSummary) any{
	"name":         func(o *osSummary) any { return o.name },
	"valid":        func(o *osSummary) any { return o.valid },
	"hidden":       func(o *osSummary) any { return o.hidden },
	"blacklisted":  func(o *osSummary) any { return o.blacklisted },
	"variants":     func(o *osSummary) any { return o.variants },
	"parameters":   func(o *osSummary) any { return o.parameters },
	"api_versions": func(o *osSummary) any { return o.versions },
	"trusted":      func(*osSummary) any { return true },
	"node_status":  func(o *osSummary) any { return o.nodes },
}

// osDiagnose prepares OP_OS_DIAGNOSE. As the reference does, it leaves out
// what is hidden, blacklisted or not valid, unless that column is asked for.
func osDiagnose(ctx context.Context, env *Env) (Plan, error) {
	fields := env.Op.Strings("output_fields")
	for _, f := range fields {
		if osFields[f] == nil {
			return Plan{}, fault.New(fault.Invalid, "Unknown output fields selected: %s", f).At("output_fields").
				WithHint("one of %s", strings.Join(sortedKeys(osFields), ", "))
		}
	}
	all, err := env.diagnose(ctx)
	if err != nil {
		return Plan{}, err
	}
	names := env.Op.Strings("names")
	rows := [][]any{}
	for _, name := range sortedKeys(all) {
		o := all[name]
		if (len(names) > 0 && !slices.Contains(names, name)) || o.leftOut(fields) {
			continue
		}
		row := make([]any, len(fields))
		for i, f := range fields {
			row[i] = osFields[f](o)
		}
		rows = append(rows, row)
	}
	return answer(rows), nil
}

func (o *osSummary) leftOut(fields []string) bool {
	without := func(field string) bool { return !slices.Contains(fields, field) }
	return (o.hidden && without("hidden")) || (o.blacklisted && without("blacklisted")) || (!o.valid && without("valid"))
}

// diagnose asks all nodes that can host instances. A node that does not answer
// is passed over with a warning.
func (e *Env) diagnose(ctx context.Context) (map[string]*osSummary, error) {
	snap := e.snapshot()
	all := map[string]*osSummary{}
	asked := 0
	for node := range snap.Nodes() {
		if node.Offline || !node.VMCapable {
			continue
		}
		list, err := e.osesOf(ctx, node)
		if err != nil {
			if fault.Is(err, fault.Canceled) {
				return nil, err
			}
			e.Warnf("Node %s is passed over: %v", node.Name, err)
			continue
		}
		asked++
		for _, found := range list {
			o := all[found.Name]
			if o == nil {
				o = newOSSummary(snap.Cluster(), found)
				all[found.Name] = o
			}
			o.add(node, found)
		}
	}
	for _, o := range all {
		o.valid = o.valid && len(o.nodes) == asked
	}
	return all, nil
}

func (e *Env) osesOf(ctx context.Context, node *cluster.Node) ([]agent.OS, error) {
	a, err := e.agent(node)
	if err != nil {
		return nil, err
	}
	return a.OSes(ctx)
}

func newOSSummary(c *cluster.Cluster, found agent.OS) *osSummary {
	o := &osSummary{
		name: found.Name, valid: true, variants: orEmpty(found.Variants), versions: slices.Sorted(slices.Values(found.APIVersions)),
		parameters: [][2]string{}, nodes: map[string][][]any{},
		hidden: slices.Contains(c.HiddenOS, found.Name), blacklisted: slices.Contains(c.BlacklistedOS, found.Name),
	}
	for _, p := range found.Parameters {
		o.parameters = append(o.parameters, [2]string{p.Name, p.Doc})
	}
	return o
}

// add takes one node's view in. What not all nodes have does not count.
func (o *osSummary) add(node *cluster.Node, found agent.OS) {
	o.valid = o.valid && found.Problem == ""
	o.variants = slices.DeleteFunc(o.variants, func(v string) bool { return !slices.Contains(found.Variants, v) })
	o.versions = slices.DeleteFunc(o.versions, func(v int) bool { return !slices.Contains(found.APIVersions, v) })
	o.parameters = slices.DeleteFunc(o.parameters, func(p [2]string) bool {
		return !slices.Contains(found.Parameters, agent.Parameter{Name: p[0], Doc: p[1]})
	})
	o.nodes[node.UUID] = [][]any{{found.Path, found.Problem == "", found.Problem, orEmpty(found.Variants),
		parameterPairs(found.Parameters), found.APIVersions, true}}
}

func parameterPairs(list []agent.Parameter) [][2]string {
	out := make([][2]string, len(list))
	for i, p := range list {
		out[i] = [2]string{p.Name, p.Doc}
	}
	return out
}

// orEmpty returns a copy that is written as [] when it is empty.
func orEmpty(list []string) []string { return append([]string{}, list...) }
