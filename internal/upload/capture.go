package upload

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/store/format"
)

// Capture says of which server's disk an image is made.
type Capture struct {
	Server string `json:"server"`
	// Instance is its name on Drover's own cluster, UUID that of the instance.
	Instance string          `json:"instance"`
	UUID     string          `json:"uuid"`
	Asked    servertag.Asked `json:"asked"`
	// Backup: it is a backup of the server, of which the older ones go when it is there; nil for an image that is none.
	Backup *Backup `json:"backup,omitempty"`
}

// Backup says which backups of a server go.
type Backup struct {
	// Type is what its user calls those that take turns, Keep how many of them stay, the newest.
	Type string `json:"type"`
	Keep int    `json:"keep"`
}

// The properties that Nova gives images of servers, by which backups are found.
const (
	TypeProperty   = "image_type"    // "snapshot", or "backup"
	ServerProperty = "instance_uuid" // the server
	BackupProperty = "backup_type"   // what its user calls those that take turns
	IsBackup       = "backup"
)

// Capture adds an image that a job makes of the disk of a server, as Add does, and returns at once. WrongState while another image is made of that server.
func (s *Service) Capture(ctx context.Context, m Image, of Capture, trail reason.Trail) (Shown, error) {
	if s.cfg.Format != nil && s.cfg.Format() < format.Captures {
		return Shown{}, fault.New(fault.Unsupported, "Images are not made of servers here yet: that needs format %d of the store, which has %d", format.Captures, s.cfg.Format()).
			WithHint("it is raised when all controllers know it: drover cluster format info")
	}
	m.ContainerFormat = Bare
	m.Capture, m.Key, m.Trail = &of, s.cfg.NewUUID(), trail
	return s.add(ctx, m, Captured)
}

// Bare is how all images are contained: not at all.
const Bare = "bare"

// Captures returns what image of a server is being made; nil if there is none.
func (s *Service) Captures(server string) *Capture {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if m := s.images[s.captures[server]]; m != nil {
		return m.Capture
	}
	return nil
}

// older are the backups that go behind a newer one: those of its server and type, as its user calls it, that are whole, but for the newest. The caller holds mu.
func (s *Service) older(of *Image) (gone []string) {
	var all []*Image
	for _, m := range s.images {
		if m.Project == of.Project && m.Stage == Ready && m.Properties[TypeProperty] == IsBackup && m.Properties[ServerProperty] == of.Capture.Server && m.Properties[BackupProperty] == of.Capture.Backup.Type {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b *Image) int {
		switch { // the newer one is the newest, also by a clock that went back
		case a.ID == of.ID:
			return -1
		case b.ID == of.ID:
			return 1
		}
		return cmp.Or(cmp.Compare(b.Created, a.Created), cmp.Compare(b.ID, a.ID))
	})
	for _, m := range all[min(of.Capture.Backup.Keep, len(all)):] {
		gone = append(gone, m.ID)
	}
	return gone
}

// rotate has the backups go that are older than one that is there now. One that stays, for it is protected or disks stand on it, goes behind the next one.
func (s *Service) rotate(of *Image) {
	if of.Capture == nil || of.Capture.Backup == nil {
		return
	}
	var gone []string
	s.mu.RLock()
	if m := s.images[of.ID]; m != nil && m.Stage == Ready {
		gone = s.older(of)
	}
	s.mu.RUnlock()
	for _, id := range gone {
		if err := s.goes(s.ctx, id, of.Trail); err != nil {
			s.cfg.Log.Warn("an older backup of a server stays", "image", id, "server", of.Capture.Server, "error", err)
		}
	}
}

// captured tells whether an image is one of a server whose disk is not here yet.
func (m *Image) captured() bool { return m != nil && m.Stage == Captured && m.Capture != nil }

// Awaits tells of which instance an image is to be made that has no file yet, by its UUID. NotFound for an image that waits for no instance.
func (s *Service) Awaits(id string) (instance string, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if m := s.images[id]; m.captured() {
		return m.Capture.UUID, nil
	}
	return "", fault.New(fault.NotFound, "No image %s waits for the disk of an instance", fault.Clip(id, 100)).At("image_name").
		WithHint("images of servers are asked for over the Compute API: openstack server image create")
}

// TakeDisk takes the disk of a server, in a format, for the file of an image that waits for it. Once more it does nothing, for the controller that began with it may have died.
// NotFound when the image is no more; else it refuses what Take does.
func (s *Service) TakeDisk(ctx context.Context, id, format string, disk io.Reader) error {
	in, trail, err := s.beginDisk(id, format)
	if in == nil {
		return err
	}
	return s.receive(ctx, id, in, disk, -1, format, trail)
}

// beginDisk has the disk of a server come; nothing for one that came.
func (s *Service) beginDisk(id, format string) (*coming, reason.Trail, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.images[id]
	switch {
	case s.cfg.Dir == "":
		return nil, nil, s.nowhere()
	case s.ctx.Err() != nil:
		return nil, nil, errCloses
	case m == nil:
		return nil, nil, ErrGone
	case m.File != nil:
		return nil, nil, nil
	case !m.captured():
		return nil, nil, fault.New(fault.WrongState, "Image %s waits for no disk", id)
	case s.coming[id] != nil:
		return nil, nil, fault.New(fault.Conflict, "The disk of image %s is coming already", id)
	}
	in := &coming{project: m.Project, format: format}
	s.coming[id] = in
	return in, m.Trail, nil
}

// captureEnded stores what became of an image of a server by a job. One that came to nothing is no more, as in Nova, whose clients wait until it is active or gone; why is
// told with what was done to the server. The caller has the change.
func (s *Service) captureEnded(m *Image, has bool, why string) error {
	if !has {
		if err := s.tell(m, cmp.Or(why, "nothing came of the disk")); err != nil {
			return err
		}
		s.cfg.Log.Warn("an image of a server came to nothing", "image", m.ID, "server", m.Capture.Server, "error", why)
		if err := s.drop(s.ctx, m.ID); err != nil {
			return err
		}
		s.remove(m.File)
		return nil
	}
	if err := s.tell(m, ""); err != nil {
		return err
	}
	next := m.clone()
	next.Stage, next.Capture, next.Updated, next.Key, next.Trail = Ready, nil, s.cfg.Now(), "", nil
	return s.put(s.ctx, next)
}

// tell tells the server what became of an image that was made of it. The caller has the change; what it stores comes behind this, which may so be told again.
func (s *Service) tell(m *Image, failed string) error {
	if m.Capture == nil || s.cfg.Told == nil {
		return nil
	}
	err := s.cfg.Told(*m.Capture, failed)
	if fault.Is(err, fault.NotFound) { // the server is no more
		return nil
	}
	return err
}
