package exec

import (
	"fmt"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
)

// fill puts stopped instances on node1, without the node knowing of them.
func (r *rig) fill(count int) {
	r.Helper()
	r.update(func(snap *cluster.Snapshot) []cluster.Change {
		node := snap.NodeNamed("node1")
		changes := make([]cluster.Change, count)
		for i := range changes {
			changes[i] = cluster.Put(&cluster.Instance{
				Meta: cluster.NewMeta(r.newUUID(), 1), Name: fmt.Sprintf("filler%d.example", i), PrimaryNode: node.UUID, OS: "noop+default",
				Hypervisor: "fake", AdminState: cluster.AdminDown, NICs: []cluster.NIC{{UUID: r.newUUID(), MAC: fmt.Sprintf("aa:00:00:%02x:%02x:00", i/256, i%256)}},
			})
		}
		return changes
	})
}

// BenchmarkOpcodes carries opcodes out on small and large inventories. What
// does not choose a place or an address must cost the same on both.
func BenchmarkOpcodes(b *testing.B) {
	cases := []struct {
		id string
		p  params
	}{
		{"OP_TEST_DUMMY", dummy(nil)},
		{"OP_TAGS_GET", params{"kind": "instance", "name": "one"}},
		{"OP_INSTANCE_STARTUP", one(nil)},
		{"OP_INSTANCE_SET_PARAMS", one(params{"beparams": params{"vcpus": 2}})},
	}
	for _, count := range []int{10, 10000} {
		r := newRig(b, "node1")
		r.fill(count)
		r.create("one", true)
		all := r.all
		for _, c := range cases {
			op := r.opcode(c.id, c.p)
			b.Run(fmt.Sprintf("%s/%d", c.id, count), func(b *testing.B) {
				for b.Loop() {
					if _, err := all.Locks(op, r.keeper.Snapshot()); err != nil {
						b.Fatal(err)
					}
					if _, err := all.Run(b.Context(), r.env(op)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
