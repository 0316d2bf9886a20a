package classic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

// OSDiagnosis is what each node says of an operating system.
type OSDiagnosis struct {
	Name     string                `json:"name"`
	Valid    bool                  `json:"valid"`
	Variants []string              `json:"variants"`
	Nodes    map[string][]OSOnNode `json:"nodes"` // by the node's UUID

	hidden, blacklisted bool
}

// DiagnosisFields are what OSDiagnosis reads, in that order.
var DiagnosisFields = []string{"name", "valid", "variants", "node_status", "hidden", "blacklisted"}

// UnmarshalJSON reads the row in the order of DiagnosisFields. Definitions that are
// hidden are left out where the last two are not asked for.
func (o *OSDiagnosis) UnmarshalJSON(data []byte) error {
	places := []any{&o.Name, &o.Valid, &o.Variants, &o.Nodes, &o.hidden, &o.blacklisted}
	if err := json.Unmarshal(data, &places); err != nil {
		return fault.New(fault.Internal, "an operating system has an unexpected form: %w", err)
	}
	return nil
}

// OSOnNode is a definition as one node has it.
type OSOnNode struct {
	Path        string      `json:"path"`
	Valid       bool        `json:"valid"`
	Problem     string      `json:"problem,omitempty"`
	Variants    []string    `json:"variants"`
	Parameters  [][2]string `json:"parameters"`
	APIVersions []int       `json:"api_versions"`
	Trusted     bool        `json:"trusted"`
}

// UnmarshalJSON reads the list of its parts.
func (o *OSOnNode) UnmarshalJSON(data []byte) error {
	places := []any{&o.Path, &o.Valid, &o.Problem, &o.Variants, &o.Parameters, &o.APIVersions, &o.Trusted}
	return json.Unmarshal(data, &places)
}

// Text is the diagnosis as the classic tool shows it: nodes where the definition is
// valid before others, by their UUIDs, or by what names has to show instead.
func (o *OSDiagnosis) Text(names map[string]string) string {
	var valid, invalid, lines strings.Builder
	shown := func(node string) string { return cmp.Or(names[node], node) }
	inOrder := func(a, b string) int { return cluster.CompareNames(shown(a), shown(b)) }
	for _, node := range slices.SortedFunc(maps.Keys(o.Nodes), inOrder) {
		defs, into, said := o.Nodes[node], &invalid, "OS not found"
		if len(defs) > 0 {
			said = defs[0].text()
			if defs[0].Valid {
				into = &valid
			}
		}
		fmt.Fprintf(into, "  Node: %s, status: %s\n", shown(node), said)
		for _, d := range defs[min(1, len(defs)):] { // of the same name, further down the search path
			fmt.Fprintf(into, "    [hidden] path: %s, status: %s\n", d.Path, d.status())
		}
	}
	status := "partial valid"
	switch {
	case valid.Len() > 0 && invalid.Len() == 0:
		status = "valid"
	case valid.Len() == 0 && invalid.Len() > 0:
		status = "invalid"
	}
	fmt.Fprintf(&lines, "OS: %s [global status: %s]", o.Name, status)
	if o.hidden {
		lines.WriteString(" [hidden]")
	}
	if o.blacklisted {
		lines.WriteString(" [blacklisted]")
	}
	lines.WriteString("\n")
	if len(o.Variants) > 0 {
		fmt.Fprintf(&lines, "  Variants: [%s]\n", strings.Join(o.Variants, ", "))
	}
	return lines.String() + valid.String() + invalid.String()
}

func (o OSOnNode) status() string {
	if o.Valid {
		return "valid"
	}
	return "invalid - " + o.Problem
}

// Definitions may have variants since the one version of their API, and parameters
// since the other.
const apiOfVariants, apiOfParameters = 15, 20

func (o OSOnNode) text() string {
	versions, names := make([]string, len(o.APIVersions)), make([]string, len(o.Parameters))
	for i, v := range o.APIVersions {
		versions[i] = strconv.Itoa(v)
	}
	for i, p := range o.Parameters {
		names[i] = p[0]
	}
	newest := slices.Max(append([]int{0}, o.APIVersions...))
	out := fmt.Sprintf("%s (path: %s)%s", o.status(), o.Path, bracketed("API versions", "no API versions declared", versions))
	if newest >= apiOfVariants {
		out += bracketed("variants", "no variants", o.Variants)
	}
	if newest >= apiOfParameters {
		out += bracketed("parameters", "no parameters", names)
	}
	if o.Trusted {
		return out + " [trusted]"
	}
	return out + " [untrusted]"
}

// bracketed is a list with its name, or what is said when there is nothing in it.
func bracketed(name, none string, list []string) string {
	if len(list) == 0 {
		return " [" + none + "]"
	}
	return " [" + name + ": " + strings.Join(list, ", ") + "]"
}
