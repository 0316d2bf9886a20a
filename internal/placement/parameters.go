package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
)

// Lacking says which value of an instance's hypervisor parameters a node does not take, of those of which it tells what it takes, and what it
// takes instead; empty when it takes them all. A parameter that is empty, or that nobody has set, asks for nothing.
func Lacking(params cluster.Params, takes map[string][]string) string {
	for _, name := range slices.Sorted(maps.Keys(takes)) {
		value, text := params[name].(string)
		if !text && params[name] != nil {
			value = fmt.Sprint(params[name])
		}
		value, _, _ = strings.Cut(value, ",") // behind a processor's model its features follow
		if value != "" && !slices.Contains(takes[name], value) {
			return fmt.Sprintf("%s=%s is needed, and it has %s", name, value, nearest(takes[name], value))
		}
	}
	return ""
}

// mostNamed is how many values are named that a node has; a QEMU has more than a hundred models of processors.
const mostNamed = 3

// nearest names the values whose names are most like one that is not among them, and how many others there are.
func nearest(values []string, wanted string) string {
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return "none"
	}
	sorted := slices.Clone(values)
	slices.SortFunc(sorted, func(a, b string) int {
		return cmp.Or(cmp.Compare(alike(b, wanted), alike(a, wanted)), strings.Compare(a, b))
	})
	named := strings.Join(sorted[:min(len(sorted), mostNamed)], ", ")
	if others := len(sorted) - mostNamed; others > 0 {
		return fmt.Sprintf("%s and %d others", named, others)
	}
	return named
}

// alike is how many letters two texts begin with that are the same.
func alike(a, b string) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
