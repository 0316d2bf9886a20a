//go:build stock

package luxi

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/testkit"
)

// packages are Ganeti's tools and the Python libraries that they import.
var packages = []string{
	"ganeti-3.0", "python3-pyparsing", "python3-openssl", "python3-pycurl", "python3-pyinotify", "python3-psutil",
	"python3-bitarray", "python3-cryptography", "python3-cffi-backend", "python3-six", "python3-simplejson",
	"ganeti-htools-3.0", "libpcre3",
}

const commandLimit = time.Minute

// bench is a cluster with both sets of tools.
type bench struct {
	*testing.T
	dir    string // with our tools under their classic names
	socket string
	stock  string // PYTHONPATH of Ganeti's tools
	root   string // where its packages are unpacked
}

func newBench(t *testing.T) *bench {
	t.Helper()
	cache, err := filepath.Abs("../../.cache/ganeti")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "../../.ci/unpack", append([]string{cache}, packages...)...).CombinedOutput(); err != nil {
		t.Fatalf("Ganeti's tools cannot be fetched: %v\n%s", err, out)
	}
	b := &bench{T: t, dir: t.TempDir(), root: filepath.Join(cache, "root")}
	b.stock = filepath.Join(cache, "root/usr/lib/python3/dist-packages") + ":" + filepath.Join(cache, "root/usr/share/ganeti/3.0")
	binary := testkit.Build(t)
	for _, noun := range []string{"job", "filter", "instance", "node", "group", "network", "cluster", "debug", "os", "backup"} {
		if err := os.Symlink(binary, filepath.Join(b.dir, "gnt-"+noun)); err != nil {
			t.Fatal(err)
		}
	}
	b.startCluster()
	return b
}

func (b *bench) startCluster() {
	b.Helper()
	data, err := os.MkdirTemp("", "drv") // sockets need short paths
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(signal, 1), make(chan error, 1)
	go func() {
		ended <- app.Run(ctx, app.Options{Data: data, RAPI: "127.0.0.1:0", Nodes: 2, Out: ready, Log: slog.New(slog.DiscardHandler)})
	}()
	b.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, os.RemoveAll(data)); err != nil {
			b.Error(err)
		}
	})
	select {
	case <-ready:
	case <-time.After(commandLimit):
		b.Fatal("the cluster did not start")
	}
	b.socket = filepath.Join(data, "luxi.sock")
}

// signal is where the cluster says that it is ready.
type signal chan struct{}

func (s signal) Write(text []byte) (int, error) {
	select {
	case s <- struct{}{}:
	default:
	}
	return len(text), nil
}

// output is what a command wrote, and how it ended.
type output struct {
	stdout, stderr string
	status         int
}

func (b *bench) run(env []string, program string, args ...string) output {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), commandLimit)
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
	return b.run([]string{"PYTHONPATH=" + b.stock}, "/usr/bin/python3", append([]string{"stock_tool.py", b.socket}, line...)...)
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
		if out := b.theirs(line); out.status != 0 {
			b.Fatalf("%v: %d %s%s", line, out.status, out.stdout, out.stderr)
		}
	}
}

// TestToolsWriteTheSame runs each line by both and compares all of it.
func TestToolsWriteTheSame(t *testing.T) {
	b := newBench(t)
	b.furnish()
	equal := 0
	for _, line := range lines {
		theirs, ours := b.theirs(line).masked(), b.ours(line).masked()
		if theirs != ours {
			t.Errorf("%s\ntheirs: status %d\n%s%s\nours: status %d\n%s%s", strings.Join(line, " "),
				theirs.status, theirs.stdout, theirs.stderr, ours.status, ours.stdout, ours.stderr)
			continue
		}
		equal++
	}
	t.Logf("%d of %d commands write the same", equal, len(lines))
}

// changing are the parts of what is written that differ from one run to the
// next: the ids of jobs, and the times of their messages.
var changing = regexp.MustCompile(`(jobs?|JobID:) [0-9]+(, [0-9]+)*|(?m)^[A-Z][a-z]{2} [A-Z][a-z]{2} +[0-9]+ [0-9:]+ [0-9]{4} `)

func (o output) masked() output {
	o.stdout, o.stderr = changing.ReplaceAllString(o.stdout, "#"), changing.ReplaceAllString(o.stderr, "#")
	return o
}

// TestToolsWork runs what Ganeti's tools can do that needs neither ssh nor an
// opcode without an executor, one after the other: each has to succeed.
func TestToolsWork(t *testing.T) {
	b := newBench(t)
	b.furnish()
	for _, line := range life {
		words := strings.Fields(line)
		if out := b.theirs(words); out.status != 0 {
			t.Errorf("%s: status %d\n%s%s", line, out.status, out.stdout, out.stderr)
		}
	}
	t.Logf("%d commands", len(life))
}

// TestBalancers runs Ganeti's balancing tools, which read the whole cluster
// through the socket.
func TestBalancers(t *testing.T) {
	b := newBench(t)
	b.furnish()
	libraries, err := filepath.Glob(filepath.Join(b.root, "lib", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"hinfo", "hbal", "hspace", "hcheck"} {
		out := b.run([]string{"HTOOLS=" + tool, "LC_ALL=C.UTF-8", "LD_LIBRARY_PATH=" + strings.Join(libraries, ":")},
			filepath.Join(b.root, "usr/lib/ganeti/3.0/usr/bin/htools"), "-L"+b.socket)
		if out.status != 0 || out.stdout == "" || out.stderr != "" {
			t.Errorf("%s: status %d\n%s%s", tool, out.status, out.stdout, out.stderr)
		}
	}
}

var lines = [][]string{
	{"gnt-job", "list"}, {"gnt-job", "list", "1", "2"}, {"gnt-job", "list", "999"}, {"gnt-job", "list", "xx"},
	{"gnt-job", "list", "-o", "id,status,received_ts,start_ts,end_ts,opstatus,oppriority,priority,archived"},
	{"gnt-job", "list", "--no-headers", "--separator", ":"}, {"gnt-job", "list", "-F", `status == "success"`},
	{"gnt-job", "list", "--finished"}, {"gnt-job", "list", "-o", "+nosuch"},
	{"gnt-job", "info", "1"}, {"gnt-job", "info", "1", "2", "999"}, {"gnt-job", "watch", "1"}, {"gnt-job", "wait", "1"},
	{"gnt-job", "watch", "999"}, {"gnt-job", "wait", "999"}, {"gnt-job", "cancel", "1"}, {"gnt-job", "archive", "999"},
	{"gnt-job", "change-priority", "1"}, {"gnt-job", "list-fields", "id", "nosuch"},

	{"gnt-filter", "list"}, {"gnt-filter", "list", "-o", "uuid,action"}, {"gnt-filter", "info"}, {"gnt-filter", "delete", "x"},
	{"gnt-filter", "add", "--action=BAD"}, {"gnt-filter", "add", "--predicates", `[["x"]]`}, {"gnt-filter", "add", "--priority=-1"},
	{"gnt-filter", "info", "11111111-1111-1111-1111-111111111111"}, {"gnt-filter", "replace", "nouuid"},

	{"gnt-instance", "list"}, {"gnt-instance", "list", "web1"}, {"gnt-instance", "list", "web*"}, {"gnt-instance", "list", "nosuch"},
	{"gnt-instance", "list", "-o", "name,nosuch"}, {"gnt-instance", "list", "-F", "name === x"},
	{"gnt-instance", "list", "--filter", `status == "running"`},
	{"gnt-instance", "list", "-o", "+tags,be/memory,ctime,disk.sizes,nic.ips,snodes,hvparams"},
	{"gnt-instance", "list", "--units", "g", "-o", "name,be/maxmem,oper_ram"}, {"gnt-instance", "list", "-o", "name,nic.ip/3", "-v"},
	{"gnt-instance", "info", "web1"}, {"gnt-instance", "info", "nosuch"}, {"gnt-instance", "list-tags", "web1"},
	{"gnt-instance", "list-tags", "nosuch"}, {"gnt-instance", "startup", "nosuch"},

	{"gnt-node", "list"}, {"gnt-node", "list", "nosuch"}, {"gnt-node", "list", "-o", "name,role,group,tags,pinst_list,ndparams"},
	{"gnt-node", "info", "node1"}, {"gnt-node", "info"}, {"gnt-node", "list-tags", "node1"},
	{"gnt-group", "list"}, {"gnt-group", "list", "-o", "name,node_list,ipolicy"}, {"gnt-network", "list"},

	{"gnt-cluster", "queue", "info"}, {"gnt-cluster", "watcher", "info"}, {"gnt-cluster", "list-tags"},
	{"gnt-cluster", "search-tags", "env"}, {"gnt-cluster", "version"}, {"gnt-cluster", "queue", "drain"},
	{"gnt-cluster", "queue", "info"}, {"gnt-instance", "startup", "web1"}, {"gnt-cluster", "queue", "undrain"},
	{"gnt-cluster", "watcher", "continue"},
	{"gnt-debug", "locks"}, {"gnt-debug", "delay", "0"}, {"gnt-debug", "delay", "0.01"},
	{"gnt-os", "list"}, {"gnt-os", "info"}, {"gnt-os", "diagnose"}, {"gnt-backup", "list"}, {"gnt-backup", "list-fields"},

	{"gnt-job", "list", "--output=id"}, {"gnt-job", "list", "--output", "id,status"}, {"gnt-job", "show", "1"},
	{"gnt-instance", "show", "web1"}, {"gnt-node", "show", "node1"}, {"gnt-os", "show"}, {"gnt-group", "info"},
	{"gnt-cluster", "modify"}, {"gnt-network", "modify", "nosuch"}, {"gnt-node", "modify", "node1"}, {"gnt-instance", "modify", "web1"},
	{"gnt-cluster", "modify", "-C", "5"}, {"gnt-cluster", "redist-conf", "-d"},
	{"gnt-instance", "startup", "--tags", "x"}, {"gnt-instance", "startup", "--all", "x"}, {"gnt-instance", "add-tags", "web1", "a b"},
}

// life is one thing after the other, in the words of Ganeti's manual pages.
var life = []string{
	"gnt-cluster modify -C 5 --maintain-node-health no", "gnt-cluster modify -B vcpus=1 -N link=br1", "gnt-cluster modify -H kvm:acpi=false",
	"gnt-cluster modify -D drbd:resync-rate=1000", "gnt-cluster modify --ipolicy-std-specs cpu-count=2", "gnt-cluster modify --ipolicy-vcpu-ratio 4.0",
	"gnt-cluster modify --reserved-lvs=", "gnt-cluster add-tags a", "gnt-cluster remove-tags a", "gnt-cluster verify", "gnt-cluster verify-disks",
	"gnt-cluster redist-conf", "gnt-cluster watcher pause 1h", "gnt-cluster watcher continue", "gnt-cluster master-ping",
	"gnt-cluster show-ispecs-cmd",
	"gnt-group add -D plain:stripes=2 --ipolicy-vcpu-ratio 3 rack2", "gnt-group modify --alloc-policy last_resort rack2", "gnt-group rename rack2 rack3",
	"gnt-group assign-nodes rack3 node2", "gnt-group assign-nodes default node2", "gnt-group add-tags rack3 a", "gnt-group remove-tags rack3 a",
	"gnt-group show-ispecs-cmd rack3", "gnt-group remove rack3",
	"gnt-network add --network 192.0.2.0/24 --gateway 192.0.2.1 net1", "gnt-network connect -N mode=bridged,link=br0 net1 default",
	"gnt-network modify --add-reserved-ips 192.0.2.9 net1", "gnt-network info net1", "gnt-network add-tags net1 a", "gnt-network list",
	"gnt-instance add -t diskless -o noop --no-name-check --no-ip-check --net 0:network=net1,ip=pool three", "gnt-instance info three",
	"gnt-instance modify --net 0:name=eth0 three", "gnt-instance modify --net add:link=br9 three", "gnt-instance modify --net -1:remove three",
	"gnt-instance modify -O test_param=1 three", "gnt-instance shutdown three",
	"gnt-instance rename -f --no-name-check --no-ip-check three four", "gnt-instance modify --offline four", "gnt-instance modify --online four",
	"gnt-instance startup four", "gnt-instance reboot four", "gnt-instance remove -f four", "gnt-network disconnect net1 default", "gnt-network remove net1",
	"gnt-instance shutdown web1", "gnt-instance modify --disk add:size=64M web1", "gnt-instance modify --disk 1:name=data web1",
	"gnt-instance modify --disk 1:remove web1", "gnt-instance grow-disk web1 0 64M", "gnt-instance reinstall -f -o noop+default web1",
	"gnt-instance console --show-cmd web1", "gnt-instance list-fields", "gnt-instance remove-tags web1 env:prod", "gnt-instance start web1",
	"gnt-node modify -D yes node2", "gnt-node modify -D no node2", "gnt-node add-tags node2 a", "gnt-node remove-tags node2 a", "gnt-node list-fields",
	"gnt-filter list", "gnt-filter list-fields", "gnt-job list-fields", "gnt-job archive 1", "gnt-job autoarchive all", "gnt-debug delay --no-master 0.01",
	"gnt-debug locks", "gnt-os list", "gnt-os modify --hidden yes noop", "gnt-backup list",
}
