package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// instanceFields are what info shows of an instance.
var instanceFields = []string{
	"name", "uuid", "serial_no", "ctime", "mtime", "admin_state", "oper_state", "status", "pnode", "pnode.group",
	"pnode.group.uuid", "snodes", "os", "osparams", "network_port", "hypervisor", "custom_hvparams", "hvparams",
	"custom_beparams", "beparams", "disk_template", "nic.macs", "nic.ips", "nic.modes", "nic.links", "nic.vlans",
	"nic.networks.names", "nic.uuids", "nic.names", "disk.sizes", "disk.uuids", "disk.names", "tags",
}

func instanceInfo(sh *shell) *cobra.Command {
	var all bool
	cmd := infoCommand(sh, description{what: "instance", fields: instanceFields, show: instanceOutline},
		func(*cobra.Command) bool { return all })
	cmd.Flags().BoolVar(&all, "all", false, "all instances")
	static := cmd.Flags().BoolP("static", "s", false, "under the classic name: ask no node")
	ours := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if sh.persona.classic() && (len(args) > 0 || all) {
			return sh.classicInfo(cmd, args, *static)
		}
		return ours(cmd, args)
	}
	return cmd
}

func instanceOutline(c cells) record {
	return record{
		{"Instance name", c["name"]},
		{"UUID", c["uuid"]},
		{"Serial number", c["serial_no"]},
		{"Creation time", c.time("ctime")},
		{"Modification time", c.time("mtime")},
		{"State", instanceState(c)},
		{"Nodes", []any{
			record{{"primary", c["pnode"]}, {"group", fmt.Sprintf("%v (UUID %v)", c["pnode.group"], c["pnode.group.uuid"])}},
			record{{"secondaries", c.list("snodes")}},
		}},
		{"Operating system", c["os"]},
		{"Operating system parameters", c.object("osparams")},
		{"Allocated network port", c["network_port"]},
		{"Hypervisor", c["hypervisor"]},
		{"Hypervisor parameters", c.params("custom_hvparams", "hvparams")},
		{"Back-end parameters", c.params("custom_beparams", "beparams")},
		{"NICs", instanceNICs(c)},
		{"Disk template", c["disk_template"]},
		{"Disks", instanceDisks(c)},
		{"Tags", c.list("tags")},
	}
}

func instanceState(c cells) string {
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

func instanceNICs(c cells) []any {
	out := make([]any, len(c.list("nic.macs")))
	for i := range out {
		out[i] = record{
			{fmt.Sprintf("nic/%d", i), ""},
			{"MAC", c.at("nic.macs", i)}, {"IP", c.at("nic.ips", i)}, {"mode", c.at("nic.modes", i)},
			{"link", c.at("nic.links", i)}, {"vlan", c.at("nic.vlans", i)}, {"network", c.at("nic.networks.names", i)},
			{"UUID", c.at("nic.uuids", i)}, {"name", c.at("nic.names", i)},
		}
	}
	return out
}

func instanceDisks(c cells) []any {
	out := make([]any, len(c.list("disk.sizes")))
	for i := range out {
		out[i] = record{
			{fmt.Sprintf("disk/%d", i), fmt.Sprintf("%v, size %vM", c["disk_template"], c.at("disk.sizes", i))},
			{"name", c.at("disk.names", i)}, {"UUID", c.at("disk.uuids", i)},
		}
	}
	return out
}
