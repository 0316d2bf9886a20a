package shell

import (
	"slices"
	"testing"
)

func TestListArgumentsFromTheEnvironment(t *testing.T) {
	getenv := func(name string) string {
		return map[string]string{"GNT_NODE_LIST": `-o 'name,x y' --units m "a\"b" c\ d ''`}[name]
	}
	want := []string{"list", "-o", "name,x y", "--units", "m", `a"b`, "c d", "", "node1"}
	if got := PersonaOf("/usr/bin/gnt-node").WithEnvironment([]string{"list", "node1"}, getenv); !slices.Equal(got, want) {
		t.Errorf("gnt-node list: %q", got)
	}
	for program, args := range map[string][]string{"gnt-node": {"info"}, "drover": {"node", "list"}, "gnt-job": {"list"}, "gnt-group": {"list"}} {
		if got := PersonaOf(program).WithEnvironment(args, getenv); !slices.Equal(got, args) {
			t.Errorf("%s %q: %q", program, args, got)
		}
	}
}
