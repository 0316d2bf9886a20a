package machines

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/hypervisor/kvm"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/testkit"
)

// site is a cluster whose nodes run virtual machines.
type site struct {
	testing.TB
	bin, data string
	// nodes is where the nodes are, if not below data.
	nodes string
	args  []string
	dev   *testkit.Dev
}

func newSite(t *testing.T, args ...string) *site {
	t.Helper()
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		testkit.Missingf(t, "qemu-system-x86_64 is not installed")
	}
	s := &site{TB: t, bin: testkit.Build(t), data: t.TempDir(), args: args}
	t.Cleanup(s.endGuests)
	s.begin()
	return s
}

func (s *site) begin() {
	s.Helper()
	args := []string{"--hypervisor", "kvm", "--accelerator", "tcg", "--nodes", "1", "--demo=false", "--mond", "", "--compute", ""}
	s.dev = testkit.StartDev(s, s.bin, s.data, append(args, s.args...)...)
}

func (s *site) nodesDir() string { return cmp.Or(s.nodes, filepath.Join(s.data, "nodes")) }

// guests are the processes of guests, which are found by the lock that each holds.
func (s *site) guests() []int {
	s.Helper()
	return s.holders(filepath.Join(s.nodesDir(), "*", "kvm", "*", "held"))
}

// holders are the processes that have one of these files open, other than this one.
func (s *site) holders(pattern string) (pids []int) {
	s.Helper()
	files, err1 := filepath.Glob(pattern)
	open, err2 := filepath.Glob("/proc/[0-9]*/fd/*")
	if err := errors.Join(err1, err2); err != nil {
		s.Fatal(err)
	}
	for _, descriptor := range open {
		at, err := os.Readlink(descriptor)
		if err != nil || !slices.Contains(files, at) {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(descriptor, "/")[2])
		if err != nil {
			s.Fatal(err)
		}
		if pid != os.Getpid() && !slices.Contains(pids, pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// endGuests has nothing outlive a test.
func (s *site) endGuests() {
	for _, pid := range s.guests() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// offer has the nodes know an operating system whose disks start.
func (s *site) offer() {
	s.Helper()
	nodes, err := filepath.Glob(filepath.Join(s.nodesDir(), "*"))
	if err != nil || len(nodes) == 0 {
		s.Fatal("there is no node", err)
	}
	for _, node := range nodes {
		dir := filepath.Join(node, "os", "tiny")
		image := filepath.Join(dir, "disk")
		for path, text := range map[string]string{
			"ganeti_api_version": "20\n", "disk": string(kvm.TinyDisk()),
			"create": "#!/bin/sh\nset -e\n[ \"$DISK_0_ACCESS\" = rw ]\ncat " + image + " 1<> \"$DISK_0_PATH\"\n",
		} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				s.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o755); err != nil {
				s.Fatal(err)
			}
		}
	}
}

// drover runs a command, which succeeds.
func (s *site) drover(args ...string) string {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), s.bin, args...)
	cmd.Env = append(os.Environ(), "DROVER_LUXI="+filepath.Join(s.data, "luxi.sock"))
	if s.dev != nil {
		cmd.Env = append(cmd.Env, "OS_AUTH_URL="+s.dev.Ready.Identity, "OS_USERNAME=demo", "OS_PASSWORD="+s.dev.Ready.ComputePassword, "OS_PROJECT_NAME=demo")
	}
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		s.Fatalf("drover %s: %v\n%s%s", strings.Join(args, " "), err, &out, &complaints)
	}
	return out.String()
}

// fails is what a command says that cannot be done.
func (s *site) fails(args ...string) string {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), s.bin, args...)
	cmd.Env = append(os.Environ(), "DROVER_LUXI="+filepath.Join(s.data, "luxi.sock"))
	out, err := cmd.CombinedOutput()
	if err == nil {
		s.Fatalf("drover %s is done:\n%s", strings.Join(args, " "), out)
	}
	return string(out)
}

// printed is what an instance printed behind a position.
type printed struct {
	Text []byte `json:"text"`
	Next uint64 `json:"next"`
}

// await waits until an instance has said something behind a position, and returns where to go on.
func (s *site) await(instance, want string, at uint64) uint64 {
	s.Helper()
	c, err := luxiwire.Dial(s.Context(), filepath.Join(s.data, "luxi.sock"))
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	heard, from := "", at
	for began := time.Now(); time.Since(began) < testkit.Patience(); {
		var p printed
		if err := c.Call(s.Context(), "ReadConsole", []any{instance, at, 1}, &p); err != nil {
			s.Fatal(err)
		}
		heard, at = heard+string(p.Text), p.Next
		if i := strings.Index(heard, want); i >= 0 {
			return at - uint64(len(heard)-i-len(want))
		}
	}
	s.Fatalf("%s has not said %q behind %d; it said %q", instance, want, from, heard)
	return 0
}

func (s *site) key(instance, keys string) {
	s.Helper()
	c, err := luxiwire.Dial(s.Context(), filepath.Join(s.data, "luxi.sock"))
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.Call(s.Context(), "TypeConsole", []any{instance, []byte(keys)}, nil); err != nil {
		s.Fatal(err)
	}
}

// sits has somebody sit down before an instance at a terminal, see what it said, type, see that, and leave.
func (s *site) sits(instance string) {
	s.Helper()
	ours, theirs, err := testkit.Terminal()
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = ours.Close() }()
	cmd := exec.CommandContext(s.Context(), s.bin, "instance", "console", instance)
	cmd.Env = append(os.Environ(), "TERM=xterm", "DROVER_LUXI="+filepath.Join(s.data, "luxi.sock"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := errors.Join(cmd.Start(), theirs.Close()); err != nil {
		s.Fatal(err)
	}
	late := time.AfterFunc(testkit.Patience(), func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	shown := ""
	for _, step := range [][2]string{{"GUEST-UP", "y"}, {"y", "\x1d"}} {
		for chunk := make([]byte, 1024); !strings.Contains(shown, step[0]); {
			n, err := ours.Read(chunk)
			if shown += string(chunk[:n]); err != nil {
				s.Fatalf("%q is not shown, but %q: %v, %v", step[0], shown, err, cmd.Wait())
			}
		}
		_, shown, _ = strings.Cut(shown, step[0])
		if _, err := ours.WriteString(step[1]); err != nil {
			s.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		s.Errorf("who leaves is told %v", err)
	}
}

// status is what a list says of an instance.
func (s *site) status(instance string) string {
	s.Helper()
	var rows []struct {
		Status string `json:"status"`
	}
	if err := json.Unmarshal([]byte(s.drover("instance", "list", "--output", "json", "--fields", "status", instance)), &rows); err != nil || len(rows) != 1 {
		s.Fatal(rows, err)
	}
	return rows[0].Status
}

// appears waits until an instance is there.
func (s *site) appears(instance string) {
	s.Helper()
	for began := time.Now(); time.Since(began) < testkit.Patience(); time.Sleep(100 * time.Millisecond) { // each look is a process
		if strings.Contains(s.drover("instance", "list", "--output", "json", "--fields", "name"), `"`+instance+`"`) {
			return
		}
	}
	s.Fatalf("there is no %s", instance)
}

// becomes waits until a list says something of an instance that nobody ordered.
func (s *site) becomes(instance, want string) {
	s.Helper()
	is := ""
	for began := time.Now(); time.Since(began) < testkit.Patience(); time.Sleep(100 * time.Millisecond) { // each look is a process
		if is = s.status(instance); is == want {
			return
		}
	}
	s.Fatalf("%s is %s, want %s", instance, is, want)
}

// TestAMachineLives has a machine installed, started, asked to end by its power button, ended by its own guest, outlive the
// controller, and removed.
func TestAMachineLives(t *testing.T) {
	for name, args := range map[string][]string{"here": nil, "elsewhere": {"--agents"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			aMachineLives(t, newSite(t, args...))
		})
	}
}

func aMachineLives(t *testing.T, s *site) {
	s.drover("cluster", "modify", "--enabled-user-shutdown=yes")
	s.drover("node", "list") // the nodes open
	s.offer()
	s.drover("instance", "add", "one.example", "--os", "tiny", "--disk", "0:size=1M", "-B", "memory=64", "-H", "kvm:user_shutdown=true", "--name-check=no", "--ip-check=no")
	at := s.await("one.example", "GUEST-UP", 0)
	s.key("one.example", "k")
	at = s.await("one.example", "k", at)
	if text := s.drover("instance", "log", "one.example"); !strings.Contains(text, "GUEST-UP") {
		t.Errorf("the log is %q", text)
	}
	s.sits("one.example")
	at = s.await("one.example", "y", at)
	var log struct{ Text string }
	if err := json.Unmarshal([]byte(s.drover("instance", "log", "one.example", "--output", "json")), &log); err != nil || !strings.Contains(log.Text, "GUEST-UP") {
		t.Errorf("the log as data is %+v, %v", log, err)
	}
	s.drover("instance", "stop", "one.example")
	at = s.await("one.example", "BUTTON\r\nBYE", at)
	if is := s.status("one.example"); is != "ADMIN_down" {
		t.Errorf("it is %s", is)
	}
	s.drover("instance", "start", "one.example")
	at = s.await("one.example", "GUEST-UP", at)
	s.drover("instance", "reboot", "--type", "soft", "one.example")
	s.await("one.example", "GUEST-UP", at)

	before := s.guests()
	s.dev.Kill()
	_ = s.dev.Gone()
	s.begin()
	if after := s.guests(); len(before) != 1 || len(after) != 1 || before[0] != after[0] {
		t.Errorf("its process was %v and is %v", before, after)
	}
	s.key("one.example", "q") // it ends itself
	s.await("one.example", "BYE", 0)
	s.becomes("one.example", "USER_down")
	s.drover("instance", "start", "one.example")
	s.await("one.example", "GUEST-UP", 0)
	for _, pid := range s.guests() {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	s.becomes("one.example", "ERROR_down")
	s.drover("instance", "remove", "--yes", "one.example")
	if left, err := filepath.Glob(filepath.Join(s.data, "nodes", "*", "disks", "*")); err != nil || len(left) > 0 || len(s.guests()) > 0 {
		t.Errorf("it leaves %v, %v, %v", left, s.guests(), err)
	}
}
