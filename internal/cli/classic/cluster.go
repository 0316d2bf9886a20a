package classic

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Cluster is what info shows of the cluster: c is the answer of QueryClusterInfo.
func Cluster(c Cells) Record {
	hypervisors := map[string]any{}
	for _, name := range c.List("enabled_hypervisors") {
		hypervisors[fmt.Sprint(name)] = c.Object("hvparams")[fmt.Sprint(name)]
	}
	return Record{
		{"Cluster name", c["name"]},
		{"Cluster UUID", c["uuid"]},
		{"Creation time", c.Time("ctime")},
		{"Modification time", c.Time("mtime")},
		{"Master node", c["master"]},
		{"Architecture (this node)", fmt.Sprintf("%v (%v)", c.At("architecture", 0), c.At("architecture", 1))},
		{"Tags", Joined(c.List("tags"), "(none)")},
		{"Default hypervisor", c["default_hypervisor"]},
		{"Enabled hypervisors", Joined(c.List("enabled_hypervisors"), "")},
		{"Hypervisor parameters", hypervisors},
		{"OS-specific hypervisor parameters", c.Object("os_hvp")},
		{"OS parameters", c.Object("osparams")},
		{"Hidden OSes", Joined(c.List("hidden_os"), "")},
		{"Blacklisted OSes", Joined(c.List("blacklisted_os"), "")},
		{"Cluster parameters", clusterParameters(c)},
		{"Default node parameters", c.Object("ndparams")},
		{"Default instance parameters", c.Object("beparams")},
		{"Default nic parameters", c.Object("nicparams")},
		{"Default disk parameters", c.Object("diskparams")},
		{"Instance policy - limits for instances", policyOutline(c.Object("ipolicy"))},
		{"Data collectors", collectors(c)},
	}
}

// Version is what version shows of the answer of QueryClusterInfo.
func Version(c Cells) Record {
	return Record{
		{"Software version", c["software_version"]},
		{"Internode protocol", c["protocol_version"]},
		{"Configuration format", c["config_version"]},
		{"OS api version", c["os_api_version"]},
		{"Export interface", c["export_version"]},
		{"VCS version", c["vcs_version"]},
	}
}

func clusterParameters(c Cells) Record {
	return Record{
		{"candidate pool size", c["candidate_pool_size"]},
		{"maximal number of jobs running simultaneously", c["max_running_jobs"]},
		{"maximal number of jobs simultaneously tracked by the scheduler", c["max_tracked_jobs"]},
		{"mac prefix", c["mac_prefix"]},
		{"master netdev", c["master_netdev"]},
		{"master netmask", c["master_netmask"]},
		{"use external master IP address setup script", c["use_external_mip_script"]},
		{"lvm volume group", c["volume_group_name"]},
		{"lvm reserved volumes", Joined(c.List("reserved_lvs"), "(none)")},
		{"drbd usermode helper", c["drbd_usermode_helper"]},
		{"file storage path", c["file_storage_dir"]},
		{"shared file storage path", c["shared_file_storage_dir"]},
		{"gluster storage path", c["gluster_storage_dir"]},
		{"maintenance of node health", c["maintain_node_health"]},
		{"uid pool", Joined(c.List("uid_pool"), "")},
		{"default instance allocator", c["default_iallocator"]},
		{"default instance allocator parameters", c.Object("default_iallocator_params")},
		{"primary ip version", c["primary_ip_version"]},
		{"preallocation wipe disks", c["prealloc_wipe_disks"]},
		{"enabled disk templates", Joined(c.List("enabled_disk_templates"), "")},
		{"install image", c["install_image"]},
		{"instance communication network", c["instance_communication_network"]},
		{"zeroing image", c["zeroing_image"]},
		{"compression tools", c.List("compression_tools")},
		{"enabled user shutdown", c["enabled_user_shutdown"]},
		{"modify ssh setup", c["modify_ssh_setup"]},
		{"ssh_key_type", c["ssh_key_type"]},
		{"ssh_key_bits", c["ssh_key_bits"]},
	}
}

// Joined shows a list on one line; none stands for an empty one.
func Joined(list []any, none string) string {
	if len(list) == 0 {
		return none
	}
	parts := make([]string, len(list))
	for i, item := range list {
		parts[i] = Text(item)
	}
	return strings.Join(parts, ", ")
}

// policyOutline shows the limits for instances: pairs of bounds, what is
// usual, and the rest.
func policyOutline(p Cells) Record {
	bounds := []any{}
	for i, pair := range p.List("minmax") {
		limits, _ := pair.(map[string]any)
		bounds = append(bounds, Record{
			{fmt.Sprintf("max/%d", i), limits["max"]},
			{fmt.Sprintf("min/%d", i), limits["min"]},
		})
	}
	out := Record{{"bounds specs", bounds}, {"std", p.Object("std")},
		{"allowed disk templates", Joined(p.List("disk-templates"), "")}}
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if n, number := p[name].(json.Number); number {
			out = append(out, Entry{name, wholeNumber(n)})
		}
	}
	return out
}

// wholeNumber shows a number without a point where it needs none.
func wholeNumber(n json.Number) string { return strings.TrimSuffix(n.String(), ".0") }

// collectors shows which data collectors are on, and how often they look.
func collectors(c Cells) Record {
	out := Record{}
	for _, name := range slices.Sorted(maps.Keys(c.Object("enabled_data_collectors"))) {
		interval := "N/A"
		if n, ok := c.Object("data_collector_interval")[name].(json.Number); ok {
			if us, err := n.Float64(); err == nil {
				interval = fmt.Sprintf("%.3fs", us/1e6)
			}
		}
		out = append(out, Entry{name, Record{{"active", c.Object("enabled_data_collectors")[name]}, {"interval", interval}}})
	}
	return out
}
