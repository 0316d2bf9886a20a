package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cluster"
)

// classicInfo shows instances as the classic tool does: by a job that asks
// their nodes too.
func (sh *shell) classicInfo(cmd *cobra.Command, names []string, static bool) error {
	op, err := sh.newOp("instance", "OP_INSTANCE_QUERY_DATA",
		map[string]any{"instances": nonNil(names), "static": static, "use_locking": !static})
	if err != nil {
		return err
	}
	var text json.RawMessage
	if err := sh.result(cmd.Context(), op, &text); err != nil {
		return err
	}
	return sh.show(text, func() error {
		v, _ := parseJSON(string(text))
		found, _ := v.(map[string]any)
		items := []any{}
		for _, name := range slices.SortedFunc(maps.Keys(found), cluster.CompareNames) {
			c, _ := found[name].(map[string]any)
			items = append(items, classicInstance(c))
		}
		return sh.printf("%s", outline(items))
	})
}

func classicInstance(c cells) record {
	state := fmt.Sprintf("configured to be %v", c["config_state"])
	if c["run_state"] != nil {
		state += fmt.Sprintf(", actual state is %v", c["run_state"])
	}
	secondaries := []any{}
	for i, name := range c.list("snodes") {
		secondaries = append(secondaries, fmt.Sprintf("%v (group %v, group UUID %v)", name, c.at("snodes_group_names", i), c.at("snodes_group_uuids", i)))
	}
	return record{
		{"Instance name", c["name"]},
		{"UUID", c["uuid"]},
		{"Serial number", c["serial_no"]},
		{"Creation time", c.time("ctime")},
		{"Modification time", c.time("mtime")},
		{"State", state},
		{"Nodes", []any{
			record{{"primary", c["pnode"]}, {"group", fmt.Sprintf("%v (UUID %v)", c["pnode_group_name"], c["pnode_group_uuid"])}},
			record{{"secondaries", secondaries}},
		}},
		{"Operating system", c["os"]},
		{"Operating system parameters", c.params("os_instance", "os_actual")},
		{"Allocated network port", c["network_port"]},
		{"Hypervisor", c["hypervisor"]},
		{"Hypervisor parameters", c.params("hv_instance", "hv_actual")},
		{"Back-end parameters", classicBackend(c)},
		{"NICs", classicNICs(c.list("nics"))},
		{"Disk template", c["disk_template"]},
		{"Disks", classicDisks(c.list("disks"))},
	}
}

// classicBackend adds the old name of the memory.
func classicBackend(c cells) record {
	actual := maps.Clone(c.object("be_actual"))
	if most, ok := actual["maxmem"]; ok {
		actual["memory"] = most
	}
	return cells{"own": c["be_instance"], "all": actual}.params("own", "all")
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
		c := cells{"nic": nic}
		network := any(nil)
		if info, ok := c.at("nic", nicNetwork).(map[string]any); ok {
			network = info["name"]
		}
		out[i] = record{
			{fmt.Sprintf("nic/%d", i), ""},
			{"MAC", c.at("nic", nicMAC)}, {"IP", c.at("nic", nicIP)}, {"mode", c.at("nic", nicMode)},
			{"link", c.at("nic", nicLink)}, {"vlan", c.at("nic", nicVLAN)}, {"network", network},
			{"UUID", c.at("nic", nicUUID)}, {"name", c.at("nic", nicName)},
		}
	}
	return out
}

func classicDisks(disks []any) []any {
	out := make([]any, len(disks))
	for i, item := range disks {
		d, _ := item.(map[string]any)
		c := cells(d)
		r := record{
			{fmt.Sprint(c["iv_name"]), fmt.Sprintf("%v, size %s", c["dev_type"], humanSize(c["size"]))},
			{"access mode", c["mode"]},
		}
		if c["logical_id"] != nil {
			r = append(r, entry{"logical_id", listing.Str(c["logical_id"])})
		}
		if path := c.at("pstatus", 0); path != nil {
			r = append(r, entry{"on primary", fmt.Sprintf("%v (%s:%s)", path, orNA(c.at("pstatus", 1)), orNA(c.at("pstatus", 2)))})
		}
		out[i] = append(r, entry{"name", c["name"]}, entry{"UUID", c["uuid"]})
	}
	return out
}

// humanSize shows a size in MiB with a fitting unit.
func humanSize(mib any) string {
	n, ok := mib.(json.Number)
	if !ok {
		return pythonText(mib)
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
	return pythonText(value)
}
