// Package upgrade holds programs of two versions against one store: this one, and one of before that is built from the
// repository's history; and this one against stores that one of before has left, which are kept.
package upgrade_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/testkit"
)

// noFormats is the last revision whose program knows of no formats.
const noFormats = "bd1d089"

// program is one of a revision, without some files of its, and with texts that are others.
type program struct {
	revision string
	without  []string
	changes  map[string][2]string // of files, each of which has the text once
}

// lastOf are the programs that know no later format, from the first one on: of all formats but this program's newest.
var lastOf = [format.Newest - format.First]program{
	// The first program that seals secrets, which those before it cannot read, as if it had not learned the next format with that.
	{revision: "a85a251", changes: map[string][2]string{"internal/store/format/format.go": {"const Newest = Identities", "const Newest = First"}},
		without: []string{"internal/store/sqlite/migrations/0005_format_2.sql", "internal/store/postgres/migrations/0003_format_2.sql"}},
	{revision: "6ca0813"},
	{revision: "14eb42d"},
	{revision: "6e87672"},
	{revision: "3623e91"},
	{revision: "d65076b"},
	{revision: "d1c7deb"},
	{revision: "55095dc"},
	{revision: "444efe2"},
	{revision: "da42a8e"},
}

// startDev starts a program of either kind.
func startDev(t testing.TB, bin, data string, args ...string) *testkit.Dev {
	t.Helper()
	help, err := exec.CommandContext(t.Context(), bin, "dev", "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(help), "--watch-every") {
		return testkit.StartDev(t, bin, data, args...)
	}
	return testkit.StartDevOfBefore(t, bin, data, args...)
}

// TestTheRevisionsOfBeforeAreThere: `make upgrade-test` builds programs of revisions that the history has to have, each with the
// formats that it is taken for.
func TestTheRevisionsOfBeforeAreThere(t *testing.T) {
	root := testkit.Root(t)
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skip("the sources have no history here")
	}
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	for revision, there := range map[string]string{noFormats: "cmd/drover/main.go\n", lastOf[0].revision: "cmd/drover/main.go\ninternal/app/format.go\ninternal/app/keys.go\n"} {
		if got := git("ls-tree", "--name-only", revision, "cmd/drover/main.go", "internal/app/keys.go", "internal/app/format.go"); got != there {
			t.Errorf("of %s there are %q, want %q", revision, got, there)
		}
	}
	for i, p := range lastOf[1:] {
		known := strings.Fields(git("grep", "-hoE", `^[[:space:]][A-Z][a-z]+ += [0-9]+$`, p.revision, "--", "internal/store/format/format.go"))
		if got, want := known[len(known)-1], strconv.Itoa(format.First+1+i); got != want {
			t.Errorf("%s knows formats up to %s, want %s", p.revision, got, want)
		}
	}
}

// killed is an opcode of several steps that a program of before carried out when it was killed, between two of them, and what this
// program makes of it.
type killed struct {
	// name is that of the store in testdata. setup are the commands before, and command the one whose job was interrupted.
	name    string
	setup   [][]string
	command []string
	// hold is where it was: the driver's call, the instance, and whether the call had had its effect; empty for a process on the node,
	// which holds by itself.
	hold string
	// again says that this program runs the opcode again to its end; else the job ends with an error that says this.
	again bool
	says  string
	// inventory are name, status and size of the first disk of what the inventory has in the end, verify what cluster verify says then.
	inventory, verify string
	// then are commands that an operator may type then, and that succeed.
	then [][]string
}

var (
	add  = []string{"instance", "add", "one", "--os", "noop", "--disk", "0:size=8M", "--node", "node1.drover.example", "--yes"}
	stop = []string{"instance", "stop", "one", "--timeout", "0"}
	// What a program of before has left of a creation has no mark that says so: it is left alone, and another node is free.
	elsewhere = []string{"instance", "add", "one", "--os", "noop", "--disk", "0:size=8M", "--node", "node2.drover.example", "--yes"}
)

const notAgain = " ran, and it is not run again: "

// kills are the ten opcodes of several steps.
var kills = []killed{
	{name: "create", command: slices.Concat(add, []string{"--submit"}), hold: "prepare one true", says: notAgain + "a second run would find what the first one made",
		verify: "unknown instance one on this node", then: [][]string{elsewhere}},
	{name: "create-installing", command: []string{"instance", "add", "one", "--os", "held", "--disk", "0:size=8M", "--node", "node1.drover.example", "--yes", "--submit"},
		says: notAgain + "a second run would find what the first one made", inventory: "[one ADMIN_down 8]", then: [][]string{{"instance", "reinstall", "one", "--yes"}, {"instance", "start", "one"}}},
	{name: "remove", setup: [][]string{add}, command: []string{"instance", "remove", "one", "--yes", "--submit"}, hold: "remove one true",
		says: notAgain + "a second run would miss what the first one removed", inventory: "[one ERROR_down 8]", then: [][]string{{"instance", "remove", "one", "--yes"}}},
	{name: "rename", setup: [][]string{add, stop}, command: []string{"instance", "rename", "one", "two", "--yes", "--submit"}, hold: "rename one true",
		says: notAgain + "a second run would miss what the first one removed", inventory: "[one ADMIN_down 8]", then: [][]string{{"instance", "rename", "one", "two", "--yes"}}},
	{name: "startup", setup: [][]string{add, stop}, command: []string{"instance", "start", "one", "--submit"}, hold: "start one true", again: true, inventory: "[one running 8]"},
	{name: "shutdown", setup: [][]string{add}, command: []string{"instance", "stop", "one", "--timeout", "0", "--submit"}, hold: "stop one true", again: true, inventory: "[one ADMIN_down 8]"},
	{name: "reboot", setup: [][]string{add}, command: []string{"instance", "reboot", "one", "--type", "full", "--shutdown-timeout", "0", "--submit"}, hold: "stop one true", again: true, inventory: "[one running 8]"},
	{name: "reinstall", setup: [][]string{add, stop}, command: []string{"instance", "reinstall", "one", "-o", "held", "--yes", "--submit"}, again: true, inventory: "[one ADMIN_down 8]"},
	{name: "modify", setup: [][]string{add, stop}, command: []string{"instance", "modify", "one", "--disk", "add:size=4M", "--submit"}, hold: "prepare one true",
		says: notAgain + "it changes lists by position", inventory: "[one ADMIN_down 8]", verify: "is of instance one, which has no such disk", then: [][]string{{"instance", "modify", "one", "--disk", "add:size=4M"}}},
	{name: "grow", setup: [][]string{add, stop}, command: []string{"instance", "grow-disk", "one", "0", "8M", "--submit"}, hold: "prepare one true",
		says: notAgain + "a second run would grow the disk again", inventory: "[one ADMIN_down 8]", then: [][]string{{"instance", "grow-disk", "one", "0", "8M"}}},
	{name: "task", setup: [][]string{{"deploy", "graph", "put", "base", "tasks.yaml"}, {"deploy", "env", "put", "prod", "prod.yaml", "--graph", "base"}},
		command: []string{"deploy", "run", "prod", "--submit"}, again: true},
}

// TestJobsThatAProgramOfBeforeBegan: a store that a program of before was killed on, in each of the opcodes of several steps, is taken
// over by this one. It knows nothing of steps that were kept, so the opcode is run again if that does no harm, and ends otherwise and
// says why; the inventory and the nodes agree, or it is told where they do not, and the cluster goes on.
func TestJobsThatAProgramOfBeforeBegan(t *testing.T) {
	bin := testkit.Build(t)
	for _, k := range kills {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			data := shortDir(t)
			unpack(t, filepath.Join("testdata", k.name+".tar.gz"), data)
			k.isTaken(t, bin, data, true)
		})
	}
}

// isTaken starts a program on a store and holds what becomes of its job; only one that knows things by identity tells of all of them.
func (k *killed) isTaken(t *testing.T, bin, data string, byIdentity bool) {
	t.Helper()
	d := startDev(t, bin, data)
	ask := func(args ...string) (string, error) {
		return say(t, bin, append([]string{"--luxi", d.Ready.LUXI}, args...)...)
	}
	job, status := k.ended(t, d)
	told, err := ask("job", "info", job)
	if err != nil || k.again != (status == "success") || !k.again && !strings.Contains(told, k.says) {
		t.Errorf("job %s is %s, want again %v, %q: %v\n%s", job, status, k.again, k.says, err, told)
	}
	var instances [][]any
	lookup(t, d, "QueryInstances", []any{[]string{}, []string{"name", "status", "disk.size/0"}, false}, &instances)
	if got := fmt.Sprint(instances); got != "["+k.inventory+"]" {
		t.Errorf("the inventory has %s, want %s", got, k.inventory)
	}
	if text, _ := ask("cluster", "verify"); byIdentity && (k.verify == "" && strings.Contains(text, "ERROR") != strings.Contains(k.inventory, "ERROR") || !strings.Contains(text, k.verify)) {
		t.Errorf("cluster verify says\n%s\nwant %q", text, k.verify)
	}
	for _, args := range k.then {
		if text, err := ask(args...); err != nil {
			t.Errorf("%v: %v\n%s", args, err, text)
		}
	}
	d.Terminate()
	if err := d.Gone(); err != nil {
		t.Error(err)
	}
	if text, err := say(t, bin, "store", "check", data); err != nil || !strings.Contains(text, "are consistent") {
		t.Errorf("store check: %v\n%s", err, text)
	}
}

// lookup asks a controller over LUXI.
func lookup(t *testing.T, d *testkit.Dev, method string, args []any, answer any) {
	t.Helper()
	client, err := luxiwire.Dial(t.Context(), d.Ready.LUXI)
	if err == nil {
		err = client.Resend(t.Context(), 20, method, args, answer)
		_ = client.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ended waits for the end of the job that was interrupted, the last one, and tells how it ended.
func (k *killed) ended(t *testing.T, d *testkit.Dev) (id, status string) {
	t.Helper()
	for limit := time.Now().Add(4 * testkit.Patience()); time.Now().Before(limit); {
		var rows [][]any
		lookup(t, d, "QueryJobs", []any{nil, []string{"id", "status"}}, &rows)
		if len(rows) == 0 {
			t.Fatal("there is no job")
		}
		last := slices.MaxFunc(rows, func(a, b []any) int { return int(a[0].(float64) - b[0].(float64)) })
		if status = fmt.Sprint(last[1]); status == "success" || status == "error" || status == "canceled" {
			return fmt.Sprint(last[0]), status
		}
	}
	t.Fatal("the job does not end")
	return "", ""
}

// shortDir is a directory with a path that is short enough for sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "drv") //nolint:usetesting // paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// unpack puts the files of an archive into a directory.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	zipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	for in := tar.NewReader(zipped); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			err = root.MkdirAll(filepath.Dir(h.Name), 0o750)
		}
		var text []byte
		if err == nil {
			text, err = io.ReadAll(in)
		}
		if err == nil {
			err = root.WriteFile(h.Name, text, os.FileMode(h.Mode)&0o777)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// say runs a command and returns what it says, on both streams.
func say(t *testing.T, bin string, args ...string) (text string, err error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), bin, args...).CombinedOutput()
	return string(out), err
}
