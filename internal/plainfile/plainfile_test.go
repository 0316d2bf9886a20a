package plainfile

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/testkit"
)

// TestWhatIsNoFileIsNotOpened: the kernel, asked what is opened, tells of plain files alone.
func TestWhatIsNoFileIsNotOpened(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	l, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it was listened to by nobody
	if err := errors.Join(syscall.Mkfifo(at("pipe"), 0o666), os.Symlink(at("pipe"), at("link")), os.Mkdir(at("dir"), 0o777), os.WriteFile(at("file"), []byte("content"), 0o600),
		os.Symlink("file", at("way"))); err != nil {
		t.Fatal(err)
	}
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(watch) }()
	if _, err := unix.InotifyAddWatch(watch, dir, unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pipe", "link", "dir", "socket"} {
		if _, err := Open(at(name)); !errors.Is(err, ErrNotPlain) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open("/dev/null"); !errors.Is(err, ErrNotPlain) {
		t.Errorf("a device: %v", err)
	}
	if _, err := Open(at("nothing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
	events := make([]byte, 4096)
	if n, err := unix.Read(watch, events); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("something was opened: %q, %v", events[:max(n, 0)], err)
	}
	f, err := Open(at("way"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it is read
	if text, err := io.ReadAll(f); err != nil || string(text) != "content" || f.Name() != at("way") {
		t.Errorf("%s: %q, %v", f.Name(), text, err)
	}
	if n, err := unix.Read(watch, events); n <= 0 || err != nil {
		t.Errorf("a plain file is opened: %v", err)
	}
}

func TestWhatKeepsEverybodyOut(t *testing.T) {
	top := testkit.OpenDir(t)
	dir := filepath.Join(top, "dir")
	path, link := filepath.Join(dir, "in", "file"), filepath.Join(top, "link")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644), os.Symlink(path, link)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file, in, dir fs.FileMode
		want          string
	}{
		{0o644, 0o755, 0o755, ""},
		{0o604, 0o711, 0o701, ""},
		{0o640, 0o755, 0o700, path},
		{0o644, 0o750, 0o700, filepath.Dir(path)},
		{0o644, 0o755, 0o700, dir},
		{0o644, 0o755, 0o754, dir},
	} {
		if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(path, c.file), os.Chmod(filepath.Dir(path), c.in), os.Chmod(dir, c.dir)); err != nil {
			t.Fatal(err)
		}
		f, err := Open(link)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Closed(f); got != c.want || err != nil {
			t.Errorf("%v in %v in %v: %q, %v, want %q", c.file, c.in, c.dir, got, err, c.want)
		}
		_ = f.Close()
	}
}
