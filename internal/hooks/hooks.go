// Package hooks is what operators' own scripts are told of opcodes, as values: for each opcode with hooks the directory of its scripts, the nodes that run
// them before (pre) and behind it (post), and their environment, as the reference has them. Who runs scripts is package agent; when, package exec.
//
// Invariants:
//   - Environments have the reference's keys, and of what does not differ from it its values (TestRecordedEnvironments).
//   - Every opcode of the table has an executor, and the table of docs/hooks.md is this one (TestTableOfTheDocumentation).
//   - No environment has a secret: neither private parameters of operating systems nor anything that the store seals.
package hooks

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/opcode"
)

// Phase is when scripts run.
type Phase string

// The phases: before anything is done, when scripts may refuse it; and behind it.
const (
	Pre  Phase = "pre"
	Post Phase = "post"
)

// Version is that of the interface, as scripts are told.
const Version = "2"

// SearchPath is the search path of scripts.
const SearchPath = "/sbin:/bin:/usr/sbin:/usr/bin"

// Dir is the directory of the scripts of a path and a phase, below that of all.
func Dir(path string, phase Phase) string { return path + "-" + string(phase) + ".d" }

var dirName = regexp.MustCompile(`^[a-z]+(-[a-z]+)*-(pre|post)\.d$`)

// IsDir reports whether a name is that of a directory of scripts.
func IsDir(name string) bool { return len(name) <= 64 && dirName.MatchString(name) }

var scriptName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// IsScript reports whether a file of such a directory is run, if it can be: no others are, as those that editors and packages leave.
func IsScript(name string) bool { return scriptName.MatchString(name) }

// Subject is what an opcode is about, and what was decided of it.
type Subject struct {
	Instance *cluster.Instance
	// Node is the one that the opcode names, Target the one that an instance or a copy of its disks goes to.
	Node, Target *cluster.Node
	Group        *cluster.Group
	Network      *cluster.Network
	// Groups are the groups that instances may go to, by UUID.
	Groups []string
}

// Moment is when an environment is made: an opcode, what it is about, and the inventory.
type Moment struct {
	Op   *opcode.Opcode
	Snap *cluster.Snapshot
	Subject
}

// Of returns the hooks of an opcode; nil if it has none.
func Of(id string) *Hooks {
	i := slices.IndexFunc(table, func(h Hooks) bool { return h.OpID == id })
	if i < 0 {
		return nil
	}
	return &table[i]
}

// All returns the hooks of all opcodes.
func All() []Hooks { return slices.Clone(table) }

// Hooks are those of one opcode.
type Hooks struct {
	OpID string
	// Path is what its directories are called, and Type what scripts are told that it is about.
	Path, Type string
	// Pre and Post are the nodes that run scripts.
	Pre, Post []Where
	// Instance: the environment tells all of the instance. Same: that of the post phase tells again what was so before.
	Instance, Same bool

	variables []variable
}

// Where is some nodes, in words and by UUID.
type Where struct {
	Text string
	of   func(m *Moment) []string
}

// variable is one of the environment, without what stands before all of them.
type variable struct {
	name string
	// of tells the value, and whether there is any.
	of func(m *Moment) (string, bool)
}

// Variables are the names of those that only some opcodes have, in order.
func (h *Hooks) Variables() (names []string) {
	for i := range h.variables {
		names = append(names, h.variables[i].name)
	}
	slices.Sort(names)
	return names
}

// Nodes are those that run the scripts of a phase, by UUID, each once. Those that are out of service run none.
func (h *Hooks) Nodes(m *Moment, phase Phase) (uuids []string) {
	where := h.Pre
	if phase == Post {
		where = h.Post
	}
	for _, w := range where {
		for _, uuid := range w.of(m) {
			if n := m.Snap.Node(uuid); n != nil && !n.Offline && !slices.Contains(uuids, uuid) {
				uuids = append(uuids, uuid)
			}
		}
	}
	return uuids
}

// Told is what scripts are told of an opcode at one moment, by names without what stands before all of them.
func (h *Hooks) Told(m *Moment) map[string]string {
	out := map[string]string{}
	if h.Instance && m.Instance != nil {
		instanceVariables(m, out)
	}
	for _, v := range h.variables {
		if text, is := v.of(m); is {
			out[v.name] = text
		}
	}
	if h.OpID == verifyGroup && m.Group != nil {
		for n := range m.Snap.NodesIn(m.Group.UUID) {
			out["NODE_TAGS_"+n.Name] = tags(n.Tags)
		}
	}
	return out
}

// Environment is that of the scripts of a phase. Before is what was told when the opcode began, and now what is told behind it; nil in the pre phase.
// data is the directory in which scripts find what is known of the cluster.
func (h *Hooks) Environment(snap *cluster.Snapshot, phase Phase, before, now map[string]string, data string) map[string]string {
	c := snap.Cluster()
	env := map[string]string{
		"PATH": SearchPath, "GANETI_HOOKS_VERSION": Version, "GANETI_HOOKS_PHASE": string(phase), "GANETI_HOOKS_PATH": h.Path, "GANETI_OP_CODE": h.OpID,
		"GANETI_OBJECT_TYPE": h.Type, "GANETI_CLUSTER": c.Name, "GANETI_DATA_DIR": data,
	}
	if master := snap.Node(c.MasterNode); master != nil {
		env["GANETI_MASTER"] = master.Name
	}
	for name, value := range before {
		env["GANETI_"+name] = value
	}
	for name, value := range now {
		env["GANETI_POST_"+name] = value
	}
	return env
}

// written is a value as the reference writes it.
func written(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

func tags(list []string) string {
	list = slices.Clone(list)
	slices.Sort(list)
	return strings.Join(list, " ")
}

// instanceVariables tell of an instance.
func instanceVariables(m *Moment, out map[string]string) {
	inst, c := m.Instance, m.Snap.Cluster()
	be := c.FillBE(inst)
	for name, value := range map[string]any{
		"OP_TARGET": inst.Name, "INSTANCE_NAME": inst.Name, "INSTANCE_PRIMARY": nodeName(m.Snap, inst.PrimaryNode), "INSTANCE_OS_TYPE": inst.OS,
		"INSTANCE_STATUS": inst.AdminState, "INSTANCE_MINMEM": be["minmem"], "INSTANCE_MAXMEM": be["maxmem"], "INSTANCE_MEMORY": be["maxmem"],
		"INSTANCE_VCPUS": be["vcpus"], "INSTANCE_DISK_TEMPLATE": inst.DiskTemplate(), "INSTANCE_HYPERVISOR": inst.Hypervisor, "INSTANCE_TAGS": tags(inst.Tags),
		"INSTANCE_NIC_COUNT": int64(len(inst.NICs)), "INSTANCE_DISK_COUNT": int64(len(inst.Disks)),
	} {
		out[name] = written(value)
	}
	var seconds []string
	for _, uuid := range inst.SecondaryNodes() {
		seconds = append(seconds, nodeName(m.Snap, uuid))
	}
	out["INSTANCE_SECONDARIES"] = strings.Join(seconds, " ")
	for name, value := range be {
		out["INSTANCE_BE_"+name] = written(value)
	}
	hv := c.FillHV(inst)
	for _, name := range cluster.GlobalHVParams() {
		if value, is := c.HVParams[inst.Hypervisor][name]; is {
			hv[name] = value
		}
	}
	for name, value := range hv {
		out["INSTANCE_HV_"+name] = written(value)
	}
	for i := range inst.NICs {
		nicVariables(m.Snap, &inst.NICs[i], fmt.Sprintf("INSTANCE_NIC%d_", i), out)
	}
	for i := range inst.Disks {
		diskVariables(&inst.Disks[i], fmt.Sprintf("INSTANCE_DISK%d_", i), out)
	}
}

func nicVariables(snap *cluster.Snapshot, nic *cluster.NIC, prefix string, out map[string]string) {
	c := snap.Cluster()
	mode, link := c.NICParam(nic, "mode"), c.NICParam(nic, "link")
	maps.Copy(out, map[string]string{prefix + "UUID": nic.UUID, prefix + "IP": nic.IP, prefix + "MAC": nic.MAC, prefix + "MODE": mode, prefix + "LINK": link,
		prefix + "VLAN": c.NICParam(nic, "vlan")})
	if nic.Name != "" {
		out[prefix+"NAME"] = nic.Name
	}
	if mode == cluster.NICBridged || mode == cluster.NICOpenvSwitch {
		out[prefix+"BRIDGE"] = link
	}
	if n := snap.Network(nic.Network); n != nil {
		networkVariables(n, prefix, out)
		out[prefix+"NETWORK_UUID"], out[prefix+"NETWORK_TAGS"] = n.UUID, tags(n.Tags)
	}
}

// networkVariables tell of a network what is there to be told.
func networkVariables(n *cluster.Network, prefix string, out map[string]string) {
	for name, value := range map[string]string{"NAME": n.Name, "SUBNET": n.Network, "GATEWAY": n.Gateway, "SUBNET6": n.Network6, "GATEWAY6": n.Gateway6,
		"MAC_PREFIX": n.MACPrefix, "TAGS": tags(n.Tags)} {
		if value != "" {
			out[prefix+"NETWORK_"+name] = value
		}
	}
}

// identities are what the parts of a disk's identity are called, by its template; empty for those that scripts are not told.
var identities = map[string][]string{
	cluster.DiskPlain: {"VG", "ID"}, cluster.DiskFile: {"DRIVER", "ID"}, cluster.DiskSharedFile: {"DRIVER", "ID"}, cluster.DiskExt: {"PROVIDER", "ID"},
	"blockdev": {"DRIVER", "ID"}, "rbd": {"DRIVER", "ID"}, cluster.DiskDRBD: {"PNODE", "SNODE", "PORT", "PMINOR", "SMINOR"},
}

func diskVariables(d *cluster.Disk, prefix string, out map[string]string) {
	maps.Copy(out, map[string]string{prefix + "UUID": d.UUID, prefix + "SIZE": written(d.Size), prefix + "MODE": d.Mode, prefix + "DEV_TYPE": d.Type})
	if d.Name != "" {
		out[prefix+"NAME"] = d.Name
	}
	named := func(d *cluster.Disk, prefix string) {
		for i, name := range identities[d.Type] {
			if i < len(d.LogicalID) {
				out[prefix+name] = written(d.LogicalID[i])
			}
		}
	}
	named(d, prefix)
	for i, part := range []string{"DATA_", "META_"} {
		if d.Type == cluster.DiskDRBD && i < len(d.Children) {
			named(&d.Children[i], prefix+part)
		}
	}
}

func nodeName(snap *cluster.Snapshot, uuid string) string {
	if n := snap.Node(uuid); n != nil {
		return n.Name
	}
	return uuid
}
