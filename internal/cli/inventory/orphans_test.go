package inventory

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// The table fits 80 columns, whatever instances are called; nodes are told apart.
func TestTheTableOfUnknownThingsFits(t *testing.T) {
	thing := func(node, kind, name, uuid string, id int64) (t unknownThing) {
		t.Node, t.Kind, t.Name, t.UUID, t.MadeBy.Job = node, kind, name, uuid, id
		return t
	}
	const uuid = "5b6e0cbb-6a3b-4c2f-8f4e-6a0d6f3f9d11"
	long := strings.Repeat("an-instance-whose-name-is-long.", 3) + "example"
	got := unknownTable([]unknownThing{thing("node1.drover.example", "orphan", "one", uuid, 123456), thing("node2.drover.example", "stranger", long, "", 0)})
	want := "NODE  KIND     NAME                UUID                                 MADE BY\n" +
		"node1 orphan   one                 " + uuid + " 123456/0\n" +
		"node2 stranger an-instance-whose-… -                                    ?\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for line := range strings.Lines(got) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	got = unknownTable([]unknownThing{thing("n.one.example", "orphan", "one", uuid, 1), thing("n.two.example", "orphan", "one", uuid, 1), thing("m.two.example", "orphan", "one", uuid, 1)})
	for _, node := range []string{"\nn.one.example ", "\nn.two.example ", "\nm "} {
		if !strings.Contains(got, node) {
			t.Errorf("no%sin\n%s", node, got)
		}
	}
}
