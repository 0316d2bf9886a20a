//go:build soak

package crash

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
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
	cmd := exec.CommandContext(c.Context(), "strace", "-f", "-p", strconv.Itoa(c.Cmd.Process.Pid), "-e", "trace="+calls,
		"-e", "inject="+calls+":error="+errno, "-o", "/dev/null")
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
