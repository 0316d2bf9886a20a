package upload

import (
	"cmp"
	"context"
	"io"

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
}

// Capture adds an image that a job makes of the disk of a server, as Add does, and returns at once. WrongState while another image is made of that server.
func (s *Service) Capture(ctx context.Context, m Image, of Capture, trail reason.Trail) (Shown, error) {
	if s.cfg.Format != nil && s.cfg.Format() < format.Captures {
		return Shown{}, fault.New(fault.Unsupported, "Images are not made of servers here yet: that needs format %d of the store, which has %d", format.Captures, s.cfg.Format()).
			WithHint("it is raised when all controllers know it: drover cluster format info")
	}
	m.ContainerFormat = bare
	m.Capture, m.Key, m.Trail = &of, s.cfg.NewUUID(), trail
	return s.add(ctx, m, Captured)
}

// bare is how all images are contained.
const bare = "bare"

// Captures returns who asked for an image of a server that is being made; false if there is none.
func (s *Service) Captures(server string) (servertag.Asked, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if m := s.images[s.captures[server]]; m != nil {
		return m.Capture.Asked, true
	}
	return servertag.Asked{}, false
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
	err := s.cfg.Told(m.Capture.Server, m.Capture.Asked, failed)
	if fault.Is(err, fault.NotFound) { // the server is no more
		return nil
	}
	return err
}
