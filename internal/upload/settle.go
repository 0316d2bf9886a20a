package upload

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/servertag"
)

// again is the pause before a job is tried anew of which nobody knows how it ended.
const again = time.Second

// follow has the job of an image carried out, in the background. The caller holds mu.
func (s *Service) follow(id string) {
	if s.jobs[id] != nil || s.ctx.Err() != nil {
		return
	}
	ended := make(chan struct{})
	s.jobs[id] = ended
	s.work.Go(func() {
		for !s.leave(id, ended) {
			if s.settle(id) {
				continue
			}
			select {
			case <-time.After(again):
			case <-s.ctx.Done():
			}
		}
	})
}

// leave ends what follows an image that has no job. False for one that has: also one that came since the last ended, whose follow found this here still.
func (s *Service) leave(id string, ended chan struct{}) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() == nil && s.images[id].hasJob() {
		return false
	}
	delete(s.jobs, id)
	close(ended)
	return true
}

// settle has the job of an image end, and stores what follows from it; false to try again.
func (s *Service) settle(id string) (done bool) {
	s.mu.RLock()
	m := s.images[id]
	s.mu.RUnlock()
	if s.ctx.Err() != nil || !m.hasJob() {
		return true
	}
	op, err := opcodeOf(m)
	outcome := servertag.Outcome{}
	if err != nil {
		outcome.Text = err.Error()
	} else if outcome, err = s.cfg.Do(s.ctx, "upload-"+m.Key, op); err != nil {
		s.cfg.Log.Debug("how the job of an uploaded image ended is not known yet", "image", id, "error", err)
		return false
	}
	if s.ended(id, m.Stage, outcome) != nil {
		return false
	}
	if m.Stage == Whole {
		s.rotate(m)
	}
	return true
}

// opcodeOf is what the job of an image does.
func opcodeOf(m *Image) (*opcode.Opcode, error) {
	if m.Stage == Going {
		return opcode.FromMap("OP_IMAGE_REMOVE", map[string]any{"image_name": m.ID, "reason": m.Trail})
	}
	if m.Stage == Captured {
		return opcode.FromMap("OP_IMAGE_CAPTURE", map[string]any{"image_name": m.ID, "instance_name": m.Capture.Instance, "instance_uuid": m.Capture.UUID, "reason": m.Trail})
	}
	return opcode.FromMap("OP_IMAGE_ADD", map[string]any{
		"image_name": m.ID, "source": cluster.UploadSource(m.ID), "sha256": m.File.SHA256, "format": m.DiskFormat, "reason": m.Trail,
	})
}

// ended stores what became of an image by a job. What the inventory has counts: how the job ended may not be known any more.
func (s *Service) ended(id string, of Stage, o servertag.Outcome) error {
	change, err := s.mirror.Change(s.ctx)
	if err != nil {
		return err
	}
	defer change()
	s.mu.RLock()
	m := s.images[id]
	s.mu.RUnlock()
	if m == nil || m.Stage != of {
		return nil
	}
	file, has := m.File, s.cfg.Has(id)
	if m.Capture != nil && of != Going {
		return s.captureEnded(m, has, o.Text)
	}
	next := m.clone()
	next.Updated, next.Key, next.Trail, next.Why = s.cfg.Now(), "", nil, ""
	switch {
	case of == Whole && has:
		next.Stage, file = Ready, nil
	case of == Whole:
		next.Stage, next.File, next.Why = Told, nil, o.Text
	case has:
		next.Stage, next.Why, file = Ready, o.Text, nil
	default:
		if err := s.drop(s.ctx, id); err != nil {
			return err
		}
		s.remove(file)
		return nil
	}
	if err := s.put(s.ctx, next); err != nil {
		return err
	}
	s.remove(file)
	return nil
}

// remove removes a file that nothing tells of any more; nil for none.
func (s *Service) remove(f *File) {
	if f != nil {
		_ = os.Remove(filepath.Join(s.cfg.Dir, f.Name)) // or it is put aside at the next start
	}
}

// await waits until the job of an image has ended, and tells what it came to. Nothing where it goes on behind the patience of who waits.
func (s *Service) await(ctx context.Context, id string, patience time.Duration) error {
	s.mu.RLock()
	ended, there := s.jobs[id], s.images[id] != nil
	s.mu.RUnlock()
	if ended != nil && there {
		limit := time.NewTimer(patience)
		defer limit.Stop()
		select {
		case <-ended:
		case <-limit.C:
			return nil
		case <-ctx.Done():
			return fault.New(fault.Canceled, "nobody waits any more: %w", context.Cause(ctx))
		}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	m := s.images[id]
	switch {
	case m == nil || m.Why == "":
		return nil
	case m.Stage == Ready:
		return fault.New(fault.Conflict, "Image %s could not be deleted: %s", id, m.Why)
	}
	return fault.New(fault.Invalid, "The image cannot be taken: %s", m.Why)
}

// Remove removes an image with its file: one that servers could be made of by a job, for which it waits as Take does. Whatever comes of a file ends. Conflict while
// a job takes the image in, or when disks stand on it; Denied when it is protected.
func (s *Service) Remove(ctx context.Context, id string, trail reason.Trail, patience time.Duration) error {
	if err := s.goes(ctx, id, trail); err != nil {
		return err
	}
	return s.await(ctx, id, patience)
}

// goes has an image go, at once if there is no job needed for it.
func (s *Service) goes(ctx context.Context, id string, trail reason.Trail) error {
	done, err := s.mirror.Change(ctx)
	if err != nil {
		return err
	}
	defer done()
	s.mu.RLock()
	m, in := s.images[id], s.coming[id]
	s.mu.RUnlock()
	switch {
	case m == nil:
		return noImage(id)
	case m.Protected:
		return fault.New(fault.Denied, "Image %s is protected and cannot be deleted.", id).WithHint("let it be deleted first: openstack image set --unprotected %s", id)
	case m.Stage == Whole:
		return fault.New(fault.Conflict, "Image %s is being taken in, and can be deleted when it is active", id)
	case m.Stage == Going:
		return nil
	case m.Stage == Told || !s.cfg.Has(id):
		if m.captured() {
			if err := s.tell(m, "the image was removed before it was whole"); err != nil {
				return err
			}
		}
		if err := s.drop(ctx, id); err != nil {
			return err
		}
		if in != nil {
			in.removed.Store(true)
		}
		s.remove(m.File)
		return nil
	}
	next := m.clone()
	next.Stage, next.Key, next.Trail, next.Why, next.Updated = Going, s.cfg.NewUUID(), trail, "", s.cfg.Now()
	if err := s.put(ctx, next); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.follow(id)
	return nil
}
