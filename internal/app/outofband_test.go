package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// A program is told a command and a node; one that fails, hangs or floods is told of, within its time.
func TestOutOfBandPrograms(t *testing.T) {
	dir := programs(t, map[string]string{
		"good": `echo "$@"; echo beside >&2; cat`, "bad": "echo '{}'; echo no way >&2; exit 1", "flood": "yes", "hang": "sleep 600 & sleep 600", "open": "true",
	})
	if err := os.Chmod(filepath.Join(dir, "open"), 0o777); err != nil {
		t.Fatal(err)
	}
	o := newOutOfBand("/nonexistent::" + dir + "/")
	run := func(name string, most time.Duration) (string, error) {
		said, err := o.Run(t.Context(), filepath.Join(dir, name), "power-on", "node1", most)
		return string(said), err
	}
	if said, err := run("good", time.Minute); said != "power-on node1\n" || err != nil {
		t.Errorf("%q, %v", said, err)
	}
	for name, want := range map[string]string{
		"bad": "bad power-on node1' failed: exit status 1, output 'no way\n{}'", "flood": "it said more than 1048576 bytes", "hang": "it took longer than 200ms", "nosuch": "There is no", "open": "too permissive",
	} {
		most := time.Minute
		if name == "hang" {
			most = 200 * time.Millisecond
		}
		if said, err := run(name, most); said != "" || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s comes to %.100q, %.300v", name, said, err)
		}
	}
}

// Nothing runs that is not in one of the directories, and nothing at all where none is named.
func TestOutOfBandProgramsElsewhere(t *testing.T) {
	dir := programs(t, map[string]string{"good": "true"})
	o := newOutOfBand(dir)
	for _, path := range []string{"/bin/sh", "good", "", dir, dir + "/", dir + "/../" + filepath.Base(dir) + "/good", dir + "//good", filepath.Dir(dir) + "/good", dir + "/sub/good"} {
		if err := o.Check(path); !fault.Is(err, fault.WrongState) && !fault.Is(err, fault.NotFound) {
			t.Errorf("%q: %v", path, err)
		}
	}
	if err := o.Check(filepath.Join(dir, "good")); err != nil {
		t.Error(err)
	}
	if newOutOfBand("") != nil || newOutOfBand(":") != nil {
		t.Error("there are programs without a directory")
	}
}
