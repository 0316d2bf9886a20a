package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func clusterInfo(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "info", Short: "Show the settings of the cluster", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var text json.RawMessage
			if err := sh.ask(cmd.Context(), "QueryClusterInfo", &text); err != nil {
				return err
			}
			return sh.show(text, func() error {
				v, _ := parseJSON(string(text))
				info, _ := v.(map[string]any)
				return sh.printf("%s", outline(clusterOutline(info)))
			})
		},
	}
}

// clusterOutline is what info shows of the cluster.
func clusterOutline(c cells) record {
	hypervisors := map[string]any{}
	for _, name := range c.list("enabled_hypervisors") {
		hypervisors[fmt.Sprint(name)] = c.object("hvparams")[fmt.Sprint(name)]
	}
	return record{
		{"Cluster name", c["name"]},
		{"Cluster UUID", c["uuid"]},
		{"Creation time", c.time("ctime")},
		{"Modification time", c.time("mtime")},
		{"Master node", c["master"]},
		{"Architecture (this node)", fmt.Sprintf("%v (%v)", c.at("architecture", 0), c.at("architecture", 1))},
		{"Tags", joined(c.list("tags"), "(none)")},
		{"Default hypervisor", c["default_hypervisor"]},
		{"Enabled hypervisors", joined(c.list("enabled_hypervisors"), "")},
		{"Hypervisor parameters", hypervisors},
		{"OS-specific hypervisor parameters", c.object("os_hvp")},
		{"OS parameters", c.object("osparams")},
		{"Hidden OSes", joined(c.list("hidden_os"), "")},
		{"Blacklisted OSes", joined(c.list("blacklisted_os"), "")},
		{"Cluster parameters", clusterParameters(c)},
		{"Default node parameters", c.object("ndparams")},
		{"Default instance parameters", c.object("beparams")},
		{"Default nic parameters", c.object("nicparams")},
		{"Default disk parameters", c.object("diskparams")},
		{"Instance policy - limits for instances", policyOutline(c.object("ipolicy"))},
		{"Data collectors", collectors(c)},
	}
}

func clusterParameters(c cells) record {
	return record{
		{"candidate pool size", c["candidate_pool_size"]},
		{"maximal number of jobs running simultaneously", c["max_running_jobs"]},
		{"maximal number of jobs simultaneously tracked by the scheduler", c["max_tracked_jobs"]},
		{"mac prefix", c["mac_prefix"]},
		{"master netdev", c["master_netdev"]},
		{"master netmask", c["master_netmask"]},
		{"use external master IP address setup script", c["use_external_mip_script"]},
		{"lvm volume group", c["volume_group_name"]},
		{"lvm reserved volumes", joined(c.list("reserved_lvs"), "(none)")},
		{"drbd usermode helper", c["drbd_usermode_helper"]},
		{"file storage path", c["file_storage_dir"]},
		{"shared file storage path", c["shared_file_storage_dir"]},
		{"gluster storage path", c["gluster_storage_dir"]},
		{"maintenance of node health", c["maintain_node_health"]},
		{"uid pool", joined(c.list("uid_pool"), "")},
		{"default instance allocator", c["default_iallocator"]},
		{"default instance allocator parameters", c.object("default_iallocator_params")},
		{"primary ip version", c["primary_ip_version"]},
		{"preallocation wipe disks", c["prealloc_wipe_disks"]},
		{"enabled disk templates", joined(c.list("enabled_disk_templates"), "")},
		{"install image", c["install_image"]},
		{"instance communication network", c["instance_communication_network"]},
		{"zeroing image", c["zeroing_image"]},
		{"compression tools", c.list("compression_tools")},
		{"enabled user shutdown", c["enabled_user_shutdown"]},
		{"modify ssh setup", c["modify_ssh_setup"]},
		{"ssh_key_type", c["ssh_key_type"]},
		{"ssh_key_bits", c["ssh_key_bits"]},
	}
}

// joined shows a list on one line; none stands for an empty one.
func joined(list []any, none string) string {
	if len(list) == 0 {
		return none
	}
	parts := make([]string, len(list))
	for i, item := range list {
		parts[i] = pythonText(item)
	}
	return strings.Join(parts, ", ")
}

// policyOutline shows the limits for instances: pairs of bounds, what is
// usual, and the rest.
func policyOutline(p cells) record {
	bounds := []any{}
	for i, pair := range p.list("minmax") {
		limits, _ := pair.(map[string]any)
		bounds = append(bounds, record{
			{fmt.Sprintf("max/%d", i), limits["max"]},
			{fmt.Sprintf("min/%d", i), limits["min"]},
		})
	}
	out := record{{"bounds specs", bounds}, {"std", p.object("std")},
		{"allowed disk templates", joined(p.list("disk-templates"), "")}}
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if n, number := p[name].(json.Number); number {
			out = append(out, entry{name, wholeNumber(n)})
		}
	}
	return out
}

// wholeNumber shows a number without a point where it needs none.
func wholeNumber(n json.Number) string { return strings.TrimSuffix(n.String(), ".0") }

// collectors shows which data collectors are on, and how often they look.
func collectors(c cells) record {
	out := record{}
	for _, name := range slices.Sorted(maps.Keys(c.object("enabled_data_collectors"))) {
		interval := "N/A"
		if n, ok := c.object("data_collector_interval")[name].(json.Number); ok {
			if us, err := n.Float64(); err == nil {
				interval = fmt.Sprintf("%.3fs", us/1e6)
			}
		}
		out = append(out, entry{name, record{{"active", c.object("enabled_data_collectors")[name]}, {"interval", interval}}})
	}
	return out
}
