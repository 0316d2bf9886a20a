package hooks_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/hooks"
	"github.com/drover-project/drover/internal/opcode"
)

// recording is what a script of the reference was told. The instance, its network and the rest of the inventory are made of it, so what is
// compared is which variables there are, what they are called, and how values are written.
type recording struct {
	Op     string            `json:"op"`
	Params json.RawMessage   `json:"params"`
	Env    map[string]string `json:"env"`
}

func (r *recording) phase() hooks.Phase { return hooks.Phase(r.Env["GANETI_HOOKS_PHASE"]) }

func recordings(t *testing.T) (all []recording) {
	t.Helper()
	text, err := os.ReadFile("testdata/recorded.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var r recording
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

const (
	masterUUID  = "00e3d17a-7d38-4a46-b566-aa8734e8534e"
	groupUUID   = "11e3d17a-7d38-4a46-b566-aa8734e8534e"
	networkUUID = "e1c74626-0fdd-4807-85a0-714848bf9502"
)

// part are the variables of an environment behind a prefix.
func part(env map[string]string, prefix string) map[string]string {
	out := map[string]string{}
	for name, value := range env {
		if rest, is := strings.CutPrefix(name, prefix); is {
			out[rest] = value
		}
	}
	return out
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

func params(env map[string]string) cluster.Params {
	out := cluster.Params{}
	for name, value := range env {
		switch n, err := strconv.ParseInt(value, 10, 64); {
		case err == nil:
			out[name] = n
		case value == "True" || value == "False":
			out[name] = value == "True"
		default:
			out[name] = value
		}
	}
	return out
}

// instance is the one that an environment tells of; nil for none.
func instance(env map[string]string) *cluster.Instance {
	if env["INSTANCE_NAME"] == "" {
		return nil
	}
	inst := &cluster.Instance{Meta: cluster.NewMeta("bd2136b9-4fff-4241-ac4b-626ccb3f3b45", 1), Name: env["INSTANCE_NAME"], OS: env["INSTANCE_OS_TYPE"], Hypervisor: env["INSTANCE_HYPERVISOR"],
		PrimaryNode: masterUUID, AdminState: env["INSTANCE_STATUS"], BEParams: params(part(env, "INSTANCE_BE_")), HVParams: params(part(env, "INSTANCE_HV_"))}
	inst.Tags = strings.Fields(env["INSTANCE_TAGS"])
	for i := range int(number(env["INSTANCE_NIC_COUNT"])) {
		nic := part(env, fmt.Sprintf("INSTANCE_NIC%d_", i))
		inst.NICs = append(inst.NICs, cluster.NIC{UUID: nic["UUID"], Name: nic["NAME"], MAC: nic["MAC"], IP: nic["IP"], Network: nic["NETWORK_UUID"],
			Params: cluster.Params{"mode": nic["MODE"], "link": nic["LINK"], "vlan": nic["VLAN"]}})
	}
	for i := range int(number(env["INSTANCE_DISK_COUNT"])) {
		d := part(env, fmt.Sprintf("INSTANCE_DISK%d_", i))
		inst.Disks = append(inst.Disks, cluster.Disk{UUID: d["UUID"], Name: d["NAME"], Size: number(d["SIZE"]), Mode: d["MODE"], Type: "file", LogicalID: []any{d["DRIVER"], d["ID"]}, Nodes: []string{masterUUID}})
	}
	return inst
}

// moment is the one that an environment was made at.
func (r *recording) moment(t *testing.T, env map[string]string) *hooks.Moment {
	t.Helper()
	given, err := opcode.ParseValue(r.Params)
	if err != nil {
		t.Fatal(err)
	}
	op, err := opcode.FromMap(r.Op, given.(map[string]any))
	if err != nil {
		t.Fatal(err)
	}
	m := &hooks.Moment{Op: op}
	c := &cluster.Cluster{Meta: cluster.NewMeta("c", 1), Name: "cluster.gntpeer.example", MasterNode: masterUUID, HVParams: map[string]cluster.Params{"fake": {"migration_mode": "live"}}}
	node := &cluster.Node{Meta: cluster.NewMeta(masterUUID, 1), Name: "node1.gntpeer.example", Group: groupUUID}
	node.Tags = strings.Fields(r.Env["GANETI_NODE_TAGS_"+node.Name])
	group := cluster.NewGroup(groupUUID, "default", 1)
	group.Networks = map[string]cluster.Params{networkUUID: {"mode": "bridged", "link": "gpbr0", "vlan": ""}}
	network := &cluster.Network{Meta: cluster.NewMeta(networkUUID, 1), Name: "netx", Network: "10.1.0.0/24", Gateway: "10.1.0.1", MACPrefix: "aa:bb:cc"}
	network.Tags = []string{"blue", "red"}
	m.Snap = cluster.Empty().With(cluster.Put(c), cluster.Put(group), cluster.Put(node), cluster.Put(network))
	m.Group, m.Network, m.Instance = group, network, instance(env)
	if op.Has("node_name") {
		m.Node = node
	}
	if op.Has("target_node") {
		m.Target = node
	}
	return m
}

// sorted has tags in order, which the reference has not.
func sorted(env map[string]string) map[string]string {
	out := maps.Clone(env)
	for name, value := range out {
		if strings.HasSuffix(name, "_TAGS") {
			words := strings.Fields(value)
			slices.Sort(words)
			out[name] = strings.Join(words, " ")
		}
	}
	return out
}

// differing are variables that are told otherwise on purpose, by opcode: the reference does not say what the disks of an instance will be that it is about to
// make, and behind a rename it tells of all but the disks as they were.
var differing = map[string][]string{
	"OP_INSTANCE_CREATE": {"GANETI_INSTANCE_DISK0_DEV_TYPE", "GANETI_INSTANCE_DISK0_DRIVER", "GANETI_INSTANCE_DISK0_ID",
		"GANETI_POST_INSTANCE_DISK0_DEV_TYPE", "GANETI_POST_INSTANCE_DISK0_DRIVER", "GANETI_POST_INSTANCE_DISK0_ID"},
	"OP_INSTANCE_RENAME": {"GANETI_POST_INSTANCE_DISK0_ID"},
}

func TestRecordedEnvironments(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range recordings(t) {
		t.Run(r.Op+" "+string(r.phase()), func(t *testing.T) {
			h := hooks.Of(r.Op)
			if h == nil {
				t.Fatal("it has no hooks")
			}
			seen[r.Op] = true
			before := maps.Clone(r.Env)
			maps.DeleteFunc(before, func(name, _ string) bool { return strings.HasPrefix(name, "GANETI_POST_") })
			m := r.moment(t, part(before, "GANETI_"))
			told := h.Told(m)
			var now map[string]string
			if r.phase() == hooks.Post {
				now = told
				if !h.Same {
					now = h.Told(r.moment(t, part(r.Env, "GANETI_POST_")))
				}
			}
			got := h.Environment(m.Snap, r.phase(), told, now, "/var/lib/ganeti")
			want := sorted(r.Env)
			for _, name := range differing[r.Op] {
				delete(got, name)
				delete(want, name)
			}
			for _, name := range slices.Sorted(maps.Keys(want)) {
				if value, is := got[name]; !is || value != want[name] {
					t.Errorf("%s is %q (%v), want %q", name, value, is, want[name])
				}
			}
			for _, name := range slices.Sorted(maps.Keys(got)) {
				if _, is := want[name]; !is {
					t.Errorf("%s=%q is not told there", name, got[name])
				}
			}
		})
	}
	if len(seen) < 20 {
		t.Errorf("only %d opcodes were recorded", len(seen))
	}
}

// small is an inventory of four nodes in two groups, and an instance with a mirrored disk on the second and third.
func small() *hooks.Moment {
	c := &cluster.Cluster{Meta: cluster.NewMeta("c", 1), Name: "c.example", MasterNode: "n1"}
	snap := cluster.Empty().With(cluster.Put(c), cluster.Put(cluster.NewGroup("g1", "default", 1)), cluster.Put(cluster.NewGroup("g2", "other", 1)))
	for i, group := range []string{"g1", "g1", "g2", "g2", "g2"} {
		uuid := fmt.Sprintf("n%d", i+1)
		snap = snap.With(cluster.Put(&cluster.Node{Meta: cluster.NewMeta(uuid, 1), Name: uuid + ".example", Group: group, Offline: uuid == "n5"}))
	}
	part := func(id string) cluster.Disk { return cluster.Disk{Type: "plain", LogicalID: []any{"xenvg", id}} }
	disk := cluster.Disk{UUID: "d", Type: "drbd", Size: 64, Mode: "rw", LogicalID: []any{"n2", "n3", int64(11000), int64(0), int64(1), "secret"}, Nodes: []string{"n2", "n3"}, Children: []cluster.Disk{part("data"), part("meta")}}
	m := &hooks.Moment{Snap: snap, Subject: hooks.Subject{Group: snap.Group("g2"), Node: snap.Node("n4"), Target: snap.Node("n4")}}
	m.Instance = &cluster.Instance{Meta: cluster.NewMeta("i", 1), Name: "one.example", PrimaryNode: "n2", Disks: []cluster.Disk{disk}}
	return m
}

func TestNodes(t *testing.T) {
	for _, c := range []struct{ op, pre, post string }{
		{"OP_INSTANCE_STARTUP", "n1 n2 n3", "n1 n2 n3"},
		{"OP_INSTANCE_REMOVE", "n1", "n1 n2 n3"},
		{"OP_INSTANCE_FAILOVER", "n1 n3 n4", "n1 n3 n4 n2"},
		{"OP_INSTANCE_MIGRATE", "n1 n2 n3 n4", "n1 n2 n3 n4"},
		{"OP_INSTANCE_REPLACE_DISKS", "n1 n2 n4", "n1 n2 n4"},
		{"OP_BACKUP_EXPORT", "n1 n2 n4", "n1 n2 n4"},
		{"OP_CLUSTER_VERIFY_GROUP", "", "n3 n4"}, // n5 is offline
		{"OP_CLUSTER_RENAME", "n1", "n1 n2 n3 n4"},
		{"OP_CLUSTER_POST_INIT", "", "n1"},
		{"OP_CLUSTER_DESTROY", "", "n1"},
		{"OP_NODE_ADD", "n1 n2 n3", "n1 n2 n3"},
		{"OP_NODE_SET_PARAMS", "n1 n4", "n1 n4"},
		{"OP_GROUP_RENAME", "n1 n3 n4", "n1 n3 n4"},
		{"OP_NETWORK_CONNECT", "n3 n4", "n3 n4"},
	} {
		m, h := small(), hooks.Of(c.op)
		pre, post := strings.Join(h.Nodes(m, hooks.Pre), " "), strings.Join(h.Nodes(m, hooks.Post), " ")
		if pre != c.pre || post != c.post {
			t.Errorf("%s: %q before and %q behind, want %q and %q", c.op, pre, post, c.pre, c.post)
		}
	}
}

func TestMirroredDisk(t *testing.T) {
	m := small()
	var err error
	if m.Op, err = opcode.FromMap("OP_INSTANCE_FAILOVER", map[string]any{"instance_name": "one.example"}); err != nil {
		t.Fatal(err)
	}
	got := hooks.Of(m.Op.ID).Told(m)
	for name, want := range map[string]string{"INSTANCE_DISK0_PNODE": "n2", "INSTANCE_DISK0_PORT": "11000", "INSTANCE_DISK0_SMINOR": "1", "INSTANCE_DISK0_DATA_VG": "xenvg", "INSTANCE_DISK0_META_ID": "meta",
		"INSTANCE_SECONDARIES": "n3.example", "OLD_PRIMARY": "n2.example", "NEW_PRIMARY": "n4.example", "OLD_SECONDARY": "n3.example", "NEW_SECONDARY": "n2.example"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	for name, value := range got {
		if value == "secret" {
			t.Errorf("%s has the secret of the disk", name)
		}
	}
}

func TestNamesOfDirectoriesAndScripts(t *testing.T) {
	for name, is := range map[string]bool{"instance-start-pre.d": true, "disk-grow-post.d": true, "../x-pre.d": false, "instance-start": false, "a-pre.d/x-pre.d": false, "": false} {
		if hooks.IsDir(name) != is {
			t.Errorf("%q is a directory of hooks: %v", name, !is)
		}
	}
	for name, is := range map[string]bool{"10-check_it": true, "check.sh": false, ".hidden": false, "a b": false, "x~": false, "": false} {
		if hooks.IsScript(name) != is {
			t.Errorf("%q is a script: %v", name, !is)
		}
	}
}

func TestOutputInOneLine(t *testing.T) {
	if got, want := hooks.OneLine(" no way\nsecond\tlüne\x1b[31m\xff\n"), `no way\nsecond\tlüne\x1b[31m`+"\uFFFD"; got != want {
		t.Errorf("it is %q, want %q", got, want)
	}
}
