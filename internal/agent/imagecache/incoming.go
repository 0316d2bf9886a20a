package imagecache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/agent/pieces"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/scratch"
)

// incoming is an image that comes piece by piece from another node.
type incoming struct {
	cache *Cache
	by    string // who brings it
	image Image
	begun time.Time
	idle  *time.Timer // ends it when nothing has come for long

	mu    sync.Mutex
	to    *os.File // nil when it has ended
	hash  hash.Hash
	done  int64
	after func() // what is held for it is let go
}

// Piece reads a part of a copy from a place on, or tells its size alone, for a place before the beginning. NotFound where there is no copy.
func (c *Cache) Piece(sum string, at int64) (pieces.Piece, error) {
	if err := cluster.CheckSHA256(sum); err != nil {
		return pieces.Piece{}, err
	}
	f, err := os.OpenFile(filepath.Join(c.dir, sum), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return pieces.Piece{}, fault.New(fault.NotFound, "there is no copy of the image with the SHA-256 %s", sum)
	}
	if err != nil {
		return pieces.Piece{}, fault.New(fault.Environment, "a copy of an image cannot be opened: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was read
	p, err := pieces.Read(f, at)
	if err != nil {
		return p, fault.New(fault.Environment, "a copy of an image cannot be read: %w", err)
	}
	return p, nil
}

// Keep takes a piece of an image that somebody brings from another node: the first waits until nobody else fetches the image, and begins it anew.
// The last one has it checked and kept. It returns true when there is a whole copy, and no more has to come. What nobody goes on with for a while is given up.
func (c *Cache) Keep(ctx context.Context, image Image, by string, p pieces.Piece, log func(string)) (bool, error) {
	have, err := c.take(ctx, image, by, p, log)
	return have, about(image, err)
}

func (c *Cache) take(ctx context.Context, image Image, by string, p pieces.Piece, log func(string)) (bool, error) {
	if image.SHA256 == "" || image.Format == "" || image.Size <= 0 || p.Size != image.Size {
		return false, fault.New(fault.Invalid, "what comes has %d bytes, and the image %d of the format %q and the sum %q", p.Size, image.Size, image.Format, image.SHA256)
	}
	if err := p.Check(); err != nil {
		return false, err
	}
	in := c.coming(image.SHA256, by)
	if p.From == 0 {
		if in != nil {
			in.end()
		}
		var err error
		if in, err = c.expect(ctx, image, by); in == nil || err != nil {
			return err == nil, err
		}
	}
	if in == nil {
		return false, fault.New(fault.WrongState, "nothing of it has come before, or it was given up").WithHint("it is begun anew from its first byte")
	}
	return in.take(ctx, &p, log)
}

// coming is what somebody brings of an image; nil if nothing has come.
func (c *Cache) coming(sum, by string) *incoming {
	c.mu.Lock()
	defer c.mu.Unlock()
	if in := c.incoming[sum]; in != nil && in.by == by {
		return in
	}
	return nil
}

// expect makes room for an image; nil if it has come meanwhile.
func (c *Cache) expect(ctx context.Context, image Image, by string) (in *incoming, err error) {
	if err := c.begin(image); err != nil {
		return nil, err
	}
	letGo, err := c.hold(ctx, image)
	if err != nil {
		return nil, err
	}
	defer func() {
		if in == nil {
			letGo()
		}
	}()
	if c.has(image) {
		return nil, nil //nolint:nilnil // there is nothing to be brought
	}
	to, _, err := c.half(image, image.Size)
	if err != nil {
		return nil, err
	}
	in = &incoming{cache: c, by: by, image: image, begun: c.now(), to: to, hash: sha256.New(), after: letGo}
	in.idle = time.AfterFunc(c.stall, in.end)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.incoming[image.SHA256] = in
	return in, nil
}

// take writes a piece; one that has come is passed over.
func (in *incoming) take(ctx context.Context, p *pieces.Piece, log func(string)) (bool, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.to == nil:
		return false, fault.New(fault.WrongState, "it was given up: nothing came of it for %s", in.cache.stall)
	case p.Next == in.done && p.Next > 0:
		return false, nil
	case p.From != in.done:
		return false, fault.New(fault.WrongState, "the piece from %d comes where that from %d is the next", p.From, in.done)
	}
	in.idle.Reset(in.cache.stall)
	whole, err := in.write(ctx, p, log)
	if whole || err != nil {
		in.close()
	}
	return whole, err
}

func (in *incoming) write(ctx context.Context, p *pieces.Piece, log func(string)) (bool, error) {
	if _, err := in.to.WriteAt(p.Data, p.At); err != nil {
		return false, trouble(err)
	}
	in.zeros(p.At - p.From)
	in.hash.Write(p.Data)
	in.zeros(p.Next - p.At - int64(len(p.Data)))
	in.done = p.Next
	if !p.Last() {
		return false, nil
	}
	if err := in.to.Truncate(p.Size); err != nil {
		return false, trouble(err)
	}
	_, err := in.cache.checked(ctx, in.to, &progress{cache: in.cache, image: in.image, done: in.done, begun: in.begun, sum: hex.EncodeToString(in.hash.Sum(nil))}, log)
	return err == nil, err
}

// zeros has so many zeros be part of what was seen.
func (in *incoming) zeros(n int64) {
	for zeros := make([]byte, min(n, 1<<20)); n > 0; n -= int64(len(zeros)) {
		in.hash.Write(zeros[:min(n, int64(len(zeros)))])
	}
}

// end gives it up, if it has not ended.
func (in *incoming) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.to != nil {
		in.close()
	}
}

// close leaves nothing but a copy that was kept.
func (in *incoming) close() {
	in.idle.Stop()
	_ = os.Remove(in.to.Name()) // one that is kept has another name; else it goes with the next fetch
	_ = in.to.Close()
	in.to = nil
	in.cache.mu.Lock()
	if in.cache.incoming[in.image.SHA256] == in {
		delete(in.cache.incoming, in.image.SHA256)
	}
	in.cache.mu.Unlock()
	in.after()
}

// half opens the file that an image is fetched into, of at least so many bytes, and tells how many may come. Its name and its lock are its owner's to let go.
func (c *Cache) half(image Image, size int64) (*os.File, int64, error) {
	limit, err := c.makeRoom(size)
	if err != nil {
		return nil, 0, err
	}
	if size > limit {
		return nil, 0, fault.New(fault.Exhausted, "there is no room for it in %s: it has %d bytes, and %d may be used", c.dir, size, limit)
	}
	to, err := scratch.NewFile(c.dir, halfMade)
	if err != nil {
		return nil, 0, trouble(err)
	}
	if image.Size > 0 {
		limit = image.Size
	}
	return to, limit, nil
}

// hold waits until nobody else fetches an image, and has it until what is returned is called.
func (c *Cache) hold(ctx context.Context, image Image) (letGo func(), err error) {
	of := c.use(image.SHA256)
	select {
	case of.held <- struct{}{}:
		return func() { <-of.held; c.unuse(image.SHA256, of) }, nil
	case <-ctx.Done():
		c.unuse(image.SHA256, of)
		return nil, fault.New(fault.Canceled, "its fetch for another one was waited for: %w", context.Cause(ctx))
	}
}

// has tells whether there is a copy, which counts as used then.
func (c *Cache) has(image Image) bool {
	path := filepath.Join(c.dir, image.SHA256)
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() != image.Size {
		return false
	}
	_ = os.Chtimes(path, time.Time{}, c.now()) // one that does not count as used is fetched again some day
	return true
}
