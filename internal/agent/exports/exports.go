// Package exports keeps the exports of instances on a node: a directory for each, under the name of the instance, with config.ini (package
// export) and the dumps of its disks. What is being made is beside them, under an id, until it is whole.
//
// Invariants:
//   - Under a name is an export that is whole, or none, whenever the agent is killed; a new one takes the place of the one before at one moment
//     (TestANewExportTakesThePlace), or, on a file system that cannot do that, behind it (TestAFileSystemThatExchangesNothing).
//   - What is named from outside is in the directory of exports, or is refused (TestNothingElseIsRead).
//   - Holes stay holes, and files are their owner's alone (TestPieces).
//   - What nobody made whole goes when it is a week old (TestWhatIsLeftGoes).
package exports

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/export"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/wholefile"
)

const (
	// staged has what is being made. It begins with a dot, as no export does.
	staged = ".staged"
	// replaced begins the name of an export there whose place another one is just taking.
	replaced = ".replaced-"
	// left is how long something is kept there that nobody makes whole: longer than any job waits for a node.
	left = 7 * 24 * time.Hour
)

// Exports are those of a node. It is safe for concurrent use; who makes one under an id has that id for itself.
type Exports struct {
	dir string
	// exchange has two directories change places at one moment.
	exchange func(one, other string) error
}

// Open returns the exports in a directory, which is made with the first. What was begun there long ago is removed.
func Open(dir string, now time.Time) *Exports {
	x := &Exports{dir: dir, exchange: func(one, other string) error {
		return unix.Renameat2(unix.AT_FDCWD, one, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
	}}
	entries, _ := os.ReadDir(filepath.Join(dir, staged)) // most nodes have none
	for _, e := range entries {
		if name, is := strings.CutPrefix(e.Name(), replaced); is {
			x.putBack(name)
			continue
		}
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > left {
			_ = os.RemoveAll(filepath.Join(dir, staged, e.Name())) // it is tried again at the next start
		}
	}
	return x
}

// List returns the names of the exports, in order.
func (x *Exports) List() ([]string, error) {
	entries, err := os.ReadDir(x.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Environment, "cannot list the exports: %w", err)
	}
	names := []string{}
	for _, e := range entries {
		if e.IsDir() && hypervisor.CheckName(e.Name()) == nil {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// Half is what is being made of an export, or of its copy on another node, or was left of one.
type Half struct {
	// ID is what it is made under, by which it is discarded.
	ID string `json:"id"`
	// Files are the names of its dumps, in order.
	Files []string `json:"files"`
	// Size is how many bytes they have.
	Size int64 `json:"size"`
	// Since is when something of it was written last.
	Since time.Time `json:"since"`
}

// Halves lists what is not whole, by id.
func (x *Exports) Halves() ([]Half, error) {
	entries, err := os.ReadDir(filepath.Join(x.dir, staged))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Environment, "cannot list what is made of exports: %w", err)
	}
	out := []Half{}
	for _, e := range entries {
		if !e.IsDir() || hypervisor.CheckName(e.Name()) != nil {
			continue
		}
		h, err := half(filepath.Join(x.dir, staged, e.Name()))
		if errors.Is(err, fs.ErrNotExist) { // it has just become whole, or was discarded
			continue
		}
		if err != nil {
			return nil, fault.New(fault.Environment, "cannot look at what is made of an export: %w", err)
		}
		out = append(out, h)
	}
	return out, nil
}

func half(dir string) (Half, error) {
	h := Half{ID: filepath.Base(dir), Files: []string{}}
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if info.ModTime().After(h.Since) {
			h.Since = info.ModTime()
		}
		if info.Mode().IsRegular() && e.Name() != export.File {
			h.Files, h.Size = append(h.Files, e.Name()), h.Size+info.Size()
		}
		return nil
	})
	return h, err
}

// path is the directory of an export that is meant by its name, or by its whole path.
func (x *Exports) path(name string) (string, error) {
	if filepath.IsAbs(name) && filepath.Dir(filepath.Clean(name)) == x.dir {
		name = filepath.Base(name)
	}
	if err := hypervisor.CheckName(name); err != nil {
		return "", fault.New(fault.Invalid, "%.300q is no export of the node: exports are read from its directory of exports alone", name).At("src_path").
			WithHint("name one that drover backup list shows, or bring the directory there: %s", x.dir)
	}
	return filepath.Join(x.dir, name), nil
}

// Read tells what an export says, by its name or path. NotFound if there is none, Invalid if it is no sound one.
func (x *Exports) Read(name string) (*export.Export, error) {
	dir, err := x.path(name)
	if err != nil {
		return nil, err
	}
	e, err := read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "No export or invalid export found in dir %s", dir)
	}
	return e, err
}

func read(dir string) (*export.Export, error) {
	f, err := os.Open(filepath.Join(dir, export.File))
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(io.LimitReader(f, export.MaxSize+1))
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot read %s: %w", f.Name(), err)
	}
	e, err := export.Decode(text)
	if err != nil {
		return nil, fault.New(fault.CodeOf(err), "No export or invalid export found in dir %s: %w", dir, err)
	}
	return e, nil
}

// Place says where a dump is: in what is being made under an id, or in an export.
type Place struct {
	ID     string `json:"id,omitempty"`
	Export string `json:"export,omitempty"`
	// File is the name of the dump.
	File string `json:"file"`
}

// Path is where the dump is. The directory of what is being made is there when it returns.
func (x *Exports) Path(p Place) (string, error) {
	if err := export.CheckDump(p.File); err != nil {
		return "", err
	}
	dir, err := x.dirOf(p)
	if err == nil && p.ID != "" {
		if err = os.MkdirAll(dir, 0o700); err != nil {
			err = fault.New(fault.Environment, "cannot make the directory of an export: %w", err)
		}
	}
	return filepath.Join(dir, p.File), err
}

func (x *Exports) dirOf(p Place) (string, error) {
	if p.ID == "" {
		return x.path(p.Export)
	}
	return x.stage(p.ID)
}

func (x *Exports) stage(id string) (string, error) {
	if err := hypervisor.CheckName(id); err != nil {
		return "", fault.New(fault.Invalid, "%.300q is no id of an export", id)
	}
	return filepath.Join(x.dir, staged, id), nil
}

// Finish puts what was made under an id in place, with what it says. Once more it does nothing.
func (x *Exports) Finish(id string, e *export.Export) error {
	from, err := x.stage(id)
	if err != nil {
		return err
	}
	to, err := x.path(e.Name)
	if err != nil {
		return err
	}
	if there, err := read(to); err == nil && there.ID == id {
		return x.Discard(id)
	}
	says, err := asDumped(from, e)
	if err != nil {
		return err
	}
	text, err := says.Encode()
	if err != nil {
		return err
	}
	err = os.MkdirAll(from, 0o700) // an instance without disks has no dumps
	if err == nil {
		err = wholefile.Write(filepath.Join(from, export.File), text)
	}
	if err == nil {
		err = x.replace(from, to)
	}
	if err == nil {
		err = wholefile.Flush(x.dir)
	}
	if err != nil {
		return fault.New(fault.Environment, "cannot put the export of %s in place: %w", e.Name, err)
	}
	return x.Discard(id)
}

// replace has one directory take the place of another, if that is there.
func (x *Exports) replace(from, to string) error {
	err := x.exchange(from, to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.Rename(from, to)
	case !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EOPNOTSUPP):
		return err
	}
	away := filepath.Join(x.dir, staged, replaced+filepath.Base(to)) // the file system knows nothing of the kind: NFS, CIFS
	if err := os.RemoveAll(away); err != nil {
		return err
	}
	if err := os.Rename(to, away); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		x.putBack(filepath.Base(to))
		return err
	}
	return os.RemoveAll(away)
}

// putBack has an export be in its place again that another one was taking; if that has it, it removes the one before.
func (x *Exports) putBack(name string) {
	away, place := filepath.Join(x.dir, staged, replaced+name), filepath.Join(x.dir, name)
	if _, err := os.Lstat(place); errors.Is(err, fs.ErrNotExist) {
		_ = os.Rename(away, place) // as below
		return
	}
	_ = os.RemoveAll(away) // it is tried again at the next start
}

// asDumped is what an export says, with disks as large as their dumps: a volume may be larger than its disk was asked for, and who imports it needs the
// room for all that the guest could write to.
func asDumped(dir string, e *export.Export) (*export.Export, error) {
	const mib = 1 << 20
	out := *e
	out.Disks = slices.Clone(e.Disks)
	for i := range out.Disks {
		d := &out.Disks[i]
		if d.Dump == "" {
			continue
		}
		if err := export.CheckDump(d.Dump); err != nil {
			return nil, err
		}
		info, err := os.Lstat(filepath.Join(dir, d.Dump))
		if err != nil {
			return nil, fault.New(fault.Environment, "cannot look at the dump of disk %d: %w", i, err)
		}
		if d.Form != export.Raw {
			continue
		}
		d.Size = max(d.Size, (info.Size()+mib-1)/mib)
	}
	return &out, nil
}

// Discard removes what was made under an id, if there is anything.
func (x *Exports) Discard(id string) error {
	dir, err := x.stage(id)
	if err == nil {
		if err = os.RemoveAll(dir); err != nil {
			err = fault.New(fault.Environment, "cannot remove what was to become an export: %w", err)
		}
	}
	return err
}

// Remove removes the export of a name, if there is one.
func (x *Exports) Remove(name string) error {
	dir, err := x.path(name)
	if err != nil {
		return err
	}
	away := filepath.Join(x.dir, staged, "removed-"+filepath.Base(dir))
	err = errors.Join(os.RemoveAll(away), os.MkdirAll(filepath.Dir(away), 0o700))
	if err == nil {
		err = os.Rename(dir, away) // at one moment
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = errors.Join(wholefile.Flush(x.dir), os.RemoveAll(away))
	}
	if err != nil {
		return fault.New(fault.Environment, "Error while removing the export: %w", err)
	}
	return nil
}
