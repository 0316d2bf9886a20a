package page

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cli/shelltest"
)

const address = "https://drover.example:5081/#a-secret&more"

// TestABrowserIsShownAFile of its user's alone, and the address is no argument of a program; the files of before are gone.
func TestABrowserIsShownAFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	script := "#!/bin/sh\necho \"$#\" \"$@\" > " + filepath.Join(dir, "called") + "\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		terminal int
		env      map[string]string
		opens    bool
	}{
		{"in a script", 0, map[string]string{"DISPLAY": ":0"}, false},
		{"without a screen", 80, map[string]string{}, false},
		{"on a screen", 80, map[string]string{"DISPLAY": ":0"}, true},
		{"on another", 80, map[string]string{"WAYLAND_DISPLAY": "wayland-0"}, true},
	} {
		sh := shelltest.New("", c.env)
		sh.Width = c.terminal
		if got := opener(sh.Shell) != ""; got != c.opens {
			t.Errorf("%s: a browser is opened: %v", c.name, got)
		}
	}

	run := t.TempDir()
	sh := shelltest.New("", map[string]string{"DISPLAY": ":0", "XDG_RUNTIME_DIR": run})
	sh.Width = 80
	for range 2 {
		if err := open(t.Context(), sh.Shell, opener(sh.Shell), address); err != nil {
			t.Fatal(err)
		}
		called, err := os.ReadFile(filepath.Join(dir, "called"))
		count, path, _ := strings.Cut(strings.TrimSpace(string(called)), " ")
		if err != nil || count != "1" || strings.Contains(path, "a-secret") {
			t.Fatalf("it is called with %s, %v", called, err)
		}
		text, err := os.ReadFile(path)
		if err != nil || strings.Count(string(text), "https://drover.example:5081/#a-secret&amp;more\"") != 2 {
			t.Errorf("it is shown %s, %v", text, err)
		}
		for of, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): fs.ModeDir | 0o700} {
			if info, err := os.Stat(of); err != nil || info.Mode() != want {
				t.Errorf("%s: %v, %v", of, info.Mode(), err)
			}
		}
	}
	if left, err := os.ReadDir(run); err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// TestABrowserThatCannotBeOpened is told of.
func TestABrowserThatCannotBeOpened(t *testing.T) {
	sh := shelltest.New("", map[string]string{"XDG_RUNTIME_DIR": t.TempDir()})
	if err := open(t.Context(), sh.Shell, "/bin/false", address); err == nil || strings.Contains(err.Error(), "a-secret") {
		t.Errorf("it is said: %v", err)
	}
	nowhere := shelltest.New("", map[string]string{"XDG_RUNTIME_DIR": filepath.Join(t.TempDir(), "nosuch")})
	if err := open(t.Context(), nowhere.Shell, "/bin/true", address); err == nil {
		t.Error("nothing is said of a file that cannot be written")
	}
}
