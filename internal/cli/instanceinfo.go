package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/qlang"
)

// instanceFields are what info shows of an instance.
var instanceFields = []string{
	"name", "uuid", "serial_no", "ctime", "mtime", "admin_state", "oper_state", "status", "pnode", "pnode.group",
	"pnode.group.uuid", "snodes", "os", "osparams", "network_port", "hypervisor", "custom_hvparams", "hvparams",
	"custom_beparams", "beparams", "disk_template", "nic.macs", "nic.ips", "nic.modes", "nic.links", "nic.vlans",
	"nic.networks.names", "nic.uuids", "nic.names", "disk.sizes", "disk.uuids", "disk.names", "tags",
}

func instanceInfo(sh *shell) *cobra.Command {
	cmd := &cobra.Command{
		Use: "info [NAME...]", Short: "Show everything about instances", Args: cobra.ArbitraryArgs,
		ValidArgsFunction: sh.completeNames("instance", true),
	}
	all := cmd.Flags().Bool("all", false, "all instances")
	cmd.Flags().BoolP("static", "s", false, "accepted for old scripts: the newest known state is shown, no job is made")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && !*all {
			return usage("%s: give names, or --all", cmd.CommandPath())
		}
		filter, err := qlang.FromArguments(args, qlang.ArgOptions{NameField: "name"})
		if err != nil {
			return err
		}
		var found listing.Answer
		if err := sh.ask(cmd.Context(), "Query", &found, "instance", instanceFields, qlang.JSON(filter)); err != nil {
			return err
		}
		data, err := objects(&found)
		if err != nil {
			return err
		}
		return sh.show(data, func() error {
			items := make([]any, len(found.Data))
			for i, row := range found.Data {
				items[i] = instanceRow(row).outline()
			}
			return sh.printf("%s", outline(items))
		})
	}
	return cmd
}

// instanceCells are the values of one instance by field.
type instanceCells map[string]any

func instanceRow(row []listing.Cell) instanceCells {
	out := instanceCells{}
	for i, cell := range row {
		if cell.Status == 0 {
			out[instanceFields[i]], _ = parseJSON(string(cell.Value))
		}
	}
	return out
}

func (c instanceCells) outline() record {
	return record{
		{"Instance name", c["name"]},
		{"UUID", c["uuid"]},
		{"Serial number", c["serial_no"]},
		{"Creation time", c.time("ctime")},
		{"Modification time", c.time("mtime")},
		{"State", c.state()},
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
		{"NICs", c.nics()},
		{"Disk template", c["disk_template"]},
		{"Disks", c.disks()},
		{"Tags", c.list("tags")},
	}
}

func (c instanceCells) list(field string) []any {
	list, _ := c[field].([]any)
	return list
}

func (c instanceCells) object(field string) map[string]any {
	m, _ := c[field].(map[string]any)
	return m
}

func (c instanceCells) time(field string) string {
	n, ok := c[field].(json.Number)
	if !ok {
		return "N/A"
	}
	seconds, err := n.Float64()
	if err != nil {
		return n.String()
	}
	return time.Unix(int64(seconds), 0).Format(time.DateTime)
}

func (c instanceCells) state() string {
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

// params shows each parameter: its own value, or the default in parentheses.
func (c instanceCells) params(own, filled string) record {
	set, all := c.object(own), c.object(filled)
	out := record{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var value any = fmt.Sprintf("default (%s)", pythonText(all[name]))
		if v, ok := set[name]; ok {
			value = v
		}
		out = append(out, entry{name, value})
	}
	return out
}

// at returns one entry of a field that lists a value for each device.
func (c instanceCells) at(field string, i int) any {
	if list := c.list(field); i < len(list) {
		return list[i]
	}
	return nil
}

func (c instanceCells) nics() []any {
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

func (c instanceCells) disks() []any {
	out := make([]any, len(c.list("disk.sizes")))
	for i := range out {
		out[i] = record{
			{fmt.Sprintf("disk/%d", i), fmt.Sprintf("%v, size %vM", c["disk_template"], c.at("disk.sizes", i))},
			{"name", c.at("disk.names", i)}, {"UUID", c.at("disk.uuids", i)},
		}
	}
	return out
}
