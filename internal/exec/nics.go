package exec

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

// nicRequest is an interface as an opcode asks for it. Empty texts were not
// given; "none" was, to say that there is to be none.
type nicRequest struct {
	name, mac, ip, network string
	params                 cluster.Params
	place                  string // in the opcode, for errors
}

func readNICs(list []any) ([]nicRequest, error) {
	out := make([]nicRequest, len(list))
	for i, item := range list {
		m, _ := item.(map[string]any)
		var err error
		if out[i], err = readNIC(m, "nics["+strconv.Itoa(i)+"]"); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func readNIC(given map[string]any, place string) (nicRequest, error) {
	text := func(key string) string { s, _ := given[key].(string); return s }
	r := nicRequest{name: nameParam(given), mac: strings.ToLower(text("mac")), ip: strings.ToLower(text("ip")),
		network: text("network"), params: cluster.Params{}, place: place}
	for _, key := range []string{"mode", "link", "vlan"} {
		if given[key] != nil {
			r.params[key] = given[key]
		}
	}
	if bridge := text("bridge"); bridge != "" {
		if given["link"] != nil {
			return r, fault.New(fault.Invalid, "Cannot pass 'bridge' and 'link' at the same time").At(place)
		}
		r.params["link"] = bridge
	}
	return r, r.check()
}

var macSyntax = regexp.MustCompile(`^([0-9a-f]{2}:){5}[0-9a-f]{2}$`)

func (r nicRequest) check() error {
	if !r.automaticMAC() && !macSyntax.MatchString(r.mac) {
		return fault.New(fault.Invalid, "Invalid MAC address specified: %s", r.mac).At(r.place + ".mac")
	}
	switch r.ip {
	case "", none:
	case "auto":
		return fault.New(fault.Invalid, "Names are not resolved to addresses").At(r.place + ".ip").WithHint("give the address, or 'pool'")
	case "pool":
		if !r.hasNetwork() {
			return fault.New(fault.Invalid, "if ip=pool, parameter network must be passed too").At(r.place + ".network")
		}
	default:
		if _, err := netip.ParseAddr(r.ip); err != nil {
			return fault.New(fault.Invalid, "Invalid IP address '%s'", r.ip).At(r.place + ".ip")
		}
	}
	if mode, _ := r.params["mode"].(string); mode == cluster.NICRouted && (r.ip == "" || r.ip == none) && !r.hasNetwork() {
		return fault.New(fault.Invalid, "Routed nic mode requires an ip address").At(r.place + ".ip")
	}
	if _, ok := r.params["mode"]; ok && r.hasNetwork() {
		return fault.New(fault.Invalid, "If network is given no mode or link is allowed to be passed").At(r.place + ".mode")
	}
	if _, ok := r.params["link"]; ok && r.hasNetwork() {
		return fault.New(fault.Invalid, "If network is given no mode or link is allowed to be passed").At(r.place + ".link")
	}
	return nil
}

func (r nicRequest) automaticMAC() bool { return r.mac == "" || r.mac == "auto" || r.mac == "generate" }
func (r nicRequest) hasNetwork() bool   { return r.network != "" && r.network != none }

// connecting is what connectNICs needs besides the inventory.
type connecting struct {
	now     int64
	newUUID func() string
	// check refuses addresses of networks that the interface is not in.
	check bool
}

// connectNICs makes interfaces for an instance in a node group: it chooses MAC
// addresses, takes addresses from networks, and returns the networks as they
// then are.
func connectNICs(snap *cluster.Snapshot, group string, requests []nicRequest, how connecting) ([]cluster.NIC, []cluster.Change, error) {
	if len(requests) == 0 {
		return nil, nil, nil
	}
	taken := usedMACs(snap)
	networks := map[string]*cluster.Network{}
	nics := make([]cluster.NIC, len(requests))
	for i, r := range requests {
		nic, err := connectNIC(snap, group, r, how, networks)
		if err != nil {
			return nil, nil, err
		}
		if nic.MAC, err = chooseMAC(snap, r, nic.Network, taken, how.newUUID); err != nil {
			return nil, nil, err
		}
		taken[nic.MAC] = true
		nics[i] = nic
	}
	return nics, changedNetworks(networks, how.now), nil
}

func changedNetworks(networks map[string]*cluster.Network, now int64) []cluster.Change {
	var changes []cluster.Change
	for _, uuid := range sortedKeys(networks) {
		networks[uuid].Touch(now)
		changes = append(changes, cluster.Put(networks[uuid]))
	}
	return changes
}

// connectNIC makes one interface without a MAC address. Networks that it takes
// an address from are cloned into networks.
func connectNIC(snap *cluster.Snapshot, group string, r nicRequest, how connecting, networks map[string]*cluster.Network) (cluster.NIC, error) {
	nic := cluster.NIC{UUID: how.newUUID(), Name: r.name, Params: r.params.Clone()}
	if r.ip != none && r.ip != "pool" {
		nic.IP = r.ip
	}
	if !r.hasNetwork() {
		if how.check && nic.IP != "" {
			return nic, outsideNetworks(snap, group, nic.IP, r.place)
		}
		return nic, nil
	}
	found, err := findNetwork(r.network, snap)
	if err != nil {
		return nic, err
	}
	params, connected := snap.Group(group).Networks[found.UUID]
	if !connected {
		return nic, fault.New(fault.WrongState, "Network '%s' is not connected to node group '%s'", found.Name, snap.Group(group).Name).
			At(r.place + ".network")
	}
	nic.Network, nic.Params = found.UUID, params.Clone()
	if r.ip == "" || r.ip == none {
		return nic, nil
	}
	network := networks[found.UUID]
	if network == nil {
		network = found.Clone()
	}
	if r.ip == "pool" {
		if nic.IP, err = network.NextFree(); err != nil {
			return nic, err
		}
	}
	if err := network.Reserve(nic.IP); err != nil {
		return nic, err
	}
	networks[found.UUID] = network
	return nic, nil
}

// outsideNetworks refuses an address that belongs to a network of the group,
// when the interface is not in that network.
func outsideNetworks(snap *cluster.Snapshot, group, ip, place string) error {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return fault.New(fault.Invalid, "Invalid IP address '%s'", ip).At(place + ".ip")
	}
	for _, uuid := range sortedKeys(snap.Group(group).Networks) {
		network := snap.Network(uuid)
		if network == nil {
			continue
		}
		if prefix, err := netip.ParsePrefix(network.Network); err == nil && prefix.Contains(addr) {
			return fault.New(fault.Invalid, "The requested IP address (%s) belongs to network %s, but the target NIC does not.",
				ip, network.Name).At(place + ".ip")
		}
	}
	return nil
}

func usedMACs(snap *cluster.Snapshot) map[string]bool {
	taken := make(map[string]bool, snap.InstanceCount())
	for inst := range snap.Instances() {
		for i := range inst.NICs {
			taken[inst.NICs[i].MAC] = true
		}
	}
	return taken
}

// chooseMAC returns the address asked for, or a new one under the prefix of
// the network or the cluster.
func chooseMAC(snap *cluster.Snapshot, r nicRequest, network string, taken map[string]bool, newUUID func() string) (string, error) {
	if !r.automaticMAC() {
		if taken[r.mac] {
			return "", fault.New(fault.Ambiguous, "MAC address %s already in use in cluster", r.mac).At(r.place + ".mac")
		}
		return r.mac, nil
	}
	prefix := snap.Cluster().MACPrefix
	if n := snap.Network(network); n != nil && n.MACPrefix != "" {
		prefix = n.MACPrefix
	}
	const tries = 64
	for range tries {
		digits := newUUID()
		tail := digits[len(digits)-6:]
		if mac := prefix + ":" + tail[0:2] + ":" + tail[2:4] + ":" + tail[4:6]; !taken[mac] {
			return mac, nil
		}
	}
	return "", fault.New(fault.Exhausted, "Can't generate a MAC address that is not in use")
}
