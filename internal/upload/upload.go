// Package upload keeps the images that users of the Image API bring, and those that are made of their servers: what is said of each, and the files.
//
// An image is told of first, and its file comes after that. When the file is whole and durable a job has a node look at it (OP_IMAGE_ADD), as at any
// image, and puts it into the inventory under the image's id; from then on servers can be made of it. What is stored of an image says how far that
// came: nothing is stored of a file that is on its way. The file of an image of a server comes from the server's node in place of a client, by a job before that one
// (OP_IMAGE_CAPTURE, ADR 37).
//
// Invariants:
//   - An image that is not public is one of its project alone: nobody else sees it (TestWhoSeesAnImage), so nobody else makes servers of it.
//   - Of a file that did not come whole, or was refused, nothing is left, at the latest at the next start (TestAFileThatDoesNotCome,
//     TestWhatIsLeftOfADeath); and an image of which something came is never told of as whole before it is durable (TestAKillAmidAnything).
//   - An image has one file at a time, and one that is whole is never written again (TestTwoAtATime).
//   - One image of a server is made at a time, whoever leads meanwhile; the server is told what became of it, and nothing is left of one that came to nothing
//     (TestAnImageOfAServer, TestAnImageOfAServerThatComesToNothing, TestAKillAmidAnImageOfAServer).
//   - Uploads leave a part of the file system free (TestThereIsNoRoom), and keep to the limits of their projects (TestLimits).
package upload

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
)

// Kind is that of the objects in the store, one for each image.
const Kind store.Kind = "upload"

// Stage is how far an image has come, as it is stored.
type Stage string

// The stages.
const (
	// Told: nothing of its file is here.
	Told Stage = "told"
	// Captured: a job takes the disk of a server for its file.
	Captured Stage = "captured"
	// Whole: its file is here, and a job has a node look at it.
	Whole Stage = "whole"
	// Ready: servers can be made of it.
	Ready Stage = "ready"
	// Going: a job takes it out of the inventory.
	Going Stage = "going"
)

// Image is an image that a user brings.
type Image struct {
	ID      string `json:"id"`
	Project string `json:"project"`
	User    string `json:"user"`
	Name    string `json:"name,omitempty"`
	// Public: all projects may see it and make servers of it.
	Public bool `json:"public,omitempty"`
	// Protected: it is not removed. Hidden: lists leave it out that do not ask for such.
	Protected bool `json:"protected,omitempty"`
	Hidden    bool `json:"hidden,omitempty"`
	// DiskFormat and ContainerFormat are empty until somebody says them.
	DiskFormat      string `json:"disk_format,omitempty"`
	ContainerFormat string `json:"container_format,omitempty"`
	// MinDisk is in GiB, MinRAM in MiB: what a server needs at least.
	MinDisk    int64             `json:"min_disk,omitempty"`
	MinRAM     int64             `json:"min_ram,omitempty"`
	Tags       []string          `json:"tags,omitempty"`
	Properties map[string]string `json:"properties,omitempty"`
	Created    job.Time          `json:"created"`
	Updated    job.Time          `json:"updated"`

	Stage Stage `json:"stage"`
	// File is there from Whole on.
	File *File `json:"file,omitempty"`
	// Why says why the last file, or the removal, came to nothing.
	Why string `json:"why,omitempty"`
	// Key and Trail are those of the job that is under way, if one is.
	Key   string       `json:"key,omitempty"`
	Trail reason.Trail `json:"trail,omitempty"`
	// Capture is of which server it is made, until servers can be made of it; nil for an image that was uploaded.
	Capture *Capture `json:"capture,omitempty"`
}

// File is what an image consists of.
type File struct {
	// Name is that of the file in the directory; each file has another.
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	MD5    string `json:"md5"`
	// Room is how large a disk has to be for it, in MiB.
	Room int64 `json:"room"`
}

// clone is a copy that may be changed.
func (m *Image) clone() *Image {
	c := *m
	c.Tags, c.Properties = slices.Clone(m.Tags), maps.Clone(m.Properties)
	return &c
}

// hasJob tells whether a job is under way for an image, if it is one.
func (m *Image) hasJob() bool {
	return m != nil && (m.Stage == Captured || m.Stage == Whole || m.Stage == Going)
}

// Status is how far an image has come, as the Image API says it.
type Status string

// The statuses.
const (
	Queued      Status = "queued"
	Saving      Status = "saving"
	Active      Status = "active"
	Deactivated Status = "deactivated" // the operator took it out of the inventory
	Deleting    Status = "pending_delete"
)

// Shown is an image with its status.
type Shown struct {
	Image

	Status Status
}

// Limits are how much a project may have; -1 is no limit.
type Limits struct{ Images, Bytes int64 }

// Config is what a Service needs.
type Config struct {
	Store store.Store
	Epoch int64 // of the leader lease; 0 where there is none
	// Format tells the format of the store; nil for the newest.
	Format func() int
	// Dir is the directory of the files; empty where there is none, and so nothing is uploaded. Why says in that case why.
	Dir, Why string
	// Do has a job carried out, by its key once, and returns how it ended. An error tells that this is not known.
	Do func(ctx context.Context, key string, op *opcode.Opcode) (servertag.Outcome, error)
	// Has tells whether the inventory has the image that was uploaded as id.
	Has func(id string) bool
	// Told is told what became of an image of a server: why it came to nothing, or an empty text. The same may be told again. nil for nobody.
	Told   func(of Capture, failed string) error
	Limits func(project string) Limits
	// Room tells how large the file system of the files is, and how much of it is free, in bytes; nil asks it.
	Room    func() (size, free int64, err error)
	Now     func() job.Time
	NewUUID func() string
	Log     *slog.Logger
}

// Service keeps images. It may be used from any number of goroutines. Close ends what it does.
type Service struct {
	cfg    Config
	mirror store.Mirror
	ctx    context.Context // ends when the service closes
	stop   context.CancelFunc
	work   sync.WaitGroup

	// mu is held while what is known is looked at or changed.
	mu sync.RWMutex
	// running: jobs are gone on with.
	running bool
	images  map[string]*Image
	coming  map[string]*coming
	// captures are the newest images of servers, by the server.
	captures map[string]string
	// jobs are closed when the job of an image has ended, and that is stored.
	jobs map[string]chan struct{}
}

// Open loads what there is. Nothing goes on before Run.
func Open(ctx context.Context, cfg Config) (*Service, error) {
	s := &Service{cfg: cfg, coming: map[string]*coming{}, jobs: map[string]chan struct{}{}}
	if s.cfg.Room == nil {
		s.cfg.Room = s.room
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.mirror.Read = s.load
	return s, s.load(ctx)
}

// Run clears away what a service before left, and goes on with its jobs.
func (s *Service) Run() {
	s.clear()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = true
	s.followAll()
}

// followAll goes on with all jobs. The caller holds mu.
func (s *Service) followAll() {
	for id, m := range s.images {
		if m.hasJob() {
			s.follow(id)
		}
	}
}

// Close ends what is under way: uploads are refused, and jobs are left to who comes next. What an upload sends then is not waited for.
func (s *Service) Close() {
	s.mu.Lock()
	s.stop()
	s.mu.Unlock()
	s.work.Wait()
}

// load reads what the store has.
func (s *Service) load(ctx context.Context) error {
	images := map[string]*Image{}
	for o, err := range s.cfg.Store.List(ctx, Kind, store.Options{}) {
		if err != nil {
			return err
		}
		m := &Image{}
		if err := json.Unmarshal(o.Value, m); err != nil {
			s.cfg.Log.Error("an object cannot be read and is set aside; restore it from a backup", "object", "upload "+o.ID)
			continue
		}
		images[o.ID] = m
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.captures = map[string]string{}
	for _, m := range images {
		s.knows(m)
	}
	if s.images = images; s.running {
		s.followAll()
	}
	return nil
}

// put makes an image durable, and then known. The caller has the change.
func (s *Service) put(ctx context.Context, m *Image) error {
	value, err := json.Marshal(m)
	if err != nil {
		return fault.New(fault.Internal, "an image that cannot be written: %w", err)
	}
	return s.commit(ctx, store.Tx{Put: []store.Put{{Key: store.Key{Kind: Kind, ID: m.ID}, Value: value}}}, func() { s.images[m.ID] = m; s.knows(m) })
}

// knows keeps of which server an image is made, while that goes on. The caller holds mu.
func (s *Service) knows(m *Image) {
	if m.captured() {
		s.captures[m.Capture.Server] = m.ID
	} else if m.Capture != nil && s.captures[m.Capture.Server] == m.ID {
		delete(s.captures, m.Capture.Server)
	}
}

// drop has an image be no more. The caller has the change.
func (s *Service) drop(ctx context.Context, id string) error {
	return s.commit(ctx, store.Tx{Delete: []store.Key{{Kind: Kind, ID: id}}}, func() {
		if m := s.images[id]; m != nil && m.Capture != nil && s.captures[m.Capture.Server] == id {
			delete(s.captures, m.Capture.Server)
		}
		delete(s.images, id)
	})
}

func (s *Service) commit(ctx context.Context, tx store.Tx, known func()) error {
	tx.Epoch = s.cfg.Epoch
	return s.mirror.Commit(ctx, s.cfg.Store, tx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		known()
	})
}

// shown is an image with its status. The caller holds mu.
func (s *Service) shown(m *Image) Shown {
	out := Shown{Image: *m.clone(), Status: Queued}
	switch {
	case m.Stage == Whole, m.Stage == Captured, m.Stage == Told && s.coming[m.ID] != nil:
		out.Status = Saving
	case m.Stage == Going:
		out.Status = Deleting
	case m.Stage == Ready && s.cfg.Has(m.ID):
		out.Status = Active
	case m.Stage == Ready:
		out.Status = Deactivated
	}
	return out
}

// Seen returns the images that a project sees, its own and those that are public, by when they were made.
func (s *Service) Seen(project string) []Shown {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []Shown
	for _, m := range s.images {
		if m.Public || m.Project == project {
			out = append(out, s.shown(m))
		}
	}
	slices.SortFunc(out, func(a, b Shown) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// Find returns an image that a project sees. NotFound where it sees none.
func (s *Service) Find(project, id string) (Shown, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	m := s.images[id]
	if m == nil || !m.Public && m.Project != project {
		return Shown{}, noImage(id)
	}
	return s.shown(m), nil
}

func noImage(id string) error {
	return fault.New(fault.NotFound, "No image found with ID %s", fault.Clip(id, 100)).At("image_id")
}

// Count is how many images a project has.
func (s *Service) Count(project string) int {
	n, _ := s.Used(project)
	return int(n)
}

// Used is how many images a project has, and how many bytes they have, or have so far.
func (s *Service) Used(project string) (images, bytes int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.used(project)
}

// used is that. The caller holds mu.
func (s *Service) used(project string) (images, bytes int64) {
	for id, m := range s.images {
		if m.Project != project {
			continue
		}
		images++
		if m.File != nil {
			bytes += m.File.Size
		} else if c := s.coming[id]; c != nil {
			bytes += c.done.Load()
		}
	}
	return images, bytes
}

// Add takes a new image, of which nothing is here yet; without an id it gets one. Exists when there is one of its id, Denied when the project has as many as it
// may have, Unsupported where nothing is uploaded.
func (s *Service) Add(ctx context.Context, m Image) (Shown, error) { return s.add(ctx, m, Told) }

// add takes a new image that begins at a stage.
func (s *Service) add(ctx context.Context, m Image, at Stage) (Shown, error) {
	if s.cfg.Dir == "" {
		return Shown{}, s.nowhere()
	}
	if s.cfg.Format != nil && s.cfg.Format() < format.Uploads {
		return Shown{}, fault.New(fault.Unsupported, "Images are not uploaded here yet: that needs format %d of the store, which has %d", format.Uploads, s.cfg.Format()).
			WithHint("it is raised when all controllers know it: drover cluster format info")
	}
	done, err := s.mirror.Change(ctx)
	if err != nil {
		return Shown{}, err
	}
	defer done()
	if m.ID == "" {
		m.ID = s.cfg.NewUUID()
	}
	s.mu.RLock()
	_, there := s.images[m.ID]
	has, _ := s.used(m.Project)
	captured := m.Capture != nil && s.captures[m.Capture.Server] != ""
	s.mu.RUnlock()
	if captured {
		return Shown{}, fault.New(fault.WrongState, "Cannot make an image of instance %s while another one is being made", m.Capture.Server).
			WithHint("ask again when the disk has come for that")
	}
	if there || s.cfg.Has(m.ID) {
		return Shown{}, fault.New(fault.Exists, "Image %s already exists!", m.ID).At("id")
	}
	if most := s.cfg.Limits(m.Project).Images; most >= 0 && has >= most {
		return Shown{}, fault.New(fault.Denied, "Quota exceeded for images: the project has %d of %d", has, most).WithHint("remove some, or ask for a greater limit")
	}
	m.Created, m.Stage, m.File, m.Why = s.cfg.Now(), at, nil, ""
	m.Updated = m.Created
	if err := s.put(ctx, m.clone()); err != nil {
		return Shown{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.hasJob() && s.running {
		s.follow(m.ID)
	}
	return s.shown(&m), nil
}

// nowhere refuses uploads where there is no place for them.
func (s *Service) nowhere() error {
	return fault.New(fault.Unsupported, "Images are not uploaded here: %s", s.cfg.Why)
}

// Change changes what is said of an image. What edit refuses, and what is not said by it but by the service, stays as it was.
func (s *Service) Change(ctx context.Context, id string, edit func(m *Shown) error) (Shown, error) {
	done, err := s.mirror.Change(ctx)
	if err != nil {
		return Shown{}, err
	}
	defer done()
	s.mu.RLock()
	m := s.images[id]
	var next Shown
	if m != nil {
		next = s.shown(m)
	}
	s.mu.RUnlock()
	if m == nil {
		return Shown{}, noImage(id)
	}
	if err := edit(&next); err != nil {
		return Shown{}, err
	}
	kept := next.clone()
	kept.ID, kept.Project, kept.Created, kept.Stage, kept.File, kept.Why, kept.Key, kept.Trail, kept.Capture = m.ID, m.Project, m.Created, m.Stage, m.File, m.Why, m.Key, m.Trail, m.Capture
	kept.Updated = s.cfg.Now()
	next.Updated = kept.Updated
	return next, s.put(ctx, kept)
}
