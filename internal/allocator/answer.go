package allocator

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
)

// Answer is what a program says. Info is for people.
type Answer struct {
	Success bool
	Info    string
	Result  any
}

// Read reads an answer: fault.Failed, in the words of the reference, for one that is none.
func Read(raw []byte) (Answer, error) {
	var m map[string]json.RawMessage
	if err := intake.ReadOpen(raw, &m); err != nil {
		return Answer{}, fault.New(fault.Failed, "Can't parse iallocator results: %w", err)
	}
	if m == nil {
		return Answer{}, fault.New(fault.Failed, "Can't parse iallocator results: not a dict")
	}
	if _, has := m["result"]; !has && m["nodes"] != nil { // as programs of before have it
		m["result"] = m["nodes"]
	}
	var a Answer
	for _, part := range []struct {
		key  string
		into any
	}{{"success", &a.Success}, {"info", &a.Info}, {"result", &a.Result}} {
		text, has := m[part.key]
		switch {
		case !has:
			return Answer{}, fault.New(fault.Failed, "Can't parse iallocator results: missing key '%s'", part.key)
		case string(text) == "null" && part.key != "result": // which would be read as false, and as nothing said
			return Answer{}, fault.New(fault.Failed, "Can't parse iallocator results: %s: null", part.key)
		}
		if err := intake.ReadOpen(text, part.into); err != nil {
			return Answer{}, fault.New(fault.Failed, "Can't parse iallocator results: %s: %w", part.key, err)
		}
	}
	return a, nil
}

// Nodes are the names that the answer to a request for so many nodes has: each once, and of a node that there is.
func (a Answer) Nodes(required int, there func(name string) bool) ([]string, error) {
	list, ok := a.Result.([]any)
	names := make([]string, len(list))
	for i, v := range list {
		if names[i], ok = v.(string); !ok {
			break
		}
	}
	if !ok {
		return nil, fault.New(fault.Failed, "iallocator returned invalid result, expected a list of node names, got %s", fault.Clip(shown(a.Result), 200))
	}
	if len(names) != required {
		return nil, fault.New(fault.Failed, "iallocator returned invalid number of nodes (%d), required %d", len(names), required)
	}
	for i, name := range names {
		switch {
		case !there(name):
			return nil, fault.New(fault.Failed, "iallocator returned a node that there is not: %s", fault.Clip(name, 200))
		case slices.Contains(names[:i], name):
			return nil, fault.New(fault.Failed, "iallocator returned the node %s twice", name)
		}
	}
	return names, nil
}

func shown(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "what cannot be shown"
	}
	return strings.TrimSpace(string(text))
}
