package cluster

import (
	"iter"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// DetachedDisk is a disk that no instance has. Its UUID is the disk's. Its nodes keep its content until it is attached to an instance there, or removed
// by its name: nothing else takes it away.
type DetachedDisk struct {
	Meta
	Disk Disk `json:"disk"`
	// Former is the name that the instance had which had it last.
	Former string `json:"former,omitempty"`
}

// Kind is KindDisk.
func (*DetachedDisk) Kind() Kind { return KindDisk }

// Label returns the disk's name, which may be empty, and that of others, too.
func (d *DetachedDisk) Label() string { return d.Disk.Name }

// Clone returns a deep copy that may be altered.
func (d *DetachedDisk) Clone() *DetachedDisk {
	c := *d
	c.Tags = slices.Clone(d.Tags)
	c.Disk = cloneDisks([]Disk{d.Disk})[0]
	return &c
}

// String is the disk for people: its name if it has one, and its UUID.
func (d *DetachedDisk) String() string {
	if d.Disk.Name == "" {
		return d.UUID
	}
	return d.Disk.Name + " (" + d.UUID + ")"
}

// IsOn reports whether a node has the disk, or a copy of it.
func (d *DetachedDisk) IsOn(node string) bool { return slices.Contains(d.Disk.Nodes, node) }

// FindDisk looks a detached disk up by UUID or by its name. NotFound if there is none, Ambiguous if several have the name, in the reference's words.
func (s *Snapshot) FindDisk(key string) (*DetachedDisk, error) {
	if d := s.Disk(key); d != nil {
		return d, nil
	}
	return s.DiskNamed(key)
}

// DiskNamed returns the detached disk that has exactly this name. Errors as FindDisk.
func (s *Snapshot) DiskNamed(name string) (found *DetachedDisk, err error) {
	var uuids []string
	for d := range s.disks.called(name) {
		if d.Disk.Name == name && name != "" {
			found, uuids = d, append(uuids, d.UUID)
		}
	}
	switch len(uuids) {
	case 0:
		return nil, fault.New(fault.NotFound, "No disk was found with this name: %s", name).WithHint("drover disk list shows the disks that no instance has")
	case 1:
		return found, nil
	}
	return nil, fault.New(fault.Ambiguous, "There are %d disks with this name: %s", len(uuids), name).WithHint("say which one by its UUID: %s", strings.Join(slices.Sorted(slices.Values(uuids)), ", "))
}

// DisksOn yields the detached disks of which a node has a copy.
func (s *Snapshot) DisksOn(node string) iter.Seq[*DetachedDisk] {
	return func(yield func(*DetachedDisk) bool) {
		for d := range s.Disks() {
			if d.IsOn(node) && !yield(d) {
				return
			}
		}
	}
}

// OwnerOf returns the instance that has a disk, and the number of the disk there; nil if none has it. It looks at all of them.
func (s *Snapshot) OwnerOf(disk string) (*Instance, int) {
	for inst := range s.Instances() {
		if i := slices.IndexFunc(inst.Disks, func(d Disk) bool { return d.UUID == disk }); i >= 0 {
			return inst, i
		}
	}
	return nil, -1
}
