package outofband

import (
	"testing"

	"github.com/drover-project/drover/internal/cluster"
)

// TestEachNodeIsMeantOnce: a node that is named twice would be reset twice, and names that differ in zeros alone are those of different nodes.
func TestEachNodeIsMeantOnce(t *testing.T) {
	one, other := &cluster.Node{Meta: cluster.Meta{UUID: "a"}, Name: "node1.x", Group: "g"}, &cluster.Node{Meta: cluster.Meta{UUID: "b"}, Name: "node01.x", Group: "g"}
	snap := cluster.Empty().With(cluster.Put(cluster.New(cluster.Init{Name: "c.x", UUID: "c", Hypervisors: []string{"fake"}})),
		cluster.Put(&cluster.Group{Meta: cluster.Meta{UUID: "g"}, Name: "g"}), cluster.Put(one), cluster.Put(other))
	for _, named := range [][]*cluster.Node{{one, other, one}, {other, one, other, one}, {one, one, other}} {
		targets, err := Targets(snap, Status, named, false)
		if err != nil || len(targets) != 2 || targets[0].Node == targets[1].Node {
			t.Errorf("of %d names %d nodes are meant, %v", len(named), len(targets), err)
		}
	}
}
