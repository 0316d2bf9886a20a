package inventory

import (
	"slices"
	"strings"
	"testing"
)

func TestPlanEpo(t *testing.T) {
	yes, no := true, false
	nodes := []epoNode{
		{name: "m", master: true, primaries: []string{"a"}, powered: &yes},
		{name: "n1", primaries: []string{"b"}, secondaries: []string{"a"}, powered: &yes},
		{name: "n2", powered: nil, primaries: []string{"c"}},
		{name: "n3", powered: &no},
		{name: "n4", powered: &yes, offline: true, secondaries: []string{"b"}},
	}
	for _, c := range []struct {
		from            int
		on, all         bool
		switched, stops []string
		refused         string
	}{
		{0, false, false, nil, nil, "m is the master node"},
		{0, false, true, []string{"n1", "n4"}, []string{"a", "b", "c"}, ""},
		{1, false, false, []string{"n1", "n4"}, []string{"a", "b", "c"}, ""},
		{0, true, false, []string{"n3"}, []string{"a", "b", "c"}, ""},
	} {
		e, err := planEpo(nodes[c.from:], c.on, c.all)
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || !slices.Equal(e.switched, c.switched) {
			t.Errorf("%+v: %+v, %v", c, e, err)
		}
		if slices.Contains(e.awaited, "n4") || len(e.awaited) != len(e.nodes)-1 {
			t.Errorf("%+v: of %v it waits for %v", c, e.nodes, e.awaited)
		}
		// What is on a node that does not answer waits for it; what is ready is so once.
		if first := e.ready(func(node string) bool { return node != "n2" }); !slices.Equal(first, c.stops[:2]) || len(e.instances) != 1 {
			t.Errorf("%+v: first %v, left %v", c, first, e.instances)
		}
		if rest := e.ready(func(string) bool { return true }); !slices.Equal(rest, c.stops[2:]) || len(e.ready(func(string) bool { return true })) > 0 {
			t.Errorf("%+v: then %v", c, rest)
		}
	}
}
