package storage

import (
	"context"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// Kind is a kind of the units that disks are kept in, by the reference's name.
type Kind string

// The kinds of which a node can tell.
const (
	Files         Kind = "file"       // the directory of disks that are files
	SharedFiles   Kind = "sharedfile" // the same, of one that nodes share
	VolumeGroups  Kind = "lvm-vg"     // LVM's volume group
	PhysicalDisks Kind = "lvm-pv"     // what it lies on
)

// Unit is one place that disks are kept in: a directory, a volume group, or a device of one. Sizes are in MiB.
type Unit struct {
	Name string `json:"name"`
	Size int    `json:"size"`
	// Used is what is taken, and Free what new disks can have: beside both there may be what others have there, or may need.
	Used int `json:"used"`
	Free int `json:"free"`
	// Allocatable says that new disks may be made there.
	Allocatable bool `json:"allocatable"`
}

// LogicalVolume is as much of a volume of LVM's as lies on one device: one that lies on several is listed for each, with all of its size.
type LogicalVolume struct {
	Group  string `json:"group"`
	Name   string `json:"name"`
	Device string `json:"device"`
	Size   int    `json:"size"` // MiB
	// Disk is the UUID of the disk that it was made for; empty for what others have made.
	Disk string `json:"disk,omitempty"`
}

// Provider is what a node has under the name of a storage provider: scripts that make disks.
type Provider struct {
	Name string `json:"name"`
	Path string `json:"path"`
	// Problem says why it cannot be used; empty if it can.
	Problem string `json:"problem,omitempty"`
	// Parameters are those that it takes, each with what is said of it.
	Parameters [][2]string `json:"parameters,omitempty"`
}

// Backing is what the disks of a node are kept in. Of what the node has not, Unsupported says so.
type Backing interface {
	// Units lists the units of a kind, by name.
	Units(ctx context.Context, kind Kind) ([]Unit, error)
	// LogicalVolumes lists the volumes of the node's volume group, whoever made them, by device and name.
	LogicalVolumes(ctx context.Context) ([]LogicalVolume, error)
	// Providers lists what may be storage providers, by name; none where there is no directory of them.
	Providers(ctx context.Context) ([]Provider, error)
	// SetAllocatable has new disks be made on a device of the volume group, or not. NotFound for one that is none of its.
	SetAllocatable(ctx context.Context, device string, may bool) (changed bool, err error)
	// Repair has the volume group do without the devices that are gone; what lay on them is lost. NotFound for another group than the node's.
	Repair(ctx context.Context, group string) (changed bool, err error)
}

// Stocked is what drivers do besides that can tell of the units which their volumes are kept in.
type Stocked interface {
	// Kinds are those of its units.
	Kinds() []Kind
	Units(ctx context.Context, kind Kind) ([]Unit, error)
}

// Grouped is what a driver does besides that keeps volumes in a volume group; see Backing.
type Grouped interface {
	LogicalVolumes(ctx context.Context) ([]LogicalVolume, error)
	SetAllocatable(ctx context.Context, device string, may bool) (changed bool, err error)
	Repair(ctx context.Context, group string) (changed bool, err error)
}

// Provided is what a driver does besides whose volumes are made by scripts; see Backing.
type Provided interface {
	Providers(ctx context.Context) ([]Provider, error)
}

// Units asks the driver that has units of a kind.
func (p Pools) Units(ctx context.Context, kind Kind) ([]Unit, error) {
	for _, d := range p {
		if s, is := d.(Stocked); is && slices.Contains(s.Kinds(), kind) {
			return s.Units(ctx, kind)
		}
	}
	return nil, NoUnits(kind, p.Templates())
}

// NoUnits is the error about units of a kind that a node has not, which keeps disks of some templates.
func NoUnits(kind Kind, templates []string) error {
	return fault.New(fault.Unsupported, "this node has no storage units of type '%s'", kind).At("storage_type").
		WithHint("it keeps disks of the templates: %s", strings.Join(templates, ", "))
}

// grouped is the driver with the volume group.
func (p Pools) grouped() (Grouped, error) {
	for _, d := range p {
		if g, is := d.(Grouped); is {
			return g, nil
		}
	}
	return nil, NoGroup()
}

// NoGroup is the error about the volume group of a node that has none.
func NoGroup() error {
	return fault.New(fault.Unsupported, "this node has no volume group").WithHint("the setting volume-group of the node's agent names it")
}

// LogicalVolumes asks the driver with the volume group.
func (p Pools) LogicalVolumes(ctx context.Context) ([]LogicalVolume, error) {
	g, err := p.grouped()
	if err != nil {
		return nil, err
	}
	return g.LogicalVolumes(ctx)
}

// SetAllocatable tells it.
func (p Pools) SetAllocatable(ctx context.Context, device string, may bool) (changed bool, err error) {
	g, err := p.grouped()
	if err != nil {
		return false, err
	}
	return g.SetAllocatable(ctx, device, may)
}

// Repair tells it, too.
func (p Pools) Repair(ctx context.Context, group string) (changed bool, err error) {
	g, err := p.grouped()
	if err != nil {
		return false, err
	}
	return g.Repair(ctx, group)
}

// Providers asks the driver whose volumes scripts make.
func (p Pools) Providers(ctx context.Context) ([]Provider, error) {
	for _, d := range p {
		if s, is := d.(Provided); is {
			return s.Providers(ctx)
		}
	}
	return nil, nil
}
