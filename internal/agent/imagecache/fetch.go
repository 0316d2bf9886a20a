package imagecache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/diskimage"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/plainfile"
)

// fetch gets an image, looks at it and keeps it under its sum. What it returns is complete.
func (c *Cache) fetch(ctx context.Context, image Image, log func(string)) (found Image, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	from, size, err := open(ctx, image.Source)
	if err != nil {
		return Image{}, err
	}
	defer func() { _ = from.Close() }() // it was only read
	if image.Size > 0 && size >= 0 && size != image.Size {
		return Image{}, fault.New(fault.Failed, "there it has %d bytes, and the image has %d", size, image.Size).
			WithHint("what is there was changed: add it as another image")
	}
	to, limit, err := c.half(image, max(size, image.Size))
	if err != nil {
		return Image{}, err
	}
	defer func() {
		if left := ifThere(os.Remove(to.Name())); err != nil && left != nil { // one that is kept has another name
			err = errors.Join(err, left)
		}
		_ = to.Close()
	}()
	log(fmt.Sprintf("fetching image %s from %s", image.Name, image.Source))
	copied := &progress{cache: c, image: image, to: to, size: max(size, image.Size), limit: limit, log: log, exact: image.Size > 0, told: c.now(), begun: c.now()}
	if err := copied.all(ctx, cancel, from); err != nil {
		return Image{}, err
	}
	return c.checked(ctx, to, copied, log)
}

// checked looks at what was fetched, and keeps it if it is what it was said to be.
func (c *Cache) checked(ctx context.Context, f *os.File, p *progress, log func(string)) (Image, error) {
	image := p.image
	if image.SHA256 != "" && image.SHA256 != p.sum {
		return Image{}, fault.New(fault.Failed, "it has another SHA-256 than it should have: %s, not %s", p.sum, image.SHA256).At("sha256").
			WithHint("what is there is damaged, or was changed: if it is meant, add it as another image")
	}
	head := make([]byte, diskimage.HeadSize)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return Image{}, trouble(err)
	}
	is, err := diskimage.Look(head[:n], p.done, image.Format)
	if err != nil {
		return Image{}, err
	}
	if err := ask(ctx, f.Name(), is); err != nil {
		return Image{}, err
	}
	found := Image{Name: image.Name, SHA256: p.sum, Format: is.Format, Source: image.Source, Size: p.done, VirtualSize: virtualMiB(is)}
	if image.VirtualSize > 0 && image.VirtualSize != found.VirtualSize {
		return Image{}, fault.New(fault.Failed, "it is for a disk of %d MiB, and %d was said", found.VirtualSize, image.VirtualSize)
	}
	if err := c.keep(f, found); err != nil {
		return Image{}, err
	}
	log(fmt.Sprintf("image %s has come: %s in %s", image.Name, size(p.done), c.now().Sub(p.begun).Round(100*time.Millisecond)))
	return found, nil
}

// progress is a fetch that goes on.
type progress struct {
	cache *Cache
	image Image
	to    *os.File
	size  int64 // 0 or less if nobody says
	limit int64
	exact bool // the limit is the size of the image, and not the room that there is
	log   func(string)

	done        int64
	told, begun time.Time
	sum         string
}

// all copies everything, and ends a source that sends nothing for too long.
func (p *progress) all(ctx context.Context, cancel context.CancelCauseFunc, from io.Reader) error {
	sent := time.AfterFunc(p.cache.stall, func() {
		cancel(fault.New(fault.Failed, "nothing came of it for %s", p.cache.stall).WithHint("is its server reachable from the node?"))
	})
	defer sent.Stop()
	hash := sha256.New()
	piece := make([]byte, 1<<20)
	for {
		if ctx.Err() != nil {
			return given(ctx)
		}
		n, err := from.Read(piece)
		sent.Reset(p.cache.stall)
		if p.done += int64(n); p.done > p.limit {
			return p.tooMuch()
		}
		hash.Write(piece[:n])
		if _, err := p.to.Write(piece[:n]); err != nil {
			return trouble(err)
		}
		p.tell()
		switch {
		case errors.Is(err, io.EOF):
			p.sum = hex.EncodeToString(hash.Sum(nil))
			if p.size > 0 && p.done < p.size {
				return fault.New(fault.Failed, "only %d bytes came, of %d", p.done, p.size)
			}
			return nil
		case err != nil && ctx.Err() != nil:
			return given(ctx)
		case err != nil:
			return fault.New(fault.Failed, "its source ended before all had come, behind %d bytes: %w", p.done, err)
		}
	}
}

// given is the error of a fetch that was ended.
func given(ctx context.Context) error {
	why := context.Cause(ctx)
	if fault.Is(why, fault.Failed) {
		return why
	}
	return fault.New(fault.Canceled, "its fetch was ended: %w", why)
}

func (p *progress) tooMuch() error {
	if p.exact {
		return fault.New(fault.Failed, "more comes than the %d bytes that the image has", p.limit).WithHint("what is there was changed: add it as another image")
	}
	return fault.New(fault.Exhausted, "there is no room for it in %s: more than %d bytes come", p.cache.dir, p.limit)
}

// tell says how far the fetch has come, once in a while.
func (p *progress) tell() {
	now := p.cache.now()
	if now.Sub(p.told) < tellEvery {
		return
	}
	p.told = now
	if p.size > 0 {
		p.log(fmt.Sprintf("image %s: %d %% of %s", p.image.Name, p.done*100/p.size, size(p.size)))
		return
	}
	p.log(fmt.Sprintf("image %s: %s", p.image.Name, size(p.done)))
}

// size is a number of bytes for people.
func size(bytes int64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d KiB", (bytes+1<<10-1)>>10)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}

// open opens a source; size is negative if nobody says how large it is.
func open(ctx context.Context, source string) (from io.ReadCloser, size int64, err error) {
	if _, is := cluster.Upload(source); is {
		return nil, 0, fault.New(fault.NotFound, "it was uploaded, and neither the controller nor another node brought its file").
			WithHint("have it uploaded again; the controller keeps such files in the directory of its setting uploads")
	}
	if source[0] == '/' {
		return openFile(source)
	}
	return openURL(ctx, source)
}

// openFile opens a plain file that everybody on the node may read, and no other.
func openFile(path string) (io.ReadCloser, int64, error) {
	f, err := plainfile.Open(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, 0, fault.New(fault.NotFound, "there is no such file on the node").WithHint("the path is one of the node that fetches it; put the file there, or name a URL")
	case errors.Is(err, plainfile.ErrNotPlain):
		return nil, 0, fault.New(fault.Invalid, "%w", err).At("source")
	case err != nil:
		return nil, 0, fault.New(fault.Environment, "it cannot be opened: %w", err)
	}
	info, err := f.Stat()
	closed := ""
	if err == nil && os.Geteuid() == 0 { // who names a path is not root of the node, and a machine shows what is in it
		closed, err = plainfile.Closed(f)
	}
	if closed != "" {
		err = fault.New(fault.Denied, "not everybody on the node may read it").At("source").WithHint("%s", plainfile.Opens(closed))
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// client fetches what is packed as it is, and goes nowhere but where web servers are.
func client() *http.Client {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableCompression: true, DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSHandshakeTimeout: stall, ResponseHeaderTimeout: stall}
	return &http.Client{Transport: t, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		switch {
		case len(via) > 10:
			return errors.New("it leads from one place to the next more than 10 times")
		case r.URL.Scheme != "https" && (r.URL.Scheme != "http" || via[0].URL.Scheme == "https"):
			return fmt.Errorf("it leads from %s to %s, which is not followed", via[0].URL.Scheme, r.URL.Scheme)
		}
		return nil
	}}
}

func openURL(ctx context.Context, url string) (io.ReadCloser, int64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, 0, fault.New(fault.Invalid, "it is no URL: %w", err).At("source")
	}
	res, err := client().Do(r)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, 0, given(ctx)
	case err != nil:
		return nil, 0, fault.New(fault.Failed, "it cannot be fetched: %w", err).WithHint("is its server reachable from the node?")
	case res.StatusCode == http.StatusNotFound:
		err = fault.New(fault.NotFound, "its server has no such file (%s)", res.Status)
	case res.StatusCode != http.StatusOK:
		err = fault.New(fault.Failed, "its server answers %s", res.Status)
	}
	if err != nil {
		_ = res.Body.Close()
		return nil, 0, err
	}
	return res.Body, res.ContentLength, nil
}
