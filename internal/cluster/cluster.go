// Package cluster holds the inventory: the values that describe a cluster (its
// own settings, node groups, nodes, instances, networks, images, disks that no instance has), the defaults of a
// fresh one, and Snapshot, an immutable view of all of them with indexes.
//
// Invariants:
//   - A value that was put into a Snapshot is never altered again. Whoever
//     wants a change clones the value, changes the clone, and puts that.
//   - A Snapshot never changes; With returns a new one that shares structure
//     with the old, at a cost of O(log n) per change.
//   - Every object's identity is its UUID. Names may be changed; references
//     between objects are UUIDs.
//   - Times are nanoseconds since the epoch (int64), in memory and stored.
//     Sizes are MiB. Parameter values are canonical (see Params).
package cluster

import "github.com/drover-project/drover/internal/reason"

// Kind names a kind of inventory object, as stored objects are labelled.
type Kind string

// The kinds of inventory objects.
const (
	KindCluster  Kind = "cluster"
	KindGroup    Kind = "group"
	KindNode     Kind = "node"
	KindInstance Kind = "instance"
	KindNetwork  Kind = "network"
	KindImage    Kind = "image"
	KindDisk     Kind = "disk" // one that no instance has
)

// Meta is what every inventory object has.
type Meta struct {
	UUID string `json:"uuid"`
	// Serial counts the changes of the object; a new object has 1.
	Serial int64 `json:"serial_no"`
	// CTime and MTime are the times of creation and of the last change, in
	// nanoseconds since the epoch; 0 when unknown.
	CTime int64 `json:"ctime"`
	MTime int64 `json:"mtime"`
	Tags  Tags  `json:"tags"`
}

// LastChange tells by which job an object was changed last, and why: its
// settings, or what it does.
type LastChange struct {
	At    int64        `json:"at"` // nanoseconds since the epoch
	Job   int64        `json:"job"`
	Trail reason.Trail `json:"trail"`
}

// NewMeta returns the Meta of an object made at the given time.
func NewMeta(uuid string, now int64) Meta {
	return Meta{UUID: uuid, Serial: 1, CTime: now, MTime: now}
}

// Touch counts a change made at the given time.
func (m *Meta) Touch(now int64) {
	m.Serial++
	m.MTime = now
}

// Object is an inventory value that a Snapshot can hold: *Cluster, *Group,
// *Node, *Instance, *Network, *Image or *DetachedDisk.
type Object interface {
	// Kind says which of the seven it is.
	Kind() Kind
	// Identity returns the UUID.
	Identity() string
	// Label returns the name, for people.
	Label() string
	// Labels returns the tags.
	Labels() Tags
}

// Identity returns the UUID.
func (m *Meta) Identity() string { return m.UUID }

// Labels returns the tags.
func (m *Meta) Labels() Tags { return m.Tags }

// Cluster holds the settings of the whole cluster. Field meanings follow the
// reference's configuration; the JSON names are the ones stored.
type Cluster struct {
	Meta
	Name           string `json:"cluster_name"`
	MasterNode     string `json:"master_node"` // UUID
	MasterIP       string `json:"master_ip"`
	MasterNetdev   string `json:"master_netdev"`
	MasterNetmask  int64  `json:"master_netmask"`
	PrimaryIPv6    bool   `json:"primary_ipv6"`
	ExternalMIP    bool   `json:"use_external_mip_script"`
	MACPrefix      string `json:"mac_prefix"`
	HighestPort    int64  `json:"highest_used_port"`
	VolumeGroup    string `json:"volume_group_name,omitempty"`    // empty: none
	DRBDHelper     string `json:"drbd_usermode_helper,omitempty"` // empty: none
	FileDir        string `json:"file_storage_dir"`
	SharedFileDir  string `json:"shared_file_storage_dir"`
	GlusterDir     string `json:"gluster_storage_dir"`
	MaintainHealth bool   `json:"maintain_node_health"`
	PoolSize       int64  `json:"candidate_pool_size"`
	MaxRunningJobs int64  `json:"max_running_jobs"`
	MaxTrackedJobs int64  `json:"max_tracked_jobs"`
	// Destroyed is when the cluster was taken out of service for good, in nanoseconds since 1970; zero for one that is in service.
	Destroyed int64 `json:"destroyed,omitempty"`

	// EnabledHypervisors is never empty; the first is the default.
	EnabledHypervisors   []string `json:"enabled_hypervisors"`
	EnabledDiskTemplates []string `json:"enabled_disk_templates"`

	HVParams   map[string]Params            `json:"hvparams"` // by hypervisor
	OSHVP      map[string]map[string]Params `json:"os_hvp"`   // by OS, then hypervisor
	BEParams   map[string]Params            `json:"beparams"` // by profile; only "default" is used
	OSParams   map[string]Params            `json:"osparams"` // by OS, with or without +variant
	NICParams  map[string]Params            `json:"nicparams"`
	NDParams   Params                       `json:"ndparams"`
	DiskParams map[string]Params            `json:"diskparams"` // by disk template
	IPolicy    Params                       `json:"ipolicy"`

	// OSParamsPrivate holds values that no query shows.
	OSParamsPrivate map[string]Params `json:"osparams_private_cluster"`

	UIDPool          [][2]int64 `json:"uid_pool"`
	ReservedLVs      []string   `json:"reserved_lvs"`
	HiddenOS         []string   `json:"hidden_os"`
	BlacklistedOS    []string   `json:"blacklisted_os"`
	IAllocator       string     `json:"default_iallocator"`
	IAllocatorParams Params     `json:"default_iallocator_params"`
	PreallocWipe     bool       `json:"prealloc_wipe_disks"`
	InstallImage     string     `json:"install_image"`
	CommNetwork      string     `json:"instance_communication_network"`
	ZeroingImage     string     `json:"zeroing_image"`
	CompressionTools []string   `json:"compression_tools"`
	UserShutdown     bool       `json:"enabled_user_shutdown"`
	ModifyEtcHosts   bool       `json:"modify_etc_hosts"`
	ModifySSHSetup   bool       `json:"modify_ssh_setup"`
	SSHKeyType       string     `json:"ssh_key_type"`
	SSHKeyBits       int64      `json:"ssh_key_bits"`

	Collectors map[string]Collector `json:"data_collectors"`
}

// Collector is the setting of one data collector of the monitoring agent.
type Collector struct {
	Active bool `json:"active"`
	// Interval is in microseconds.
	Interval int64 `json:"interval"`
}

// Kind is KindCluster.
func (*Cluster) Kind() Kind { return KindCluster }

// Label returns the cluster's name.
func (c *Cluster) Label() string { return c.Name }

// Hypervisor returns the default hypervisor, empty if none is enabled.
func (c *Cluster) Hypervisor() string {
	if len(c.EnabledHypervisors) == 0 {
		return ""
	}
	return c.EnabledHypervisors[0]
}

// Init is what New needs to know about a cluster to be made.
type Init struct {
	Name string
	UUID string
	// Time is the time of creation in nanoseconds since the epoch.
	Time int64
	// MasterNode is the UUID of the first node, MasterIP the cluster's address.
	MasterNode string
	MasterIP   string
	// Hypervisors and DiskTemplates are what the cluster enables; the first
	// hypervisor is its default.
	Hypervisors   []string
	DiskTemplates []string
	// VolumeGroup is LVM's for disks of template plain; empty for none.
	VolumeGroup string
}

// New returns a fresh cluster with the reference's defaults.
func New(in Init) *Cluster {
	c := defaultCluster()
	c.Meta = NewMeta(in.UUID, in.Time)
	c.Name = in.Name
	c.MasterNode = in.MasterNode
	c.MasterIP = in.MasterIP
	c.EnabledHypervisors = append([]string(nil), in.Hypervisors...)
	c.EnabledDiskTemplates = append([]string(nil), in.DiskTemplates...)
	c.VolumeGroup = in.VolumeGroup
	c.IPolicy["disk-templates"] = anyList(in.DiskTemplates)
	return c
}

func anyList(texts []string) []any {
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = t
	}
	return out
}
