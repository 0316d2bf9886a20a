package cluster

import (
	"slices"
	"strings"
)

// Wanted power states of an instance (Instance.AdminState).
const (
	AdminUp      = "up"
	AdminDown    = "down"
	AdminOffline = "offline"
)

// Who last set the wanted power state (Instance.AdminStateSource).
const (
	SourceAdmin = "admin"
	SourceUser  = "user"
)

// Instance is one virtual machine as it is meant to be.
type Instance struct {
	Meta
	Name string `json:"name"`
	// PrimaryNode is the UUID of the node that runs it.
	PrimaryNode string `json:"primary_node"`
	// OS is the operating system, with +VARIANT if it has variants.
	OS         string `json:"os"`
	Hypervisor string `json:"hypervisor"`
	// The parameters set on the instance itself; the effective ones come from
	// Cluster.FillHV and its siblings.
	HVParams Params `json:"hvparams"`
	BEParams Params `json:"beparams"`
	OSParams Params `json:"osparams"`
	// OSParamsPrivate are values that no query shows.
	OSParamsPrivate Params `json:"osparams_private"`

	AdminState       string `json:"admin_state"`
	AdminStateSource string `json:"admin_state_source"`
	NICs             []NIC  `json:"nics"`
	Disks            []Disk `json:"disks"`
	DisksActive      bool   `json:"disks_active"`
	// NetworkPort is the TCP port for its console, 0 when none is allocated.
	NetworkPort int64 `json:"network_port,omitempty"`
	// Forthcoming: only reserved, not yet created. Such an instance may lack
	// any of the texts above, including its name.
	Forthcoming bool `json:"forthcoming,omitempty"`
	// Last is the newest change, nil when none was made by a job.
	Last *LastChange `json:"last,omitempty"`
}

// NIC is a network interface of an instance.
type NIC struct {
	UUID string `json:"uuid"`
	Name string `json:"name,omitempty"`
	MAC  string `json:"mac"`
	IP   string `json:"ip,omitempty"`
	// Network is the UUID of the network it is in, empty when in none.
	Network string `json:"network,omitempty"`
	// Params are its own nicparams: mode, link, vlan.
	Params Params `json:"nicparams"`
}

// NIC modes that decide which of its parameters mean something.
const (
	NICBridged     = "bridged"
	NICRouted      = "routed"
	NICOpenvSwitch = "openvswitch"
)

// Disk is a disk of an instance.
type Disk struct {
	UUID  string `json:"uuid"`
	Name  string `json:"name,omitempty"`
	CTime int64  `json:"ctime"`
	MTime int64  `json:"mtime"`
	// Type is the disk template: plain, drbd, file, ...
	Type string `json:"dev_type"`
	// Size is in MiB.
	Size int64 `json:"size"`
	// Mode is "rw" or "ro".
	Mode string `json:"mode"`
	// Spindles is 0 when unset.
	Spindles int64 `json:"spindles,omitempty"`
	// IVName is its name as the instance sees it: disk/0, disk/1, ...
	IVName string `json:"iv_name"`
	// LogicalID identifies it to its storage; its shape depends on the type.
	LogicalID []any  `json:"logical_id"`
	Params    Params `json:"params"`
	// Nodes are the UUIDs of the nodes that hold it, the primary first; both
	// of a DRBD pair.
	Nodes []string `json:"nodes"`
	// Children are the volumes of which a DRBD disk consists on each of its nodes: data, and what DRBD keeps for itself.
	Children []Disk `json:"children,omitempty"`
	// Stale are the nodes, by UUID, whose copy was left behind: the disk was used while they were away.
	Stale []string `json:"stale,omitempty"`
}

// Disk templates.
const (
	DiskDiskless   = "diskless"
	DiskFile       = "file"
	DiskSharedFile = "sharedfile"
	DiskPlain      = "plain"
	DiskBlock      = "blockdev"
	DiskDRBD       = "drbd"
	DiskRBD        = "rbd"
	DiskExt        = "ext"
	DiskGluster    = "gluster"
	// DiskMixed is what an instance with disks of several types reports; it is
	// no template that can be asked for.
	DiskMixed = "mixed"
)

// Mirroring is where else than on an instance's primary node its disks are.
type Mirroring string

// The kinds of mirroring.
const (
	// Unmirrored disks are on one node.
	Unmirrored Mirroring = ""
	// InternalMirror: a second node of the cluster has them, too.
	InternalMirror Mirroring = "internal"
	// ExternalMirror: any node reaches them, for they are kept elsewhere, or there are none.
	ExternalMirror Mirroring = "external"
)

// MirroringOf says how the disks of a template are mirrored. The names are the reference's, which counts instances without disks among the latter.
func MirroringOf(template string) Mirroring {
	switch template {
	case DiskDRBD:
		return InternalMirror
	case DiskDiskless, DiskBlock, DiskSharedFile, DiskGluster, DiskRBD, DiskExt:
		return ExternalMirror
	}
	return Unmirrored
}

// Kind is KindInstance.
func (*Instance) Kind() Kind { return KindInstance }

// Label returns the instance's name.
func (i *Instance) Label() string { return i.Name }

// Clone returns a deep copy that may be altered.
func (i *Instance) Clone() *Instance {
	c := *i
	c.Tags = slices.Clone(i.Tags)
	c.HVParams = i.HVParams.Clone()
	c.BEParams = i.BEParams.Clone()
	c.OSParams = i.OSParams.Clone()
	c.OSParamsPrivate = i.OSParamsPrivate.Clone()
	c.NICs = slices.Clone(i.NICs)
	for n := range c.NICs {
		c.NICs[n].Params = c.NICs[n].Params.Clone()
	}
	c.Disks = cloneDisks(i.Disks)
	return &c
}

func cloneDisks(disks []Disk) []Disk {
	out := slices.Clone(disks)
	for n := range out {
		d := &out[n]
		d.Params = d.Params.Clone()
		d.Nodes = slices.Clone(d.Nodes)
		d.LogicalID = slices.Clone(d.LogicalID)
		d.Children = cloneDisks(d.Children)
		d.Stale = slices.Clone(d.Stale)
	}
	return out
}

// MoveTo makes another node the primary one, which has the second copy of the disks or reaches them. The copies of the node that was it
// until now are stale if that was away, or if those of the other were: what is used from now on is the truth.
func (i *Instance) MoveTo(node string, away bool) {
	for n := range i.Disks {
		d := &i.Disks[n]
		if d.Type != DiskDRBD {
			d.Nodes = []string{node}
			continue
		}
		if away || slices.Contains(d.Stale, node) {
			d.Stale = []string{i.PrimaryNode}
		}
		d.Nodes = append([]string{node}, slices.DeleteFunc(d.Nodes, func(s string) bool { return s == node })...)
	}
	i.PrimaryNode = node
}

// Mirroring says how all disks are mirrored; they are not where they differ in that.
func (i *Instance) Mirroring() Mirroring {
	if len(i.Disks) == 0 {
		return ExternalMirror
	}
	of := MirroringOf(i.Disks[0].Type)
	if slices.ContainsFunc(i.Disks, func(d Disk) bool { return MirroringOf(d.Type) != of }) {
		return Unmirrored
	}
	return of
}

// StaleOn returns the index of the first disk whose copy on a node was left behind; -1 if there is none.
func (i *Instance) StaleOn(node string) int {
	return slices.IndexFunc(i.Disks, func(d Disk) bool { return slices.Contains(d.Stale, node) })
}

// DiskTemplate returns the type that all disks have: "diskless" without disks,
// "mixed" when they differ.
func (i *Instance) DiskTemplate() string {
	if len(i.Disks) == 0 {
		return DiskDiskless
	}
	for n := range i.Disks[1:] {
		if i.Disks[n+1].Type != i.Disks[0].Type {
			return DiskMixed
		}
	}
	return i.Disks[0].Type
}

// SecondaryNodes returns the UUIDs of the nodes other than the primary that
// hold DRBD disks of the instance, each once, in order of the disks.
func (i *Instance) SecondaryNodes() []string {
	var out []string
	for n := range i.Disks {
		if i.Disks[n].Type != DiskDRBD {
			continue
		}
		for _, node := range i.Disks[n].Nodes {
			if node != i.PrimaryNode && !slices.Contains(out, node) {
				out = append(out, node)
			}
		}
	}
	return out
}

// drbdMeta is the MiB that DRBD keeps for itself beside each disk.
const drbdMeta = 128

// DiskUsage returns the MiB that the disks take on each node that holds them:
// their sizes, and 128 more for each DRBD disk; block devices count nothing.
func (i *Instance) DiskUsage() int64 {
	var sum int64
	for n := range i.Disks {
		switch d := &i.Disks[n]; d.Type {
		case DiskBlock, DiskDiskless:
		case DiskDRBD:
			sum += d.Size + drbdMeta
		default:
			sum += d.Size
		}
	}
	return sum
}

// LocalDiskUsage is what of that is of the node's own room: disks that any node reaches are kept elsewhere.
func (i *Instance) LocalDiskUsage() int64 {
	if MirroringOf(i.DiskTemplate()) == ExternalMirror {
		return 0
	}
	return i.DiskUsage()
}

// OSName splits an OS with variant ("debian+minimal") into name and variant.
func OSName(os string) (name, variant string) {
	name, variant, _ = strings.Cut(os, "+")
	return name, variant
}
