package plan

import (
	"strings"

	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/yaql"
)

// filler fills the placeholders in texts of tasks.
type filler struct {
	values map[string]any
	filled map[*graph.Template]any
}

// placed are the placeholders that stand for something in the state that a node sees, with the way there.
var placed = map[string][]string{"CLUSTER_ID": {"cluster", "id"}, "OPENSTACK_VERSION": {"openstack_version"}, "CN_HOSTNAME": {"public_ssl", "hostname"}}

// newFiller returns a filler for what sees a state.
func newFiller(in Input, seen yaql.Mapping) *filler {
	f := &filler{values: map[string]any{"SETTINGS": in.Settings, "MASTER_IP": at(in.Common.Data(), "master_ip")}, filled: map[*graph.Template]any{}}
	for name, path := range placed {
		f.values[name] = at(seen, path...)
	}
	return f
}

// at returns what is at a place in a value, or null.
func at(v any, path ...string) any {
	for _, key := range path {
		m, ok := v.(yaql.Mapping)
		if !ok {
			return nil
		}
		v, _ = m.Get(key)
	}
	return v
}

// fillerOf returns the filler of a node. Most share one, and with it what it has filled.
func (h *shard) fillerOf(n int32) *filler {
	if f := h.fillers[n]; f != nil {
		return f
	}
	f, part := h.filler, h.in.Parts[h.nodes[n].UID]
	for _, path := range placed {
		if part == nil || f != h.filler {
			break
		}
		if _, own := part.Get(path[0]); own {
			f = newFiller(h.in, h.view(h.in.Common, part))
		}
	}
	h.fillers[n] = f
	return f
}

// constant returns the value of a static template with its placeholders filled.
func (f *filler) constant(t *graph.Template) any {
	if v, done := f.filled[t]; done {
		return v
	}
	v := f.fill(t.Constant)
	f.filled[t] = v
	return v
}

func (f *filler) fill(v any) any {
	switch x := v.(type) {
	case string:
		if !strings.ContainsAny(x, "{}") {
			return x
		}
		out, _ := format(x, f.values)
		return out
	case []any:
		items := make([]any, len(x))
		for i, e := range x {
			items[i] = f.fill(e)
		}
		return items
	case *yaql.Dict:
		d := yaql.NewDict(x.Len())
		x.Range(func(k, e any) bool {
			if k != "regex" {
				e = f.fill(e)
			}
			_ = d.Set(k, e) // it was a key
			return true
		})
		return d
	}
	return v
}
