package cluster

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// Network is an IPv4 network, perhaps with an IPv6 one beside it, whose
// addresses the cluster gives out.
type Network struct {
	Meta
	Name      string `json:"name"`
	MACPrefix string `json:"mac_prefix,omitempty"`
	// Network is the subnet in CIDR form; Gateway an address in it or empty.
	Network  string `json:"network"`
	Gateway  string `json:"gateway,omitempty"`
	Network6 string `json:"network6,omitempty"`
	Gateway6 string `json:"gateway6,omitempty"`
	// Reserved and External have one character for each address of the subnet,
	// '1' for a taken one: taken by instances, and set aside by operators.
	Reserved string `json:"reservations"`
	External string `json:"ext_reservations"`
}

// Kind is KindNetwork.
func (*Network) Kind() Kind { return KindNetwork }

// Label returns the network's name.
func (n *Network) Label() string { return n.Name }

// Clone returns a deep copy that may be altered.
func (n *Network) Clone() *Network {
	c := *n
	c.Tags = slices.Clone(n.Tags)
	return &c
}

// minPrefix and maxPrefix bound the prefix of a subnet: smaller ones have no
// address to give, larger ones would make the maps below huge.
const (
	minPrefix = 16
	maxPrefix = 30
)

// NewNetwork returns a network whose first and last address and gateway are
// set aside.
func NewNetwork(uuid, name, subnet, gateway string, now int64) (*Network, error) {
	p, err := netip.ParsePrefix(subnet)
	if err != nil || !p.Addr().Is4() || p != p.Masked() {
		return nil, fault.New(fault.Invalid, "network %q is no IPv4 network in CIDR form", subnet).At("network")
	}
	if p.Bits() < minPrefix || p.Bits() > maxPrefix {
		return nil, fault.New(fault.Invalid, "network %q must have a prefix of %d to %d bits", subnet, minPrefix, maxPrefix).At("network")
	}
	size := 1 << (32 - p.Bits())
	free := strings.Repeat("0", size)
	n := &Network{Meta: NewMeta(uuid, now), Name: name, Network: subnet, Gateway: gateway, Reserved: free, External: free}
	n.External = setBit(setBit(n.External, 0, '1'), size-1, '1')
	if gateway != "" {
		i, ok := n.index(gateway)
		if !ok {
			return nil, fault.New(fault.Invalid, "gateway %q is no address of %s", gateway, subnet).At("gateway")
		}
		if n.Taken(i) { // it would be given back with the gateway
			return nil, fault.New(fault.Invalid, "gateway %q is the first or the last address of %s, which no machine can have", gateway, subnet).At("gateway")
		}
		n.External = setBit(n.External, i, '1')
	}
	return n, nil
}

func setBit(bits string, i int, c byte) string {
	b := []byte(bits)
	b[i] = c
	return string(b)
}

// index returns the place of an address in the subnet.
func (n *Network) index(ip string) (int, bool) {
	p, err := netip.ParsePrefix(n.Network)
	a, err2 := netip.ParseAddr(ip)
	if err != nil || err2 != nil || !a.Is4() || !p.Contains(a) {
		return 0, false
	}
	first, this := p.Masked().Addr().As4(), a.As4()
	i := int(binary.BigEndian.Uint32(this[:]) - binary.BigEndian.Uint32(first[:]))
	return i, i < len(n.Reserved)
}

// Address returns the address at a place of the subnet.
func (n *Network) Address(i int) string {
	p, err := netip.ParsePrefix(n.Network)
	if err != nil {
		return ""
	}
	first := p.Masked().Addr().As4()
	var out [4]byte
	binary.BigEndian.PutUint32(out[:], binary.BigEndian.Uint32(first[:])+uint32(i))
	return netip.AddrFrom4(out).String()
}

// Taken reports whether the address at a place is taken or set aside.
func (n *Network) Taken(i int) bool {
	return n.Reserved[i] == '1' || (i < len(n.External) && n.External[i] == '1')
}

// TakenAddress reports whether an address is taken or set aside, and whether it
// is one of the subnet at all.
func (n *Network) TakenAddress(ip string) (taken, inside bool) {
	i, inside := n.index(ip)
	return inside && n.Taken(i), inside
}

// Size returns how many addresses the subnet has.
func (n *Network) Size() int { return len(n.Reserved) }

// FreeCount returns how many addresses are neither taken nor set aside.
func (n *Network) FreeCount() int {
	free := 0
	for i := range n.Reserved {
		if !n.Taken(i) {
			free++
		}
	}
	return free
}

// Map shows each address as one character, X for taken and . for free.
func (n *Network) Map() string {
	out := make([]byte, len(n.Reserved))
	for i := range out {
		out[i] = '.'
		if n.Taken(i) {
			out[i] = 'X'
		}
	}
	return string(out)
}

// ExternalAddresses lists the addresses that operators set aside.
func (n *Network) ExternalAddresses() []string {
	var out []string
	for i := range n.External {
		if n.External[i] == '1' {
			out = append(out, n.Address(i))
		}
	}
	return out
}

// NextFree returns the first free address, or Exhausted.
func (n *Network) NextFree() (string, error) {
	for i := range n.Reserved {
		if !n.Taken(i) {
			return n.Address(i), nil
		}
	}
	return "", fault.New(fault.Exhausted, "network %s has no free address", n.Name)
}

// Reserve takes an address for an instance. n must be a clone of the caller's.
func (n *Network) Reserve(ip string) error {
	i, ok := n.index(ip)
	if !ok {
		return inUse(ip, n)
	}
	if n.Taken(i) {
		return inUse(ip, n)
	}
	n.Reserved = setBit(n.Reserved, i, '1')
	return nil
}

func inUse(ip string, n *Network) error {
	return fault.New(fault.Ambiguous, "IP address %s already in use or does not belong to network %s", ip, n.Name)
}

// Release gives an address back; one that is not taken stays so. n must be a
// clone of the caller's.
func (n *Network) Release(ip string) {
	if i, ok := n.index(ip); ok {
		n.Reserved = setBit(n.Reserved, i, '0')
	}
}

// SetExternal sets an address aside, or gives it back; an instance that has
// taken it keeps it. What is so already is BadAddress. n must be a clone of the
// caller's.
func (n *Network) SetExternal(ip string, aside bool) error {
	i, ok := n.index(ip)
	if !ok {
		return fault.New(fault.BadAddress, "%s does not contain %s", n.Network, ip)
	}
	if aside == (n.External[i] == '1') {
		return fault.New(fault.BadAddress, "IP %s is %s externally reserved", ip, map[bool]string{true: "already", false: "not"}[aside])
	}
	c := byte('0')
	if aside {
		c = '1'
	}
	n.External = setBit(n.External, i, c)
	return nil
}
