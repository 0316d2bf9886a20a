package exec

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
)

// networkAdd prepares OP_NETWORK_ADD.
func networkAdd(_ context.Context, env *Env) (Plan, error) {
	return updatePlan(env, nil, func(snap *cluster.Snapshot) ([]cluster.Change, error) {
		op := env.Op
		if err := checkItemName("network", op.Str("network_name")); err != nil {
			return nil, err
		}
		if other := snap.NetworkNamed(op.Str("network_name")); other != nil {
			return nil, fault.New(fault.Exists, "Desired network name '%s' already exists as a network (UUID: %s)", other.Name, other.UUID)
		}
		network, err := cluster.NewNetwork(env.NewUUID(), op.Str("network_name"), op.Str("network"), op.Str("gateway"), env.nanos())
		if err != nil {
			return nil, err
		}
		if network.Tags, err = cluster.AddTags(nil, op.Strings("tags")); err != nil {
			return nil, err
		}
		if err := setNetwork(op, network); err != nil {
			return nil, err
		}
		if failed, err := setAside(op, network); err != nil || len(failed) > 0 {
			return nil, cmp.Or(err, error(fault.New(fault.BadAddress, "%s", strings.Join(failed, "; ")).At("add_reserved_ips")))
		}
		if op.Bool("conflicts_check") {
			setAsideNodes(snap, network)
		}
		return []cluster.Change{cluster.Put(network)}, nil
	})
}

// setAsideNodes keeps the addresses of nodes, and the cluster's own, from being given to instances.
func setAsideNodes(snap *cluster.Snapshot, network *cluster.Network) {
	prefix, err := netip.ParsePrefix(network.Network)
	if err != nil {
		return
	}
	taken := []string{snap.Cluster().MasterIP}
	for n := range snap.Nodes() {
		taken = append(taken, n.PrimaryIP, n.SecondaryIP)
	}
	for _, ip := range taken {
		if a, err := netip.ParseAddr(ip); err == nil && prefix.Contains(a) {
			// One that is set aside already, or listed twice, is no conflict.
			_ = network.SetExternal(ip, true)
		}
	}
}

// setNetwork sets what the opcode says about a network besides its subnet and
// gateway.
func setNetwork(op *opcode.Opcode, network *cluster.Network) error {
	if op.Has("mac_prefix") {
		prefix := strings.ToLower(op.Str("mac_prefix"))
		if prefix == none {
			prefix = ""
		} else if !macPrefix.MatchString(prefix) {
			return fault.New(fault.Invalid, "Invalid MAC address prefix '%s'", op.Str("mac_prefix")).At("mac_prefix")
		}
		network.MACPrefix = prefix
	}
	if op.Has("network6") {
		if p, err := netip.ParsePrefix(op.Str("network6")); err != nil || !p.Addr().Is6() {
			return fault.New(fault.Invalid, "network6 '%s' is no IPv6 network in CIDR form", op.Str("network6")).At("network6")
		}
		network.Network6 = op.Str("network6")
	}
	if err := setGateway6(op, network); err != nil {
		return err
	}
	return nil
}

// setAside sets addresses aside and gives others back, as the opcode says.
// What cannot be done for one address is returned as a text, and keeps nothing
// else from being done.
func setAside(op *opcode.Opcode, network *cluster.Network) (failed []string, err error) {
	for _, change := range []struct {
		param, word string
		aside       bool
	}{{"add_reserved_ips", "reserve", true}, {"remove_reserved_ips", "release", false}} {
		for _, ip := range op.Strings(change.param) {
			if _, err := netip.ParseAddr(ip); err != nil {
				return nil, fault.New(fault.Invalid, "'%s' is no IP address", ip).At(change.param)
			}
			var err error
			if ip == network.Gateway && !change.aside {
				err = fault.New(fault.BadAddress, "it is the address of the gateway")
			} else {
				err = network.SetExternal(ip, change.aside)
			}
			if err != nil {
				failed = append(failed, fmt.Sprintf("Cannot %s IP address %s: %v", change.word, ip, err))
			}
		}
	}
	return failed, nil
}

func setGateway6(op *opcode.Opcode, network *cluster.Network) error {
	if !op.Has("gateway6") {
		return nil
	}
	given := op.Str("gateway6")
	if strings.EqualFold(given, none) {
		network.Gateway6 = ""
		return nil
	}
	addr, err := netip.ParseAddr(given)
	if err != nil || !addr.Is6() {
		return fault.New(fault.Invalid, "gateway6 '%s' is no IPv6 address", given).At("gateway6")
	}
	// Without a network6, or before it is set, any address will do.
	if prefix, err := netip.ParsePrefix(network.Network6); err == nil && !prefix.Contains(addr) && !addr.IsLinkLocalUnicast() {
		return fault.New(fault.Invalid, "gateway6 '%s' is no address of network6 '%s'", given, network.Network6).At("gateway6")
	}
	network.Gateway6 = given
	return nil
}

// networkModify prepares OP_NETWORK_SET_PARAMS.
func networkModify(_ context.Context, env *Env) (Plan, error) {
	network, err := findNetwork(env.Op.Str("network_name"), env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	if env.Op.Has("gateway") && len(env.Op.Strings("add_reserved_ips"))+len(env.Op.Strings("remove_reserved_ips")) > 0 {
		return Plan{}, fault.New(fault.Invalid, "Cannot modify gateway and reserved ips at once").At("gateway")
	}
	var failed []string
	plan, err := updatePlan(env, nil, changeNetwork(env, network.UUID, func(_ *cluster.Snapshot, n *cluster.Network) (err error) {
		if err := setGateway(env.Op, n); err != nil {
			return err
		}
		if err := setNetwork(env.Op, n); err != nil {
			return err
		}
		failed, err = setAside(env.Op, n)
		return err
	}))
	if err == nil && env.Op.Has("gateway") && gatewayOf(env.Op) == network.Gateway {
		env.Warnf("Gateway is already %s", cmp.Or(network.Gateway, "None"))
	}
	for _, text := range failed {
		env.Warnf("%s", text)
	}
	return plan, err
}

// gatewayOf is the gateway that the opcode names, empty for none.
func gatewayOf(op *opcode.Opcode) string {
	if given := op.Str("gateway"); !strings.EqualFold(given, none) {
		return given
	}
	return ""
}

// setGateway moves the gateway: the old address is free then, the new set
// aside.
func setGateway(op *opcode.Opcode, network *cluster.Network) error {
	given := gatewayOf(op)
	if op.Has("gateway") && op.Str("gateway") == "" {
		return fault.New(fault.Invalid, "'' is no IP address").At("gateway").WithHint("a network without a gateway has 'none'")
	}
	if !op.Has("gateway") || given == network.Gateway {
		return nil
	}
	if given != "" {
		taken, inside := network.TakenAddress(given)
		switch {
		case !inside:
			return fault.New(fault.BadAddress, "%s does not contain %s", network.Network, given).At("gateway")
		case taken:
			return fault.New(fault.WrongState, "Gateway IP address '%s' is already reserved", given).At("gateway")
		}
	}
	for ip, aside := range map[string]bool{network.Gateway: false, given: true} {
		if ip == "" {
			continue
		}
		if err := network.SetExternal(ip, aside); err != nil {
			return err
		}
	}
	network.Gateway = given
	return nil
}

// changeNetwork returns an update that alters a copy of a network.
func changeNetwork(env *Env, uuid string, alter func(*cluster.Snapshot, *cluster.Network) error) func(*cluster.Snapshot) ([]cluster.Change, error) {
	return func(snap *cluster.Snapshot) ([]cluster.Change, error) {
		old := snap.Network(uuid)
		if old == nil {
			return nil, fault.New(fault.Conflict, "the network with UUID %s was removed meanwhile", uuid)
		}
		network := old.Clone()
		if err := alter(snap, network); err != nil {
			return nil, err
		}
		network.Touch(env.nanos())
		return []cluster.Change{cluster.Put(network)}, nil
	}
}

// networkRename prepares OP_NETWORK_RENAME.
func networkRename(_ context.Context, env *Env) (Plan, error) {
	network, err := findNetwork(env.Op.Str("network_name"), env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	name := env.Op.Str("new_name")
	return updatePlan(env, name, changeNetwork(env, network.UUID, func(snap *cluster.Snapshot, n *cluster.Network) error {
		if err := checkItemName("network", name); err != nil {
			return err
		}
		if other := snap.NetworkNamed(name); other != nil {
			return fault.New(fault.Exists, "Desired network name '%s' already exists as a network (UUID: %s)", name, other.UUID)
		}
		n.Name = name
		return nil
	}))
}

// networkRemove prepares OP_NETWORK_REMOVE. A network that a group is
// connected to stays.
func networkRemove(_ context.Context, env *Env) (Plan, error) {
	network, err := findNetwork(env.Op.Str("network_name"), env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	return updatePlan(env, nil, func(snap *cluster.Snapshot) ([]cluster.Change, error) {
		var groups []string
		for g := range snap.Groups() {
			if _, connected := g.Networks[network.UUID]; connected {
				groups = append(groups, g.Name)
			}
		}
		if len(groups) > 0 {
			return nil, fault.New(fault.WrongState, "Network still connected").WithHint("disconnect '%s' from the following node groups: %s", network.Name, strings.Join(groups, ", "))
		}
		return []cluster.Change{cluster.Delete(cluster.KindNetwork, network.UUID)}, nil
	})
}

// connectLocks locks the group and the network that are connected or parted.
func connectLocks(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	group, err := ownGroup(op, snap)
	if err != nil {
		return nil, err
	}
	network, err := ownNetwork(op, snap)
	return append(group, network...), err
}

// networkConnect prepares OP_NETWORK_CONNECT.
func networkConnect(_ context.Context, env *Env) (Plan, error) {
	op := env.Op
	group, network, err := groupAndNetwork(env)
	if err != nil {
		return Plan{}, err
	}
	if _, connected := group.Networks[network.UUID]; connected {
		env.Warnf("Network '%s' is already mapped to group '%s'", network.Name, group.Name)
		return answer(nil), nil
	}
	if err := checkVLAN(op.Str("network_vlan"), "network_vlan"); err != nil { // interfaces get it as it is
		return Plan{}, err
	}
	params := cluster.Params{"mode": op.Str("network_mode"), "link": op.Str("network_link"), "vlan": op.Str("network_vlan")}
	return updatePlan(env, nil, changeGroup(env, group.UUID, func(snap *cluster.Snapshot, g *cluster.Group) error {
		if op.Bool("conflicts_check") {
			if err := strangers(snap, g, network); err != nil {
				return err
			}
		}
		g.Networks[network.UUID] = params
		return nil
	}))
}

func groupAndNetwork(env *Env) (*cluster.Group, *cluster.Network, error) {
	group, err := findGroup(env.Op.Str("group_name"), env.snapshot())
	if err != nil {
		return nil, nil, err
	}
	network, err := findNetwork(env.Op.Str("network_name"), env.snapshot())
	return group, network, err
}

// strangers refuses a connection while instances of the group use addresses of
// the network without being in it.
func strangers(snap *cluster.Snapshot, group *cluster.Group, network *cluster.Network) error {
	prefix, err := netip.ParsePrefix(network.Network)
	if err != nil {
		return nil // such a network has no addresses to clash with
	}
	for node := range snap.NodesIn(group.UUID) {
		for inst := range snap.PrimariesOn(node.UUID) {
			for i := range inst.NICs {
				a, err := netip.ParseAddr(inst.NICs[i].IP)
				if err == nil && inst.NICs[i].Network == "" && prefix.Contains(a) {
					return fault.New(fault.WrongState, "IP addresses from network '%s', which is about to be connected to node group '%s', are in use: %s (%s)",
						network.Name, group.Name, inst.Name, inst.NICs[i].IP)
				}
			}
		}
	}
	return nil
}

// networkDisconnect prepares OP_NETWORK_DISCONNECT. A network that instances
// of the group are in stays connected.
func networkDisconnect(_ context.Context, env *Env) (Plan, error) {
	group, network, err := groupAndNetwork(env)
	if err != nil {
		return Plan{}, err
	}
	if _, connected := group.Networks[network.UUID]; !connected {
		env.Warnf("Network '%s' is not mapped to group '%s'", network.Name, group.Name)
		return answer(nil), nil
	}
	return updatePlan(env, nil, changeGroup(env, group.UUID, func(snap *cluster.Snapshot, g *cluster.Group) error {
		for inst := range snap.InstancesIn(network.UUID) {
			if node := snap.Node(inst.PrimaryNode); node != nil && node.Group == g.UUID {
				return fault.New(fault.WrongState, "IP addresses from network '%s', which is about to be disconnected from node group '%s', are in use: %s",
					network.Name, g.Name, inst.Name)
			}
		}
		delete(g.Networks, network.UUID)
		return nil
	}))
}
