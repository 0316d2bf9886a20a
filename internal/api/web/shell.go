package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/drover-project/drover/internal/fault"
)

// dist are the files of the page, which tools/webbuild makes of web/ (make web).
//
//go:embed all:dist
var dist embed.FS

// shell serves the files of the page.
type shell struct {
	files map[string]file
	// version tells one build of the page from others, so that a tab learns that there is a newer one.
	version string
}

// file is one of them. It is read from the program for whoever asks, and compressed for the first who does: who never opens the page, or no console in it,
// has none of that in memory.
type file struct {
	name, kind string
	size       int64
	less       func() []byte
}

// assets is where the files are whose names have a sum of what is in them.
const assets = "assets/"

// kinds are the media types of the files by the ends of their names. They are told here since a machine's own table of them may say
// otherwise, and a browser that is told not to guess would then run nothing.
var kinds = map[string]string{
	".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".txt": "text/plain; charset=utf-8",
}

// loadShell looks which files there are in the program.
func loadShell() *shell {
	s := &shell{files: map[string]file{}}
	sum := sha256.New()
	err := fs.WalkDir(dist, "dist", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		short := strings.TrimPrefix(name, "dist/")
		s.files[short] = file{name, kinds[path.Ext(name)], info.Size(), sync.OnceValue(func() []byte { return compressed(name) })}
		_, _ = io.WriteString(sum, short+"\n") // a hash takes everything
		if strings.HasPrefix(short, assets) {
			return nil
		}
		return copyFile(sum, name)
	})
	if err != nil { // they are in the program
		panic(err)
	}
	const enough = 6
	s.version = hex.EncodeToString(sum.Sum(nil)[:enough])
	return s
}

func compressed(name string) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		err = copyFile(w, name)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil { // it is in memory
		panic(err)
	}
	return bytes.Clone(out.Bytes()) // which is as long as it is, not as it might have become
}

func copyFile(to io.Writer, name string) error {
	f, err := dist.Open(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, f)
	return errors.Join(err, f.Close())
}

// ServeHTTP answers with a file, or for each address that a screen may have with the page: which screen that is, it finds out itself.
func (s *shell) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	f, ok := s.files[name]
	switch {
	case ok && strings.HasPrefix(name, assets):
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	case strings.HasPrefix(name, assets), strings.HasPrefix(name, "api/"):
		refuse(w, fault.New(fault.NotFound, "there is nothing at this address"))
		return
	case !ok:
		f = s.files["index.html"]
		w.Header().Set("Cache-Control", "no-cache")
	}
	w.Header().Set("Content-Type", f.kind)
	w.Header().Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		if less := f.less(); int64(len(less)) < f.size {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(less) // the client may be gone
			return
		}
	}
	_ = copyFile(w, f.name) // here, too
}
