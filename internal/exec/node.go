package exec

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/outofband"
)

// nodeAdd prepares OP_NODE_ADD, also of a node that was in the cluster before
// and was set up anew (readd).
func nodeAdd(_ context.Context, env *Env) (Plan, error) {
	snap := env.snapshot()
	node, err := newNode(env, snap)
	if err != nil {
		return Plan{}, err
	}
	if _, err := env.agent(node); err != nil {
		return Plan{}, err
	}
	return Plan{Change: func(snap *cluster.Snapshot) ([]cluster.Change, any, error) {
		node, err := newNode(env, snap)
		if err != nil {
			return nil, nil, err
		}
		return []cluster.Change{cluster.Put(node)}, nil, nil
	}}, nil
}

// newNode returns the node as it will be after OP_NODE_ADD.
func newNode(env *Env, snap *cluster.Snapshot) (*cluster.Node, error) {
	op := env.Op
	name, err := cluster.NormalName(op.Str("node_name"))
	if err != nil {
		return nil, err
	}
	old, err := sameNode(snap, name)
	switch {
	case err != nil:
		return nil, err
	case old != nil && !op.Bool("readd"):
		return nil, fault.New(fault.Exists, "Node %s is already in the configuration", old.Name)
	case old == nil && op.Bool("readd"):
		return nil, fault.New(fault.NotFound, "Node %s is not in the configuration", name)
	case old != nil && op.Has("group"):
		return nil, fault.New(fault.Invalid, "Cannot pass a node group when a node is being readded").At("group")
	case len(op.Map("hv_state")) > 0, len(op.Map("disk_state")) > 0: // clients send empty ones
		return nil, fault.New(fault.Invalid, "Parameters 'hv_state' and 'disk_state' can't be set yet")
	case old != nil:
		return env.readded(snap, old)
	}
	group, err := groupForNode(snap, op.Str("group"))
	if err != nil {
		return nil, err
	}
	ip, err := nodeAddress(snap, op.Str("primary_ip"))
	if err != nil {
		return nil, err
	}
	node := cluster.NewNode(env.NewUUID(), name, ip, group.UUID, env.nanos())
	return node, env.describeNode(snap, node)
}

// readded is a node that was set up anew: it is in service, and what the opcode says of it counts. What it does not speak of stays.
func (e *Env) readded(snap *cluster.Snapshot, old *cluster.Node) (*cluster.Node, error) {
	op, node := e.Op, old.Clone()
	secondary := old.SecondaryIP
	if ip := op.Str("primary_ip"); op.Has("primary_ip") && ip != old.PrimaryIP {
		var err error
		if node.PrimaryIP, err = nodeAddress(snap, ip); err != nil {
			return nil, err
		}
		secondary = ip // unless it is said
	}
	if op.Has("secondary_ip") {
		secondary = op.Str("secondary_ip")
	}
	if secondary != old.SecondaryIP {
		return nil, fault.New(fault.Invalid, "Readded node doesn't have the same IP address configuration as before").At("secondary_ip").
			WithHint("its secondary address is %s; drover node modify changes it", old.SecondaryIP)
	}
	node.Offline, node.Drained, node.Powered = false, false, true
	if err := e.describeNode(snap, node); err != nil {
		return nil, err
	}
	switch {
	case !node.VMCapable && hostsAny(snap, node.UUID):
		return nil, fault.New(fault.WrongState, "Node %s being re-added with vm_capable flag set to false, but it already holds instances", node.Name).At("vm_capable")
	case !node.MasterCapable && node.UUID == snap.Cluster().MasterNode:
		return nil, fault.New(fault.WrongState, "Master must remain master capable").At("master_capable")
	}
	node.Touch(e.nanos())
	return node, nil
}

// sameNode finds the node that a new name would be mistaken for: the one of that name, or one
// whose name is its beginning before a dot, or the other way round. nil if there is none.
func sameNode(snap *cluster.Snapshot, name string) (*cluster.Node, error) {
	switch node, err := snap.FindNode(name); {
	case err == nil:
		return node, nil
	case !fault.Is(err, fault.NotFound):
		return nil, err
	}
	for node := range snap.Nodes() {
		if strings.HasPrefix(name, node.Name+".") {
			return node, nil
		}
	}
	return nil, nil
}

// describeNode sets what the opcode says about a node that is added.
func (e *Env) describeNode(snap *cluster.Snapshot, node *cluster.Node) error {
	op := e.Op
	if op.Has("secondary_ip") {
		node.SecondaryIP = op.Str("secondary_ip")
		if _, err := netip.ParseAddr(node.SecondaryIP); err != nil {
			return fault.New(fault.Invalid, "Invalid secondary IP '%s'", node.SecondaryIP).At("secondary_ip")
		}
	}
	if op.Has("master_capable") {
		node.MasterCapable = op.Bool("master_capable")
	}
	if op.Has("vm_capable") {
		node.VMCapable = op.Bool("vm_capable")
	}
	nd, err := cluster.CheckParams(op.Map("ndparams"), cluster.NDTypes(), true)
	if err != nil {
		return err
	}
	if op.Has("ndparams") {
		node.NDParams = cluster.SetParams(nil, nd)
	}
	others := candidates(snap)
	if before := snap.Node(node.UUID); before != nil && before.MasterCandidate {
		others--
	}
	node.MasterCandidate = node.MasterCapable && others < snap.Cluster().PoolSize
	return nil
}

// groupForNode returns the group of a new node: the one named, the default
// one, or the first.
func groupForNode(snap *cluster.Snapshot, name string) (*cluster.Group, error) {
	if name != "" {
		return findGroup(name, snap)
	}
	if g := snap.GroupNamed(cluster.DefaultGroup); g != nil {
		return g, nil
	}
	for g := range snap.Groups() {
		return g, nil
	}
	return nil, fault.New(fault.WrongState, "The cluster has no node group")
}

// nodeAddress returns the address of a new node. In a cluster whose nodes live
// on loopback addresses, as they do on one machine, the next free one is taken
// when none is given.
func nodeAddress(snap *cluster.Snapshot, given string) (string, error) {
	used := map[string]string{}
	highest := netip.AddrFrom4([4]byte{127, 0, 0, 0})
	loopback := true
	for n := range snap.Nodes() {
		used[n.PrimaryIP] = n.Name
		a, err := netip.ParseAddr(n.PrimaryIP)
		if err != nil || !a.IsLoopback() {
			loopback = false
		} else if highest.Less(a) {
			highest = a
		}
	}
	if given == "" {
		if !loopback {
			return "", fault.New(fault.Invalid, "The address of the node is missing").At("primary_ip")
		}
		return highest.Next().String(), nil
	}
	if _, err := netip.ParseAddr(given); err != nil {
		return "", fault.New(fault.Invalid, "Invalid primary IP '%s'", given).At("primary_ip")
	}
	if other := used[given]; other != "" {
		return "", fault.New(fault.Exists, "The address %s is already that of node %s", given, other).At("primary_ip")
	}
	return given, nil
}

// candidates counts the master candidates.
func candidates(snap *cluster.Snapshot) int64 {
	var count int64
	for n := range snap.Nodes() {
		if n.MasterCandidate {
			count++
		}
	}
	return count
}

// roleFlags are the flags of a node that exclude each other.
var roleFlags = []string{"master_candidate", "drained", "offline"}

// nodeModify prepares OP_NODE_SET_PARAMS.
func nodeModify(_ context.Context, env *Env) (Plan, error) {
	node, err := findNode(env.Op, "node", env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	if err := checkNodeRequest(env, node); err != nil {
		return Plan{}, err
	}
	next := &nodeChange{env: env}
	if _, err := next.apply(env.snapshot(), node.UUID); err != nil {
		return Plan{}, err
	}
	for _, line := range next.notes {
		env.Infof("%s", line)
	}
	return Plan{Dry: next.result, Change: func(snap *cluster.Snapshot) ([]cluster.Change, any, error) {
		changes, err := next.apply(snap, node.UUID)
		return changes, next.result, err
	}}, nil
}

// checkNodeRequest refuses requests that are wrong whatever state the node is
// in.
func checkNodeRequest(env *Env, node *cluster.Node) error {
	op := env.Op
	given, raised := 0, 0
	for _, name := range []string{"master_capable", "vm_capable", "secondary_ip", "ndparams", "powered", "hv_state", "disk_state"} {
		if op.Has(name) {
			given++
		}
	}
	roles := 0
	for _, name := range roleFlags {
		if op.Has(name) {
			roles++
		}
		if op.Bool(name) {
			raised++
		}
	}
	switch {
	case len(op.Map("hv_state")) > 0, len(op.Map("disk_state")) > 0: // clients send empty ones
		return fault.New(fault.Invalid, "Parameters 'hv_state' and 'disk_state' can't be changed yet")
	case given+roles == 0, given+roles == 1 && op.Has("powered") && op.Bool("powered") == node.Powered:
		return fault.New(fault.Invalid, "Please pass at least one modification")
	case raised > 1:
		return fault.New(fault.Invalid, "Can't set the node into more than one state at the same time")
	case roles > 0 && node.UUID == env.snapshot().Cluster().MasterNode:
		return fault.New(fault.Invalid, "The master role can be changed only via master-failover")
	}
	return checkSecondary(op, env.snapshot(), node)
}

// checkSecondary refuses a new address for replication that would make the
// nodes of a cluster disagree on whether they have a network for it.
func checkSecondary(op *opcode.Opcode, snap *cluster.Snapshot, node *cluster.Node) error {
	if !op.Has("secondary_ip") {
		return nil
	}
	given := op.Str("secondary_ip")
	if addr, err := netip.ParseAddr(given); err != nil || !addr.Is4() {
		return fault.New(fault.Invalid, "Secondary IP (%s) needs to be a valid IPv4 address", given).At("secondary_ip")
	}
	master := snap.Node(snap.Cluster().MasterNode)
	if master == nil || given == node.SecondaryIP {
		return nil
	}
	single, isMaster := master.SecondaryIP == master.PrimaryIP, node.UUID == master.UUID
	switch {
	case single && (!isMaster || !op.Bool("force")):
		return fault.New(fault.Invalid, "Changing the secondary ip on a single-homed cluster requires the --force option to be passed,"+
			" and the target node to be the master").At("secondary_ip")
	case !single && given == node.PrimaryIP && (!isMaster || !op.Bool("force")):
		return fault.New(fault.Invalid, "To transition from a multi-homed to a single-homed cluster requires the --force option to be passed,"+
			" and the target node to be the master").At("secondary_ip")
	}
	return nil
}

// nodeChange works out what OP_NODE_SET_PARAMS makes of a node.
type nodeChange struct {
	env    *Env
	result []pair
	notes  []string
}

func (c *nodeChange) apply(snap *cluster.Snapshot, uuid string) ([]cluster.Change, error) {
	c.result, c.notes = []pair{}, nil
	old := snap.Node(uuid)
	if old == nil {
		return nil, fault.New(fault.Conflict, "the node with UUID %s was removed meanwhile", uuid)
	}
	node := old.Clone()
	if err := c.capabilities(snap, node); err != nil {
		return nil, err
	}
	if err := c.role(snap, node); err != nil {
		return nil, err
	}
	controlled := outofband.Program(snap, old) != ""
	if controlled && old.Offline && !node.Offline && !old.Powered && !c.env.Op.Bool("powered") {
		return nil, fault.New(fault.WrongState, "Node %s needs to be turned on before its offline status can be reset", node.Name).
			WithHint("drover node power on %s does that; --powered records that it is on", node.Name)
	}
	if err := c.settings(node, controlled); err != nil {
		return nil, err
	}
	c.noteRoles(old, node)
	node.Touch(c.env.nanos())
	changes := []cluster.Change{cluster.Put(node)}
	if old.MasterCandidate && !node.MasterCandidate {
		promoted, err := c.fillPool(snap, node)
		return append(changes, promoted...), err
	}
	return changes, nil
}

// capabilities sets what the node may be used for.
func (c *nodeChange) capabilities(snap *cluster.Snapshot, node *cluster.Node) error {
	op := c.env.Op
	if op.Has("master_capable") {
		if !op.Bool("master_capable") && node.UUID == snap.Cluster().MasterNode {
			return fault.New(fault.WrongState, "Master must remain master capable").At("master_capable")
		}
		node.MasterCapable = op.Bool("master_capable")
		c.result = append(c.result, pair{"master_capable", pythonBool(node.MasterCapable)})
		if !node.MasterCapable {
			node.MasterCandidate = false
		}
	}
	if op.Bool("master_candidate") && !node.MasterCapable {
		return fault.New(fault.WrongState, "Node %s is not master capable, cannot make it a master candidate", node.Name)
	}
	if !op.Has("vm_capable") {
		return nil
	}
	node.VMCapable = op.Bool("vm_capable")
	c.result = append(c.result, pair{"vm_capable", pythonBool(node.VMCapable)})
	if !node.VMCapable && hostsAny(snap, node.UUID) {
		return fault.New(fault.WrongState, "Node %s hosts instances, cannot unset the vm_capable flag", node.Name)
	}
	return nil
}

func hostsAny(snap *cluster.Snapshot, node string) bool {
	for range snap.PrimariesOn(node) {
		return true
	}
	for range snap.SecondariesOn(node) {
		return true
	}
	return false
}

// role sets the node's role: a flag that is raised lowers the others, and a
// node that comes back may become a candidate again.
func (c *nodeChange) role(snap *cluster.Snapshot, node *cluster.Node) error {
	op := c.env.Op
	flags := map[string]*bool{"master_candidate": &node.MasterCandidate, "drained": &node.Drained, "offline": &node.Offline}
	back := false
	for _, name := range roleFlags {
		switch flag := flags[name]; {
		case !op.Has(name):
		case op.Bool(name):
			for _, other := range flags {
				*other = false
			}
			*flag = true
		case !*flag:
			c.notes = append(c.notes, "Ignoring request to unset flag "+name+", already unset")
		default:
			*flag = false
			back = back || name != "master_candidate"
		}
	}
	if node.MasterCandidate && (node.Offline || node.Drained) {
		return fault.New(fault.WrongState, "Node %s is offline, drained or not master capable, its candidate flag can't be set", node.Name)
	}
	if back && node.MasterCapable && !node.Offline && !node.Drained && candidates(snap) < snap.Cluster().PoolSize {
		c.notes = append(c.notes, "Auto-promoting node to master candidate")
		node.MasterCandidate = true
	}
	return nil
}

// settings sets what is no role.
func (c *nodeChange) settings(node *cluster.Node, controlled bool) error {
	op := c.env.Op
	if op.Has("powered") {
		if !controlled {
			return fault.New(fault.WrongState, "Unable to change powered state for node %s as it does not support out-of-band handling", node.Name).At("powered").
				WithHint("the node parameter oob_program names the program for that")
		}
		if !op.Bool("powered") && !node.Offline && !op.Bool("force") {
			return fault.New(fault.WrongState, "Node %s needs to be marked offline before it can be turned off", node.Name)
		}
		node.Powered = op.Bool("powered")
		c.result = append(c.result, pair{"powered", pythonBool(node.Powered)})
	}
	if op.Has("secondary_ip") {
		node.SecondaryIP = op.Str("secondary_ip")
		c.result = append(c.result, pair{"secondary_ip", node.SecondaryIP})
	}
	nd, err := cluster.CheckParams(op.Map("ndparams"), cluster.NDTypes(), true)
	if err != nil {
		return err
	}
	node.NDParams = cluster.SetParams(node.NDParams, nd)
	for _, name := range slices.Sorted(maps.Keys(nd)) {
		c.result = append(c.result, pair{"ndparams/" + name, nd[name]})
	}
	return nil
}

func (c *nodeChange) noteRoles(old, node *cluster.Node) {
	for i, change := range [][2]bool{{old.MasterCandidate, node.MasterCandidate}, {old.Drained, node.Drained}, {old.Offline, node.Offline}} {
		if change[0] != change[1] {
			c.result = append(c.result, pair{roleFlags[i], pythonBool(change[1])})
		}
	}
}

// fillPool promotes other nodes after one stopped being a candidate. Without
// auto_promote a pool that would become too small is refused, unless nobody
// could take the place anyway.
func (c *nodeChange) fillPool(snap *cluster.Snapshot, demoted *cluster.Node) ([]cluster.Change, error) {
	missing := snap.Cluster().PoolSize - (candidates(snap) - 1)
	var changes []cluster.Change
	for n := range snap.Nodes() {
		if missing <= 0 || n.UUID == demoted.UUID || n.MasterCandidate || n.Offline || n.Drained || !n.MasterCapable {
			continue
		}
		if !c.env.Op.Bool("auto_promote") {
			return nil, fault.New(fault.WrongState, "Not enough master candidates, please pass auto promote option to allow promotion"+
				" (--auto-promote or RAPI auto_promote=True)")
		}
		next := n.Clone()
		next.MasterCandidate = true
		next.Touch(c.env.nanos())
		changes = append(changes, cluster.Put(next))
		c.notes = append(c.notes, "Promoted nodes to master candidate role: "+n.Name)
		missing--
	}
	return slices.Clip(changes), nil
}

// pythonBool writes a truth value as clients expect it in these results.
func pythonBool(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

// nodeRemove prepares OP_NODE_REMOVE.
func nodeRemove(_ context.Context, env *Env) (Plan, error) {
	node, err := findNode(env.Op, "node", env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	return updatePlan(env, nil, func(snap *cluster.Snapshot) ([]cluster.Change, error) {
		if node.UUID == snap.Cluster().MasterNode {
			return nil, fault.New(fault.Invalid, "Node is the master node, failover to another node is required")
		}
		for inst := range snap.PrimariesOn(node.UUID) {
			return nil, fault.New(fault.Invalid, "Instance %s is still running on the node, please remove first", inst.Name)
		}
		for inst := range snap.SecondariesOn(node.UUID) {
			return nil, fault.New(fault.Invalid, "Instance %s is still running on the node, please remove first", inst.Name)
		}
		for d := range snap.DisksOn(node.UUID) {
			return nil, fault.New(fault.WrongState, "Disk %s is on the node, although no instance has it", d).
				WithHint("attach it to an instance, or remove it: drover disk remove %s", d.UUID)
		}
		return []cluster.Change{cluster.Delete(cluster.KindNode, node.UUID)}, nil
	})
}
