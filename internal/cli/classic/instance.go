package classic

import "fmt"

// InstanceForm is that of instances.
var InstanceForm = Form{Kind: "instance", Fields: instanceFields, Show: instanceOutline}

var instanceFields = []string{
	"name", "uuid", "serial_no", "ctime", "mtime", "admin_state", "oper_state", "status", "pnode", "pnode.group",
	"pnode.group.uuid", "snodes", "os", "osparams", "network_port", "hypervisor", "custom_hvparams", "hvparams",
	"custom_beparams", "beparams", "disk_template", "nic.macs", "nic.ips", "nic.modes", "nic.links", "nic.vlans",
	"nic.networks.names", "nic.uuids", "nic.names", "disk.sizes", "disk.uuids", "disk.names", "tags",
}

func instanceOutline(c Cells) Record {
	return Record{
		{"Instance name", c["name"]},
		{"UUID", c["uuid"]},
		{"Serial number", c["serial_no"]},
		{"Creation time", c.Time("ctime")},
		{"Modification time", c.Time("mtime")},
		{"State", instanceState(c)},
		{"Nodes", []any{
			Record{{"primary", c["pnode"]}, {"group", fmt.Sprintf("%v (UUID %v)", c["pnode.group"], c["pnode.group.uuid"])}},
			Record{{"secondaries", c.List("snodes")}},
		}},
		{"Operating system", c["os"]},
		{"Operating system parameters", c.Object("osparams")},
		{"Allocated network port", c["network_port"]},
		{"Hypervisor", c["hypervisor"]},
		{"Hypervisor parameters", c.Params("custom_hvparams", "hvparams")},
		{"Back-end parameters", c.Params("custom_beparams", "beparams")},
		{"NICs", instanceNICs(c)},
		{"Disk template", c["disk_template"]},
		{"Disks", instanceDisks(c)},
		{"Tags", c.List("tags")},
	}
}

func instanceState(c Cells) string {
	text := fmt.Sprintf("configured to be %v", c["admin_state"])
	switch c["oper_state"] {
	case true:
		return text + ", actual state is up"
	case false:
		return text + ", actual state is down"
	default:
		return text
	}
}

func instanceNICs(c Cells) []any {
	out := make([]any, len(c.List("nic.macs")))
	for i := range out {
		out[i] = Record{
			{fmt.Sprintf("nic/%d", i), ""},
			{"MAC", c.At("nic.macs", i)}, {"IP", c.At("nic.ips", i)}, {"mode", c.At("nic.modes", i)},
			{"link", c.At("nic.links", i)}, {"vlan", c.At("nic.vlans", i)}, {"network", c.At("nic.networks.names", i)},
			{"UUID", c.At("nic.uuids", i)}, {"name", c.At("nic.names", i)},
		}
	}
	return out
}

func instanceDisks(c Cells) []any {
	out := make([]any, len(c.List("disk.sizes")))
	for i := range out {
		out[i] = Record{
			{fmt.Sprintf("disk/%d", i), fmt.Sprintf("%v, size %vM", c["disk_template"], c.At("disk.sizes", i))},
			{"name", c.At("disk.names", i)}, {"UUID", c.At("disk.uuids", i)},
		}
	}
	return out
}
