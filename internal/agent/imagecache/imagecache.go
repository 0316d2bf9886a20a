// Package imagecache keeps copies of images on a node, each under the SHA-256 of its content: they are fetched from a path or a URL, checked, and
// put in place whole.
//
// Invariants:
//   - What is under a sum has that sum, is of the format that was said, and leads to no other file (TestWhatIsNoImageIsNotKept).
//   - A fetch that fails, or is killed, leaves nothing (TestNothingIsLeft).
//   - Who wants the same image at the same time waits for one fetch (TestOneFetchForTwo).
//   - No source fills the disk: of the room that is free a tenth stays (TestNoRoom, TestABodyWithoutAnEnd).
//   - A copy that somebody uses, or that a disk stands on, is not taken away (TestRoomIsMade, TestWhatDisksStandOnStays).
//   - What is brought from another node is held to all that, whoever sends it (TestWhatAnotherNodeBrings), and given up when no more comes (TestWhatNobodyGoesOnWith).
package imagecache

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/diskimage"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/scratch"
	"github.com/drover-project/drover/internal/wholefile"
)

// Image says which file is meant. To be fetched for the first time it may lack its sum, format and sizes.
type Image struct {
	Name        string `json:"name"`
	SHA256      string `json:"sha256,omitempty"`
	Format      string `json:"format,omitempty"`
	Source      string `json:"source"`
	Size        int64  `json:"size,omitempty"`
	VirtualSize int64  `json:"virtual_size,omitempty"` // MiB
}

// Times and sizes of fetching.
const (
	// stall is how long a source may send nothing.
	stall = time.Minute
	// unused is how long a copy is kept that nobody uses.
	unused = 30 * 24 * time.Hour
	// tellEvery is the pause between two lines that tell how far a fetch has come.
	tellEvery = 5 * time.Second
)

// halfMade begins the names of files that are being fetched. Who does so holds a lock on the file.
const halfMade = ".new-"

// Cache is safe for concurrent use.
type Cache struct {
	dir   string
	stall time.Duration
	now   func() time.Time
	room  func() (free int64, err error) // bytes
	// stoodOn are the sums of images that disks of the node stand on.
	stoodOn func() (map[string]bool, error)

	mu     sync.Mutex
	copies map[string]*one // by sum
	// incoming are images that are brought piece by piece, by sum.
	incoming map[string]*incoming
}

// one is a copy that is wanted, or used.
type one struct {
	held  chan struct{} // holds a token while somebody looks whether it is there, and fetches it
	users int
}

// Open returns the cache in a directory, which is made when the first image comes. Copies whose sums are among stoodOn stay for as long as they are.
func Open(dir string, now func() time.Time, stoodOn func() (map[string]bool, error)) *Cache {
	c := &Cache{dir: dir, stall: stall, now: now, stoodOn: stoodOn, copies: map[string]*one{}, incoming: map[string]*incoming{}}
	c.room = c.free
	return c
}

// free is how much room the file system has, in bytes.
func (c *Cache) free() (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(c.dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * s.Bsize, nil
}

// prepare makes the directory, and clears what a kill left there.
func (c *Cache) prepare() error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return fault.New(fault.Environment, "cannot make the directory of images: %w", err)
	}
	scratch.Clear(c.dir, halfMade)
	return nil
}

// ifThere is an error, but for that something was not there.
func ifThere(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Look has an image fetched and looked at: what it returns is complete. What was said of it is held to.
func (c *Cache) Look(ctx context.Context, image Image, log func(string)) (Image, error) {
	if image.SHA256 != "" && image.Format != "" && image.Size > 0 && image.VirtualSize > 0 {
		_, release, err := c.Have(ctx, image, log)
		if err == nil {
			release()
		}
		return image, err
	}
	if err := c.begin(image); err != nil {
		return Image{}, err
	}
	found, err := c.fetch(ctx, image, log)
	return found, about(image, err)
}

// begin checks what every call has checked.
func (c *Cache) begin(image Image) error {
	err := cluster.CheckSource(image.Source)
	if err == nil && image.SHA256 != "" {
		err = cluster.CheckSHA256(image.SHA256)
	}
	if err != nil {
		return about(image, err)
	}
	return c.prepare()
}

// about says of which image an error is.
func about(image Image, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return fault.New(e.Code, "image %s (%s): %s", image.Name, image.Source, e.Message).At(e.Field).WithHint("%s", e.Hint)
	}
	return fault.New(fault.Environment, "image %s (%s): %w", image.Name, image.Source, err)
}

// Have returns the path of a copy, which is fetched if there is none. It stays until it is released.
func (c *Cache) Have(ctx context.Context, image Image, log func(string)) (path string, release func(), err error) {
	if err := c.begin(image); err != nil {
		return "", nil, err
	}
	if image.SHA256 == "" {
		return "", nil, about(image, fault.New(fault.Invalid, "it is not said which sum it has").At("sha256"))
	}
	letGo, err := c.hold(ctx, image)
	if err != nil {
		return "", nil, about(image, err)
	}
	defer letGo()
	of := c.use(image.SHA256)
	release = func() { c.unuse(image.SHA256, of) }
	path = filepath.Join(c.dir, image.SHA256)
	if c.has(image) {
		return path, release, nil
	}
	if _, err := c.fetch(ctx, image, log); err != nil {
		release()
		return "", nil, about(image, err)
	}
	return path, release, nil
}

func (c *Cache) use(sum string) *one {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.copies[sum]
	if of == nil {
		of = &one{held: make(chan struct{}, 1)}
		c.copies[sum] = of
	}
	of.users++
	return of
}

func (c *Cache) unuse(sum string, of *one) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of.users--; of.users == 0 {
		delete(c.copies, sum)
	}
}

// keep puts a file in place that was fetched and looked at.
func (c *Cache) keep(f *os.File, image Image) error {
	err := f.Sync()
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(c.dir, image.SHA256))
	}
	if err == nil {
		err = wholefile.Flush(c.dir)
	}
	if err != nil {
		return trouble(err)
	}
	return nil
}

// trouble is an error of writing a file.
func trouble(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return fault.New(fault.Exhausted, "there is no room for it: %w", err)
	}
	return fault.New(fault.Environment, "it cannot be kept: %w", err)
}

// makeRoom takes copies away that nobody uses: those that nobody has used for long, and, as long as there is no room for so many bytes, those
// that were used longest ago. Where it cannot be told which images disks stand on, none is taken away. It returns how much may be fetched then.
func (c *Cache) makeRoom(size int64) (int64, error) {
	type kept struct {
		sum  string
		used time.Time
	}
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return 0, trouble(err)
	}
	needed, unsure := c.stoodOn()
	var all []kept
	for _, e := range entries {
		if info, err := e.Info(); err == nil && unsure == nil && cluster.CheckSHA256(e.Name()) == nil && !needed[e.Name()] {
			all = append(all, kept{e.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b kept) int { return cmp.Or(a.used.Compare(b.used), strings.Compare(a.sum, b.sum)) })
	for {
		free, err := c.room()
		if err != nil {
			return 0, trouble(err)
		}
		room := free - free/10
		if unsure != nil && size > room {
			return 0, fault.New(fault.Environment, "there is no room for it in %s, and it cannot be told which images disks stand on, so none is taken away: %w", c.dir, unsure)
		}
		if len(all) == 0 || size <= room && c.now().Sub(all[0].used) < unused {
			return room, nil
		}
		if err := c.drop(all[0].sum); err != nil {
			return 0, trouble(err)
		}
		all = all[1:]
	}
}

// drop takes a copy away that nobody uses.
func (c *Cache) drop(sum string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.copies[sum] != nil {
		return nil
	}
	return ifThere(os.Remove(filepath.Join(c.dir, sum)))
}

// virtualMiB is how large a disk must be for what was found.
func virtualMiB(h diskimage.Head) int64 { return diskimage.MiB(h.VirtualSize) }
