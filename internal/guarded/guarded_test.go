package guarded

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
)

func TestWhatOthersCouldChange(t *testing.T) {
	const user = 1000
	for _, c := range []struct {
		mode  fs.FileMode
		owner int
		good  bool
	}{
		{0o755, 0, true}, {0o755, user, true}, {0o500, user, true}, {0o755, 1001, false}, {0o755, -1, false},
		{0o775, 0, false}, {0o757, 0, false}, {0o777, user, false}, {0o755 | fs.ModeSetuid, 0, false}, {0o755 | fs.ModeSetgid, 0, false}, {0o755 | fs.ModeSticky, 0, false},
	} {
		if err := changedByOthers("/x", c.mode, c.owner, user); (err == nil) != c.good || err != nil && !fault.Is(err, fault.WrongState) {
			t.Errorf("%v of %d: %v", c.mode, c.owner, err)
		}
	}
}

func TestProgram(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	for _, err := range []error{
		os.Mkdir(in, 0o755), os.Mkdir(filepath.Join(in, "dir"), 0o755),
		os.Mkdir(filepath.Join(dir, "theirs"), 0o755), os.WriteFile(filepath.Join(dir, "theirs", "fine"), nil, 0o700), os.Chmod(filepath.Join(dir, "theirs"), 0o775),
		os.Symlink(filepath.Join(dir, "theirs", "fine"), filepath.Join(in, "elsewhere")),
		os.WriteFile(filepath.Join(in, "fine"), nil, 0o700), os.WriteFile(filepath.Join(in, "unable"), nil, 0o600),
		os.Symlink(filepath.Join(in, "fine"), filepath.Join(in, "link")), os.WriteFile(filepath.Join(dir, "open"), nil, 0o700),
		os.Chmod(filepath.Join(dir, "open"), 0o777), os.Symlink(filepath.Join(dir, "open"), filepath.Join(in, "leads")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"fine": "", "link": "", "unable": "not a file that can be executed", "dir": "not a file that can be executed", "nosuch": "There is no", "leads": "too permissive",
		"elsewhere": "Permissions on " + filepath.Join(dir, "theirs"),
	} {
		path, err := Program(in, name)
		if want == "" && (err != nil || path != filepath.Join(in, name)) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %q, %v", name, path, err)
		}
	}
	if _, err := Program(filepath.Join(in, "fine"), "x"); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("in a file: %v", err)
	}
	if err := os.Chmod(in, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Program(in, "fine"); err == nil || !strings.Contains(err.Error(), "Permissions on "+in) {
		t.Errorf("in a directory of everybody's: %v", err)
	}
}
