package exports

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/export"
	"github.com/drover-project/drover/internal/fault"
)

func open(t *testing.T) *Exports {
	t.Helper()
	return Open(filepath.Join(t.TempDir(), "export"), time.Now())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (x *Exports) make(t *testing.T, id, name, content string) {
	t.Helper()
	data := []byte(content)
	must(t, x.Keep(Place{ID: id, File: "d0"}, Piece{Data: data, Next: int64(len(data)), Size: int64(len(data))}))
	must(t, x.Finish(id, &export.Export{ID: id, Name: name, Disks: []export.Disk{{Dump: "d0", Form: export.Raw}}}))
}

func TestANewExportTakesThePlace(t *testing.T) {
	x := open(t)
	if names, err := x.List(); err != nil || len(names) != 0 {
		t.Fatalf("%v, %v", names, err)
	}
	for _, id := range []string{"first", "second"} {
		x.make(t, id, "web1", "content of "+id)
		must(t, x.Finish(id, &export.Export{ID: id, Name: "web1"})) // it was not told before
		e, err := x.Read("web1")
		must(t, err)
		p, err := x.Piece(Place{Export: "web1", File: "d0"}, 0)
		if err != nil || e.ID != id || string(p.Data) != "content of "+id {
			t.Errorf("%+v, %+v, %v", e, p, err)
		}
		if rest, err := os.ReadDir(filepath.Join(x.dir, staged)); err != nil || len(rest) != 0 {
			t.Errorf("%v is left, %v", rest, err)
		}
	}
	if names, err := x.List(); err != nil || !slices.Equal(names, []string{"web1"}) {
		t.Errorf("%v, %v", names, err)
	}
	for range 2 {
		must(t, x.Remove("web1"))
	}
	if _, err := x.Read("web1"); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
}

// TestAnExportHasRoomForItsDumps: a volume of LVM is of whole extents, however small its disk is.
// TestAFileSystemThatExchangesNothing, as NFS: an export is replaced all the same, and of the two there is one behind a kill.
func TestAFileSystemThatExchangesNothing(t *testing.T) {
	x := open(t)
	for _, why := range []error{syscall.EINVAL, syscall.ENOSYS, syscall.EOPNOTSUPP} {
		x.exchange = func(string, string) error { return why }
		for _, id := range []string{"first", "second"} {
			x.make(t, id, "web1", "content of "+id)
			if e, err := x.Read("web1"); err != nil || e.ID != id {
				t.Errorf("%v: %+v, %v", why, e, err)
			}
		}
		if rest, err := os.ReadDir(filepath.Join(x.dir, staged)); err != nil || len(rest) != 0 {
			t.Errorf("%v: %v is left, %v", why, rest, err)
		}
		must(t, x.Remove("web1"))
	}
	x.exchange = func(string, string) error { return syscall.EIO }
	data := []byte("x")
	must(t, x.Keep(Place{ID: "id", File: "d0"}, Piece{Data: data, Next: 1, Size: 1}))
	if err := x.Finish("id", &export.Export{ID: "id", Name: "web1"}); !fault.Is(err, fault.Environment) {
		t.Errorf("another error: %v", err)
	}

	x = Open(x.dir, time.Now())
	x.make(t, "one", "web1", "content of one")
	away := filepath.Join(x.dir, staged, replaced+"web1")
	must(t, os.Rename(filepath.Join(x.dir, "web1"), away)) // and here the agent was killed
	x = Open(x.dir, time.Now())
	if e, err := x.Read("web1"); err != nil || e.ID != "one" {
		t.Errorf("it is not put back: %+v, %v", e, err)
	}
	must(t, os.MkdirAll(away, 0o700)) // or here, behind its end
	x = Open(x.dir, time.Now())
	if e, err := x.Read("web1"); err != nil || e.ID != "one" {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := os.Lstat(away); !os.IsNotExist(err) {
		t.Errorf("what it took the place of is left: %v", err)
	}
}

func TestAnExportHasRoomForItsDumps(t *testing.T) {
	x := open(t)
	const mib = 1 << 20
	must(t, x.Keep(Place{ID: "id", File: "d0"}, Piece{Next: 12 * mib, Size: 12 * mib}))
	must(t, x.Keep(Place{ID: "id", File: "d1"}, Piece{Next: 12*mib + 1, Size: 12*mib + 1}))
	must(t, x.Keep(Place{ID: "id", File: "d2"}, Piece{Next: 3, Size: 3}))
	says := &export.Export{ID: "id", Name: "web1", Disks: []export.Disk{
		{Size: 10, Dump: "d0", Form: export.Raw}, {Size: 10, Dump: "d1", Form: export.Raw}, {Size: 10, Dump: "d2", Form: export.Script}}}
	must(t, x.Finish("id", says))
	e, err := x.Read("web1")
	if err != nil || e.Disks[0].Size != 12 || e.Disks[1].Size != 13 || e.Disks[2].Size != 10 || says.Disks[0].Size != 10 {
		t.Errorf("it says %+v, %v", e, err)
	}
	must(t, x.Keep(Place{ID: "other", File: "d0"}, Piece{Next: mib, Size: mib}))
	says.ID = "other"
	if err := x.Finish("other", says); err == nil {
		t.Error("an export is whole that lacks a dump")
	}
	for _, file := range []string{"d0", "d1"} {
		must(t, x.Keep(Place{ID: "other", File: file}, Piece{Next: mib, Size: mib}))
	}
	if err := x.Finish("other", says); err == nil {
		t.Error("an export is whole that lacks the dump of a script")
	}
	if e, err := x.Read("web1"); err != nil || e.ID != "id" {
		t.Errorf("the one before says %+v, %v", e, err)
	}
}

func TestNothingElseIsRead(t *testing.T) {
	x := open(t)
	x.make(t, "id", "web1", "content")
	if _, err := x.Read(filepath.Join(x.dir, "web1")); err != nil {
		t.Errorf("by its path: %v", err)
	}
	outside := filepath.Join(filepath.Dir(x.dir), "outside")
	must(t, os.WriteFile(outside, []byte("secret"), 0o600))
	for _, name := range []string{"", "..", "../x", "a/b", ".staged", "/etc", outside, filepath.Join(x.dir, "web1", "d0")} {
		_, err := x.Read(name)
		_, dump := x.Piece(Place{Export: name, File: "d0"}, 0)
		for _, err := range []error{err, dump, x.Remove(name)} {
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
	for _, file := range []string{"../../outside", "config.ini", ".x", ""} {
		_, err := x.Piece(Place{Export: "web1", File: file}, 0)
		for _, err := range []error{err, x.Keep(Place{ID: "new", File: file}, Piece{})} {
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("%q: %v", file, err)
			}
		}
	}
	if err := x.Keep(Place{Export: "web1", File: "d0"}, Piece{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("what is whole is changed: %v", err)
	}
	must(t, os.Symlink(outside, filepath.Join(x.dir, "web1", "link")))
	must(t, syscall.Mkfifo(filepath.Join(x.dir, "web1", "pipe"), 0o600))
	for _, file := range []string{"link", "pipe"} {
		if p, err := x.Piece(Place{Export: "web1", File: file}, 0); err == nil {
			t.Errorf("%s is read: %q", file, p.Data)
		}
	}
}

func TestPieces(t *testing.T) {
	x, y := open(t), open(t)
	const mib = 1 << 20
	disk := filepath.Join(t.TempDir(), "disk")
	content := make([]byte, 8*mib)
	copy(content[3*mib-5:], "here")
	copy(content[7*mib:], "there")
	f, err := os.Create(disk)
	must(t, err)
	must(t, f.Truncate(8*mib))
	_, err = f.WriteAt([]byte("here"), 3*mib-5)
	must(t, err)
	_, err = f.WriteAt([]byte("there"), 7*mib)
	must(t, err)
	must(t, f.Close())
	at := Place{ID: "id", File: "d0"}
	var told int64
	must(t, x.Dump(t.Context(), at, disk, func(done, _ int64) { told = done }))
	if told != 8*mib {
		t.Errorf("it told of %d bytes", told)
	}
	for next := int64(0); ; {
		p, err := x.Piece(at, next)
		must(t, err)
		must(t, y.Keep(at, p))
		if p.Next >= p.Size {
			break
		}
		next = p.Next
	}
	other := filepath.Join(t.TempDir(), "disk")
	must(t, os.WriteFile(other, make([]byte, 9*mib), 0o600))
	must(t, y.Restore(t.Context(), at, other, func(int64, int64) {}))
	got, err := os.ReadFile(other)
	if err != nil || !bytes.Equal(got[:8*mib], content) || !bytes.Equal(got[8*mib:], make([]byte, mib)) {
		t.Errorf("the content is another: %v", err)
	}
	path, err := y.Path(at)
	must(t, err)
	info, err := os.Stat(path)
	must(t, err)
	if used := info.Sys().(*syscall.Stat_t).Blocks * 512; used > 4*mib || info.Mode().Perm() != 0o600 || info.Size() != 8*mib {
		t.Errorf("the dump takes %d bytes of %d, %v", used, info.Size(), info.Mode())
	}
	must(t, os.Truncate(other, 4*mib))
	if err := y.Restore(t.Context(), at, other, func(int64, int64) {}); !fault.Is(err, fault.Invalid) {
		t.Errorf("on a disk that is too small: %v", err)
	}
}

func TestWhatIsLeftGoes(t *testing.T) {
	x := open(t)
	for _, id := range []string{"old", "new"} {
		must(t, x.Keep(Place{ID: id, File: "d0"}, Piece{}))
	}
	then := time.Now().Add(-left - time.Minute)
	must(t, os.Chtimes(filepath.Join(x.dir, staged, "old"), then, then))
	Open(x.dir, time.Now())
	rest, err := os.ReadDir(filepath.Join(x.dir, staged))
	if err != nil || len(rest) != 1 || rest[0].Name() != "new" {
		t.Errorf("%v, %v", rest, err)
	}
}
