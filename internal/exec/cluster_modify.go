package exec

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
)

// setting changes the cluster's settings as one parameter of
// OP_CLUSTER_SET_PARAMS says. c is a copy that may be altered; snap is the
// inventory around it.
type setting func(c *cluster.Cluster, op *opcode.Opcode, name string, snap *cluster.Snapshot) error

// clusterSettable maps the parameters of OP_CLUSTER_SET_PARAMS that can be
// carried out to what they do.
var clusterSettable = map[string]setting{
	"candidate_pool_size":      number(func(c *cluster.Cluster) *int64 { return &c.PoolSize }),
	"max_running_jobs":         number(func(c *cluster.Cluster) *int64 { return &c.MaxRunningJobs }),
	"max_tracked_jobs":         number(func(c *cluster.Cluster) *int64 { return &c.MaxTrackedJobs }),
	"master_netmask":           setNetmask,
	"master_ip":                setMasterIP,
	"maintain_node_health":     flag(func(c *cluster.Cluster) *bool { return &c.MaintainHealth }),
	"prealloc_wipe_disks":      flag(func(c *cluster.Cluster) *bool { return &c.PreallocWipe }),
	"use_external_mip_script":  flag(func(c *cluster.Cluster) *bool { return &c.ExternalMIP }),
	"modify_etc_hosts":         flag(func(c *cluster.Cluster) *bool { return &c.ModifyEtcHosts }),
	"enabled_user_shutdown":    flag(func(c *cluster.Cluster) *bool { return &c.UserShutdown }),
	"vg_name":                  text(func(c *cluster.Cluster) *string { return &c.VolumeGroup }),
	"drbd_helper":              text(func(c *cluster.Cluster) *string { return &c.DRBDHelper }),
	"default_iallocator":       setAllocator,
	"master_netdev":            text(func(c *cluster.Cluster) *string { return &c.MasterNetdev }),
	"file_storage_dir":         text(func(c *cluster.Cluster) *string { return &c.FileDir }),
	"shared_file_storage_dir":  text(func(c *cluster.Cluster) *string { return &c.SharedFileDir }),
	"gluster_storage_dir":      text(func(c *cluster.Cluster) *string { return &c.GlusterDir }),
	"install_image":            image("Install", func(c *cluster.Cluster) *string { return &c.InstallImage }),
	"zeroing_image":            image("Zeroing", func(c *cluster.Cluster) *string { return &c.ZeroingImage }),
	"reserved_lvs":             words(func(c *cluster.Cluster) *[]string { return &c.ReservedLVs }),
	"compression_tools":        setCompression,
	"diskparams":               setDiskParams,
	"os_hvp":                   setOSHVP,
	"uid_pool":                 setUIDs,
	"add_uids":                 addUIDs,
	"remove_uids":              removeUIDs,
	"hidden_os":                listEdit(func(c *cluster.Cluster) *[]string { return &c.HiddenOS }),
	"blacklisted_os":           listEdit(func(c *cluster.Cluster) *[]string { return &c.BlacklistedOS }),
	"mac_prefix":               setMACPrefix,
	"enabled_hypervisors":      setHypervisors,
	"enabled_disk_templates":   setTemplates,
	"hvparams":                 setHVParams,
	"beparams":                 setBEParams,
	"nicparams":                setNICParams,
	"ndparams":                 setNDParams,
	"osparams":                 setOSParams,
	"osparams_private_cluster": setOSParams,
	"ipolicy":                  setIPolicy,
	"default_iallocator_params": func(c *cluster.Cluster, op *opcode.Opcode, name string, _ *cluster.Snapshot) error {
		c.IAllocatorParams = op.Map(name)
		return nil
	},
	"enabled_data_collectors": func(c *cluster.Cluster, op *opcode.Opcode, name string, _ *cluster.Snapshot) error {
		return setCollectors(c, op.Map(name), name, func(s *cluster.Collector, v any) { s.Active, _ = v.(bool) })
	},
	"data_collector_interval": func(c *cluster.Cluster, op *opcode.Opcode, name string, _ *cluster.Snapshot) error {
		return setCollectors(c, op.Map(name), name, func(s *cluster.Collector, v any) { s.Interval, _ = v.(int64) })
	},
}

func number(field func(*cluster.Cluster) *int64) setting {
	return func(c *cluster.Cluster, op *opcode.Opcode, name string, _ *cluster.Snapshot) error {
		*field(c) = op.Int(name)
		return nil
	}
}

func flag(field func(*cluster.Cluster) *bool) setting {
	return func(c *cluster.Cluster, op *opcode.Opcode, name string, _ *cluster.Snapshot) error {
		*field(c) = op.Bool(name)
		return nil
	}
}

func text(field func(*cluster.Cluster) *string) setting {
	return func(c *cluster.Cluster, op *opcode.Opcode, name string, _ *cluster.Snapshot) error {
		*field(c) = op.Str(name)
		return nil
	}
}

func words(field func(*cluster.Cluster) *[]string) setting {
	return func(c *cluster.Cluster, op *opcode.Opcode, name string, _ *cluster.Snapshot) error {
		*field(c) = op.Strings(name)
		return nil
	}
}

// edit is a change of a list of names.
type edit struct {
	value    string
	takesOut bool
}

// listEdits reads pairs [action, name].
func listEdits(pairs []any) []edit {
	var out []edit
	for _, item := range pairs {
		pair, _ := item.([]any)
		if len(pair) != 2 {
			continue
		}
		word, _ := pair[0].(string)
		value, _ := pair[1].(string)
		out = append(out, edit{value, word == remove || word == detach})
	}
	return out
}

// apply makes the change in a list of one's own.
func (e edit) apply(list []string) []string {
	if e.takesOut {
		return slices.DeleteFunc(list, func(s string) bool { return s == e.value })
	}
	if slices.Contains(list, e.value) {
		return list
	}
	return append(list, e.value)
}

// listEdit adds names to a list and takes names out.
func listEdit(field func(*cluster.Cluster) *[]string) setting {
	return func(c *cluster.Cluster, op *opcode.Opcode, name string, _ *cluster.Snapshot) error {
		list := field(c)
		for _, e := range listEdits(op.List(name)) {
			*list = e.apply(*list)
		}
		slices.Sort(*list)
		return nil
	}
}

var macPrefix = regexp.MustCompile(`^([0-9a-f]{2}:){2}[0-9a-f]{2}$`)

func setMACPrefix(c *cluster.Cluster, op *opcode.Opcode, name string, _ *cluster.Snapshot) error {
	prefix := strings.ToLower(op.Str(name))
	if !macPrefix.MatchString(prefix) {
		return fault.New(fault.Invalid, "Invalid MAC address prefix '%s'", op.Str(name)).At(name)
	}
	c.MACPrefix = prefix
	return nil
}

// setHypervisors enables hypervisors; one that an instance uses stays.
func setHypervisors(c *cluster.Cluster, op *opcode.Opcode, name string, snap *cluster.Snapshot) error {
	wanted := op.Strings(name)
	if len(wanted) == 0 {
		return fault.New(fault.Invalid, "Enabled hypervisors list must contain at least one member").At(name)
	}
	for inst := range snap.Instances() {
		if !slices.Contains(wanted, inst.Hypervisor) {
			return fault.New(fault.WrongState, "Cannot disable hypervisor '%s', because there is at least one instance using it: %s",
				inst.Hypervisor, inst.Name).At(name)
		}
	}
	c.EnabledHypervisors = wanted
	return nil
}

// setTemplates enables disk templates; one that an instance uses stays.
func setTemplates(c *cluster.Cluster, op *opcode.Opcode, name string, snap *cluster.Snapshot) error {
	wanted := op.Strings(name)
	if len(wanted) == 0 {
		return fault.New(fault.Invalid, "At least one disk template must be enabled").At(name)
	}
	for inst := range snap.Instances() {
		for i := range inst.Disks {
			if t := inst.Disks[i].Type; !slices.Contains(wanted, t) {
				return fault.New(fault.WrongState, "Cannot disable disk template '%s', because there is at least one instance using it: %s",
					t, inst.Name).At(name)
			}
		}
	}
	for d := range snap.Disks() {
		if !slices.Contains(wanted, d.Disk.Type) {
			return fault.New(fault.WrongState, "Cannot disable disk template '%s', because there is at least one disk of it that no instance has: %s", d.Disk.Type, d).At(name)
		}
	}
	c.EnabledDiskTemplates = wanted
	c.IPolicy["disk-templates"] = op.List(name)
	return nil
}

func setHVParams(c *cluster.Cluster, op *opcode.Opcode, name string, _ *cluster.Snapshot) error {
	given := op.Map(name)
	for _, hv := range slices.Sorted(maps.Keys(given)) {
		values, _ := given[hv].(map[string]any)
		if c.HVParams[hv] == nil {
			return fault.New(fault.Invalid, "Unknown hypervisor '%s'", hv).At(name + "." + hv)
		}
		checked, err := cluster.CheckParams(values, cluster.HVTypes(hv), false)
		if err != nil {
			return err
		}
		c.HVParams[hv] = cluster.SetParams(c.HVParams[hv], checked)
	}
	return nil
}

func setBEParams(c *cluster.Cluster, op *opcode.Opcode, name string, _ *cluster.Snapshot) error {
	checked, err := cluster.CheckBEParams(op.Map(name))
	if err != nil {
		return err
	}
	if err := noDefaults(checked, name); err != nil {
		return err
	}
	c.BEParams[cluster.DefaultProfile] = cluster.SetParams(c.BEParams[cluster.DefaultProfile], checked)
	return cluster.CheckMemory(c.BEParams[cluster.DefaultProfile])
}

// noDefaults refuses "default" as a value where there is no other default to
// fall back to.
func noDefaults(p cluster.Params, field string) error {
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if p[name] == cluster.UseDefault {
			return fault.New(fault.Invalid, "parameter '%s' of the cluster can't be set to its default", name).At(field + "." + name)
		}
	}
	return nil
}

func setNICParams(c *cluster.Cluster, op *opcode.Opcode, name string, _ *cluster.Snapshot) error {
	checked, err := cluster.CheckParams(op.Map(name), cluster.NICTypes(), false)
	if err == nil {
		c.NICParams[cluster.DefaultProfile] = cluster.SetParams(c.NICParams[cluster.DefaultProfile], checked)
	}
	return err
}

func setNDParams(c *cluster.Cluster, op *opcode.Opcode, name string, _ *cluster.Snapshot) error {
	checked, err := cluster.CheckParams(op.Map(name), cluster.NDTypes(), false)
	if err == nil {
		c.NDParams = cluster.SetParams(c.NDParams, checked)
	}
	return err
}

func setOSParams(c *cluster.Cluster, op *opcode.Opcode, name string, _ *cluster.Snapshot) error {
	target := c.OSParams
	if name == "osparams_private_cluster" {
		target = c.OSParamsPrivate
	}
	given := op.Map(name)
	for _, os := range slices.Sorted(maps.Keys(given)) {
		values, _ := given[os].(map[string]any)
		target[os] = cluster.SetParams(target[os], cluster.Params(values))
		if len(target[os]) == 0 {
			delete(target, os)
		}
	}
	return nil
}

func setIPolicy(c *cluster.Cluster, op *opcode.Opcode, name string, _ *cluster.Snapshot) error {
	given := cluster.Params(op.Map(name)).Clone()
	if std, some := given[cluster.PolicyStd].(map[string]any); some {
		own, _ := c.IPolicy[cluster.PolicyStd].(map[string]any)
		given[cluster.PolicyStd] = map[string]any(cluster.Fill(own, std))
	}
	changed := cluster.Fill(c.IPolicy, given)
	if err := cluster.CheckPolicy(changed); err != nil {
		return err
	}
	c.IPolicy = changed
	return nil
}

func setCollectors(c *cluster.Cluster, given map[string]any, field string, set func(*cluster.Collector, any)) error {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		collector, known := c.Collectors[name]
		if !known {
			return fault.New(fault.Invalid, "Unknown data collector '%s'", name).At(field + "." + name)
		}
		set(&collector, given[name])
		c.Collectors[name] = collector
	}
	return nil
}

// clusterModify prepares OP_CLUSTER_SET_PARAMS.
func clusterModify(ctx context.Context, env *Env) (Plan, error) {
	if err := env.checkClusterOSParams(ctx); err != nil {
		return Plan{}, err
	}
	before := env.snapshot().Cluster()
	plan, err := updatePlan(env, nil, func(snap *cluster.Snapshot) ([]cluster.Change, error) {
		c := snap.Cluster().Clone()
		for _, name := range slices.Sorted(maps.Keys(env.Op.Params)) {
			set, can := clusterSettable[name]
			switch {
			case name == "force", !can && isEmpty(env.Op.Params[name]): // clients send empty ones
				continue
			case !can:
				return nil, fault.New(fault.Invalid, "Parameter '%s' of the cluster can't be changed yet", name).At(name)
			}
			if err := set(c, env.Op, name, snap); err != nil {
				return nil, err
			}
		}
		c.Touch(env.nanos())
		return []cluster.Change{cluster.Put(c)}, nil
	})
	if err == nil {
		env.tellIgnored("hidden", before.HiddenOS)
		env.tellIgnored("blacklisted", before.BlacklistedOS)
	}
	return plan, err
}

// tellIgnored says which changes of a list of operating systems change nothing.
func (e *Env) tellIgnored(which string, list []string) {
	now := slices.Clone(list)
	for _, edit := range listEdits(e.Op.List(which + "_os")) {
		switch there := slices.Contains(now, edit.value); {
		case edit.takesOut && !there:
			e.Logf("OS %s not found in %s OS list, ignoring", edit.value, which)
		case !edit.takesOut && there:
			e.Logf("OS %s already in %s OS list, ignoring", edit.value, which)
		}
		now = edit.apply(now)
	}
}

// isEmpty reports whether a parameter's value says nothing.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	case string:
		return v == ""
	}
	return value == nil
}
