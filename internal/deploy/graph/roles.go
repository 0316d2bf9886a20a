package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/deploy/document"
	"github.com/drover-project/drover/yaql"
)

// UnknownRoles warns of roles that tasks name and nobody has: neither a node, nor a group of the graph, with primary-
// before it or not. They are no errors, since an environment need not have nodes of all roles; most are misspelt.
func UnknownRoles(g *Graph, ofNodes []string) []document.Warning {
	known := map[string]bool{"master": true, "self": true, "*": true}
	for _, role := range ofNodes {
		known[role] = true
	}
	for _, t := range g.Tasks {
		if kind := t.Get("type"); kind != nil && kind.Constant == "group" {
			known[t.ID] = true
			for _, f := range t.Fields {
				for _, role := range f.roles() {
					known[role] = true
				}
			}
		}
	}
	var out []document.Warning
	for _, t := range g.Tasks {
		for _, f := range t.Fields {
			for _, role := range f.roles() {
				bare := strings.TrimPrefix(role, "primary-")
				if known[bare] || known["primary-"+bare] || strings.HasPrefix(role, "/") {
					continue
				}
				out = append(out, document.Warning{Position: f.Position,
					Message: fmt.Sprintf("task %s: %s names the role %q, which no node and no group has", t.ID, f.Name, role)})
			}
		}
	}
	return out
}

// roles returns the roles that a field names in plain words.
func (f *Field) roles() []string {
	if !f.Static {
		return nil
	}
	switch f.Name {
	case "roles", "tags", "groups":
		return textsOf(f.Constant)
	case "cross_depends", "cross_depended_by":
		items, _ := f.Constant.([]any)
		var out []string
		for _, x := range items {
			if d, ok := x.(*yaql.Dict); ok {
				for _, key := range []string{"role", "tags"} {
					v, _ := d.Get(key)
					out = append(out, textsOf(v)...)
				}
			}
		}
		return out
	}
	return nil
}

// textsOf returns a text, or those of a list.
func textsOf(v any) []string {
	if s, ok := v.(string); ok {
		return []string{s}
	}
	items, _ := v.([]any)
	var out []string
	for _, x := range items {
		if s, ok := x.(string); ok && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
