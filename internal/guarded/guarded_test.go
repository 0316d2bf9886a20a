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

// TestTheWay to a program: no link on it, and no directory above, is one in which others can put something else.
func TestTheWay(t *testing.T) {
	dir := t.TempDir()
	at := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	for _, d := range []string{at("in"), at("mid"), at("real", "sub")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		os.WriteFile(at("real", "sub", "program"), nil, 0o700),
		os.Symlink(at("mid", "hop"), at("in", "chain")), os.Symlink("../real/sub/program", at("mid", "hop")),
		os.Symlink(at("round"), at("round")), os.Symlink(at("round"), at("in", "round")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		open string
		mode fs.FileMode
		want string
	}{
		{"", 0, ""}, {"mid", 0o777, at("mid")}, {"mid", 0o775, at("mid")}, {"mid", 0o777 | fs.ModeSticky, ""}, {"real", 0o757, at("real")}, {"real", 0o777 | fs.ModeSticky, ""},
	} {
		if c.open != "" {
			if err := os.Chmod(at(c.open), c.mode); err != nil {
				t.Fatal(err)
			}
		}
		for _, program := range [][2]string{{at("in"), "chain"}, {at("real", "sub"), "program"}} {
			path, err := Program(program[0], program[1])
			concerned := c.want != "" && (c.open == "real" || program[1] == "chain")
			if concerned && (err == nil || !strings.Contains(err.Error(), "Permissions on "+c.want+" are")) || !concerned && (err != nil || path != filepath.Join(program[0], program[1])) {
				t.Errorf("%+v: %q, %v", c, path, err)
			}
		}
		if c.open != "" {
			if err := os.Chmod(at(c.open), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := Program(at("in"), "round"); err == nil {
		t.Error("a link that leads to itself")
	}
	if os.Geteuid() == 0 { // else nobody can give things away
		if err := os.Lchown(at("mid", "hop"), 1001, 1001); err != nil {
			t.Fatal(err)
		}
		if _, err := Program(at("in"), "chain"); err == nil || !strings.Contains(err.Error(), at("mid", "hop")+" is not owned by root") {
			t.Errorf("a link of another's: %v", err)
		}
	}
}
