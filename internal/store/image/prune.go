package image

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// Found is a backup in a directory.
type Found struct {
	Header

	Path string
}

// Pruning is what becomes of the backups of a directory.
type Pruning struct {
	// Keep are the newest ones that are whole, and Remove those behind them, all newest first.
	Keep, Remove []Found
	// Broken are those newer than what is removed that are not whole, by their paths: they count for nothing, and are left where they are.
	Broken map[string]error
}

// Prune decides which backups of a directory are to go, so that so many are left that are whole. Those that stay are read to their ends.
// What is no backup is not looked at any further. The object of a kind has the id by which stores are told apart: fault.WrongState for a directory
// with backups of two, of which the newest may be those of one alone.
func Prune(dir string, keep int, of store.Kind) (p Pruning, err error) {
	all, err := find(dir)
	if err == nil {
		err = oneStore(all, of)
	}
	if err != nil {
		return p, err
	}
	p.Broken = map[string]error{}
	for i, f := range all {
		if len(p.Keep) == keep {
			p.Remove = all[i:]
			break
		}
		if _, err := Open(f.Path); err != nil {
			p.Broken[f.Path] = err
			continue
		}
		p.Keep = append(p.Keep, f)
	}
	return p, nil
}

// oneStore refuses backups of several stores. Of one that has no such object, or cannot be read so far, nobody can tell.
func oneStore(all []Found, of store.Kind) error {
	var first, id string
	for _, f := range all {
		switch its := idIn(f.Path, of); {
		case its == "":
		case id == "":
			first, id = f.Path, its
		case its != id:
			return fault.New(fault.WrongState, "%s and %s are backups of two clusters", first, f.Path).WithHint("keep those of each cluster in a directory of its own; nothing was changed")
		}
	}
	return nil
}

// idIn is the id of the first object of a kind in a backup; empty if there is none.
func idIn(path string, of store.Kind) string {
	f := &File{path: path}
	for o, err := range f.read(&f.Header, &f.Objects) {
		if err != nil {
			return ""
		}
		if o.Kind == of {
			return o.ID
		}
	}
	return ""
}

// find returns the files of a directory that begin as backups do, newest first.
func find(dir string) (all []Found, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot look for backups: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !e.Type().IsRegular() || e.Name()[0] == '.' { // ours are whole when they have a name
			continue
		}
		head, is, err := headerOf(path)
		if err != nil {
			return nil, fault.New(fault.Environment, "cannot look whether it is a backup: %w", err)
		}
		if is {
			all = append(all, Found{head, path})
		}
	}
	slices.SortFunc(all, func(a, b Found) int {
		return cmp.Or(b.Made.Compare(a.Made), cmp.Compare(b.Revision, a.Revision), cmp.Compare(a.Path, b.Path))
	})
	return all, nil
}

// In is where a backup is made: a file as it is named, or in a directory one with the time in its name, compressed.
func In(place string, now time.Time) string {
	if isDir(place) {
		return filepath.Join(place, "drover-"+now.UTC().Format("20060102T150405Z")+Compressed)
	}
	return place
}

// NewestIn is the backup of a directory that was made last, or a file as it is named; fault.NotFound for a directory without one.
func NewestIn(place string) (string, error) {
	if !isDir(place) {
		return place, nil
	}
	f, count, err := Newest(place)
	if err == nil && count == 0 {
		err = fault.New(fault.NotFound, "there is no backup in %s", place)
	}
	return f.Path, err
}

// Newest is the backup of a directory that was made last, and how many there are; nothing of them but how they begin is read.
func Newest(dir string) (f Found, count int, err error) {
	all, err := find(dir)
	if len(all) > 0 {
		f = all[0]
	}
	return f, len(all), err
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// maxHeader bounds the second line of a backup, in bytes.
const maxHeader = 64 << 10

// headerOf reads the beginning of a file; is tells whether it is that of a backup.
func headerOf(path string) (head Header, is bool, err error) {
	f, err := openPlain(path)
	if err != nil {
		return head, false, err
	}
	defer f.Close()
	in := bufio.NewReader(io.LimitReader(f, maxHeader))
	first, err := in.ReadString('\n')
	if err != nil || first != firstLine && first != formatLine {
		return head, false, nil // it is no backup, or shorter than one
	}
	second, err := in.ReadBytes('\n')
	return head, err == nil && json.Unmarshal(second, &head) == nil, nil
}
