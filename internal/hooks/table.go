package hooks

import (
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
)

const verifyGroup = "OP_CLUSTER_VERIFY_GROUP"

// What scripts are told that opcodes are about.
const (
	ofCluster  = "CLUSTER"
	ofNode     = "NODE"
	ofGroup    = "GROUP"
	ofNetwork  = "NETWORK"
	ofInstance = "INSTANCE"
)

// table has the hooks of all opcodes that have any.
var table = []Hooks{
	{OpID: "OP_CLUSTER_SET_PARAMS", Path: "cluster-modify", Type: ofCluster, Pre: master, Post: master, variables: vars(clusterName, given("NEW_VG_NAME", "vg_name"))},
	{OpID: "OP_CLUSTER_RENAME", Path: "cluster-rename", Type: ofCluster, Pre: master, Post: everywhere, variables: vars(clusterName, given("NEW_NAME", "name"))},
	{OpID: "OP_CLUSTER_POST_INIT", Path: "cluster-init", Type: ofCluster, Post: master, variables: vars(clusterName)},
	{OpID: "OP_CLUSTER_DESTROY", Path: "cluster-destroy", Type: ofCluster, Post: master, variables: vars(clusterName)},
	{OpID: verifyGroup, Path: "cluster-verify", Type: ofCluster, Post: where(groupNodes), variables: vars(clusterTags)},

	{OpID: "OP_NODE_ADD", Path: "node-add", Type: ofNode, Pre: where(others), Post: where(others), variables: vars(
		nodeTarget, nodeVar, given("NODE_PIP", "primary_ip"), given("NODE_SIP", "secondary_ip"), usually("MASTER_CAPABLE", "master_capable"), usually("VM_CAPABLE", "vm_capable"))},
	{OpID: "OP_NODE_REMOVE", Path: "node-remove", Type: ofNode, Pre: where(others), Post: where(others), Same: true, variables: vars(nodeTarget, nodeVar)},
	{OpID: "OP_NODE_SET_PARAMS", Path: "node-modify", Type: ofNode, Pre: where(masterNode, theNode), Post: where(masterNode, theNode), variables: vars(
		nodeTarget, given("MASTER_CANDIDATE", "master_candidate"), given("OFFLINE", "offline"), given("DRAINED", "drained"), given("MASTER_CAPABLE", "master_capable"), given("VM_CAPABLE", "vm_capable"))},
	{OpID: "OP_NODE_MIGRATE", Path: "node-migrate", Type: ofNode, Pre: master, Post: master, variables: vars(nodeVar, given("ALLOW_RUNTIME_CHANGES", "allow_runtime_changes"))},

	{OpID: "OP_GROUP_ADD", Path: "group-add", Type: ofGroup, Pre: master, Post: master, variables: vars(given("GROUP_NAME", "group_name"))},
	{OpID: "OP_GROUP_SET_PARAMS", Path: "group-modify", Type: ofGroup, Pre: master, Post: master, variables: vars(given("GROUP_NAME", "group_name"), given("NEW_ALLOC_POLICY", "alloc_policy"))},
	{OpID: "OP_GROUP_REMOVE", Path: "group-remove", Type: ofGroup, Pre: master, Post: master, variables: vars(given("GROUP_NAME", "group_name"))},
	{OpID: "OP_GROUP_RENAME", Path: "group-rename", Type: ofGroup, Pre: where(masterNode, groupNodes), Post: where(masterNode, groupNodes), variables: vars(given("OLD_NAME", "group_name"), given("NEW_NAME", "new_name"))},
	{OpID: "OP_GROUP_EVACUATE", Path: "group-evacuate", Type: ofGroup, Pre: where(masterNode, groupNodes), Post: where(masterNode, groupNodes), variables: vars(given("GROUP_NAME", "group_name"), targetGroups)},

	{OpID: "OP_NETWORK_ADD", Path: "network-add", Type: ofNetwork, Pre: master, Post: master, variables: vars(
		set("NETWORK_NAME", "network_name"), set("NETWORK_SUBNET", "network"), set("NETWORK_GATEWAY", "gateway"), set("NETWORK_SUBNET6", "network6"), set("NETWORK_GATEWAY6", "gateway6"),
		set("NETWORK_MAC_PREFIX", "mac_prefix"), networkTags)},
	{OpID: "OP_NETWORK_REMOVE", Path: "network-remove", Type: ofNetwork, Pre: master, Post: master, variables: vars(given("NETWORK_NAME", "network_name"))},
	{OpID: "OP_NETWORK_RENAME", Path: "network-rename", Type: ofNetwork, Pre: where(masterNode, connectedNodes), Post: where(masterNode, connectedNodes), variables: vars(given("OLD_NAME", "network_name"), given("NEW_NAME", "new_name"))},
	{OpID: "OP_NETWORK_SET_PARAMS", Path: "network-modify", Type: ofNetwork, Pre: master, Post: master, variables: vars(
		given("NETWORK_NAME", "network_name"), changed("NETWORK_SUBNET", "", func(n *cluster.Network) string { return n.Network }),
		changed("NETWORK_GATEWAY", "gateway", func(n *cluster.Network) string { return n.Gateway }), changed("NETWORK_SUBNET6", "network6", func(n *cluster.Network) string { return n.Network6 }),
		changed("NETWORK_GATEWAY6", "gateway6", func(n *cluster.Network) string { return n.Gateway6 }), changed("NETWORK_MAC_PREFIX", "mac_prefix", func(n *cluster.Network) string { return n.MACPrefix }),
		changed("NETWORK_TAGS", "", func(n *cluster.Network) string { return tags(n.Tags) }))},
	{OpID: "OP_NETWORK_CONNECT", Path: "network-connect", Type: ofNetwork, Pre: where(groupNodes), Post: where(groupNodes), variables: vars(
		given("GROUP_NAME", "group_name"), given("GROUP_NETWORK_MODE", "network_mode"), given("GROUP_NETWORK_LINK", "network_link"), given("GROUP_NETWORK_VLAN", "network_vlan"))},
	{OpID: "OP_NETWORK_DISCONNECT", Path: "network-disconnect", Type: ofNetwork, Pre: where(groupNodes), Post: where(groupNodes), Same: true, variables: vars(
		given("GROUP_NAME", "group_name"), connected("GROUP_NETWORK_MODE", "mode"), connected("GROUP_NETWORK_LINK", "link"), connected("GROUP_NETWORK_VLAN", "vlan"))},

	{OpID: "OP_INSTANCE_CREATE", Path: "instance-add", Type: ofInstance, Pre: itsNodes, Post: itsNodes, Instance: true, variables: vars(
		given("ADD_MODE", "mode"), given("INSTANCE_STATUS", "start"), imported("SRC_NODE", "src_node"), imported("SRC_PATH", "src_path"))},
	{OpID: "OP_INSTANCE_REINSTALL", Path: "instance-reinstall", Type: ofInstance, Pre: itsNodes, Post: itsNodes, Instance: true},
	{OpID: "OP_INSTANCE_RENAME", Path: "instance-rename", Type: ofInstance, Pre: itsNodes, Post: itsNodes, Instance: true, Same: true, variables: vars(given("INSTANCE_NEW_NAME", "new_name"))},
	{OpID: "OP_INSTANCE_REMOVE", Path: "instance-remove", Type: ofInstance, Pre: master, Post: itsNodes, Instance: true, Same: true, variables: vars(given("SHUTDOWN_TIMEOUT", "shutdown_timeout"))},
	{OpID: "OP_INSTANCE_STARTUP", Path: "instance-start", Type: ofInstance, Pre: itsNodes, Post: itsNodes, Instance: true, variables: vars(given("FORCE", "force"))},
	{OpID: "OP_INSTANCE_SHUTDOWN", Path: "instance-stop", Type: ofInstance, Pre: itsNodes, Post: itsNodes, Instance: true, variables: vars(given("TIMEOUT", "timeout"))},
	{OpID: "OP_INSTANCE_REBOOT", Path: "instance-reboot", Type: ofInstance, Pre: itsNodes, Post: itsNodes, Instance: true, variables: vars(
		given("IGNORE_SECONDARIES", "ignore_secondaries"), given("REBOOT_TYPE", "reboot_type"), given("SHUTDOWN_TIMEOUT", "shutdown_timeout"))},
	{OpID: "OP_INSTANCE_SET_PARAMS", Path: "instance-modify", Type: ofInstance, Pre: itsNodes, Post: itsNodes, Instance: true, variables: vars(
		asked("INSTANCE_MINMEM", "minmem"), asked("INSTANCE_MAXMEM", "maxmem"), asked("INSTANCE_MEMORY", "maxmem"), asked("INSTANCE_VCPUS", "vcpus"), set("NEW_DISK_TEMPLATE", "disk_template"), set("RUNTIME_MEMORY", "runtime_mem"))},
	{OpID: "OP_INSTANCE_FAILOVER", Path: "instance-failover", Type: ofInstance, Pre: where(masterNode, secondNodes, target), Post: where(masterNode, secondNodes, target, primaryNode), Instance: true, Same: true, variables: vars(
		given("IGNORE_CONSISTENCY", "ignore_consistency"), given("SHUTDOWN_TIMEOUT", "shutdown_timeout"), given("FAILOVER_CLEANUP", "cleanup"), oldPrimary, newPrimary, oldSecondary, newSecondary)},
	{OpID: "OP_INSTANCE_MIGRATE", Path: "instance-migrate", Type: ofInstance, Pre: where(masterNode, primaryNode, secondNodes, target), Post: where(masterNode, primaryNode, secondNodes, target), Instance: true, Same: true, variables: vars(
		live, given("MIGRATE_CLEANUP", "cleanup"), given("ALLOW_RUNTIME_CHANGES", "allow_runtime_changes"), oldPrimary, newPrimary, oldSecondary, newSecondary)},
	{OpID: "OP_INSTANCE_MOVE", Path: "instance-move", Type: ofInstance, Pre: where(masterNode, primaryNode, target), Post: where(masterNode, primaryNode, target), Instance: true, Same: true, variables: vars(
		targetName("TARGET_NODE"), given("SHUTDOWN_TIMEOUT", "shutdown_timeout"))},
	{OpID: "OP_INSTANCE_GROW_DISK", Path: "disk-grow", Type: ofInstance, Pre: itsNodes, Post: itsNodes, Instance: true, variables: vars(given("DISK", "disk"), given("AMOUNT", "amount"), given("ABSOLUTE", "absolute"))},
	{OpID: "OP_INSTANCE_RECREATE_DISKS", Path: "instance-recreate-disks", Type: ofInstance, Pre: itsNodes, Post: itsNodes, Instance: true},
	{OpID: "OP_INSTANCE_REPLACE_DISKS", Path: "mirrors-replace", Type: ofInstance, Pre: where(masterNode, primaryNode, target), Post: where(masterNode, primaryNode, target), Instance: true, Same: true, variables: vars(
		given("MODE", "mode"), targetName("NEW_SECONDARY"), replaced)},
	{OpID: "OP_INSTANCE_CHANGE_GROUP", Path: "instance-change-group", Type: ofInstance, Pre: master, Post: master, Instance: true, variables: vars(targetGroups)},
	{OpID: "OP_BACKUP_EXPORT", Path: "instance-export", Type: ofInstance, Pre: where(masterNode, primaryNode, target), Post: where(masterNode, primaryNode, target), Instance: true, variables: vars(
		given("EXPORT_MODE", "mode"), targetName("EXPORT_NODE"), given("EXPORT_DO_SHUTDOWN", "shutdown"), given("SHUTDOWN_TIMEOUT", "shutdown_timeout"), given("REMOVE_INSTANCE", "remove_instance"))},
}

// The nodes that scripts run on.
var (
	masterNode = Where{"master", func(m *Moment) []string { return []string{m.Snap.Cluster().MasterNode} }}
	allNodes   = Where{"all nodes", func(m *Moment) (uuids []string) {
		for n := range m.Snap.Nodes() {
			uuids = append(uuids, n.UUID)
		}
		return uuids
	}}
	others = Where{"all other nodes", func(m *Moment) []string {
		return slices.DeleteFunc(allNodes.of(m), func(uuid string) bool { return m.Node != nil && m.Node.UUID == uuid })
	}}
	theNode        = Where{"the node", func(m *Moment) []string { return uuidOf(m.Node) }}
	target         = Where{"target node", func(m *Moment) []string { return uuidOf(m.Target) }}
	groupNodes     = Where{"nodes of the group", func(m *Moment) []string { return nodesIn(m, m.Group) }}
	connectedNodes = Where{"nodes of the network's groups", func(m *Moment) (uuids []string) {
		if m.Network != nil {
			for g := range m.Snap.GroupsOn(m.Network.UUID) {
				uuids = append(uuids, nodesIn(m, g)...)
			}
		}
		return uuids
	}}
	primaryNode = Where{"primary node", func(m *Moment) []string {
		if m.Instance == nil {
			return nil
		}
		return []string{m.Instance.PrimaryNode}
	}}
	secondNodes = Where{"secondary nodes", func(m *Moment) []string {
		if m.Instance == nil {
			return nil
		}
		return m.Instance.SecondaryNodes()
	}}

	master     = where(masterNode)
	everywhere = where(allNodes)
	itsNodes   = where(masterNode, primaryNode, secondNodes)
)

func where(all ...Where) []Where { return all }

func uuidOf(n *cluster.Node) []string {
	if n == nil {
		return nil
	}
	return []string{n.UUID}
}

func nodesIn(m *Moment, g *cluster.Group) (uuids []string) {
	if g != nil {
		for n := range m.Snap.NodesIn(g.UUID) {
			uuids = append(uuids, n.UUID)
		}
	}
	return uuids
}

func vars(all ...variable) []variable { return all }

// given is a parameter of the opcode, whether it has a value or not.
func given(name, param string) variable {
	return variable{name, func(m *Moment) (string, bool) { return written(m.Op.Params[param]), true }}
}

// set is a parameter of the opcode if it has a value.
func set(name, param string) variable {
	return variable{name, func(m *Moment) (string, bool) {
		v := m.Op.Params[param]
		return written(v), v != nil && v != ""
	}}
}

// usually is a parameter that is so unless it is said otherwise.
func usually(name, param string) variable {
	return variable{name, func(m *Moment) (string, bool) { return written(!m.Op.Has(param) || m.Op.Bool(param)), true }}
}

// asked is a backend parameter that the opcode sets.
func asked(name, param string) variable {
	return variable{name, func(m *Moment) (string, bool) {
		v, is := m.Op.Map("beparams")[param].(int64)
		return written(v), is
	}}
}

// imported is a parameter of those creations that import.
func imported(name, param string) variable {
	return variable{name, func(m *Moment) (string, bool) { return written(m.Op.Params[param]), m.Op.Str("mode") == "import" }}
}

// changed is what a network has, or is to have.
func changed(name, param string, has func(*cluster.Network) string) variable {
	return variable{name, func(m *Moment) (string, bool) {
		switch to, is := m.Op.Params[param].(string); {
		case is && (to == "none" || to == ""):
			return "", false
		case is:
			return to, true
		case m.Network == nil:
			return "", false
		}
		now := has(m.Network)
		return now, now != ""
	}}
}

// connected is how a group is connected to the network.
func connected(name, param string) variable {
	return variable{name, func(m *Moment) (string, bool) {
		if m.Group == nil || m.Network == nil || m.Group.Networks[m.Network.UUID] == nil {
			return "", false
		}
		return written(m.Group.Networks[m.Network.UUID][param]), true
	}}
}

func targetName(name string) variable {
	return variable{name, func(m *Moment) (string, bool) {
		if m.Target == nil {
			return "None", true
		}
		return m.Target.Name, true
	}}
}

// mirrored reports whether the copies of the instance's disks are on two nodes.
func mirrored(m *Moment) bool { return m.Instance != nil && len(m.Instance.SecondaryNodes()) > 0 }

var (
	clusterName  = variable{"OP_TARGET", func(m *Moment) (string, bool) { return m.Snap.Cluster().Name, true }}
	clusterTags  = variable{"CLUSTER_TAGS", func(m *Moment) (string, bool) { return tags(m.Snap.Cluster().Tags), true }}
	nodeTarget   = variable{"OP_TARGET", nodeOf}
	nodeVar      = variable{"NODE_NAME", nodeOf}
	targetGroups = variable{"TARGET_GROUPS", func(m *Moment) (string, bool) { return strings.Join(m.Groups, " "), true }}
	networkTags  = variable{"NETWORK_TAGS", func(m *Moment) (string, bool) {
		list := m.Op.Strings("tags")
		return tags(list), len(list) > 0
	}}
	oldPrimary = variable{"OLD_PRIMARY", func(m *Moment) (string, bool) {
		if m.Instance == nil {
			return "", false
		}
		return nodeName(m.Snap, m.Instance.PrimaryNode), true
	}}
	newPrimary   = variable{"NEW_PRIMARY", targetName("").of}
	oldSecondary = variable{"OLD_SECONDARY", func(m *Moment) (string, bool) {
		if !mirrored(m) {
			return "", true
		}
		return nodeName(m.Snap, m.Instance.SecondaryNodes()[0]), true
	}}
	newSecondary = variable{"NEW_SECONDARY", func(m *Moment) (string, bool) {
		if !mirrored(m) {
			return "", true
		}
		return oldPrimary.of(m)
	}}
	replaced = variable{"OLD_SECONDARY", oldSecondary.of}
	live     = variable{"MIGRATE_LIVE", func(m *Moment) (string, bool) {
		return written(m.Op.Str("mode") != "non-live" && (!m.Op.Has("live") || m.Op.Bool("live"))), true
	}}
)

// nodeOf is the name of the node that the opcode is about, which may not be there yet.
func nodeOf(m *Moment) (string, bool) {
	if m.Node != nil {
		return m.Node.Name, true
	}
	return written(m.Op.Params["node_name"]), true
}
