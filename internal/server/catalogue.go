package server

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
)

// Flavor is a size of servers.
type Flavor struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// RAM is in MiB, Disk in GiB; without a disk the server has none.
	RAM   int64 `json:"ram"`
	Disk  int64 `json:"disk"`
	VCPUs int64 `json:"vcpus"`
}

// Image is what a server is made from: an operating system of its cluster, or an image of Drover's own.
type Image struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// OS is the name of the operating system definition.
	OS string `json:"os"`
	// Clusters are those that have the operating system, Drover's own by no name; nil for all of them. Servers do not keep it.
	Clusters []string `json:"-"`
	// File is what an image of Drover's own cluster consists of; nil of an operating system. Servers do not keep it.
	File *ImageFile `json:"-"`
}

// ImageFile is the file of an image, which its cluster's nodes have.
type ImageFile struct {
	// Format is raw or qcow2, Size in bytes, SHA256 in hexadecimal digits.
	Format string
	Size   int64
	SHA256 string
	// Room is how large a disk has to be for it, in MiB, and RAM how much memory a server needs at least, also in MiB.
	Room, RAM        int64
	Created, Updated job.Time
}

// Fits refuses an image on a cluster that does not have it, and a flavor whose disk is too small for it. A cluster is
// named, Drover's own by nothing.
func (m *Image) Fits(backend string, f Flavor) error {
	const mib = 1 << 20
	switch {
	case m.File == nil && m.Clusters != nil && !slices.Contains(m.Clusters, backend):
		return fault.New(fault.Invalid, "Image %s is not available in the availability zone %s", m.ID, cmp.Or(backend, OwnZone)).At("imageRef").
			WithHint("it is in %s", m.zones())
	case m.File == nil:
		return nil
	case backend != "":
		return fault.New(fault.Invalid, "Image %s is not available in the availability zone %s", m.ID, backend).At("imageRef").
			WithHint("it is one of Drover's own cluster; leave the zone out")
	case f.Disk*1024 < m.File.Room:
		return fault.New(fault.Invalid, "Flavor's disk is too small for requested image. Flavor disk is %d bytes, image is %d bytes.", f.Disk*1024*mib, m.File.Room*mib).At("flavorRef").
			WithHint("choose a flavor with a disk of at least %d GiB", m.LeastDisk())
	case f.RAM < m.File.RAM:
		return fault.New(fault.Invalid, "Flavor's memory is too small for requested image.").At("flavorRef").WithHint("choose a flavor with at least %d MiB", m.File.RAM)
	}
	return nil
}

// zones are the availability zones that have an operating system.
func (m *Image) zones() string {
	var zones []string
	for _, name := range m.Clusters {
		zones = append(zones, cmp.Or(name, OwnZone))
	}
	return strings.Join(zones, ", ")
}

// LeastDisk is how large the disk of a flavor has to be for the image, in GiB.
func (m *Image) LeastDisk() int64 {
	if m.File == nil {
		return 0
	}
	return (m.File.Room + 1023) / 1024
}

// Images are what servers can be made from.
type Images []Image

// DefaultFlavors are the sizes that a cluster begins with.
func DefaultFlavors() []Flavor {
	return []Flavor{
		{ID: "1", Name: "m1.tiny", RAM: 512, Disk: 1, VCPUs: 1},
		{ID: "2", Name: "m1.small", RAM: 1024, Disk: 5, VCPUs: 1},
		{ID: "3", Name: "m1.medium", RAM: 2048, Disk: 10, VCPUs: 2},
		{ID: "4", Name: "m1.diskless", RAM: 128, Disk: 0, VCPUs: 1},
	}
}

// DefaultImages has the operating system that every development cluster has.
func DefaultImages() Images {
	return Images{{ID: "5d7d4e4c-6f4c-4c8b-9a52-0d1f6c0e5a01", Name: "noop", OS: "noop"}}
}

// OwnZone is what the availability zone of Drover's own cluster is called.
const OwnZone = "nova"

// SystemImages are operating systems, with their variants, as images of the clusters that have them, by name. The id of each is made of its name, so that it is
// the same on all of them, and for who leads next; the one that servers could be made of from the first has the id and the name that it had.
func SystemImages(on map[string][]string) (all Images) {
	first := firstOf(on)
	for _, system := range slices.Sorted(maps.Keys(on)) {
		m := systemImage(system)
		switch {
		case system == first:
			m = DefaultImages()[0]
			m.OS = system // as the clusters that have it call it: a stock Ganeti asks for the variant
		case m.Name == DefaultImages()[0].Name: // which is taken
			m.Name += " without variants"
		}
		m.Clusters = on[system]
		all = append(all, m)
	}
	return all
}

// firstOf is which of the systems is the one that servers could be made of from the first: clusters may call it with a variant or without, and Drover's own counts
// where others call it otherwise. Empty where there is none.
func firstOf(on map[string][]string) (first string) {
	plain := DefaultImages()[0].OS
	for _, system := range []string{plain, plain + "+default"} {
		if clusters := on[system]; len(clusters) > 0 && (first == "" || slices.Contains(clusters, "")) {
			first = system
		}
	}
	return first
}

func systemImage(system string) Image {
	sum := sha256.Sum256([]byte("operating system " + system))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // a UUID of version 8: made by a rule of our own
	return Image{ID: fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]), Name: system, OS: system}
}

// Find finds an image by id.
func (all Images) Find(id string) (Image, error) {
	if i := slices.IndexFunc(all, func(m Image) bool { return m.ID == id }); i >= 0 {
		return all[i], nil
	}
	return Image{}, fault.New(fault.NotFound, "Image %s could not be found.", fault.Clip(id, 100)).At("imageRef")
}
