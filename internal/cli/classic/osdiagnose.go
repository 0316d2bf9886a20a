package classic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// OSDiagnosis is what each node says of an operating system.
type OSDiagnosis struct {
	Name     string                `json:"name"`
	Valid    bool                  `json:"valid"`
	Variants []string              `json:"variants"`
	Nodes    map[string][]OSOnNode `json:"nodes"` // by the node's UUID
}

// DiagnosisFields are what OSDiagnosis reads, in that order.
var DiagnosisFields = []string{"name", "valid", "variants", "node_status", "hidden", "blacklisted"}

// UnmarshalJSON reads the row in the order of DiagnosisFields. The last two are
// asked for because definitions that are hidden are left out otherwise.
func (o *OSDiagnosis) UnmarshalJSON(data []byte) error {
	var hidden, blacklisted bool
	places := []any{&o.Name, &o.Valid, &o.Variants, &o.Nodes, &hidden, &blacklisted}
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

// Text is the diagnosis as the classic tool shows it: with the UUIDs of nodes, for
// which names has what to show instead.
func (o *OSDiagnosis) Text(names map[string]string) string {
	good, bad := 0, 0
	var lines strings.Builder
	for _, node := range slices.Sorted(maps.Keys(o.Nodes)) {
		for i, d := range o.Nodes[node] {
			if i > 0 { // another definition of the same name, further down the search path
				fmt.Fprintf(&lines, "    [hidden] %s\n", d.text())
				continue
			}
			if d.Valid {
				good++
			} else {
				bad++
			}
			fmt.Fprintf(&lines, "  Node: %s, status: %s\n", cmp.Or(names[node], node), d.text())
		}
	}
	status := "partial valid"
	switch {
	case bad == 0:
		status = "valid"
	case good == 0:
		status = "invalid"
	}
	head := fmt.Sprintf("OS: %s [global status: %s]\n", o.Name, status)
	if len(o.Variants) > 0 {
		head += fmt.Sprintf("  Variants: [%s]\n", strings.Join(o.Variants, ", "))
	}
	return head + lines.String()
}

func (o OSOnNode) text() string {
	if !o.Valid {
		return fmt.Sprintf("invalid - %s (path: %s)", o.Problem, o.Path)
	}
	versions, names := make([]string, len(o.APIVersions)), make([]string, len(o.Parameters))
	for i, v := range o.APIVersions {
		versions[i] = strconv.Itoa(v)
	}
	for i, p := range o.Parameters {
		names[i] = p[0]
	}
	trusted := "untrusted"
	if o.Trusted {
		trusted = "trusted"
	}
	return fmt.Sprintf("valid (path: %s) [API versions: %s] [variants: %s] [parameters: %s] [%s]", o.Path,
		strings.Join(versions, ", "), strings.Join(o.Variants, ", "), strings.Join(names, ", "), trusted)
}
