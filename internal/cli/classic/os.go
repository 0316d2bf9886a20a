package classic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// OSDefinition is an operating system that nodes can install.
type OSDefinition struct {
	Name        string      `json:"name"`
	Valid       bool        `json:"valid"`
	Hidden      bool        `json:"hidden"`
	Blacklisted bool        `json:"blacklisted"`
	APIVersions []int       `json:"api_versions"`
	Variants    []string    `json:"variants"`
	Parameters  [][2]string `json:"parameters"`
	Trusted     bool        `json:"trusted"`
}

// OSFields are what OSDefinition reads, in that order.
var OSFields = []string{"name", "valid", "hidden", "blacklisted", "api_versions", "variants", "parameters", "trusted"}

// UnmarshalJSON reads the row in the order of OSFields. Of a definition that is
// not valid the nodes agree on little: the rest is null.
func (o *OSDefinition) UnmarshalJSON(data []byte) error {
	places := []any{&o.Name, &o.Valid, &o.Hidden, &o.Blacklisted, &o.APIVersions, &o.Variants, &o.Parameters, &o.Trusted}
	if err := json.Unmarshal(data, &places); err != nil {
		return fault.New(fault.Internal, "an operating system has an unexpected form: %w", err)
	}
	slices.Sort(o.APIVersions)
	return nil
}

// installable are the names under which it can be installed.
func (o *OSDefinition) installable() []string {
	if len(o.Variants) == 0 {
		return []string{o.Name}
	}
	out := make([]string, len(o.Variants))
	for i, v := range o.Variants {
		out[i] = o.Name + "+" + v
	}
	return out
}

// InstallableNames are the names that may be chosen of all definitions.
func InstallableNames(found []OSDefinition) []string {
	names := []string{}
	for i := range found {
		if o := &found[i]; o.Valid && !o.Hidden && !o.Blacklisted {
			names = append(names, o.installable()...)
		}
	}
	return names
}

// Titled puts a title before the names, as wide as the longest of them, as
// the classic tool does.
func Titled(title string, names []string) []string {
	width := len(title)
	for _, n := range names {
		width = max(width, len(n))
	}
	return append([]string{fmt.Sprintf("%-*s", width, title)}, names...)
}

// Text is the definition as the classic tool shows it.
func (o *OSDefinition) Text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s:", o.Name)
	line("  - valid: %s", Text(o.Valid))
	line("  - hidden: %s", Text(o.Hidden))
	line("  - blacklisted: %s", Text(o.Blacklisted))
	line("  - API versions:")
	for _, v := range o.APIVersions {
		line("    - %d", v)
	}
	line("  - variants:")
	for _, v := range o.Variants {
		line("    - %s", v)
	}
	line("  - parameters:")
	for _, p := range o.Parameters {
		line("    - %s: %s", p[0], p[1])
	}
	line("  - trusted: %s", Text(o.Trusted))
	return b.String()
}
