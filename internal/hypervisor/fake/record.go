package fake

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// record is the content of one instance's file. A record is never changed
// once it is in the map; changes put a new one in its place.
type record struct {
	// Name is that of the file in the layout of before, where a file is called by the name.
	Name  string            `json:"name,omitempty"`
	UUID  string            `json:"uuid"`
	State hypervisor.State  `json:"state"`
	Disks []hypervisor.Disk `json:"disks"`
	// MadeBy is missing in what a program of before wrote.
	MadeBy hypervisor.Mark `json:"made_by,omitzero"`
	// Spec is what the machine was last started with; null when stopped.
	Spec *hypervisor.Spec `json:"spec"`
	// Memory is what it has by now, in MiB; 0 for all of Spec's.
	Memory int `json:"memory,omitempty"`
	// Snapshot is the id of the snapshot of its disks; empty for none.
	Snapshot string `json:"snapshot,omitempty"`
	// Boots counts starts and reboots.
	Boots int `json:"boots"`
	// Copies are what of mirrored disks was to be copied here, by UUID.
	Copies map[string]copying `json:"copies,omitempty"`

	// file is the name of the file, without its suffix; why says of a stranger why it is one, nil if it has no UUID.
	file string
	why  error
}

// copying is the copy of a mirrored disk: so many MiB, from a moment on.
type copying struct {
	MiB  int       `json:"mib"`
	From time.Time `json:"from"`
}

// behind is how much of a disk is not copied yet at this moment.
func (d *Driver) behind(r *record, disk string) int {
	c, copied := r.Copies[disk]
	if !copied || d.cfg.SyncRate == 0 {
		return 0
	}
	return max(0, c.MiB-int(d.cfg.Now().Sub(c.From).Seconds()*float64(d.cfg.SyncRate)))
}

// copies notes that so much of a mirrored disk is to be copied, beside what is left of before.
func (d *Driver) copies(r *record, disk string, mib int) {
	c := copying{d.behind(r, disk) + mib, d.cfg.Now()}
	r.Copies = maps.Clone(r.Copies)
	if r.Copies == nil {
		r.Copies = map[string]copying{}
	}
	r.Copies[disk] = c
}

// put places a record in the cache and keeps the sums right.
func (d *Driver) put(r *record) {
	d.forget(r.UUID)
	d.things[r.UUID] = r
	d.memory += r.memory()
	d.disk += r.space()
}

func (d *Driver) forget(uuid string) {
	if old := d.things[uuid]; old != nil {
		d.memory -= old.memory()
		d.disk -= old.space()
		delete(d.things, uuid)
	}
}

func (r *record) active() bool { return r.State == hypervisor.Running || r.State == hypervisor.Paused }

// idle reports whether nothing holds memory for it.
func (r *record) idle() bool { return r.State == hypervisor.Stopped || r.State == "" }

func (r *record) memory() int {
	if r.Spec == nil {
		return 0
	}
	return cmp.Or(r.Memory, r.Spec.Memory)
}

func (r *record) space() int {
	sum := 0
	for _, disk := range r.Disks {
		if cluster.MirroringOf(disk.Template) != cluster.ExternalMirror { // which is not here
			sum += disk.Size
		}
	}
	return sum
}

func (r *record) disk(uuid string) int {
	return slices.IndexFunc(r.Disks, func(d hypervisor.Disk) bool { return d.UUID == uuid })
}

// has tells whether a record, which may be none, has a disk.
func (r *record) has(disk string) bool { return r != nil && r.disk(disk) >= 0 }

// lacks refuses a specification with disks that the record does not have.
func (r *record) lacks(spec *hypervisor.Spec) error {
	for i, disk := range spec.Disks {
		if r.disk(disk.UUID) < 0 {
			return fault.New(fault.WrongState, "disk %d (%s) of instance %s does not exist on this node", i, disk.UUID, spec.Name)
		}
	}
	return nil
}

func (d *Driver) info(r *record) hypervisor.Instance {
	i := hypervisor.Instance{Name: r.Name, UUID: r.UUID, State: r.State, Disks: slices.Clone(r.Disks), MadeBy: r.MadeBy}
	for n := range i.Disks {
		i.Disks[n].Behind = d.behind(r, i.Disks[n].UUID)
	}
	if i.State == "" { // it could not be read
		i.State = hypervisor.Stopped
	}
	if r.Spec != nil {
		i.Memory, i.VCPUs = r.memory(), r.Spec.VCPUs
	}
	return i
}
