package items

import (
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/query"
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
	kind        query.Kind
	doc         string // goes before "of the first disk"
	get         func(*cluster.Disk) query.Cell
}

var diskParts = []diskPart{
	{"size", "Disk", query.KindUnit, "Size in MiB", func(d *cluster.Disk) query.Cell { return known(d.Size) }},
	{"spindles", "DiskSpindles", query.KindNumber, "Number of spindles", diskSpindles},
	{"name", "DiskName", query.KindText, "Name", func(d *cluster.Disk) query.Cell { return textOrUnavail(d.Name) }},
	{"uuid", "DiskUUID", query.KindText, "UUID", func(d *cluster.Disk) query.Cell { return text(d.UUID) }},
}

func diskSpindles(d *cluster.Disk) query.Cell {
	if d.Spindles == 0 {
		return query.Cell{Status: query.Unavail}
	}
	return known(d.Spindles)
}

func (p diskPart) field(n int) query.Field[instance] {
	return query.Field[instance]{
		Def: def("disk."+p.name+"/"+itoa(int64(n)), p.title+"/"+itoa(int64(n)), p.kind, p.doc+" of the "+ordinals[n]+" disk"),
		Get: func(_ *query.View, i instance) query.Cell {
			if n >= len(i.Disks) {
				return query.Cell{Status: query.Unavail}
			}
			return p.get(&i.Disks[n])
		},
	}
}

// all returns the property of every disk, null where it is unset.
func (p diskPart) all(_ *query.View, i instance) query.Cell {
	out := make([]any, len(i.Disks))
	for n := range i.Disks {
		out[n] = p.get(&i.Disks[n]).Value
	}
	return known(out)
}

func diskFields() []query.Field[instance] {
	size, spindles, name, uuid := diskParts[0], diskParts[1], diskParts[2], diskParts[3]
	out := []query.Field[instance]{
		{Def: def("disk.count", "Disks", query.KindNumber, "How many disks it has"),
			Get: func(_ *query.View, i instance) query.Cell { return known(int64(len(i.Disks))) }},
		{Def: def("disk.sizes", "Disk_sizes", query.KindOther, "Sizes of its disks in MiB"), Get: size.all},
		{Def: def("disk.spindles", "Disk_spindles", query.KindOther, "Numbers of spindles of its disks"), Get: spindles.all},
		{Def: def("disk.names", "Disk_names", query.KindOther, "Names of its disks"), Get: name.all},
		{Def: def("disk.uuids", "Disk_UUIDs", query.KindOther, "UUIDs of its disks"), Get: uuid.all},
		{Def: def("disk_template", "Disk_template", query.KindText, "Type that all its disks have; diskless without any, mixed when they differ"),
			Get: func(_ *query.View, i instance) query.Cell { return text(i.DiskTemplate()) }},
		{Def: def("disk_usage", "DiskUsage", query.KindUnit, "Space in MiB that its disks take on each node that holds them"),
			Get: func(_ *query.View, i instance) query.Cell { return known(i.DiskUsage()) }},
	}
	for _, p := range diskParts {
		for n := range maxDisks {
			out = append(out, p.field(n))
		}
	}
	return append(out, renamed("sda_size", size.field(0)), renamed("sdb_size", size.field(1)))
}

// renamed lists a field once more under an older name.
func renamed[R any](name string, f query.Field[R]) query.Field[R] {
	f.Doc = "Older name of " + f.Name
	f.Name = name
	return f
}

// nicPart is a property of a NIC, with a field for each NIC.
type nicPart struct {
	name, title string
	doc         string // goes before "of the first network interface"
	get         func(*query.View, *cluster.NIC) query.Cell
}

var (
	nicIP   = nicPart{"ip", "NicIP", "IP address", func(_ *query.View, n *cluster.NIC) query.Cell { return textOrUnavail(n.IP) }}
	nicMAC  = nicPart{"mac", "NicMAC", "MAC address", func(_ *query.View, n *cluster.NIC) query.Cell { return text(n.MAC) }}
	nicMode = nicPart{"mode", "NicMode", "Mode", func(v *query.View, n *cluster.NIC) query.Cell { return text(v.Cluster.NICParam(n, "mode")) }}
	nicLink = nicPart{"link", "NicLink", "Link", func(v *query.View, n *cluster.NIC) query.Cell { return text(v.Cluster.NICParam(n, "link")) }}
	nicName = nicPart{"name", "NicName", "Name", func(_ *query.View, n *cluster.NIC) query.Cell { return textOrUnavail(n.Name) }}
	nicUUID = nicPart{"uuid", "NicUUID", "UUID", func(_ *query.View, n *cluster.NIC) query.Cell { return text(n.UUID) }}

	nicBridge      = nicPart{"bridge", "NicBridge", "Bridge (in mode bridged only)", nicParamIf(cluster.NICBridged, "link")}
	nicVLAN        = nicPart{"vlan", "NicVLAN", "VLAN (in mode openvswitch only)", nicParamIf(cluster.NICOpenvSwitch, "vlan")}
	nicNetwork     = nicPart{"network", "NicNetwork", "UUID of the network", func(_ *query.View, n *cluster.NIC) query.Cell { return textOrUnavail(n.Network) }}
	nicNetworkName = nicPart{"network.name", "NicNetworkName", "Name of the network", networkName}
)

// nicParamIf is a parameter that means something in one mode only.
func nicParamIf(mode, name string) func(*query.View, *cluster.NIC) query.Cell {
	return func(v *query.View, n *cluster.NIC) query.Cell {
		if v.Cluster.NICParam(n, "mode") != mode {
			return query.Cell{Status: query.Unavail}
		}
		return text(v.Cluster.NICParam(n, name))
	}
}

func networkName(v *query.View, n *cluster.NIC) query.Cell {
	if n.Network == "" {
		return query.Cell{Status: query.Unavail}
	}
	if net := v.Inventory.Network(n.Network); net != nil {
		return text(net.Name)
	}
	return query.Cell{Status: query.NoData}
}

func (p nicPart) field(n int) query.Field[instance] {
	return query.Field[instance]{
		Def: def("nic."+p.name+"/"+itoa(int64(n)), p.title+"/"+itoa(int64(n)), query.KindText, p.doc+" of the "+ordinals[n]+" network interface"),
		Get: func(v *query.View, i instance) query.Cell {
			if n >= len(i.NICs) {
				return query.Cell{Status: query.Unavail}
			}
			return p.get(v, &i.NICs[n])
		},
	}
}

// all returns the property of every NIC, null where it is unset; NoData when a
// part that is needed for it is missing.
func (p nicPart) all(v *query.View, i instance) query.Cell {
	out := make([]any, len(i.NICs))
	for n := range i.NICs {
		c := p.get(v, &i.NICs[n])
		if c.Status == query.NoData {
			return c
		}
		out[n] = c.Value
	}
	return known(out)
}

func nicFields() []query.Field[instance] {
	out := []query.Field[instance]{
		{Def: def("nic.count", "NICs", query.KindNumber, "How many network interfaces it has"),
			Get: func(_ *query.View, i instance) query.Cell { return known(int64(len(i.NICs))) }},
		{Def: def("nic.ips", "NIC_IPs", query.KindOther, "IP addresses of its network interfaces"), Get: nicIP.all},
		{Def: def("nic.macs", "NIC_MACs", query.KindOther, "MAC addresses of its network interfaces"), Get: nicMAC.all},
		{Def: def("nic.modes", "NIC_modes", query.KindOther, "Modes of its network interfaces"), Get: nicMode.all},
		{Def: def("nic.links", "NIC_links", query.KindOther, "Links of its network interfaces"), Get: nicLink.all},
		{Def: def("nic.bridges", "NIC_bridges", query.KindOther, "Bridges of its network interfaces, in mode bridged only"), Get: nicBridge.all},
		{Def: def("nic.vlans", "NIC_VLANs", query.KindOther, "VLANs of its network interfaces, in mode openvswitch only"), Get: nicVLAN.all},
		{Def: def("nic.names", "NIC_Names", query.KindOther, "Names of its network interfaces"), Get: nicName.all},
		{Def: def("nic.uuids", "NIC_UUIDs", query.KindOther, "UUIDs of its network interfaces"), Get: nicUUID.all},
		{Def: def("nic.networks", "NIC_networks", query.KindOther, "UUIDs of the networks of its network interfaces"), Get: nicNetwork.all},
		{Def: def("nic.networks.names", "NIC_networks_names", query.KindOther, "Names of the networks of its network interfaces"), Get: nicNetworkName.all},
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
