package upload

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // clients compare it, and nothing relies on it
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/agent/pieces"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/diskimage"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/plainfile"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/scratch"
	"github.com/drover-project/drover/internal/wholefile"
)

// Bounds of what comes at a time.
const (
	// MostAtOnce is how many files may come at a time, and MostOfOne how many of them for one project.
	MostAtOnce = 32
	MostOfOne  = 8
	// piece is how much of a file is in memory.
	piece = 256 << 10
)

// The beginnings of names in the directory: of files on their way, of those that are whole, and of those that nothing tells of any more.
const (
	halfMade = ".new-"
	whole    = "image-"
	left     = "left-"
)

// keepLeft is how long a file is kept that nothing tells of: a store that was put back from a backup by mistake may be followed by another one.
const keepLeft = 7 * 24 * time.Hour

// ErrGone tells that an image was removed while its file came.
var ErrGone = fault.New(fault.NotFound, "The image was removed while its file came; what came of it is not kept")

// coming is a file on its way.
type coming struct {
	project string
	// format is that of the disk of a server; empty for what was uploaded.
	format string
	done   atomic.Int64
	// removed: its image is no more.
	removed atomic.Bool
}

// Take takes the file of an image, and returns when a job took the image in, or after patience, when that goes on. The size is less than 0 where nobody says it.
// Nothing of what does not come whole, or is refused, is kept. Conflict when the image has a file or one comes, Invalid when the content is none that can be
// taken, TooLarge when there is no room or the project may not have as much, Busy when too many come, Unavailable when the service closes.
func (s *Service) Take(ctx context.Context, id string, from io.Reader, size int64, trail reason.Trail, patience time.Duration) error {
	in, format, err := s.begin(id)
	if err != nil {
		return err
	}
	if err := s.receive(ctx, id, in, from, size, format, trail); err != nil {
		return err
	}
	return s.await(ctx, id, patience)
}

// receive takes a file that was begun, to its place.
func (s *Service) receive(ctx context.Context, id string, in *coming, from io.Reader, size int64, format string, trail reason.Trail) error {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.coming, id)
	}()
	if err := os.MkdirAll(s.cfg.Dir, 0o700); err != nil {
		return trouble(err)
	}
	if err := s.fits(in, max(size, 0)); err != nil {
		return err
	}
	to, err := scratch.NewFile(s.cfg.Dir, halfMade)
	if err != nil {
		return trouble(err)
	}
	defer to.Close()           //nolint:errcheck // what is to last was flushed
	defer os.Remove(to.Name()) //nolint:errcheck // one that is kept has another name
	file, err := s.copy(ctx, in, to, from, size)
	if err != nil {
		return err
	}
	if file.Room, err = look(to, file.Size, format); err != nil {
		return err
	}
	return s.keep(ctx, id, to, file, trail)
}

// begin has a file come, of an image of which none has.
func (s *Service) begin(id string) (*coming, string, error) {
	if s.cfg.Dir == "" {
		return nil, "", s.nowhere()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.images[id]
	if m == nil {
		return nil, "", noImage(id)
	}
	if is := s.shown(m).Status; is != Queued {
		return nil, "", fault.New(fault.Conflict, "Image status transition from %s to saving is not allowed", is).WithHint("a file comes once; make another image for another one")
	}
	if m.DiskFormat == "" || m.ContainerFormat == "" {
		return nil, "", fault.New(fault.Invalid, "Properties disk_format, container_format must be set prior to saving data.").At("disk_format").
			WithHint("disk_format is one of %s, container_format is bare", strings.Join(diskimage.Formats(), ", "))
	}
	if s.ctx.Err() != nil {
		return nil, "", errCloses
	}
	own := 0
	for _, c := range s.coming {
		if c.project == m.Project {
			own++
		}
	}
	if own >= MostOfOne || len(s.coming) >= MostAtOnce {
		return nil, "", fault.New(fault.Busy, "Too many images are being uploaded: %d, of which %d are of the project", len(s.coming), own).
			WithHint("at most %d are at a time, %d of a project; try again when one of them is done", MostAtOnce, MostOfOne)
	}
	in := &coming{project: m.Project}
	s.coming[id] = in
	return in, m.DiskFormat, nil
}

var errCloses = fault.New(fault.Unavailable, "this controller leads no more: upload the image again")

// fits refuses so many further bytes of a file if there is no room for them, or its project may not have them.
func (s *Service) fits(in *coming, more int64) error {
	size, free, err := s.cfg.Room()
	if err != nil {
		return trouble(err)
	}
	if may := free - size/10; more > max(may, 0) {
		return fault.New(fault.TooLarge, "There is not enough disk space on the image storage media: %d bytes came, and at most %d more may come", in.done.Load(), max(may, 0)).
			WithHint("a tenth of the file system of the controller's uploads stays free")
	}
	_, has := s.Used(in.project)
	if most := s.cfg.Limits(in.project).Bytes; most >= 0 && more > most-has {
		return fault.New(fault.TooLarge, "Quota exceeded for image_gigabytes: the project has %d bytes of %d, and %d more would come", has, most, more).
			WithHint("remove images, or ask for a greater limit")
	}
	return nil
}

// copy writes what comes, without its zeros: a part that has nothing else stays a hole.
func (s *Service) copy(ctx context.Context, in *coming, to *os.File, from io.Reader, size int64) (*File, error) {
	sum, old, part := sha256.New(), md5.New(), make([]byte, piece) //nolint:gosec // see its import
	for at := int64(0); ; {
		n, err := fill(from, part)
		got, ends := part[:n], errors.Is(err, io.EOF)
		switch {
		case s.ctx.Err() != nil:
			return nil, errCloses
		case in.removed.Load():
			return nil, ErrGone
		case ctx.Err() != nil: // the client is gone, or the term is over
			return nil, errCloses
		case err != nil && !ends:
			return nil, fault.New(fault.Canceled, "The upload ended before all of the image had come, behind %d bytes: %w", at+int64(n), err)
		}
		if err := s.fits(in, int64(n)); err != nil {
			return nil, err
		}
		sum.Write(got)
		old.Write(got)
		if data := bytes.TrimRight(got, "\x00"); len(data) > 0 {
			if _, err := to.WriteAt(data, at); err != nil {
				return nil, trouble(err)
			}
		}
		at += int64(n)
		in.done.Store(at)
		if !ends {
			continue
		}
		if size >= 0 && at != size {
			return nil, fault.New(fault.Canceled, "Only %d bytes of the image came, of %d", at, size)
		}
		if err := to.Truncate(at); err != nil {
			return nil, trouble(err)
		}
		return &File{Size: at, SHA256: hex.EncodeToString(sum.Sum(nil)), MD5: hex.EncodeToString(old.Sum(nil))}, nil
	}
}

// fill reads until a buffer is full, or an error. It tells the end of what is whole, io.EOF, from an end that came too early, as readers of requests do.
func fill(from io.Reader, buffer []byte) (n int, err error) {
	for n < len(buffer) && err == nil {
		var more int
		more, err = from.Read(buffer[n:])
		n += more
	}
	return n, err
}

// look refuses what cannot become the disk of a machine, by its beginning; a node looks at all of it later. It tells how large a disk has to be, in MiB.
func look(f *os.File, size int64, format string) (int64, error) {
	head := make([]byte, diskimage.HeadSize)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, trouble(err)
	}
	is, err := diskimage.Look(head[:n], size, format)
	if e, ok := errors.AsType[*fault.Error](err); ok {
		hint := e.Hint
		if format == diskimage.Raw && bytes.HasPrefix(head[:n], []byte("QFI\xfb")) {
			hint = "upload it as what it is: --disk-format qcow2"
		}
		return 0, fault.New(fault.Invalid, "The image cannot be taken: %s", e.Message).At("disk_format").WithHint("%s", hint)
	}
	return diskimage.MiB(is.VirtualSize), err
}

// keep has a file that is whole be that of its image, which a job takes in from there.
func (s *Service) keep(ctx context.Context, id string, f *os.File, file *File, trail reason.Trail) error {
	file.Name = whole + s.cfg.NewUUID()
	path := filepath.Join(s.cfg.Dir, file.Name)
	err := f.Sync()
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err == nil {
		err = wholefile.Flush(s.cfg.Dir)
	}
	if err != nil {
		return trouble(err)
	}
	kept, err := s.isWhole(ctx, id, file, trail)
	if !kept {
		_ = os.Remove(path) // or it goes at the next start
	}
	return err
}

// isWhole stores that the file of an image is there, and has a job take it in. Whether the file is to stay is told also where nobody knows what was stored.
func (s *Service) isWhole(ctx context.Context, id string, file *File, trail reason.Trail) (kept bool, err error) {
	done, err := s.mirror.Change(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	s.mu.RLock()
	m, in := s.images[id], s.coming[id]
	s.mu.RUnlock()
	if m == nil || in.removed.Load() {
		return false, ErrGone
	}
	next := m.clone()
	next.Stage, next.File, next.Key, next.Trail, next.Why, next.Updated = Whole, file, s.cfg.NewUUID(), trail, "", s.cfg.Now()
	next.DiskFormat = cmp.Or(in.format, next.DiskFormat)
	if err := s.put(ctx, next); err != nil {
		return s.mirror.Unsure(), err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.follow(id)
	return true, nil
}

// room asks the file system of the directory.
func (s *Service) room() (size, free int64, err error) {
	var f syscall.Statfs_t
	if err := syscall.Statfs(s.cfg.Dir, &f); err != nil {
		return 0, 0, err
	}
	return int64(f.Blocks) * f.Bsize, int64(f.Bavail) * f.Bsize, nil
}

// trouble is an error of the file system.
func trouble(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return fault.New(fault.TooLarge, "There is not enough disk space on the image storage media: %w", err)
	}
	return fault.New(fault.Environment, "the file of an image cannot be kept: %w", err)
}

// clear removes what processes that died left half made, and puts aside files that nothing tells of, which go after a while.
func (s *Service) clear() {
	if s.cfg.Dir == "" {
		return
	}
	scratch.Clear(s.cfg.Dir, halfMade)
	entries, err := os.ReadDir(s.cfg.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.cfg.Log.Warn("the directory of uploaded images cannot be read", "directory", s.cfg.Dir, "error", err)
		return
	}
	missing := map[string]string{} // names of files, with the ids of their images
	s.mu.RLock()
	for id, m := range s.images {
		if m.File != nil {
			missing[m.File.Name] = id
		}
	}
	s.mu.RUnlock()
	var unknown []string
	for _, e := range entries {
		name := e.Name()
		switch bare, isLeft := strings.CutPrefix(name, left); {
		case isLeft && missing[bare] != "":
			if os.Rename(filepath.Join(s.cfg.Dir, name), filepath.Join(s.cfg.Dir, bare)) == nil {
				delete(missing, bare)
			}
		case isLeft:
			s.removeAged(name)
		case missing[name] != "":
			delete(missing, name)
		case strings.HasPrefix(name, whole):
			unknown = append(unknown, name)
		}
	}
	for _, name := range unknown {
		s.putAside(name)
	}
	for _, id := range missing {
		s.cfg.Log.Warn("the file of an uploaded image is not there", "image", id, "directory", s.cfg.Dir)
	}
}

// putAside gives a file that nothing tells of another name, from which on its time runs.
func (s *Service) putAside(name string) {
	path := filepath.Join(s.cfg.Dir, left+name)
	if os.Rename(filepath.Join(s.cfg.Dir, name), path) == nil {
		now := time.UnixMicro(int64(s.cfg.Now()))
		_ = os.Chtimes(path, now, now)
	}
}

func (s *Service) removeAged(name string) {
	path := filepath.Join(s.cfg.Dir, name)
	if info, err := os.Lstat(path); err == nil && time.UnixMicro(int64(s.cfg.Now())).Sub(info.ModTime()) > keepLeft {
		_ = os.Remove(path) // or at the next start
	}
}

// Content opens the file of an image that has one. NotFound where there is none.
func (s *Service) Content(id string) (*os.File, File, error) {
	s.mu.RLock()
	m := s.images[id]
	s.mu.RUnlock()
	if m == nil || m.File == nil || s.cfg.Dir == "" {
		return nil, File{}, noImage(id)
	}
	f, err := plainfile.Open(filepath.Join(s.cfg.Dir, m.File.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, File{}, fault.New(fault.NotFound, "The file of the image %s is lost: the controller that leads has it not in its directory of uploads", id).WithHint("remove the image, and upload it again")
	}
	if err != nil {
		return nil, File{}, fault.New(fault.Environment, "the file of an image cannot be opened: %w", err)
	}
	return f, *m.File, nil
}

// Image tells what the file of an image is, for nodes.
func (s *Service) Image(id string) (agent.Image, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	m := s.images[id]
	if m == nil || m.File == nil || m.Stage == Going {
		return agent.Image{}, noImage(id)
	}
	return agent.Image{Name: id, SHA256: m.File.SHA256, Format: m.DiskFormat, Source: cluster.UploadSource(id), Size: m.File.Size, VirtualSize: m.File.Room}, nil
}

// Read reads a part of the file of an image from a place on, for a node.
func (s *Service) Read(id string, at int64) (agent.Piece, error) {
	f, _, err := s.Content(id)
	if err != nil {
		return agent.Piece{}, err
	}
	defer f.Close() //nolint:errcheck // it was read
	p, err := pieces.Read(f, at)
	if err != nil {
		return p, fault.New(fault.Environment, "the file of an image cannot be read: %w", err)
	}
	return p, nil
}
