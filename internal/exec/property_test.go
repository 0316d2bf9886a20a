package exec

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/hypervisor"
	"pgregory.net/rapid"
)

// TestInventoryStaysConsistent carries out random opcodes on nodes that fail at
// random, before or after the effect of a call. After each, the inventory must
// agree with itself; in the end everything can be removed, and nothing is left.
func TestInventoryStaysConsistent(t *testing.T) {
	r := newRig(t, "node1", "node2")
	network := r.network("net", "192.0.2.0/28", "192.0.2.1")
	rapid.Check(t, func(rt *rapid.T) {
		r.reset()
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			node := rapid.SampledFrom([]string{"node1", "node2"}).Draw(rt, "node")
			method := rapid.SampledFrom([]string{"", "", "", "start", "stop", "reboot", "prepare", "drop", "rename", "remove"}).Draw(rt, "broken")
			r.failOn(node, method, rapid.Bool().Draw(rt, "after"))
			id, p := draw(rt)
			result, err := r.run(id, p)
			rt.Logf("%s%v = %s, %v", id, p, result, err)
			if broken := r.inconsistencies(network); broken != "" {
				rt.Fatalf("after %s%v: %s", id, p, broken)
			}
			r.failOn(node, "", false)
		}
		r.removeAll(rt, network)
	})
}

// draw chooses an opcode about one of a few instances.
func draw(rt *rapid.T) (string, params) {
	name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "name")
	with := func(more params) params {
		p := params{"instance_name": name}
		maps.Copy(p, more)
		return p
	}
	item := func(p params) any {
		action := rapid.SampledFrom([]any{"add", "remove", "modify", 0, 1}).Draw(rt, "action")
		return []any{[]any{action, p}}
	}
	switch id := rapid.SampledFrom([]string{"OP_INSTANCE_CREATE", "OP_INSTANCE_CREATE", "OP_INSTANCE_REMOVE", "OP_INSTANCE_STARTUP",
		"OP_INSTANCE_SHUTDOWN", "OP_INSTANCE_REBOOT", "OP_INSTANCE_RENAME", "nics", "disks"}).Draw(rt, "opcode"); id {
	case "OP_INSTANCE_CREATE":
		p := creating(params{"instance_name": name, "start": rapid.Bool().Draw(rt, "start"), "nics": []any{params{"network": "net", "ip": "pool"}}})
		p["pnode"] = rapid.SampledFrom([]string{"node1", "node2"}).Draw(rt, "pnode")
		return id, p
	case "OP_INSTANCE_REBOOT":
		return id, with(params{"reboot_type": rapid.SampledFrom([]string{"soft", "hard", "full"}).Draw(rt, "type")})
	case "OP_INSTANCE_RENAME":
		return id, with(params{"new_name": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "new name")})
	case "nics":
		nic := rapid.SampledFrom([]params{{"network": "net", "ip": "pool"}, {"network": "none"}, {"network": "net", "ip": "192.0.2.5"}, {"link": "br3"}}).Draw(rt, "nic")
		return "OP_INSTANCE_SET_PARAMS", with(params{"nics": item(nic)})
	case "disks":
		disk := rapid.SampledFrom([]params{{"size": 4}, {"mode": "ro"}, {"size": 8, "name": "x"}}).Draw(rt, "disk")
		return "OP_INSTANCE_SET_PARAMS", with(params{"disks": item(disk)})
	default:
		return id, with(nil)
	}
}

// inconsistencies says how the inventory disagrees with itself, empty if it
// does not.
func (r *rig) inconsistencies(network string) string {
	snap := r.keeper.Snapshot()
	macs, names, taken := map[string]bool{}, map[string]bool{}, []string{}
	for inst := range snap.Instances() {
		if names[inst.Name] {
			return "two instances are called " + inst.Name
		}
		names[inst.Name] = true
		for i := range inst.Disks {
			if inst.Disks[i].IVName != fmt.Sprintf("disk/%d", i) || !slices.Equal(inst.Disks[i].Nodes, []string{inst.PrimaryNode}) {
				return fmt.Sprintf("disk %d of %s is %+v", i, inst.Name, inst.Disks[i])
			}
		}
		for i := range inst.NICs {
			nic := &inst.NICs[i]
			if macs[nic.MAC] {
				return "two interfaces have the address " + nic.MAC
			}
			macs[nic.MAC] = true
			if nic.Network != "" && nic.IP != "" {
				taken = append(taken, nic.IP)
			}
		}
	}
	n := snap.Network(network)
	var reserved []string
	for i := range n.Size() {
		if n.Reserved[i] == '1' {
			reserved = append(reserved, n.Address(i))
		}
	}
	slices.SortFunc(taken, cluster.CompareNames)
	if !slices.Equal(taken, reserved) {
		return fmt.Sprintf("the network has given out %v, the interfaces use %v", reserved, taken)
	}
	return ""
}

// reset takes away what an earlier, failed run left.
func (r *rig) reset() {
	r.Helper()
	for inst := range r.keeper.Snapshot().Instances() {
		if _, err := r.run("OP_INSTANCE_REMOVE", params{"instance_name": inst.Name}); err != nil {
			r.Fatal(err)
		}
	}
	for _, node := range []string{"node1", "node2"} {
		r.failOn(node, "", false)
		for _, of := range r.instancesOn(node) {
			a, err := r.fleet.Agent(node)
			if err == nil {
				err = a.Stop(r.Context(), agent.Order{}, of, hypervisor.Stop{}, nil)
			}
			if err == nil {
				err = a.Remove(r.Context(), agent.Order{}, of)
			}
			if err != nil {
				r.Fatal(err)
			}
		}
	}
}

// instancesOn returns what is on a node.
func (r *rig) instancesOn(node string) []hypervisor.Thing {
	r.Helper()
	a, err := r.fleet.Agent(node)
	if err != nil {
		r.Fatal(err)
	}
	list, err := a.Instances(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	var things []hypervisor.Thing
	for _, i := range list {
		things = append(things, hypervisor.Thing{UUID: i.UUID, Name: i.Name})
	}
	return things
}

// removeAll removes every instance and checks that nothing is left anywhere.
func (r *rig) removeAll(rt *rapid.T, network string) {
	for inst := range r.keeper.Snapshot().Instances() {
		if _, err := r.run("OP_INSTANCE_REMOVE", params{"instance_name": inst.Name}); err != nil {
			rt.Fatalf("removing %s: %v", inst.Name, err)
		}
	}
	if broken := r.inconsistencies(network); broken != "" {
		rt.Fatal(broken)
	}
	for _, node := range []string{"node1", "node2"} {
		if left := r.instancesOn(node); len(left) != 0 {
			rt.Fatalf("node %s still has %v", node, left)
		}
	}
}
