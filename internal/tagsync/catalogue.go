package tagsync

import (
	"slices"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/server"
)

// Images returns what all users may make servers from now: the operating systems of the clusters, and the images of Drover's own
// cluster if servers may be there. Those that users uploaded are not among them: who may have which is theirs to say (package upload).
func (e *Engine) Images() server.Images {
	all := slices.Clone(e.cfg.Images())
	for image := range e.Inventory().Images() {
		if _, uploaded := cluster.Upload(image.Source); !uploaded {
			all = append(all, offered(image))
		}
	}
	return all
}

// HasUpload tells whether servers can be made of an image that was uploaded: the inventory of Drover's own cluster has it, and servers may be there.
func (e *Engine) HasUpload(id string) bool {
	image := e.Inventory().ImageNamed(id)
	return image != nil && image.Source == cluster.UploadSource(id)
}

// Disk tells how large the disk of a server on Drover's own cluster is, in MiB. Invalid for one on another cluster, or whose disk is only pretended.
func (e *Engine) Disk(s *server.Server) (mib int64, err error) {
	inst := e.Inventory().Instance(s.UUID)
	switch {
	case s.Backend != "":
		return 0, fault.New(fault.Invalid, "No image can be made of instance %s: its cluster is not Drover's own, and keeps no images", s.ID)
	case inst == nil || len(inst.Disks) == 0:
		return 0, fault.New(fault.WrongState, "No image can be made of instance %s: it has no disk", s.ID)
	case inst.Hypervisor == cluster.Pretended:
		return 0, fault.New(fault.Invalid, "No image can be made of instance %s: it is only pretended, and its disk has no content", s.ID).WithHint("machines of the hypervisor kvm have")
	}
	return inst.Disks[0].Size, nil
}

// offered is an image of Drover's own cluster, as users see it. The inventory has times in nanoseconds.
func offered(i *cluster.Image) server.Image {
	return server.Image{ID: i.UUID, Name: i.Name, OS: cluster.ImageOS + "+" + i.Name, File: &server.ImageFile{
		Format: i.Format, Size: i.Size, SHA256: i.SHA256, Room: i.VirtualSize, Created: job.Time(i.CTime / 1e3), Updated: job.Time(i.MTime / 1e3),
	}}
}

// Inventory is that of Drover's own cluster; an empty one where no servers may be there.
func (e *Engine) Inventory() *cluster.Snapshot {
	if now := e.cfg.Picture.Load().Inventory; e.HasBackend("") && now != nil {
		return now
	}
	return cluster.Empty()
}
