package query

import (
	"github.com/drover-project/drover/internal/cluster"
)

// How many disks and NICs have fields of their own.
const (
	maxDisks = 16
	maxNICs  = 8
)

// ordinals are the words of docs for places counted from zero.
var ordinals = [maxDisks]string{
	"first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
	"eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth",
}

// diskPart is a property of a disk, with a field for each disk.
type diskPart struct {
	name, title string
	kind        Kind
	doc         string // goes before "of the first disk"
	get         func(*cluster.Disk) Cell
}

var diskParts = []diskPart{
	{"size", "Disk", KindUnit, "Size in MiB", func(d *cluster.Disk) Cell { return known(d.Size) }},
	{"spindles", "DiskSpindles", KindNumber, "Number of spindles", diskSpindles},
	{"name", "DiskName", KindText, "Name", func(d *cluster.Disk) Cell { return textOrUnavail(d.Name) }},
	{"uuid", "DiskUUID", KindText, "UUID", func(d *cluster.Disk) Cell { return text(d.UUID) }},
}

func diskSpindles(d *cluster.Disk) Cell {
	if d.Spindles == 0 {
		return Cell{Status: Unavail}
	}
	return known(d.Spindles)
}

func (p diskPart) field(n int) field[instance] {
	return field[instance]{
		Def: Def{"disk." + p.name + "/" + itoa(int64(n)), p.title + "/" + itoa(int64(n)), p.kind, p.doc + " of the " + ordinals[n] + " disk"},
		get: func(_ *view, i instance) Cell {
			if n >= len(i.Disks) {
				return Cell{Status: Unavail}
			}
			return p.get(&i.Disks[n])
		},
	}
}

// all returns the property of every disk, null where it is unset.
func (p diskPart) all(_ *view, i instance) Cell {
	out := make([]any, len(i.Disks))
	for n := range i.Disks {
		out[n] = p.get(&i.Disks[n]).Value
	}
	return known(out)
}

func diskFields() []field[instance] {
	size, spindles, name, uuid := diskParts[0], diskParts[1], diskParts[2], diskParts[3]
	out := []field[instance]{
		{Def: Def{"disk.count", "Disks", KindNumber, "How many disks it has"},
			get: func(_ *view, i instance) Cell { return known(int64(len(i.Disks))) }},
		{Def: Def{"disk.sizes", "Disk_sizes", KindOther, "Sizes of its disks in MiB"}, get: size.all},
		{Def: Def{"disk.spindles", "Disk_spindles", KindOther, "Numbers of spindles of its disks"}, get: spindles.all},
		{Def: Def{"disk.names", "Disk_names", KindOther, "Names of its disks"}, get: name.all},
		{Def: Def{"disk.uuids", "Disk_UUIDs", KindOther, "UUIDs of its disks"}, get: uuid.all},
		{Def: Def{"disk_template", "Disk_template", KindText, "Type that all its disks have; diskless without any, mixed when they differ"},
			get: func(_ *view, i instance) Cell { return text(i.DiskTemplate()) }},
		{Def: Def{"disk_usage", "DiskUsage", KindUnit, "Space in MiB that its disks take on each node that holds them"},
			get: func(_ *view, i instance) Cell { return known(i.DiskUsage()) }},
	}
	for _, p := range diskParts {
		for n := range maxDisks {
			out = append(out, p.field(n))
		}
	}
	return append(out, renamed("sda_size", size.field(0)), renamed("sdb_size", size.field(1)))
}

// renamed lists a field once more under an older name.
func renamed[R any](name string, f field[R]) field[R] {
	f.Doc = "Older name of " + f.Name
	f.Name = name
	return f
}

// nicPart is a property of a NIC, with a field for each NIC.
type nicPart struct {
	name, title string
	doc         string // goes before "of the first network interface"
	get         func(*view, *cluster.NIC) Cell
}

var (
	nicIP   = nicPart{"ip", "NicIP", "IP address", func(_ *view, n *cluster.NIC) Cell { return textOrUnavail(n.IP) }}
	nicMAC  = nicPart{"mac", "NicMAC", "MAC address", func(_ *view, n *cluster.NIC) Cell { return text(n.MAC) }}
	nicMode = nicPart{"mode", "NicMode", "Mode", func(v *view, n *cluster.NIC) Cell { return text(v.cluster.NICParam(n, "mode")) }}
	nicLink = nicPart{"link", "NicLink", "Link", func(v *view, n *cluster.NIC) Cell { return text(v.cluster.NICParam(n, "link")) }}
	nicName = nicPart{"name", "NicName", "Name", func(_ *view, n *cluster.NIC) Cell { return textOrUnavail(n.Name) }}
	nicUUID = nicPart{"uuid", "NicUUID", "UUID", func(_ *view, n *cluster.NIC) Cell { return text(n.UUID) }}

	nicBridge      = nicPart{"bridge", "NicBridge", "Bridge (in mode bridged only)", nicParamIf(cluster.NICBridged, "link")}
	nicVLAN        = nicPart{"vlan", "NicVLAN", "VLAN (in mode openvswitch only)", nicParamIf(cluster.NICOpenvSwitch, "vlan")}
	nicNetwork     = nicPart{"network", "NicNetwork", "UUID of the network", func(_ *view, n *cluster.NIC) Cell { return textOrUnavail(n.Network) }}
	nicNetworkName = nicPart{"network.name", "NicNetworkName", "Name of the network", networkName}
)

// nicParamIf is a parameter that means something in one mode only.
func nicParamIf(mode, name string) func(*view, *cluster.NIC) Cell {
	return func(v *view, n *cluster.NIC) Cell {
		if v.cluster.NICParam(n, "mode") != mode {
			return Cell{Status: Unavail}
		}
		return text(v.cluster.NICParam(n, name))
	}
}

func networkName(v *view, n *cluster.NIC) Cell {
	if n.Network == "" {
		return Cell{Status: Unavail}
	}
	if net := v.inv.Network(n.Network); net != nil {
		return text(net.Name)
	}
	return Cell{Status: NoData}
}

func (p nicPart) field(n int) field[instance] {
	return field[instance]{
		Def: Def{"nic." + p.name + "/" + itoa(int64(n)), p.title + "/" + itoa(int64(n)), KindText, p.doc + " of the " + ordinals[n] + " network interface"},
		get: func(v *view, i instance) Cell {
			if n >= len(i.NICs) {
				return Cell{Status: Unavail}
			}
			return p.get(v, &i.NICs[n])
		},
	}
}

// all returns the property of every NIC, null where it is unset; NoData when a
// part that is needed for it is missing.
func (p nicPart) all(v *view, i instance) Cell {
	out := make([]any, len(i.NICs))
	for n := range i.NICs {
		c := p.get(v, &i.NICs[n])
		if c.Status == NoData {
			return c
		}
		out[n] = c.Value
	}
	return known(out)
}

func nicFields() []field[instance] {
	out := []field[instance]{
		{Def: Def{"nic.count", "NICs", KindNumber, "How many network interfaces it has"},
			get: func(_ *view, i instance) Cell { return known(int64(len(i.NICs))) }},
		{Def: Def{"nic.ips", "NIC_IPs", KindOther, "IP addresses of its network interfaces"}, get: nicIP.all},
		{Def: Def{"nic.macs", "NIC_MACs", KindOther, "MAC addresses of its network interfaces"}, get: nicMAC.all},
		{Def: Def{"nic.modes", "NIC_modes", KindOther, "Modes of its network interfaces"}, get: nicMode.all},
		{Def: Def{"nic.links", "NIC_links", KindOther, "Links of its network interfaces"}, get: nicLink.all},
		{Def: Def{"nic.bridges", "NIC_bridges", KindOther, "Bridges of its network interfaces, in mode bridged only"}, get: nicBridge.all},
		{Def: Def{"nic.vlans", "NIC_VLANs", KindOther, "VLANs of its network interfaces, in mode openvswitch only"}, get: nicVLAN.all},
		{Def: Def{"nic.names", "NIC_Names", KindOther, "Names of its network interfaces"}, get: nicName.all},
		{Def: Def{"nic.uuids", "NIC_UUIDs", KindOther, "UUIDs of its network interfaces"}, get: nicUUID.all},
		{Def: Def{"nic.networks", "NIC_networks", KindOther, "UUIDs of the networks of its network interfaces"}, get: nicNetwork.all},
		{Def: Def{"nic.networks.names", "NIC_networks_names", KindOther, "Names of the networks of its network interfaces"}, get: nicNetworkName.all},
	}
	parts := []nicPart{nicIP, nicMAC, nicMode, nicLink, nicName, nicUUID, nicBridge, nicVLAN, nicNetwork, nicNetworkName}
	for _, p := range parts {
		for n := range maxNICs {
			out = append(out, p.field(n))
		}
	}
	return append(out,
		renamed("ip", nicIP.field(0)), renamed("mac", nicMAC.field(0)), renamed("bridge", nicBridge.field(0)),
		renamed("nic_mode", nicMode.field(0)), renamed("nic_link", nicLink.field(0)), renamed("nic_network", nicNetwork.field(0)),
	)
}

// eachNIC makes a list of a value of each NIC.
func eachNIC(i instance, get func(*cluster.NIC) any) []any {
	out := make([]any, len(i.NICs))
	for n := range i.NICs {
		out[n] = get(&i.NICs[n])
	}
	return out
}

func ownNICParams(n *cluster.NIC) any { return orEmpty(n.Params).Value }
