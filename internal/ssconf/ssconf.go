// Package ssconf says what is in the files from which Ganeti's programs, and scripts around them, learn what is true of the whole cluster: who is its
// master, which nodes and instances it has. The reference keeps them on each node as ssconf_NAME; their names and forms are its contract (lib/ssconf.py,
// src/Ganeti/WConfd/Ssconf.hs), and programs of others read them.
//
// Invariants:
//   - Files is a function of the inventory and of what the machine says of itself: equal ones have equal files (TestFiles).
//   - Each name that the reference's programs may ask for has a file, also where it has nothing in it: they take one that is missing for an error
//     (TestAllThatTheReferenceAsksFor).
package ssconf

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/query"
)

// Prefix is what the name of each file begins with.
const Prefix = "ssconf_"

// Here is what files say of the machine that they are on.
type Here struct {
	// Release is the version of the reference whose programs are to feel at home.
	Release string
	// Confd is where questions of theirs are answered (package confd). Without one the candidates' own addresses are named, as there.
	Confd netip.Addr
}

// Files returns the text of each file by its name, without Prefix. A text that is not empty ends with a newline.
func Files(inv *cluster.Snapshot, here Here) map[string]string {
	v := &view{inv: inv, cluster: inv.Cluster(), here: here}
	out := make(map[string]string, len(files))
	for name, lines := range files {
		out[name] = text(lines(v))
	}
	for _, h := range hypervisors {
		out["hvparams_"+h] = text(parameters(v.cluster.HVParams[h]))
	}
	return out
}

func text(lines []string) (out string) {
	for _, l := range lines {
		out += l + "\n"
	}
	if out == "\n" { // one value, which is empty
		return ""
	}
	return out
}

// hypervisors are all that the reference has: it keeps the parameters of each in a file.
var hypervisors = []string{"chroot", "fake", "kvm", "lxc", "xen-hvm", "xen-pvm"}

type view struct {
	inv     *cluster.Snapshot
	cluster *cluster.Cluster
	here    Here
}

// files are the lines of each file.
var files = map[string]func(*view) []string{
	"cluster_name":            func(v *view) []string { return []string{v.cluster.Name} },
	"cluster_tags":            func(v *view) []string { return v.cluster.Tags },
	"enabled_user_shutdown":   func(v *view) []string { return []string{truth(v.cluster.UserShutdown)} },
	"file_storage_dir":        func(v *view) []string { return []string{v.cluster.FileDir} },
	"gluster_storage_dir":     func(v *view) []string { return []string{v.cluster.GlusterDir} },
	"shared_file_storage_dir": func(v *view) []string { return []string{v.cluster.SharedFileDir} },
	"hypervisor_list":         func(v *view) []string { return v.cluster.EnabledHypervisors },
	"instance_list":           (*view).instances,
	"maintain_node_health":    func(v *view) []string { return []string{truth(v.cluster.MaintainHealth)} },
	"master_candidates":       func(v *view) []string { return v.nodes(v.mayLead, name) },
	// The certificates of candidates, by which they know one another there: nothing here is told by one.
	"master_candidates_certs": func(*view) []string { return nil },
	"master_candidates_ips":   (*view).confd,
	"master_ip":               func(v *view) []string { return []string{v.cluster.MasterIP} },
	"master_netdev":           func(v *view) []string { return []string{v.cluster.MasterNetdev} },
	"master_netmask":          func(v *view) []string { return []string{strconv.FormatInt(v.cluster.MasterNetmask, 10)} },
	"master_node":             (*view).master,
	"networks":                (*view).networks,
	"node_list":               func(v *view) []string { return v.nodes(all, name) },
	"node_primary_ips": func(v *view) []string {
		return v.nodes(all, func(n *cluster.Node) string { return n.Name + " " + n.PrimaryIP })
	},
	"node_secondary_ips": func(v *view) []string {
		return v.nodes(all, func(n *cluster.Node) string { return n.Name + " " + n.SecondaryIP })
	},
	"node_vm_capable": func(v *view) []string {
		return v.nodes(all, func(n *cluster.Node) string { return n.Name + "=" + truth(n.VMCapable) })
	},
	"nodegroups":        (*view).groups,
	"offline_nodes":     func(v *view) []string { return v.nodes(func(n *cluster.Node) bool { return n.Offline }, name) },
	"online_nodes":      func(v *view) []string { return v.nodes(func(n *cluster.Node) bool { return !n.Offline }, name) },
	"primary_ip_family": func(v *view) []string { return []string{family(v.cluster.PrimaryIPv6)} },
	"release_version":   func(v *view) []string { return []string{v.here.Release} },
	"ssh_ports":         func(v *view) []string { return v.nodes(all, v.sshPort) },
	"uid_pool":          (*view).uidPool,
}

func all(*cluster.Node) bool      { return true }
func name(n *cluster.Node) string { return n.Name }
func (v *view) mayLead(n *cluster.Node) bool {
	return n.MasterCandidate || n.UUID == v.cluster.MasterNode
}

// nodes returns what is said of each node that is wanted.
func (v *view) nodes(wanted func(*cluster.Node) bool, say func(*cluster.Node) string) (lines []string) {
	for n := range v.inv.Nodes() {
		if wanted(n) {
			lines = append(lines, say(n))
		}
	}
	return lines
}

func (v *view) instances() (lines []string) {
	for i := range v.inv.Instances() {
		if i.Name != "" { // one that is only reserved may have none
			lines = append(lines, i.Name)
		}
	}
	return lines
}

func (v *view) confd() []string {
	if v.here.Confd.IsValid() {
		return []string{v.here.Confd.String()}
	}
	return v.nodes(v.mayLead, func(n *cluster.Node) string { return n.PrimaryIP })
}

func (v *view) master() []string {
	if n := v.inv.Node(v.cluster.MasterNode); n != nil {
		return []string{n.Name}
	}
	return []string{"NO MASTER"}
}

func (v *view) networks() (lines []string) {
	for n := range v.inv.Networks() {
		lines = append(lines, n.UUID+" "+n.Name)
	}
	return lines
}

func (v *view) groups() (lines []string) {
	for g := range v.inv.Groups() {
		lines = append(lines, g.UUID+" "+g.Name)
	}
	return lines
}

func (v *view) sshPort(n *cluster.Node) string {
	return n.Name + "=" + parameter(v.cluster.FillND(v.inv.Group(n.Group), n)["ssh_port"])
}

func (v *view) uidPool() (lines []string) {
	for _, r := range v.cluster.UIDPool {
		if r[0] == r[1] {
			lines = append(lines, strconv.FormatInt(r[0], 10))
		} else {
			lines = append(lines, fmt.Sprintf("%d-%d", r[0], r[1]))
		}
	}
	return lines
}

// family is the number of the family of addresses, as the reference's Python has it on Linux.
func family(ipv6 bool) string {
	if ipv6 {
		return "10"
	}
	return "2"
}

func truth(is bool) string {
	if is {
		return "True"
	}
	return "False"
}

func parameters(of cluster.Params) (lines []string) {
	for _, key := range slices.Sorted(maps.Keys(of)) {
		lines = append(lines, key+"="+parameter(of[key]))
	}
	return lines
}

// parameter is a value as the reference writes it: texts and numbers as they are, everything else but truths as JSON.
func parameter(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case bool:
		return truth(value)
	}
	return string(query.AppendValue(nil, value))
}
