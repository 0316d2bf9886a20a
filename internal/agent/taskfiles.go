package agent

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// writing are the parameters of a task that say how files are written.
type writing struct {
	Cwd            string `json:"cwd"`
	Timeout        length `json:"timeout"`
	Permissions    mode   `json:"permissions"`
	DirPermissions mode   `json:"dir_permissions"`
}

// at is a path of a parameter. One that is relative to nothing would be to the directory that the controller happens to run in.
func (w *writing) at(path, parameter string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.Cwd, path)
	}
	if !filepath.IsAbs(path) {
		return "", fault.New(fault.Invalid, "%q is no absolute path, and there is no absolute cwd that it could be relative to", path).At("parameters." + parameter)
	}
	return path, nil
}

// uploading are the parameters of upload_file.
type uploading struct {
	writing

	Path string `json:"path"`
	Data *text  `json:"data"`
}

// readUpload reads the parameters of upload_file, and says which file it is about.
func (r *taskRun) readUpload() (p *uploading, path string, err error) {
	p = &uploading{}
	if err := r.decode(p); err != nil {
		return nil, "", err
	}
	if p.Path == "" || p.Data == nil {
		return nil, "", r.missing("path and data")
	}
	path, err = p.at(p.Path, "path")
	return p, path, err
}

// usualPermissions are those of files that tasks write without saying which.
const usualPermissions = 0o644

// upload writes a file as a whole, or not at all.
func (r *taskRun) upload() error {
	p, path, err := r.readUpload()
	if err != nil {
		return err
	}
	return r.inTime(&p.writing, func(ctx context.Context) error {
		return r.put(ctx, &p.writing, path, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(string(*p.Data))), nil })
	})
}

// copyFiles copies files that the node can reach.
func (r *taskRun) copyFiles() error {
	var p struct {
		writing

		Files []struct {
			Src string `json:"src"`
			Dst string `json:"dst"`
		} `json:"files"`
	}
	if err := r.decode(&p); err != nil {
		return err
	}
	for _, f := range p.Files { // all are looked at before one is copied
		if _, err := p.at(f.Src, "files"); err != nil {
			return err
		}
		if _, err := p.at(f.Dst, "files"); err != nil {
			return err
		}
	}
	return r.inTime(&p.writing, func(ctx context.Context) error {
		for _, f := range p.Files {
			src, _ := p.at(f.Src, "files")
			dst, _ := p.at(f.Dst, "files")
			if err := r.put(ctx, &p.writing, dst, func() (io.ReadCloser, error) { return os.Open(src) }); err != nil {
				return err
			}
		}
		return nil
	})
}

// inTime writes files, unless it takes longer than the task may.
func (r *taskRun) inTime(w *writing, write func(context.Context) error) error {
	limit, err := w.Timeout.limit()
	if err != nil {
		return err
	}
	late := fault.New(fault.Failed, "the task took longer than %s on node %s", limit, r.agent.cfg.Node)
	ctx, cancel := context.WithTimeoutCause(r.ctx, limit, late)
	defer cancel()
	err = write(ctx)
	if err != nil && r.ctx.Err() == nil && ctx.Err() != nil {
		return late
	}
	return err
}

// put writes a file beside the one that it then takes the place of. The order may have been overtaken while it was written, so it is
// looked at again before it shows.
func (r *taskRun) put(ctx context.Context, w *writing, path string, from func() (io.ReadCloser, error)) error {
	if r.task.Noop {
		r.log("would write " + path)
		return nil
	}
	written, err := fill(ctx, path, w, from)
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	if err == nil {
		defer os.Remove(written) //nolint:errcheck // it has its place by then
		hold, refused := r.enter(r.claim())
		if refused != nil {
			return refused
		}
		defer hold.Leave()
		err = errors.Join(os.Rename(written, path), flushDir(filepath.Dir(path)))
	}
	if err != nil {
		return fault.New(fault.Failed, "cannot write %s on node %s: %w", path, r.agent.cfg.Node, err)
	}
	r.log("wrote " + path)
	return nil
}

// fill writes what is read to a file beside a path and returns its name. What is read may never answer (a pipe that nobody
// writes to, a server that is gone): when ctx ends first, who reads is left behind, and removes what it wrote.
func fill(ctx context.Context, path string, w *writing, from func() (io.ReadCloser, error)) (written string, err error) {
	type outcome struct {
		written string
		err     error
	}
	done, taken := make(chan outcome), make(chan struct{})
	defer close(taken)
	go func() {
		o := outcome{}
		o.written, o.err = fillNow(ctx, path, w, from)
		select {
		case done <- o:
		case <-taken:
			_ = os.Remove(o.written) // nobody wants it any more
		}
	}()
	select {
	case o := <-done:
		return o.written, o.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func fillNow(ctx context.Context, path string, w *writing, from func() (io.ReadCloser, error)) (written string, err error) {
	src, err := from()
	if err != nil {
		return "", err
	}
	defer src.Close() //nolint:errcheck // it is only read
	if err := makeDirs(filepath.Dir(path), w.DirPermissions); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".drover-*")
	if err != nil {
		return "", err
	}
	_, err = io.Copy(f, &untilEnd{ctx, src})
	err = errors.Join(err, f.Chmod(w.Permissions.or(usualPermissions)), f.Sync(), f.Close())
	if err != nil {
		_ = os.Remove(f.Name()) // the first error counts
		return "", err
	}
	return f.Name(), nil
}

// untilEnd reads until a context ends.
type untilEnd struct {
	ctx context.Context //nolint:containedctx // it is that of one copy
	src io.Reader
}

func (r *untilEnd) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.src.Read(p)
}

// makeDirs makes the directories that are missing. Those that are to have permissions get just these.
func makeDirs(dir string, perm mode) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := makeDirs(filepath.Dir(dir), perm); err != nil {
		return err
	}
	err := os.Mkdir(dir, 0o755)      //nolint:gosec // programs of other users read there, unless dir_permissions say otherwise
	if errors.Is(err, fs.ErrExist) { // another task was quicker; if it is no directory the next step says so
		return nil
	}
	if err == nil && perm.said {
		err = os.Chmod(dir, perm.or(0))
	}
	return err
}

// flushDir makes the names in a directory durable.
func flushDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
