package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"

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

// file is one of them, as it is and compressed.
type file struct {
	kind       string
	text, less []byte
}

// kinds are the media types of the files by the ends of their names. They are told here since a machine's own table of them may say
// otherwise, and a browser that is told not to guess would then run nothing.
var kinds = map[string]string{
	".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".txt": "text/plain; charset=utf-8",
}

// loadShell reads the files, which are in the program.
func loadShell() *shell {
	s := &shell{files: map[string]file{}}
	sum := sha256.New()
	err := fs.WalkDir(dist, "dist", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := dist.ReadFile(name)
		if err != nil {
			return err
		}
		_, _ = sum.Write(text) // a hash takes everything
		s.files[strings.TrimPrefix(name, "dist/")] = file{kinds[path.Ext(name)], text, compressed(text)}
		return nil
	})
	if err != nil { // they are in the program
		panic(err)
	}
	const enough = 6
	s.version = hex.EncodeToString(sum.Sum(nil)[:enough])
	return s
}

func compressed(text []byte) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil { // it is in memory
		panic(err)
	}
	return out.Bytes()
}

// ServeHTTP answers with a file, or for each address that a screen may have with the page: which screen that is, it finds out itself.
func (s *shell) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	f, ok := s.files[name]
	switch {
	case ok && strings.HasPrefix(name, "assets/"): // its name has a sum of what is in it
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	case strings.HasPrefix(name, "assets/"), strings.HasPrefix(name, "api/"):
		refuse(w, fault.New(fault.NotFound, "there is nothing at this address"))
		return
	case !ok:
		f = s.files["index.html"]
		w.Header().Set("Cache-Control", "no-cache")
	}
	w.Header().Set("Content-Type", f.kind)
	w.Header().Set("Vary", "Accept-Encoding")
	text := f.text
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") && len(f.less) < len(f.text) {
		w.Header().Set("Content-Encoding", "gzip")
		text = f.less
	}
	_, _ = w.Write(text) // the client may be gone
}
