//go:build soak

package crash

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/testkit"
)

// TestFailingDisks has the system calls of a controller with an embedded store fail
// as those of a full, a read-only and a broken disk do. Nothing that was
// acknowledged is lost, and the controller goes on by itself when the disk does: also after a failed
// flush, after which nobody knows what is on the disk.
func TestFailingDisks(t *testing.T) {
	bin := testkit.Build(t)
	for _, tc := range []struct {
		name, call, errno string
	}{
		{"full", "pwrite64", "ENOSPC"},
		{"read-only", "pwrite64", "EROFS"},
		{"broken", "fsync,fdatasync", "EIO"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := &diskTest{T: t, from: controller{bin: bin, data: t.TempDir()}, acknowledged: map[string]int{}}
			d.start()
			d.submitAll("before")
			mend := d.c.failing(tc.call, tc.errno)
			if err := d.submit("while", 3*time.Second); err == nil {
				t.Error("a job was taken that cannot be stored")
			}
			mend()
			d.submitAll("after")
			d.c.kill()
			d.c.gone()
			d.start()
			d.nothingIsLost()
			d.c.stop()
			if out, err := exec.CommandContext(t.Context(), bin, "store", "check", d.from.data).CombinedOutput(); err != nil {
				t.Errorf("the store is not consistent: %v\n%s", err, out)
			}
		})
	}
}

// diskTest is a controller on a disk that fails, with a client that remembers what it was told.
type diskTest struct {
	*testing.T

	from         controller
	c            *cluster
	client       *luxiwire.Client
	acknowledged map[string]int // jobs by their keys
}

func (d *diskTest) start() {
	d.Helper()
	d.c = d.from.start(d.T)
	d.client = d.c.dial()
}

// submit hands a job in, with its name as the key.
func (d *diskTest) submit(name string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(d.Context(), limit)
	defer cancel()
	op := map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 0.001, "reason": [][]any{{"user", name, 1}}}
	var id int
	err := d.client.Call(ctx, "SubmitJob", []any{[]any{op}, name}, &id)
	if err == nil {
		d.acknowledged[name] = id
	}
	return err
}

// submitAll hands in some jobs, each again until it is taken.
func (d *diskTest) submitAll(name string) {
	d.Helper()
	const some, patience = 20, time.Minute
	for i := range some {
		begun := time.Now()
		for {
			err := d.submit(fmt.Sprint(name, i), patience)
			if err == nil {
				break
			}
			if time.Since(begun) > patience {
				d.Fatalf("the disk is well, the controller is not: %v", err)
			}
		}
	}
}

func (d *diskTest) nothingIsLost() {
	d.Helper()
	byName := map[string]int{}
	for _, row := range jobs(d.T, d.c.dial()) {
		byName[row.name()] = row.id
	}
	for name, id := range d.acknowledged {
		if byName[name] != id {
			d.Errorf("%s was acknowledged as job %d, now it is %d", name, id, byName[name])
		}
	}
}

// failing has system calls of the controller fail until mend is called.
func (c *cluster) failing(calls, errno string) (mend func()) {
	c.Helper()
	return c.traced("-e", "trace="+calls, "-e", "inject="+calls+":error="+errno, "-o", "/dev/null")
}

// traced has strace look at the controller until end is called.
func (c *cluster) traced(how ...string) (end func()) {
	c.Helper()
	cmd := exec.CommandContext(c.Context(), "strace", append([]string{"-f", "-p", strconv.Itoa(c.Cmd.Process.Pid)}, how...)...)
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		c.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	for more := true; more && !strings.Contains(lines.Text(), "attached"); {
		more = lines.Scan()
	}
	if !strings.Contains(lines.Text(), "attached") {
		testkit.Missingf(c, "strace cannot attach to a process: %s", lines.Text())
	}
	go func() { _, _ = io.Copy(io.Discard, said) }() // let it write on
	return func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // it lets go
		_ = cmd.Wait()
	}
}

// flushed and renamed are lines of strace with -y, which tells the paths of open files.
var (
	flushed = regexp.MustCompile(`fsync\(\d+<([^>]+)>`)
	renamed = regexp.MustCompile(`rename(?:at|at2)?\((?:AT_FDCWD[^,]*, )?"([^"]+)", (?:AT_FDCWD[^,]*, )?"([^"]+)"`)
)

// TestWhatTakesAPlaceIsFlushed: a file that a node's agent renames into place is flushed before, and its directory after. So a machine
// that loses its power has all of the old file or of the new one: of what tasks upload, of the epoch that the node follows, and of the notes
// of what runs there.
func TestWhatTakesAPlaceIsFlushed(t *testing.T) {
	dir := t.TempDir()
	c := controller{bin: testkit.Build(t), data: filepath.Join(dir, "data")}.start(t)
	client := c.dial()
	log, place := filepath.Join(dir, "trace"), filepath.Join(dir, "uploaded")
	end := c.traced("-y", "-e", "trace=fsync,rename,renameat,renameat2", "-o", log)
	r := &rollout{T: t, dir: dir}
	r.call(client, nil, "PutTaskGraph", "graph", []any{map[string]string{"path": "graph.yaml", "text": "" +
		"- {id: write, type: upload_file, version: 2.1.0, role: [web], parameters: {path: '" + place + "', data: text}}\n" +
		"- {id: run, type: shell, version: 2.1.0, role: [web], requires: [write], parameters: {cmd: 'true'}}\n"}})
	r.call(client, nil, "PutEnvironment", "prod", map[string]string{"path": "prod.yaml", "text": "" +
		"{common: {}, hosts: {'1': node1.drover.example}, nodes: {'1': {uid: '1', roles: [web]}}}"}, []string{"graph"})
	var made struct{ Deployment struct{ ID int } }
	r.call(client, &made, "PlanDeployment", map[string]any{"environment": "prod"})
	r.id = made.Deployment.ID
	r.call(client, nil, "BeginDeployment", r.id)
	r.until(client, "over", func(p *progress) bool { return p.Status == "ready" })
	end()
	c.stop()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	seen, open := map[string]bool{}, map[string]bool{} // places that got a file, and directories that are not flushed since
	whole := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if f := flushed.FindStringSubmatch(line); f != nil {
			whole[f[1]] = true
			delete(open, f[1])
		}
		f := renamed.FindStringSubmatch(line)
		if f == nil || !strings.Contains(f[2], "/nodes/") && f[2] != place || strings.Contains(f[2], "/status.") || strings.HasSuffix(f[2], "/hypervisor.strangers") {
			continue // not the agent's; who writes an exit status is a shell, and the pretended machines of before are moved as a directory
		}
		if !whole[f[1]] {
			t.Errorf("not flushed before: %s", line)
		}
		at := filepath.Dir(f[2])
		seen[strings.TrimPrefix(f[2], at+"/")], open[at] = true, true
	}
	if len(open) > 0 || !seen["uploaded"] || !seen["epoch"] || len(seen) < 3 {
		t.Errorf("files came to %v, and not flushed after are %v", seen, open)
	}
}
