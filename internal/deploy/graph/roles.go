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
	known := map[string]bool{"master": true, "self": true, star: true}
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
				out = append(out, document.Warning{Position: f.Position, Rule: ruleRole,
					Message: fmt.Sprintf("task %s: %s names the role %q, which no node and no group has", t.ID, f.Name, role)})
			}
		}
	}
	return out
}

// star is all nodes that have a role, by itself; among several names, and in groups, it means none.
const star = "*"

// stars warns of stars that mean no node.
func stars(t *Task) []document.Warning {
	var out []document.Warning
	for _, f := range t.Fields {
		if !f.Static {
			continue
		}
		lists := []any{f.Constant}
		switch f.Name {
		case "roles", "tags", "groups":
		case "cross_depends", "cross_depended_by":
			lists = nil
			for _, d := range relations(f.Constant) {
				for _, key := range []string{"role", "tags"} {
					v, _ := d.Get(key)
					lists = append(lists, v)
				}
			}
		default:
			continue
		}
		for _, v := range lists {
			items, _ := v.([]any)
			if !slices.Contains(items, any(star)) {
				continue
			}
			where := "a list of " + f.Name
			if f.Name == "groups" {
				where = f.Name
			}
			out = append(out, document.Warning{Position: f.Position, Rule: ruleStar,
				Message: fmt.Sprintf("task %s: a star in %s means no node; for all nodes write role: '*'", t.ID, where)})
		}
	}
	return out
}

// relations are the maps of a list of relations.
func relations(v any) []*yaql.Dict {
	items, _ := v.([]any)
	var out []*yaql.Dict
	for _, x := range items {
		if d, ok := x.(*yaql.Dict); ok {
			out = append(out, d)
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
		var out []string
		for _, d := range relations(f.Constant) {
			for _, key := range []string{"role", "tags"} {
				v, _ := d.Get(key)
				out = append(out, textsOf(v)...)
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
