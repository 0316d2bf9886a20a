package exec

import (
	"context"
	"maps"
	"runtime"
	"slices"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

// Versions that clients ask for. Software is Drover's own; the others number
// protocols and formats as the reference does, for clients that compare them.
const (
	SoftwareVersion = "0.1.0"
	ProtocolVersion = 3000000
	ConfigVersion   = 3000000
	ExportVersion   = 0
	OSAPIVersion    = 20
)

// Architecture returns the word size and the processor architecture under the
// names that clients know.
func Architecture() [2]string {
	names := map[string][2]string{"amd64": {"64bits", "x86_64"}, "arm64": {"64bits", "aarch64"}, "386": {"32bits", "i686"}}
	if a, known := names[runtime.GOARCH]; known {
		return a
	}
	return [2]string{"64bits", runtime.GOARCH}
}

// ClusterInfo returns what OP_CLUSTER_QUERY and its siblings over LUXI and
// RAPI (QueryClusterInfo, /2/info) tell about the cluster, by the reference's
// names. Times are seconds since the epoch.
func ClusterInfo(snap *cluster.Snapshot) map[string]any {
	c := snap.Cluster()
	info := clusterSettings(c)
	maps.Copy(info, clusterParams(c))
	active, intervals := map[string]bool{}, map[string]int64{}
	for name, collector := range c.Collectors {
		active[name], intervals[name] = collector.Active, collector.Interval
	}
	info["enabled_data_collectors"], info["data_collector_interval"] = active, intervals
	info["software_version"], info["vcs_version"] = SoftwareVersion, "drover "+SoftwareVersion
	info["protocol_version"], info["config_version"] = ProtocolVersion, ConfigVersion
	info["export_version"], info["os_api_version"] = ExportVersion, OSAPIVersion
	info["architecture"] = Architecture()
	info["master"] = nodeName(snap, c.MasterNode)
	return info
}

func clusterSettings(c *cluster.Cluster) map[string]any {
	ipVersion := 4
	if c.PrimaryIPv6 {
		ipVersion = 6
	}
	return map[string]any{
		"name": c.Name, "uuid": c.UUID, "tags": c.Tags, "ctime": epochSeconds(c.CTime), "mtime": epochSeconds(c.MTime),
		"master_netdev": c.MasterNetdev, "master_netmask": c.MasterNetmask, "use_external_mip_script": c.ExternalMIP,
		"mac_prefix": c.MACPrefix, "primary_ip_version": ipVersion,
		"volume_group_name": orNull(c.VolumeGroup), "drbd_usermode_helper": orNull(c.DRBDHelper),
		"file_storage_dir": c.FileDir, "shared_file_storage_dir": c.SharedFileDir, "gluster_storage_dir": c.GlusterDir,
		"maintain_node_health": c.MaintainHealth, "candidate_pool_size": c.PoolSize,
		"max_running_jobs": c.MaxRunningJobs, "max_tracked_jobs": c.MaxTrackedJobs,
		"default_hypervisor": c.Hypervisor(), "enabled_hypervisors": c.EnabledHypervisors, "enabled_disk_templates": c.EnabledDiskTemplates,
		"uid_pool": c.UIDPool, "reserved_lvs": c.ReservedLVs, "hidden_os": c.HiddenOS, "blacklisted_os": c.BlacklistedOS,
		"default_iallocator": c.IAllocator, "default_iallocator_params": c.IAllocatorParams, "prealloc_wipe_disks": c.PreallocWipe,
		"install_image": c.InstallImage, "instance_communication_network": c.CommNetwork, "zeroing_image": c.ZeroingImage,
		"compression_tools": c.CompressionTools, "enabled_user_shutdown": c.UserShutdown,
		"modify_ssh_setup": c.ModifySSHSetup, "ssh_key_type": c.SSHKeyType, "ssh_key_bits": c.SSHKeyBits,
	}
}

func clusterParams(c *cluster.Cluster) map[string]any {
	return map[string]any{
		"hvparams": c.HVParams, "os_hvp": c.OSHVP, "beparams": c.BEParams, "osparams": c.OSParams, "ipolicy": c.IPolicy,
		"nicparams": c.NICParams, "ndparams": c.NDParams, "diskparams": c.DiskParams,
	}
}

// nodeName returns the name of a node, or its UUID if there is no such node.
func nodeName(snap *cluster.Snapshot, uuid string) string {
	if n := snap.Node(uuid); n != nil {
		return n.Name
	}
	return uuid
}

// epochSeconds turns nanoseconds into the seconds that clients see.
func epochSeconds(ns int64) float64 { return float64(ns/1000) / 1e6 }

func clusterQuery(_ context.Context, env *Env) (Plan, error) {
	return answer(ClusterInfo(env.snapshot())), nil
}

// clusterConfigQuery prepares OP_CLUSTER_CONFIG_QUERY: the values of fields,
// those of ClusterInfo and a few of its own.
func clusterConfigQuery(_ context.Context, env *Env) (Plan, error) {
	info, flags := ClusterInfo(env.snapshot()), env.Flags()
	info["cluster_name"], info["master_node"] = info["name"], info["master"]
	info["drain_flag"], info["watcher_pause"] = flags.Drained, flags.WatcherPause
	fields := env.Op.Strings("output_fields")
	if i := slices.IndexFunc(fields, func(f string) bool { _, known := info[f]; return !known }); i >= 0 {
		return Plan{}, fault.New(fault.Invalid, "Unknown output fields selected: %s", fields[i]).At("output_fields")
	}
	values := make([]any, len(fields))
	for i, f := range fields {
		values[i] = info[f]
	}
	return answer(values), nil
}
