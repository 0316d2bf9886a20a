package fake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// There are two layouts of the files, since programs of two versions may take turns on one node while a group is
// upgraded. Programs of before know the first one only:
//
//	hypervisor/NAME.json            the instances, by name
//
//	instances/UUID.json             the instances
//	hypervisor.strangers/NAME.json  what has no UUID that anybody knows
//	hypervisor                      a file, upon which programs of before fail
//
// In the first one, a second thing under a name is in UUID.json, and has its name within.
const (
	former  = "hypervisor"
	present = "instances"
	rest    = "hypervisor.strangers"
)

// suffix ends the names of state files; files without it, such as those of an
// interrupted write, are not looked at.
const suffix = ".json"

func (d *Driver) dir(name string) string { return filepath.Join(d.cfg.Dir, name) }

// path is where a record with this name of its file is.
func (d *Driver) path(file string) string {
	if d.moved {
		return filepath.Join(d.dir(present), file+suffix)
	}
	return filepath.Join(d.dir(former), file+suffix)
}

func (d *Driver) byUUID() bool { return d.cfg.ByUUID == nil || d.cfg.ByUUID() }

// files returns the names of the state files in a directory, without their suffix.
func (d *Driver) files(dir string) (out []string, err error) {
	entries, err := os.ReadDir(d.dir(dir)) // and no pattern: the directory's name may look like one
	if err != nil && !(dir == rest && errors.Is(err, fs.ErrNotExist)) {
		return nil, fault.New(fault.Environment, "cannot list the state of the fake hypervisor: %w", err)
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), suffix); ok {
			out = append(out, name)
		}
	}
	return out, nil
}

// read reads a file of the layout of before. Its name counts: a program of before that renames an instance changes nothing
// else.
func (d *Driver) read(dir, file string) (*record, error) {
	r, err := readRecord(filepath.Join(d.dir(dir), file+suffix))
	if err != nil {
		return nil, err
	}
	if file != r.UUID || r.Name == "" {
		r.Name = file
	}
	r.file = file
	return r, nil
}

func readRecord(file string) (*record, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := new(record)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// load reads the files of all instances. One that cannot be read costs its own
// instance only: calls for it say so until somebody sees to the file, or
// removes the instance.
func (d *Driver) load() error {
	d.things, d.unreadable, d.strangers, d.memory, d.disk = map[string]*record{}, map[string]error{}, nil, 0, 0
	if !d.moved {
		return d.loadStrangers(former)
	}
	files, err := d.files(present)
	if err != nil {
		return err
	}
	for _, file := range files {
		r, err := readRecord(d.path(file))
		if err == nil && (r.UUID != file || hypervisor.CheckName(r.Name) != nil) {
			err = fmt.Errorf("it is of %q, whose UUID is %q", r.Name, r.UUID)
		}
		if err != nil {
			d.unreadable[file] = fault.New(fault.Environment, "the state of the instance with UUID %s cannot be read: %w", file, err).
				WithHint("mend or remove %s and start the node's agent again, or remove the instance", d.path(file))
			continue
		}
		r.file = file
		d.put(r)
	}
	return d.loadStrangers(rest)
}

// loadStrangers reads the files of a directory that are called by name: those with a UUID that no other has are
// instances, unless it is the rest that a move has left.
func (d *Driver) loadStrangers(dir string) error {
	files, err := d.files(dir)
	if err != nil {
		return err
	}
	for _, file := range files {
		r, err := d.read(dir, file)
		switch {
		case err != nil:
			path := filepath.Join(d.dir(dir), file+suffix)
			r = &record{Name: file, file: file, why: fault.New(fault.Exists, "the state of something under the name %s cannot be read, so nobody knows whose it is: %w", file, err).
				WithHint("it is left alone; mend or remove %s and start the node's agent again", path)}
		case dir == former && r.UUID != "" && d.things[r.UUID] == nil:
			d.put(r)
			continue
		}
		r.UUID = ""
		d.strangers = append(d.strangers, r)
		d.memory += r.memory()
		d.disk += r.space()
	}
	return nil
}

// save writes the record's file and then the cache.
func (d *Driver) save(r *record) error {
	was := d.things[r.UUID]
	r.file = r.UUID
	if !d.moved {
		r.file = r.Name
		if was != nil && was.Name == r.Name {
			r.file = was.file
		}
		if err := d.giveWay(r); err != nil {
			return err
		}
	}
	if was != nil && was.file != r.file {
		if err := os.Rename(d.path(was.file), d.path(r.file)); err != nil {
			return fault.New(fault.Environment, "cannot rename the state of %s: %w", r.Name, err)
		}
		moved := *was
		moved.file, moved.Name = r.file, r.Name
		d.put(&moved)
	}
	if err := write(d.path(r.file), r); err != nil {
		return err
	}
	d.put(r)
	return nil
}

// giveWay has another thing that has the file which a record needs go to one of its own.
func (d *Driver) giveWay(r *record) error {
	for _, other := range d.strangers {
		if other.file == r.file {
			return other.stranger(hypervisor.Thing{UUID: r.UUID, Name: r.Name})
		}
	}
	for _, other := range d.things {
		if other.file != r.file || other.UUID == r.UUID {
			continue
		}
		if err := write(d.path(other.file), other); err != nil { // with its name
			return err
		}
		next := *other
		next.file = other.UUID
		if err := os.Rename(d.path(other.file), d.path(next.file)); err != nil {
			return fault.New(fault.Environment, "cannot rename the state of %s: %w", r.Name, err)
		}
		d.put(&next)
		return nil
	}
	return nil
}

// write puts a record into a file: all of it, or what was there stays.
func write(path string, r *record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fault.New(fault.Internal, "cannot encode the state of %s: %w", r.Name, err)
	}
	temporary := path + ".new"
	err = os.WriteFile(temporary, append(data, '\n'), 0o640)
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return fault.New(fault.Environment, "cannot write the state of %s: %w", r.Name, err)
	}
	return nil
}

// moveBegun tells whether a driver began to move the files to the newest layout, so far that it has to end that: the
// layout of before is no more the truth.
func (d *Driver) moveBegun() (bool, error) {
	for name, dir := range map[string]bool{former: false, rest: true} {
		switch info, err := os.Lstat(d.dir(name)); {
		case err == nil && info.IsDir() == dir:
			return true, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return false, fault.New(fault.Environment, "cannot look at the state of the fake hypervisor: %w", err)
		}
	}
	if _, err := os.Lstat(d.dir(former)); err == nil {
		return false, nil
	}
	// Who begins to move makes the directory of before first, so instances without it were moved; what is left behind for programs of before
	// looks like rubbish, and may have been cleared away.
	there, err := os.ReadDir(d.dir(present))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fault.New(fault.Environment, "cannot look at the state of the fake hypervisor: %w", err)
	}
	return len(there) > 0, nil
}

// move brings the files to the newest layout and reads them. Each step may be repeated, and what was done before is not
// done again: until the directory of before is renamed it is the truth, and what is copied is made anew; from then on
// the copies are.
func (d *Driver) move() error {
	begun, err := d.moveBegun()
	if err == nil && !begun {
		err = d.copyAll()
	}
	if err == nil {
		err = d.bar()
	}
	if err == nil {
		err = d.clearRest()
	}
	if err != nil {
		return err
	}
	d.moved = true
	return d.load()
}

// do does a step of a move.
func (d *Driver) do(what string, act func() error) error {
	var err error
	if d.cfg.step != nil {
		err = d.cfg.step(what)
	}
	if err == nil {
		err = act()
	}
	if err == nil || fault.Is(err, fault.Environment) {
		return err
	}
	return fault.New(fault.Environment, "cannot lay the state of the fake hypervisor out by UUID (%s): %w", what, err).
		WithHint("see to %s; the next start of the node's agent goes on", d.cfg.Dir)
}

// copyAll copies all that has a UUID, and renames the directory of before.
func (d *Driver) copyAll() error {
	err := d.do("make the directory", func() error {
		return errors.Join(os.MkdirAll(d.dir(former), 0o750), os.RemoveAll(d.dir(present)), os.MkdirAll(d.dir(present), 0o750))
	})
	if err != nil {
		return err
	}
	files, err := d.files(former)
	if err != nil {
		return err
	}
	copied := map[string]bool{}
	for _, file := range files {
		r, err := d.read(former, file)
		if err != nil || r.identity().Check() != nil || copied[r.UUID] {
			continue
		}
		copied[r.UUID] = true
		if err := d.do("copy "+file, func() error { return write(d.copyOf(r), r) }); err != nil {
			return err
		}
	}
	return d.do("rename the former directory", func() error { return os.Rename(d.dir(former), d.dir(rest)) })
}

func (d *Driver) copyOf(r *record) string { return filepath.Join(d.dir(present), r.UUID+suffix) }

func (r *record) identity() hypervisor.Thing { return hypervisor.Thing{UUID: r.UUID, Name: r.Name} }

// bar leaves a file where programs of before want a directory. One that was here since the directory was renamed has made
// another: what it put there is nobody's that the copies know, so somebody has to see to it.
func (d *Driver) bar() error {
	info, err := os.Lstat(d.dir(former))
	if err == nil && !info.IsDir() {
		return nil
	}
	return d.do("leave a file", func() error {
		if err == nil {
			if err := os.Remove(d.dir(former)); err != nil {
				return fault.New(fault.Environment, "a program of before has used %s since its content was moved: %w", d.dir(former), err).
					WithHint("stop that program, move what is in the directory away and start the node's agent again")
			}
		}
		return os.WriteFile(d.dir(former), []byte("What was here is in instances, by UUID; programs that look here are of before.\n"), 0o640)
	})
}

// clearRest removes what was copied from the former directory. What could not be read, and somebody has mended since, is copied
// now.
func (d *Driver) clearRest() error {
	files, err := d.files(rest)
	if err != nil {
		return err
	}
	for _, file := range files {
		r, err := d.read(rest, file)
		if err != nil || r.identity().Check() != nil {
			continue
		}
		there, err := readRecord(d.copyOf(r))
		if errors.Is(err, fs.ErrNotExist) {
			there, err = r, d.do("copy "+file, func() error { return write(d.copyOf(r), r) })
			if err != nil {
				return err
			}
		}
		if err != nil || !same(r, there) { // another one has this UUID
			continue
		}
		if err := d.do("remove "+file, func() error { return os.Remove(filepath.Join(d.dir(rest), file+suffix)) }); err != nil {
			return err
		}
	}
	return nil
}

func same(a, b *record) bool {
	left, err1 := json.Marshal(a)
	right, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(left, right)
}
