package ssconf_test

import (
	"encoding/json"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/ssconf"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/recordedcluster"
)

// recorded are the files of the reference, by their names without what all begin with.
func recorded(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(testkit.Conformance(t, "golden/files/ssconf.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Content map[string]string }
	if err := json.Unmarshal(text, &file); err != nil || len(file.Content) == 0 {
		t.Fatalf("%d files, %v", len(file.Content), err)
	}
	out := map[string]string{}
	for name, text := range file.Content {
		out[strings.TrimPrefix(name, ssconf.Prefix)] = text
	}
	return out
}

// TestAllThatTheReferenceAsksFor holds the files of the recorded configuration to those that the reference had made of it.
func TestAllThatTheReferenceAsksFor(t *testing.T) {
	want, got := recorded(t), ssconf.Files(recordedcluster.Inventory(t), ssconf.Here{Release: "3.0.2"})
	for name, text := range want {
		is, there := got[name]
		if name == "master_candidates_certs" { // there are none here
			text = ""
		}
		if !there || is != text {
			t.Errorf("%s (there: %v):\n%q, and there\n%q", name, there, is, text)
		}
	}
	for name := range got {
		if _, there := want[name]; !there {
			t.Errorf("%s is not one of theirs", name)
		}
	}
}

// TestFiles has what the recorded cluster, of one node, does not show.
func TestFiles(t *testing.T) {
	c := cluster.New(cluster.Init{Name: "c", UUID: "c", MasterNode: "n2", MasterIP: "192.0.2.9", Hypervisors: []string{"kvm", "fake"}, DiskTemplates: []string{cluster.DiskFile}})
	c.UIDPool, c.PrimaryIPv6, c.UserShutdown, c.MaintainHealth = [][2]int64{{5, 5}, {10, 20}}, true, true, true
	c.HVParams["kvm"] = cluster.Params{"b": true, "a": int64(7), "c": nil, "d": "two words"}
	node := func(uuid, name, ip string, change func(*cluster.Node)) cluster.Change {
		n := cluster.NewNode(uuid, name, ip, "g", 1)
		change(n)
		return cluster.Put(n)
	}
	inv := cluster.Empty().With(
		cluster.Put(c), cluster.Put(cluster.NewGroup("g", "default", 1)),
		node("n1", "node10", "192.0.2.10", func(n *cluster.Node) { n.MasterCandidate, n.NDParams = true, cluster.Params{"ssh_port": int64(2222)} }),
		node("n2", "node9", "192.0.2.9", func(n *cluster.Node) { n.SecondaryIP = "198.51.100.9" }),
		node("n3", "node1", "192.0.2.1", func(n *cluster.Node) { n.Offline, n.VMCapable = true, false }),
		cluster.Put(&cluster.Instance{Meta: cluster.NewMeta("i1", 1), Name: "web10", PrimaryNode: "n1"}),
		cluster.Put(&cluster.Instance{Meta: cluster.NewMeta("i2", 1), Name: "web9", PrimaryNode: "n1"}),
		cluster.Put(&cluster.Instance{Meta: cluster.NewMeta("i3", 1), Forthcoming: true}),
	)
	want := map[string]string{
		"node_list": "node1\nnode9\nnode10\n", "offline_nodes": "node1\n", "online_nodes": "node9\nnode10\n",
		"master_node": "node9\n", "master_candidates": "node9\nnode10\n", "master_candidates_ips": "192.0.2.9\n192.0.2.10\n",
		"node_secondary_ips": "node1 192.0.2.1\nnode9 198.51.100.9\nnode10 192.0.2.10\n", "node_vm_capable": "node1=False\nnode9=True\nnode10=True\n",
		"instance_list": "web9\nweb10\n", "ssh_ports": "node1=22\nnode9=22\nnode10=2222\n", "uid_pool": "5\n10-20\n", "primary_ip_family": "10\n",
		"enabled_user_shutdown": "True\n", "maintain_node_health": "True\n", "hypervisor_list": "kvm\nfake\n", "hvparams_kvm": "a=7\nb=True\nc=null\nd=two words\n",
		"cluster_tags": "", "networks": "",
	}
	got := ssconf.Files(inv, ssconf.Here{})
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s: %q, want %q", name, got[name], text)
		}
	}
	got = ssconf.Files(inv.With(cluster.Delete(cluster.KindNode, "n2")), ssconf.Here{Confd: netip.MustParseAddr("127.0.0.5"), Release: "x"})
	for name, text := range map[string]string{"master_candidates_ips": "127.0.0.5\n", "master_candidates": "node10\n", "master_node": "NO MASTER\n", "release_version": "x\n"} {
		if got[name] != text {
			t.Errorf("%s: %q, want %q", name, got[name], text)
		}
	}
}
