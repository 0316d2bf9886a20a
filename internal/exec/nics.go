package exec

import (
	"maps"
	"net/netip"
	"regexp"
	"slices"
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

// readNICs reads the interfaces of a new instance; address is what its name
// was resolved to, for an interface that asks for "auto".
func readNICs(list []any, address string) ([]nicRequest, error) {
	out := make([]nicRequest, len(list))
	names := map[string]bool{}
	for i, item := range list {
		m, _ := item.(map[string]any)
		if m["ip"] == automatic {
			if address == "" {
				return nil, fault.New(fault.Invalid, "IP address set to auto but name checks have been skipped").At("nics[" + strconv.Itoa(i) + "].ip")
			}
			m = cluster.Fill(m, cluster.Params{"ip": address})
		}
		var err error
		if out[i], err = readNIC(m, "nics["+strconv.Itoa(i)+"]"); err != nil {
			return nil, err
		}
		if err := freeName(names, "NIC", out[i].name, out[i].place); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// freeName refuses a name that another disk or interface of the instance has, and one that
// could be taken for an index.
func freeName(names map[string]bool, what, name, place string) error {
	if _, err := strconv.Atoi(name); err == nil {
		return fault.New(fault.Invalid, "Invalid name '%s'. Purely numeric %s names are not allowed", name, what).At(place + ".name")
	}
	if name != "" && names[name] {
		return fault.New(fault.Ambiguous, "%s name '%s' already used", what, name).At(place + ".name")
	}
	names[name] = true
	return nil
}

func readNIC(given map[string]any, place string) (nicRequest, error) {
	text := func(key string) string { s, _ := given[key].(string); return s }
	r := nicRequest{name: nameParam(given), mac: strings.ToLower(text("mac")), ip: strings.ToLower(text("ip")),
		network: text("network"), params: cluster.Params{}, place: place}
	if given["ip"] == "" {
		return r, fault.New(fault.Invalid, "Invalid IP address ''").At(place + ".ip").WithHint("an interface without an address has 'none'")
	}
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
	if err := r.readVLAN(); err != nil {
		return r, err
	}
	return r, r.check()
}

// vlanSyntax is one VLAN, "5" or ".5" (untagged), with tagged ones behind it,
// ".5:7:8", or tagged ones alone, ":7:8".
var vlanSyntax = regexp.MustCompile(`^(\d+|\.\d+(:\d+)*|:\d+(:\d+)*)$`)

// readVLAN checks a VLAN and gives a plain number the dot it is stored with.
func (r nicRequest) readVLAN() error {
	vlan, _ := r.params["vlan"].(string)
	if err := checkVLAN(vlan, r.place+".vlan"); err != nil {
		return err
	}
	if vlan != "" && vlan[0] != '.' && vlan[0] != ':' {
		r.params["vlan"] = "." + vlan
	}
	return nil
}

// checkVLAN refuses what is no VLAN; empty is none.
func checkVLAN(vlan, field string) error {
	if vlan == "" || vlanSyntax.MatchString(vlan) {
		return nil
	}
	return fault.New(fault.Invalid, "Specified VLAN parameter is invalid : %s", vlan).At(field).WithHint("N, .N, .N:M or :N:M")
}

var macSyntax = regexp.MustCompile(`^([0-9a-f]{2}:){5}[0-9a-f]{2}$`)

func (r nicRequest) check() error {
	if !r.automaticMAC() && !macSyntax.MatchString(r.mac) {
		return fault.New(fault.Invalid, "Invalid MAC address '%s'", r.mac).At(r.place + ".mac")
	}
	switch r.ip {
	case "", none:
	case automatic:
		return fault.New(fault.Invalid, "Only new interfaces of new instances can ask for the address of a name").At(r.place + ".ip").
			WithHint("give the address, or 'pool'")
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
		return fault.New(fault.Invalid, "Routed nic mode requires an ip address if not attached to a network").At(r.place + ".ip")
	}
	if _, ok := r.params["mode"]; ok && r.hasNetwork() {
		return fault.New(fault.Invalid, "If network is given, no mode or link is allowed to be passed").At(r.place + ".mode")
	}
	if _, ok := r.params["vlan"]; ok && r.hasNetwork() {
		return fault.New(fault.Invalid, "If network is given, no vlan is allowed to be passed").At(r.place + ".vlan").
			WithHint("the interface gets that of the network in the group of its node")
	}
	if _, ok := r.params["link"]; ok && r.hasNetwork() {
		return fault.New(fault.Invalid, "If network is given, no mode or link is allowed to be passed").At(r.place + ".link")
	}
	return nil
}

func (r nicRequest) automaticMAC() bool { return r.mac == "" || r.mac == "auto" || r.mac == "generate" }
func (r nicRequest) hasNetwork() bool   { return r.network != "" && r.network != none }

// connecting is what wiring needs besides the inventory.
type connecting struct {
	now     int64
	newUUID func() string
	// check refuses addresses of networks that the interface is not in.
	check bool
}

// wiring connects interfaces one after the other, each knowing what the ones
// before took.
type wiring struct {
	snap  *cluster.Snapshot
	group *cluster.Group
	how   connecting
	// taken are the MAC addresses in use, read when first needed.
	taken map[string]bool
	// networks are copies of those whose addresses were taken or given back.
	networks map[string]*cluster.Network
}

func newWiring(snap *cluster.Snapshot, group string, how connecting) *wiring {
	return &wiring{snap: snap, group: snap.Group(group), how: how, networks: map[string]*cluster.Network{}}
}

// network returns a copy of a network to take addresses from, nil if there is
// no such network.
func (w *wiring) network(uuid string) *cluster.Network {
	if w.networks[uuid] == nil {
		old := w.snap.Network(uuid)
		if old == nil {
			return nil
		}
		w.networks[uuid] = old.Clone()
	}
	return w.networks[uuid]
}

// changes returns the networks as they then are. Giving addresses out is no
// change that their serial numbers count.
func (w *wiring) changes() []cluster.Change {
	var out []cluster.Change
	for _, uuid := range slices.Sorted(maps.Keys(w.networks)) {
		out = append(out, cluster.Put(w.networks[uuid]))
	}
	return out
}

// release gives the address of an interface back to its network.
func (w *wiring) release(nic *cluster.NIC) {
	if nic.Network == "" || nic.IP == "" {
		return
	}
	if n := w.network(nic.Network); n != nil {
		n.Release(nic.IP)
	}
}

// networkName returns the name of a network, as results have it.
func (w *wiring) networkName(uuid string) string {
	if n := w.snap.Network(uuid); n != nil {
		return n.Name
	}
	return uuid
}

func (w *wiring) macs() map[string]bool {
	if w.taken == nil {
		w.taken = usedMACs(w.snap)
	}
	return w.taken
}

// connect makes an interface: it takes an address from its network and chooses
// a MAC address.
func (w *wiring) connect(r nicRequest) (cluster.NIC, error) {
	nic := cluster.NIC{UUID: w.how.newUUID(), Name: r.name, Params: r.params.Clone()}
	if r.ip != none && r.ip != "pool" {
		nic.IP = r.ip
	}
	var err error
	switch {
	case r.hasNetwork():
		err = w.join(&nic, r)
	case w.how.check && nic.IP != "":
		err = outsideNetworks(w.snap, w.group, nic.IP, r.place)
	}
	if err != nil {
		return nic, err
	}
	nic.MAC, err = w.chooseMAC(r, nic.Network)
	return nic, err
}

// connectAll connects several new interfaces.
func (w *wiring) connectAll(requests []nicRequest) ([]cluster.NIC, error) {
	nics := make([]cluster.NIC, len(requests))
	for i, r := range requests {
		var err error
		if nics[i], err = w.connect(r); err != nil {
			return nil, err
		}
	}
	return nics, nil
}

// join puts an interface into a network, with an address there if it asks for
// one.
func (w *wiring) join(nic *cluster.NIC, r nicRequest) error {
	found, err := findNetwork(r.network, w.snap)
	if err != nil {
		return err
	}
	params, connected := w.group.Networks[found.UUID]
	if !connected {
		return fault.New(fault.Invalid, "No netparams found for the network %s, probably not connected", found.Name).At(r.place+".network").
			WithHint("connect it to node group '%s'", w.group.Name)
	}
	nic.Network, nic.Params = found.UUID, params.Clone()
	if r.ip == "" || r.ip == none {
		return nil
	}
	network := w.network(found.UUID)
	if r.ip == "pool" {
		if nic.IP, err = network.NextFree(); err != nil {
			return err
		}
	}
	return network.Reserve(nic.IP)
}

// outsideNetworks refuses an address that belongs to a network of the group,
// when the interface is not in that network.
func outsideNetworks(snap *cluster.Snapshot, group *cluster.Group, ip, place string) error {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return fault.New(fault.Invalid, "Invalid IP address '%s'", ip).At(place + ".ip")
	}
	for _, uuid := range slices.Sorted(maps.Keys(group.Networks)) {
		network := snap.Network(uuid)
		if network == nil {
			continue
		}
		if prefix, err := netip.ParsePrefix(network.Network); err == nil && prefix.Contains(addr) {
			return fault.New(fault.WrongState, "The requested IP address (%s) belongs to network %s, but the target NIC does not.",
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
func (w *wiring) chooseMAC(r nicRequest, network string) (string, error) {
	taken := w.macs()
	if !r.automaticMAC() {
		if taken[r.mac] {
			return "", fault.New(fault.Ambiguous, "MAC address %s already in use in cluster", r.mac).At(r.place + ".mac")
		}
		taken[r.mac] = true
		return r.mac, nil
	}
	prefix := w.snap.Cluster().MACPrefix
	if n := w.snap.Network(network); n != nil && n.MACPrefix != "" {
		prefix = n.MACPrefix
	}
	const tries = 64
	for range tries {
		digits := w.how.newUUID()
		tail := digits[len(digits)-6:]
		if mac := prefix + ":" + tail[0:2] + ":" + tail[2:4] + ":" + tail[4:6]; !taken[mac] {
			taken[mac] = true
			return mac, nil
		}
	}
	return "", fault.New(fault.Exhausted, "Can't generate a MAC address that is not in use")
}
