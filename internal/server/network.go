package server

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

// OfferedTag is the tag by which an operator offers a network of the cluster to all users of the Compute API. Others are neither shown nor taken.
const OfferedTag = "drover:offered"

// Net is where an interface is to be.
type Net struct {
	// ID is the network's UUID.
	ID string `json:"id"`
	// IP is the address that was asked for; empty for a free one.
	IP string `json:"ip,omitempty"`
}

// Offered are the networks that users may choose from, by name.
func Offered(inventory *cluster.Snapshot) []*cluster.Network {
	var out []*cluster.Network
	for n := range inventory.Networks() {
		if slices.Contains(n.Tags, OfferedTag) {
			out = append(out, n)
		}
	}
	return out
}

// CheckNet refuses a network that is not offered, one that no node group is connected to, and an address that cannot be had in it.
func CheckNet(inventory *cluster.Snapshot, net Net) error {
	n := inventory.Network(net.ID)
	if n == nil || !slices.Contains(n.Tags, OfferedTag) {
		return fault.New(fault.Invalid, "Network %s could not be found.", fault.Clip(net.ID, 100)).At("networks")
	}
	groups := 0
	for range inventory.GroupsOn(n.UUID) {
		groups++
	}
	if groups == 0 {
		return fault.New(fault.Invalid, "Network %s is connected to no nodes.", n.UUID).At("networks").WithHint("whoever operates the cluster connects it")
	}
	if net.IP == "" {
		if n.FreeCount() == 0 {
			return fault.New(fault.Invalid, "No fixed IP addresses available for network: %s", n.UUID).At("networks")
		}
		return nil
	}
	switch taken, inside := n.TakenAddress(net.IP); {
	case !inside:
		return fault.New(fault.Invalid, "Fixed IP address %s is not a valid ip address for network %s.", fault.Clip(net.IP, 100), n.UUID).At("networks")
	case taken:
		return fault.New(fault.Invalid, "Fixed IP address %s is already in use on network %s.", net.IP, n.UUID).At("networks")
	}
	return nil
}

// Subnet is a range of addresses of a network, as the Network API tells it: a network here has one of IPv4, and perhaps one of IPv6.
type Subnet struct {
	ID, Network, Name, CIDR, Gateway string
	Version                          int
}

// SubnetsOf are the subnets of a network. Their ids follow from the network's, for the inventory knows none.
func SubnetsOf(n *cluster.Network) []Subnet {
	out := []Subnet{{ID: named(n.UUID, "4"), Network: n.UUID, Name: n.Name, CIDR: n.Network, Gateway: n.Gateway, Version: 4}}
	if n.Network6 != "" {
		out = append(out, Subnet{ID: named(n.UUID, "6"), Network: n.UUID, Name: n.Name, CIDR: n.Network6, Gateway: n.Gateway6, Version: 6})
	}
	return out
}

// named is an id in the form of a UUID (RFC 9562, version 8) that follows from another one and a name, so that it stays the same.
func named(space, name string) string {
	sum := sha256.Sum256([]byte(space + "/" + name))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// Address is an address that a server has.
type Address struct {
	// NIC and Network are UUIDs; Network is empty for an interface in none, whose Label is "default".
	NIC, Network, Label, MAC string
	// IP is empty for an interface that the cluster gave no address.
	IP string
}

// Version is 4 or 6, after the address.
func (a *Address) Version() int {
	if ip, err := netip.ParseAddr(a.IP); err == nil && ip.Is6() {
		return 6
	}
	return 4
}

// noNetwork is what interfaces in no network are listed under.
const noNetwork = "default"

// Addresses are those of a server's interfaces as the inventory has them, in order; none of a server on another cluster, and of one whose instance is
// not known.
func (s *Server) Addresses(inventory *cluster.Snapshot) []Address {
	if s.Backend != "" || s.UUID == "" {
		return nil
	}
	inst := inventory.Instance(s.UUID)
	if inst == nil {
		return nil
	}
	var out []Address
	for i := range inst.NICs {
		nic := &inst.NICs[i]
		a := Address{NIC: nic.UUID, Network: nic.Network, Label: noNetwork, MAC: nic.MAC, IP: nic.IP}
		if n := inventory.Network(nic.Network); n != nil {
			a.Label = n.Name
		}
		out = append(out, a)
	}
	return out
}
