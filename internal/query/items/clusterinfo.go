package items

import (
	"maps"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/query"
)

// ClusterInfo returns all settings of the cluster under the names by which
// clients of the reference know them, with values ready for JSON. Private
// operating system parameters are left out.
func ClusterInfo(src *query.Source) map[string]any {
	c, r := src.Inventory.Cluster(), src.Runtime
	info := map[string]any{
		"software_version": r.SoftwareVersion, "protocol_version": r.ProtocolVersion, "config_version": r.ConfigVersion,
		"os_api_version": r.OSAPIVersion, "export_version": r.ExportVersion, "vcs_version": r.VCSVersion, "architecture": r.Architecture,

		"name": c.Name, "uuid": c.UUID, "tags": list(c.Tags), "ctime": timestamp(c.CTime).Value, "mtime": timestamp(c.MTime).Value,
		"master": masterName(src.Inventory), "master_netdev": c.MasterNetdev, "master_netmask": c.MasterNetmask,
		"use_external_mip_script": c.ExternalMIP, "primary_ip_version": ipVersion(c), "mac_prefix": c.MACPrefix,

		"default_hypervisor": c.Hypervisor(), "enabled_hypervisors": list(c.EnabledHypervisors),
		"enabled_disk_templates": list(c.EnabledDiskTemplates),
		"hvparams":               object(c.HVParams), "os_hvp": object(c.OSHVP), "beparams": object(c.BEParams), "osparams": object(c.OSParams),
		"nicparams": object(c.NICParams), "ndparams": c.NDParams, "diskparams": object(c.DiskParams), "ipolicy": c.IPolicy,

		"candidate_pool_size": c.PoolSize, "max_running_jobs": c.MaxRunningJobs, "max_tracked_jobs": c.MaxTrackedJobs,
		"volume_group_name": OrNull(c.VolumeGroup), "drbd_usermode_helper": OrNull(c.DRBDHelper), "file_storage_dir": c.FileDir,
		"shared_file_storage_dir": c.SharedFileDir, "gluster_storage_dir": c.GlusterDir, "reserved_lvs": list(c.ReservedLVs),
		"prealloc_wipe_disks": c.PreallocWipe, "maintain_node_health": c.MaintainHealth,

		"uid_pool": list(c.UIDPool), "default_iallocator": c.IAllocator, "default_iallocator_params": c.IAllocatorParams,
		"hidden_os": list(c.HiddenOS), "blacklisted_os": list(c.BlacklistedOS), "install_image": c.InstallImage,
		"instance_communication_network": c.CommNetwork, "zeroing_image": c.ZeroingImage, "compression_tools": list(c.CompressionTools),
		"enabled_user_shutdown": c.UserShutdown, "modify_ssh_setup": c.ModifySSHSetup, "ssh_key_type": c.SSHKeyType,
		"ssh_key_bits": c.SSHKeyBits,
	}
	active, interval := map[string]bool{}, map[string]int64{}
	for name, collector := range c.Collectors {
		active[name], interval[name] = collector.Active, collector.Interval
	}
	info["enabled_data_collectors"], info["data_collector_interval"] = active, interval
	return info
}

func masterName(inventory *cluster.Snapshot) any {
	if n := inventory.Node(inventory.Cluster().MasterNode); n != nil {
		return n.Name
	}
	return nil
}

func ipVersion(c *cluster.Cluster) int {
	if c.PrimaryIPv6 {
		return 6
	}
	return 4
}

// list and object make sure that JSON has an empty list or object rather than
// null.
func list[T any](items []T) []T { return append([]T{}, items...) }

func object[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return maps.Clone(m)
}
