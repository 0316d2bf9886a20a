// Package storage is the port to where the disks of instances are on a node: what makes, grows, finds and removes them, and where a
// hypervisor finds their content. It knows no instances; a volume is known by the UUID of the disk that it is for.
//
// Invariants that every driver keeps, and that package storagetest checks:
//   - Each call either has happened or has not: what is half made behind a kill is no volume, and is made whole by the next call.
//   - Ensure and Remove are idempotent. Nothing ever gets smaller.
//   - A new volume reads as zeros, as far as that is the driver's to say: operators' scripts answer for theirs.
//   - Errors carry a code of package fault; a failed call leaves what was there.
package storage

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qemuimg"
)

// Disk is a disk that is to have a volume.
type Disk struct {
	// ID is its UUID.
	ID string `json:"id"`
	// Size is how large it is to be at least, in MiB.
	Size int `json:"size"`
	// Format is that of a new volume, raw if it is empty; one that is there keeps its own.
	Format string `json:"format,omitempty"`
	// Provider are the operator's scripts that make the volume, which know it as Name and have Params; empty for volumes of other templates. Label is
	// what people call the disk, and Owner the instance that it is of.
	Provider string            `json:"provider,omitempty"`
	Name     string            `json:"name,omitempty"`
	Params   map[string]string `json:"params,omitempty"`
	Label    string            `json:"label,omitempty"`
	Owner    string            `json:"owner,omitempty"`
}

// Volume is the room of one disk.
type Volume struct {
	// ID is the UUID of the disk.
	ID string
	// Size in MiB.
	Size int
	// Path is the file or block device that has the content, in Format: as it is (diskimage.Raw), or as diskimage.QCOW2.
	Path, Format string
	// Base is the image that the content stands on; nil for none.
	Base *Base
}

// Base is a copy of an image on the node, which volumes of the format qcow2 stand on: they have what differs.
type Base struct{ SHA256, Path, Format string }

// File is the volume as it is told to who reads formats.
func (v *Volume) File() *qemuimg.File {
	f := &qemuimg.File{Path: v.Path, Format: v.Format}
	if v.Base != nil {
		f.Base = &qemuimg.File{Path: v.Base.Path, Format: v.Base.Format}
	}
	return f
}

// Layered is what drivers do besides whose volumes may have the format qcow2. Nobody may use the volume meanwhile.
type Layered interface {
	// Blank has a volume of that format read as zeros again, or as a copy of an image, at one moment. It keeps its size, which is not smaller
	// than the image's.
	Blank(ctx context.Context, id string, base *Base) error
}

// Space is how much room there is for volumes, in MiB. Free counts what existing volumes may still grow to need: a volume that was given
// out is room that is gone, whether the guest has written there or not.
type Space struct{ Total, Free int }

// Driver keeps the volumes of one disk template on a node. It is safe for concurrent use.
type Driver interface {
	// Template is the disk template's name, for example "file".
	Template() string
	// Ensure makes the volume of a disk, or grows it. Exhausted when there is no room.
	Ensure(ctx context.Context, disk Disk) (made, grown bool, err error)
	// Remove removes the volume with its content.
	Remove(ctx context.Context, id string) (removed bool, err error)
	// Volume tells about one volume; NotFound when there is none.
	Volume(ctx context.Context, id string) (Volume, error)
	// Volumes lists all, ordered by ID.
	Volumes(ctx context.Context) ([]Volume, error)
	// Space tells how much room there is at this moment; zero where nobody can tell.
	Space(ctx context.Context) (Space, error)
}

// Pools are the drivers of a node. The room of the first is what the node is known for.
type Pools []Driver

// unsaid is the template of disks for which nobody says one: there was no other before.
const unsaid = "file"

// of returns the driver of a template.
func (p Pools) of(template string) (Driver, error) {
	template = cmp.Or(template, unsaid)
	for _, d := range p {
		if d.Template() == template {
			return d, nil
		}
	}
	return nil, fault.New(fault.Unsupported, "this node keeps no disks of the template %q", template).At("disk_template").
		WithHint("it has: %s", strings.Join(p.Templates(), ", "))
}

// Templates are those of the drivers.
func (p Pools) Templates() (names []string) {
	for _, d := range p {
		names = append(names, d.Template())
	}
	return names
}

// Ensure makes or grows a volume of a template.
func (p Pools) Ensure(ctx context.Context, template string, disk Disk) (made, grown bool, err error) {
	d, err := p.of(template)
	if err != nil {
		return false, false, err
	}
	return d.Ensure(ctx, disk)
}

// Remove removes a volume of a template.
func (p Pools) Remove(ctx context.Context, template, id string) (bool, error) {
	d, err := p.of(template)
	if err != nil {
		return false, err
	}
	return d.Remove(ctx, id)
}

// Volume tells about a volume of a template.
func (p Pools) Volume(ctx context.Context, template, id string) (Volume, error) {
	d, err := p.of(template)
	if err != nil {
		return Volume{}, err
	}
	return d.Volume(ctx, id)
}

// Blank has a volume of the format qcow2 read as zeros again, or as an image. Unsupported where there are none.
func (p Pools) Blank(ctx context.Context, template, id string, base *Base) error {
	d, err := p.of(template)
	if err != nil {
		return err
	}
	l, is := d.(Layered)
	if !is {
		return fault.New(fault.Unsupported, "disks of the template %q have no layers", d.Template()).At("disk_template")
	}
	return l.Blank(ctx, id, base)
}

// Fits refuses what a template has no room for, in MiB. Exhausted then.
func (p Pools) Fits(ctx context.Context, template string, more int) error {
	d, err := p.of(template)
	if err != nil {
		return err
	}
	s, err := d.Space(ctx)
	if err == nil && s != (Space{}) && more > s.Free {
		err = fault.New(fault.Exhausted, "not enough disk space: %d MiB needed, %d MiB free", more, s.Free)
	}
	return err
}

// Space tells how much room the first pool has.
func (p Pools) Space(ctx context.Context) (total, free int, err error) {
	s, err := p[0].Space(ctx)
	return s.Total, s.Free, err
}

// CheckID refuses ids that could not be the name of a file.
func CheckID(id string) error {
	if id == "" || len(id) > 200 || id[0] == '.' || slices.ContainsFunc([]rune(id), func(r rune) bool { return r == '/' || r < ' ' || r == 0x7f }) {
		return fault.New(fault.Invalid, "%.300q is not a valid UUID of a disk", id).At("disks")
	}
	return nil
}
