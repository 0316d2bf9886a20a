package classic

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/drover-project/drover/internal/cli/listing"
)

// InstanceData is what the classic tool shows of an instance: c is its part of
// the result of OP_INSTANCE_QUERY_DATA.
func InstanceData(c Cells) Record {
	state := fmt.Sprintf("configured to be %v", c["config_state"])
	if c["run_state"] != nil {
		state += fmt.Sprintf(", actual state is %v", c["run_state"])
	}
	secondaries := []any{}
	for i, name := range c.List("snodes") {
		secondaries = append(secondaries, fmt.Sprintf("%v (group %v, group UUID %v)", name, c.At("snodes_group_names", i), c.At("snodes_group_uuids", i)))
	}
	return Record{
		{"Instance name", c["name"]},
		{"UUID", c["uuid"]},
		{"Serial number", c["serial_no"]},
		{"Creation time", c.Time("ctime")},
		{"Modification time", c.Time("mtime")},
		{"State", state},
		{"Nodes", []any{
			Record{{"primary", c["pnode"]}, {"group", fmt.Sprintf("%v (UUID %v)", c["pnode_group_name"], c["pnode_group_uuid"])}},
			Record{{"secondaries", secondaries}},
		}},
		{"Operating system", c["os"]},
		{"Operating system parameters", c.Params("os_instance", "os_actual")},
		{"Allocated network port", c["network_port"]},
		{"Hypervisor", c["hypervisor"]},
		{"Hypervisor parameters", c.Params("hv_instance", "hv_actual")},
		{"Back-end parameters", classicBackend(c)},
		{"NICs", classicNICs(c.List("nics"))},
		{"Disk template", c["disk_template"]},
		{"Disks", classicDisks(c.List("disks"))},
	}
}

// classicBackend adds the old name of the memory.
func classicBackend(c Cells) Record {
	actual := maps.Clone(c.Object("be_actual"))
	if most, ok := actual["maxmem"]; ok {
		actual["memory"] = most
	}
	return Cells{"own": c["be_instance"], "all": actual}.Params("own", "all")
}

// nicParts are the places of an interface's values in its list.
const (
	nicName = iota
	nicUUID
	nicIP
	nicMAC
	nicMode
	nicLink
	nicVLAN
	_ // the network's UUID
	nicNetwork
)

func classicNICs(nics []any) []any {
	out := make([]any, len(nics))
	for i, nic := range nics {
		c := Cells{"nic": nic}
		network := any(nil)
		if info, ok := c.At("nic", nicNetwork).(map[string]any); ok {
			network = info["name"]
		}
		out[i] = Record{
			{fmt.Sprintf("nic/%d", i), ""},
			{"MAC", c.At("nic", nicMAC)}, {"IP", c.At("nic", nicIP)}, {"mode", c.At("nic", nicMode)},
			{"link", c.At("nic", nicLink)}, {"vlan", c.At("nic", nicVLAN)}, {"network", network},
			{"UUID", c.At("nic", nicUUID)}, {"name", c.At("nic", nicName)},
		}
	}
	return out
}

func classicDisks(disks []any) []any {
	out := make([]any, len(disks))
	for i, item := range disks {
		d, _ := item.(map[string]any)
		c := Cells(d)
		r := Record{
			{fmt.Sprint(c["iv_name"]), fmt.Sprintf("%v, size %s", c["dev_type"], humanSize(c["size"]))},
			{"access mode", c["mode"]},
		}
		if c["logical_id"] != nil {
			r = append(r, Entry{"logical_id", listing.Str(c["logical_id"])})
		}
		if path := c.At("pstatus", 0); path != nil {
			r = append(r, Entry{"on primary", fmt.Sprintf("%v (%s:%s)", path, orNA(c.At("pstatus", 1)), orNA(c.At("pstatus", 2)))})
		}
		out[i] = append(r, Entry{"name", c["name"]}, Entry{"UUID", c["uuid"]})
	}
	return out
}

// humanSize shows a size in MiB with a fitting unit.
func humanSize(mib any) string {
	n, ok := mib.(json.Number)
	if !ok {
		return Text(mib)
	}
	size, err := n.Float64()
	switch {
	case err != nil:
		return n.String()
	case size < 1<<10:
		return fmt.Sprintf("%.0fM", size)
	case size < 1<<20:
		return fmt.Sprintf("%.1fG", size/(1<<10))
	default:
		return fmt.Sprintf("%.1fT", size/(1<<20))
	}
}

func orNA(value any) string {
	if value == nil {
		return "N/A"
	}
	return Text(value)
}
