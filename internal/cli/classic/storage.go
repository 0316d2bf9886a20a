package classic

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

// StorageProvider is what nodes have of a storage provider.
type StorageProvider struct {
	Name string `json:"name"`
	// Nodes has what each node has under the name, by its UUID; nothing for one that has none.
	Nodes map[string][]ProviderOnNode `json:"nodes"`
	// Groups says of each node group whether all its nodes can use it.
	Groups map[string]bool `json:"groups"`
	// Parameters are those that it takes on all nodes, each with what is said of it.
	Parameters [][2]string `json:"parameters"`
}

// ProviderFields are what StorageProvider reads, in that order.
var ProviderFields = []string{"name", "node_status", "nodegroup_status", "parameters"}

// UnmarshalJSON reads the row in the order of ProviderFields.
func (p *StorageProvider) UnmarshalJSON(data []byte) error {
	places := []any{&p.Name, &p.Nodes, &p.Groups, &p.Parameters}
	if err := json.Unmarshal(data, &places); err != nil {
		return fault.New(fault.Internal, "a storage provider has an unexpected form: %w", err)
	}
	return nil
}

// ProviderOnNode is a provider as one node has it.
type ProviderOnNode struct {
	Path       string      `json:"path"`
	Valid      bool        `json:"valid"`
	Problem    string      `json:"problem,omitempty"`
	Parameters [][2]string `json:"parameters"`
}

// UnmarshalJSON reads the list of its parts.
func (p *ProviderOnNode) UnmarshalJSON(data []byte) error {
	places := []any{&p.Path, &p.Valid, &p.Problem, &p.Parameters}
	return json.Unmarshal(data, &places)
}

func (p *ProviderOnNode) text() string {
	status := "valid"
	if !p.Valid {
		status = "invalid - " + p.Problem
	}
	names := make([]string, len(p.Parameters))
	for i, param := range p.Parameters {
		names[i] = param[0]
	}
	return fmt.Sprintf("%s (path: %s)%s", status, p.Path, bracketed("parameters", "no parameters", names))
}

// Usable reports whether every node that told anything can use it.
func (p *StorageProvider) Usable() bool {
	for _, there := range p.Nodes {
		if len(there) == 0 || !there[0].Valid {
			return false
		}
	}
	return true
}

// Diagnosis is what is said of it on each node and in each group, as the classic tool shows it: what is well before the rest, nodes by their UUIDs or by what
// names has to show instead.
func (p *StorageProvider) Diagnosis(names map[string]string) string {
	nodes := map[bool]map[string]string{true: {}, false: {}}
	for uuid, there := range p.Nodes {
		said, valid := "ExtStorage provider not found", false
		if len(there) > 0 {
			said, valid = there[0].text(), there[0].Valid
		}
		name := uuid
		if names[uuid] != "" {
			name = names[uuid]
		}
		nodes[valid][name] = said
	}
	groups := map[bool]map[string]string{true: {}, false: {}}
	for name, valid := range p.Groups {
		groups[valid][name] = map[bool]string{true: "valid", false: "invalid"}[valid]
	}
	var out strings.Builder
	fmt.Fprintf(&out, "Provider: %s\n---\n", p.Name)
	writeSorted(&out, "  Node: %s, status: %s\n", nodes[true], nodes[false])
	out.WriteString("  --\n")
	writeSorted(&out, "  For nodegroup: %s --> %s\n", groups[true], groups[false])
	return out.String()
}

// writeSorted writes the entries of one map behind those of another, each in the order of names.
func writeSorted(out *strings.Builder, form string, parts ...map[string]string) {
	for _, part := range parts {
		for _, name := range slices.SortedFunc(maps.Keys(part), cluster.CompareNames) {
			fmt.Fprintf(out, form, name, part[name])
		}
	}
}

// Info is where it can be used, and which parameters it takes, as the classic tool shows it.
func (p *StorageProvider) Info() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s:\n", p.Name)
	usable := map[string]string{}
	for name, valid := range p.Groups {
		if valid {
			usable[name] = ""
		}
	}
	if len(usable) == 0 {
		return out.String() + "  - Invalid for all nodegroups\n"
	}
	out.WriteString("  - Valid for nodegroups:\n")
	writeSorted(&out, "      %s%s\n", usable)
	out.WriteString("  - Supported parameters:\n")
	for _, param := range p.Parameters {
		fmt.Fprintf(&out, "      %s: %s\n", param[0], param[1])
	}
	return out.String()
}
