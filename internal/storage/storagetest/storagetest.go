// Package storagetest is the conformance suite of the storage port: every driver passes it.
package storagetest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/drover-project/drover/internal/diskimage"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/storage"
)

// Opener gives the suite a driver whose volumes are below dir. It is called again with the same directory to see what is there when
// the driver before was left behind.
type Opener func(t *testing.T, dir string) storage.Driver

// Run checks a driver against the contract of package storage.
func Run(t *testing.T, open Opener) {
	run(t, open, "")
}

// RunLayered checks it with volumes of the format qcow2, for which qemu-img and qemu-io are needed.
func RunLayered(t *testing.T, open Opener) {
	t.Run(diskimage.QCOW2, func(t *testing.T) { run(t, open, diskimage.QCOW2) })
}

func run(t *testing.T, open Opener, format string) {
	cases := []struct {
		name string
		run  func(*suite)
	}{
		{"life", (*suite).life},
		{"content", (*suite).content},
		{"survives", (*suite).survives},
		{"space", (*suite).space},
		{"badNames", (*suite).badNames},
		{"canceled", (*suite).canceled},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			c.run(&suite{T: t, open: open, dir: dir, d: open(t, dir), format: format})
		})
	}
}

type suite struct {
	*testing.T
	open Opener
	dir  string
	d    storage.Driver
	// format is that of its volumes; empty for what the driver makes without being told.
	format string
}

func (s *suite) ensure(id string, size int, wantMade, wantGrown bool) {
	s.Helper()
	made, grown, err := s.d.Ensure(s.Context(), storage.Disk{ID: id, Size: size, Format: s.format})
	if err != nil || made != wantMade || grown != wantGrown {
		s.Fatalf("Ensure(%s, %d): %v, %v, %v; want %v, %v", id, size, made, grown, err, wantMade, wantGrown)
	}
}

func (s *suite) volume(id string, size int) storage.Volume {
	s.Helper()
	v, err := s.d.Volume(s.Context(), id)
	if err != nil || v.ID != id || v.Size != size || v.Path == "" || v.Format != cmp.Or(s.format, diskimage.Raw) || v.Base != nil {
		s.Fatalf("Volume(%s): %+v, %v; want %d MiB", id, v, err, size)
	}
	return v
}

func (s *suite) life() {
	if s.d.Template() == "" {
		s.Fatal("a driver needs a template")
	}
	s.ensure("one", 4, true, false)
	s.ensure("one", 4, false, false)
	s.ensure("one", 8, false, true)
	s.ensure("one", 2, false, false) // never smaller
	s.volume("one", 8)
	s.ensure("another", 1, true, false)
	list, err := s.d.Volumes(s.Context())
	if err != nil || len(list) != 2 || list[0].ID != "another" || list[1].ID != "one" || list[1].Size != 8 {
		s.Fatalf("Volumes: %+v, %v", list, err)
	}
	for _, want := range []bool{true, false} {
		if removed, err := s.d.Remove(s.Context(), "one"); err != nil || removed != want {
			s.Fatalf("Remove: %v, %v", removed, err)
		}
	}
	if _, err := s.d.Volume(s.Context(), "one"); !fault.Is(err, fault.NotFound) {
		s.Fatalf("what was removed: %v", err)
	}
	s.volume("another", 1)
}

// content: a new volume reads as zeros, one that grew keeps what it had, one that was removed is new.
func (s *suite) content() {
	const mib = 1 << 20
	s.ensure("one", 1, true, false)
	v := s.volume("one", 1)
	if got := s.read(v); len(got) != mib || !bytes.Equal(got, make([]byte, mib)) {
		s.Fatalf("a new volume has %d bytes that are not all zero", len(got))
	}
	s.write(v, mib-512)
	s.ensure("one", 2, false, true)
	if got := s.read(s.volume("one", 2)); len(got) != 2*mib || got[mib-512] != 'a' || got[mib-1] != 'a' || !bytes.Equal(got[mib:], make([]byte, mib)) {
		s.Fatal("growing changes the content")
	}
	if l, is := s.d.(storage.Layered); is && s.format != "" {
		if err := l.Blank(s.Context(), "one", nil); err != nil {
			s.Fatal(err)
		}
		if got := s.read(s.volume("one", 2)); !bytes.Equal(got, make([]byte, 2*mib)) {
			s.Fatal("what was blanked has content")
		}
	}
	if _, err := s.d.Remove(s.Context(), "one"); err != nil {
		s.Fatal(err)
	}
	s.ensure("one", 2, true, false)
	if got := s.read(s.volume("one", 2)); !bytes.Equal(got, make([]byte, 2*mib)) {
		s.Fatal("a new volume has the content of one that was removed")
	}
}

// read is the content of a volume.
func (s *suite) read(v storage.Volume) []byte {
	s.Helper()
	path := v.Path
	if v.Format != diskimage.Raw {
		path = filepath.Join(s.TempDir(), "content")
		s.qemu("qemu-img", "convert", "--image-opts", "-O", diskimage.Raw, v.File().Options(), path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		s.Fatal(err)
	}
	return data
}

// write writes 512 letters to a volume.
func (s *suite) write(v storage.Volume, at int64) {
	s.Helper()
	if v.Format != diskimage.Raw {
		s.qemu("qemu-io", "-c", fmt.Sprintf("write -P 0x61 %d 512", at), "--image-opts", v.File().Options())
		return
	}
	f, err := os.OpenFile(v.Path, os.O_RDWR, 0)
	if err != nil {
		s.Fatal(err)
	}
	if _, err = f.WriteAt(bytes.Repeat([]byte("a"), 512), at); err == nil {
		err = f.Close()
	}
	if err != nil {
		s.Fatal(err)
	}
}

func (s *suite) qemu(name string, args ...string) {
	s.Helper()
	if out, err := exec.CommandContext(s.Context(), name, args...).CombinedOutput(); err != nil {
		s.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

func (s *suite) survives() {
	s.ensure("one", 3, true, false)
	s.d = s.open(s.T, s.dir)
	s.volume("one", 3)
	s.ensure("one", 3, false, false)
}

func (s *suite) space() {
	before, err := s.d.Space(s.Context())
	if err == nil && before == (storage.Space{}) {
		return // nobody can tell
	}
	if err != nil || before.Total <= 0 || before.Free < 0 || before.Free > before.Total {
		s.Fatalf("Space: %+v, %v", before, err)
	}
	if _, _, err := s.d.Ensure(s.Context(), storage.Disk{ID: "huge", Size: before.Total + 1<<20, Format: s.format}); !fault.Is(err, fault.Exhausted) {
		s.Fatalf("a volume that is larger than the node: %v", err)
	}
	if _, err := s.d.Volume(s.Context(), "huge"); !fault.Is(err, fault.NotFound) {
		s.Fatalf("it was made all the same: %v", err)
	}
	s.ensure("one", 1, true, false)
	if _, _, err := s.d.Ensure(s.Context(), storage.Disk{ID: "one", Size: before.Total + 1<<20}); !fault.Is(err, fault.Exhausted) {
		s.Fatalf("growing beyond the node: %v", err)
	}
	s.volume("one", 1)
}

func (s *suite) badNames() {
	for _, id := range []string{"", "..", "../x", "a/b", ".hidden", "a\x00b"} {
		_, _, err1 := s.d.Ensure(s.Context(), storage.Disk{ID: id, Size: 1, Format: s.format})
		_, err2 := s.d.Remove(s.Context(), id)
		_, err3 := s.d.Volume(s.Context(), id)
		for _, err := range []error{err1, err2, err3} {
			if !fault.Is(err, fault.Invalid) {
				s.Errorf("%q: %v", id, err)
			}
		}
	}
}

func (s *suite) canceled() {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	if _, _, err := s.d.Ensure(ctx, storage.Disk{ID: "one", Size: 1, Format: s.format}); err == nil {
		s.Error("it was made though nobody wanted it any more")
	}
	if _, err := s.d.Volume(s.Context(), "one"); !fault.Is(err, fault.NotFound) {
		s.Error(err)
	}
}
