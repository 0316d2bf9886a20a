package luxi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/testkit"
)

// patience is how long one command may take before the test gives up; it says
// nothing about speed.
const patience = 5 * time.Minute

// bench is a cluster with both sets of tools.
type bench struct {
	*testing.T

	dir    string // with our tools under their classic names
	socket string
	remote string // the address of the remote API, with who asks
	root   string // where Ganeti's packages are unpacked
	// Ganeti's tools, as stock_tool.py is them.
	asked *json.Encoder
	told  *json.Decoder
}

// TestStockTools holds our tools against Ganeti's, and Ganeti's on our controller,
// each on a cluster of its own.
func TestStockTools(t *testing.T) {
	root := stockRoot(t)
	binary := testkit.Build(t)
	for name, check := range map[string]func(*bench){"equal": toolsWriteTheSame, "life": toolsWork, "refused": toolsAreRefused, "all": everythingIsHeld, "balancers": balancersWork, "allocators": allocatorsWork} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, root, binary, name == "allocators")
			b.furnish()
			check(b)
		})
	}
}

// stockRoot is where Ganeti's packages are unpacked; a test that lacks them, or what they need, is skipped.
func stockRoot(t *testing.T) string {
	t.Helper()
	cache := filepath.Join(testkit.Root(t), ".cache/ganeti")
	root := filepath.Join(cache, "root")
	if _, err := os.Stat(filepath.Join(cache, "complete")); err != nil { // see .ci/unpack
		missingf(t, "Ganeti's tools are not here; make stock-tools fetches them")
	}
	cmd := exec.CommandContext(t.Context(), testkit.Python, "-c", "import ganeti.cli, ganeti.client.gnt_instance")
	cmd.Env = pythonOf(root)
	if out, err := cmd.CombinedOutput(); err != nil {
		missingf(t, "Ganeti's tools cannot be loaded here: %v\n%s", err, out)
	}
	return root
}

// missingf skips a test for want of what Ganeti's tools need; in make stock-tools,
// which is about nothing else, it fails.
func missingf(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("DROVER_STOCK_TOOLS") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// pythonOf is the environment of a Python that finds Ganeti's modules.
func pythonOf(root string) []string {
	path := filepath.Join(root, "usr/lib/python3/dist-packages") + ":" + filepath.Join(root, "usr/share/ganeti/3.0")
	// The tools show some sets in the order of their hashes; with this seed it is that of the letters.
	return append(os.Environ(), "PYTHONPATH="+path, "PYTHONHASHSEED=3")
}

func newBench(t *testing.T, root, binary string, allocators bool) *bench {
	t.Helper()
	b := &bench{T: t, dir: t.TempDir(), root: root}
	for _, noun := range []string{"job", "filter", "instance", "node", "group", "network", "cluster", "debug", "os", "backup", "storage"} {
		if err := os.Symlink(binary, filepath.Join(b.dir, "gnt-"+noun)); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"--storage-providers", b.providers()}
	if allocators {
		args = append(args, "--iallocators", b.allocators())
	}
	cluster := testkit.StartDev(t, binary, t.TempDir(), args...)
	t.Cleanup(func() { _ = cluster.Gone() }) // the end of the test's context ends it
	b.socket = cluster.Ready.LUXI
	b.remote = strings.Replace(cluster.Ready.RAPI, "https://", "https://"+cluster.Ready.User+":"+cluster.Ready.Password+"@", 1)
	return b
}

// start starts the process that is Ganeti's tools.
func (b *bench) start() {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), testkit.Python, "stock_tool.py", b.socket)
	cmd.Env = pythonOf(b.root)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = errors.Join(in.Close(), cmd.Wait()) }) // each command has told how it ended
	b.asked, b.told = json.NewEncoder(in), json.NewDecoder(out)
}

// output is what a command wrote, and how it ended.
type output struct {
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	Status int    `json:"status"`
}

func (o output) String() string { return fmt.Sprintf("status %d\n%s%s", o.Status, o.Stdout, o.Stderr) }

func (b *bench) run(env []string, program string, args ...string) output {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return output{stdout.String(), stderr.String(), exit.ExitCode()}
	}
	if err != nil {
		b.Fatal(err)
	}
	return output{stdout.String(), stderr.String(), 0}
}

func (b *bench) ours(line []string) output {
	return b.run([]string{"DROVER_LUXI=" + b.socket}, filepath.Join(b.dir, line[0]), line[1:]...)
}

func (b *bench) theirs(line []string) output {
	b.Helper()
	if b.asked == nil {
		b.start()
	}
	var out output
	if err := errors.Join(b.asked.Encode(line), b.told.Decode(&out)); err != nil {
		b.Fatalf("%v: %v", line, err)
	}
	return out
}

// furnish makes something to look at, by Ganeti's tools.
func (b *bench) furnish() {
	b.Helper()
	for _, line := range [][]string{
		{"gnt-instance", "add", "-t", "file", "-s", "1G", "-o", "noop", "-B", "memory=256", "--no-name-check", "--no-ip-check", "web1"},
		{"gnt-instance", "add", "-t", "diskless", "-o", "noop", "--no-name-check", "--no-ip-check", "--no-start", "web2"},
		{"gnt-instance", "add-tags", "web1", "env:prod"},
		{"gnt-cluster", "add-tags", "owner:ops"},
		{"gnt-node", "modify", "-C", "yes", "node2"},
		{"gnt-filter", "add", "--priority=5", "--action=PAUSE", `--predicates=[["reason", ["=~", "reason", "für"]]]`, "--reason=für Müller"},
	} {
		if out := b.theirs(line); out.Status != 0 {
			b.Fatalf("%v: %s", line, out)
		}
	}
}

// toolsWriteTheSame runs each line by both and compares all of it.
func toolsWriteTheSame(b *bench) {
	equal := 0
	if out := b.theirs(strings.Fields("gnt-instance add -t plain -s 64M -n node2 -o noop --no-name-check --no-ip-check --no-start volume")); out.Status != 0 {
		b.Fatalf("an instance on a logical volume: %s", out)
	}
	for _, line := range lines {
		theirs, ours := b.theirs(line).masked(), b.ours(line).masked()
		if theirs != ours {
			b.Errorf("%s\ntheirs: %s\nours: %s", strings.Join(line, " "), theirs, ours)
			continue
		}
		equal++
	}
	b.Logf("%d of %d commands write the same", equal, len(lines))
}

// changing are the parts of what is written that differ from one run to the
// next: the ids of jobs, and the times of their messages.
var changing = regexp.MustCompile(`(jobs?|JobID:) [0-9]+(, [0-9]+)*|(?m)^[A-Z][a-z]{2} [A-Z][a-z]{2} +[0-9]+ [0-9:]+ [0-9]{4} `)

func (o output) masked() output {
	o.Stdout, o.Stderr = changing.ReplaceAllString(o.Stdout, "#"), changing.ReplaceAllString(o.Stderr, "#")
	return o
}

// toolsWork runs what Ganeti's tools can do that needs neither ssh nor an
// opcode without an executor, one after the other: each has to succeed.
func toolsWork(b *bench) {
	for _, line := range life {
		words := strings.Fields(line)
		if out := b.theirs(words); out.Status != 0 {
			b.Errorf("%s: %s", line, out)
		}
	}
	b.Logf("%d commands", len(life))
}

// toolsAreRefused runs what is refused for a reason: each has to say that.
func toolsAreRefused(b *bench) {
	for line, want := range unset {
		out := b.theirs(strings.Fields(line))
		if text := out.Stdout + out.Stderr; out.Status == 0 || !strings.Contains(text, want) {
			b.Errorf("%s: %s", line, out)
		}
	}
	b.Logf("%d commands are refused", len(unset))
}

// everythingIsHeld fails for a sub-command of Ganeti's tools that no table names.
func everythingIsHeld(b *bench) {
	held := map[string]bool{}
	for _, words := range lines {
		held[strings.Join(words[:2], " ")] = true
	}
	for _, list := range [][]string{life, slices.Collect(maps.Keys(unset)), elsewhere} {
		for _, line := range list {
			tool, rest, _ := strings.Cut(line, " ")
			command, _, _ := strings.Cut(rest, " ")
			held[tool+" "+command] = true
		}
	}
	count := 0
	for _, tool := range []string{"backup", "cluster", "debug", "filter", "group", "instance", "job", "network", "node", "os", "storage"} {
		for _, m := range subcommand.FindAllStringSubmatch(b.theirs([]string{"gnt-" + tool, "--help"}).Stdout, -1) {
			count++
			if name := "gnt-" + tool + " " + m[1]; !held[name] {
				b.Errorf("%s is in no table", name)
			}
		}
	}
	if count == 0 {
		b.Error("the tools' help shows no sub-command")
	}
	b.Logf("%d sub-commands, %d of them outside", count, len(elsewhere))
}

// subcommand is a line of the tools' help.
var subcommand = regexp.MustCompile(`(?m)^ ([a-z-]+) +- `)

// balancersWork runs Ganeti's balancing tools, which read the whole cluster
// through the socket.
func balancersWork(b *bench) {
	libraries, err := filepath.Glob(filepath.Join(b.root, "lib", "*"))
	if err != nil {
		b.Fatal(err)
	}
	htools := filepath.Join(b.root, "usr/lib/ganeti/3.0/usr/bin/htools")
	env := func(tool string) []string {
		return []string{"HTOOLS=" + tool, "LC_ALL=C.UTF-8", "LD_LIBRARY_PATH=" + strings.Join(libraries, ":")}
	}
	if out := b.run(env("hinfo"), htools, "--version"); out.Status != 0 {
		missingf(b.T, "Ganeti's balancing tools cannot be loaded here: %s", out)
	}
	for _, tool := range []string{"hinfo", "hbal", "hspace", "hcheck", "hroller", "hsqueeze", "harep"} {
		out := b.run(env(tool), htools, "-L"+b.socket)
		if out.Status != 0 || out.Stdout == "" || out.Stderr != "" {
			b.Errorf("%s: %s", tool, out)
		}
	}
	b.balances(env("hbal"), htools)
}

// providers makes a directory with a storage provider, and with one that lacks scripts.
func (b *bench) providers() string {
	b.Helper()
	dir := b.TempDir()
	for path, text := range map[string]string{
		"shelf/create": "", "shelf/attach": "", "shelf/detach": "", "shelf/remove": "", "shelf/grow": "", "shelf/setinfo": "", "shelf/verify": "",
		"shelf/parameters.list": "tier which disks it is on\n", "broken/create": "",
	} {
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o700)); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}

// allocators makes a directory with Ganeti's own allocator, which finds its libraries where they were unpacked.
func (b *bench) allocators() string {
	b.Helper()
	libraries, err := filepath.Glob(filepath.Join(b.root, "lib", "*"))
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	program := fmt.Sprintf("#!/bin/sh\nLC_ALL=C.UTF-8 HTOOLS=hail LD_LIBRARY_PATH=%s exec %s \"$@\"\n", strings.Join(libraries, ":"), filepath.Join(b.root, "usr/lib/ganeti/3.0/usr/bin/htools"))
	if err := os.WriteFile(filepath.Join(dir, "hail"), []byte(program), 0o700); err != nil {
		b.Fatal(err)
	}
	return dir
}

// allocatorsWork has Ganeti's own allocator place an instance, and answer what gnt-debug asks it.
func allocatorsWork(b *bench) {
	for _, line := range []struct{ command, want string }{
		{"gnt-instance add -I hail -t drbd -s 64M -o noop --no-name-check --no-ip-check placed", "via iallocator hail: node"},
		{"gnt-debug iallocator --dir=out -I hail --mode=allocate -t drbd --disks 64,64 -o noop x", `"success":true`},
		{"gnt-debug iallocator --dir=out -I hail --mode=multi-allocate --count 2 -t drbd --disks 64 -o noop x", `"success":true`},
		{"gnt-debug iallocator --dir=out -I hail --mode=node-evacuate --evac-mode primary-only placed", `OP_INSTANCE_MIGRATE`},
		{"gnt-debug iallocator --dir=out -I hail --mode=relocate placed", `"success":false`},
		{"gnt-debug iallocator --dir=out -I hail --mode=change-group placed", `"success":`},
		{"gnt-cluster modify --default-iallocator hail", ""},
		{"gnt-instance add -t file -s 64M -o noop --no-name-check --no-ip-check default", "via iallocator hail: node"},
	} {
		words := strings.Fields(line.command)
		out := b.theirs(words)
		if out.Status != 0 || !strings.Contains(out.Stdout+out.Stderr, line.want) {
			b.Errorf("%s: %s", line.command, out)
		}
	}
}

// score is how uneven a cluster is, as hbal tells it.
var score = regexp.MustCompile(`(?m)^Initial score: ([0-9.]+)$`)

// balances has hbal move instances that are all on one node, over the socket, and finds the cluster more even afterwards, over the remote API, too.
func (b *bench) balances(env []string, hbal string) {
	b.Helper()
	const instances = 4
	for i := range instances {
		line := []string{"gnt-instance", "add", "-t", "drbd", "-s", "64M", "-n", "node1:node2", "-o", "noop", "-B", "memory=256", "--no-name-check", "--no-ip-check", fmt.Sprint("heavy", i)}
		if out := b.theirs(line); out.Status != 0 {
			b.Fatalf("%v: %s", line, out)
		}
	}
	scored := func(args ...string) float64 {
		out := b.run(env, hbal, args...)
		m := score.FindStringSubmatch(out.Stdout)
		if out.Status != 0 || m == nil {
			b.Fatalf("hbal %v: %s", args, out)
		}
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			b.Fatal(err)
		}
		return n
	}
	before := scored("-L"+b.socket, "-X")
	after := scored("-L" + b.socket)
	remote := scored("-m" + b.remote)
	moved := b.theirs([]string{"gnt-instance", "list", "--no-headers", "-o", "pnode", "heavy0", "heavy1", "heavy2", "heavy3"})
	if after >= before || remote >= before || !strings.Contains(moved.Stdout, "node2") || !strings.Contains(moved.Stdout, "node1") {
		b.Errorf("the score went from %v to %v, %v over the remote API; they are on\n%s", before, after, remote, moved.Stdout)
	}
	b.Logf("the score went from %v to %v", before, after)
}
