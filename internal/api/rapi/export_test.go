package rapi

import (
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/rights"
)

// InstancePath is a resource of one instance, with the methods that change something.
type InstancePath struct {
	Path    string
	Changes []string
}

// InstancePaths are all resources of one instance.
func InstancePaths() (out []InstancePath) {
	for _, r := range resources {
		if !strings.HasPrefix(r.path, "/2/instances/{name}") {
			continue
		}
		p := InstancePath{Path: r.path}
		for _, method := range slices.Sorted(maps.Keys(r.methods)) {
			if r.methods[method].needs == rights.Change {
				p.Changes = append(p.Changes, method)
			}
		}
		out = append(out, p)
	}
	return out
}
