//go:build soak

package crash

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/testkit"
)

// TestFailingDisks has the system calls of a controller with an embedded store fail
// as those of a full, a read-only and a broken disk do. Nothing that was
// acknowledged is lost; the controller goes on when the disk does, but for a failed flush, after
// which nobody knows what is on the disk: then it ends, and says so.
func TestFailingDisks(t *testing.T) {
	bin := testkit.Build(t)
	for _, tc := range []struct {
		name, call, errno string
		ends              bool
	}{
		{"full", "pwrite64", "ENOSPC", false},
		{"read-only", "pwrite64", "EROFS", false},
		{"broken", "fsync,fdatasync", "EIO", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			from := controller{bin: bin, data: t.TempDir()}
			c := from.start(t)
			client := c.dial()
			acknowledged := map[string]int{}
			submit := func(name string, limit time.Duration) error {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				op := map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 0, "reason": [][]any{{"user", name, 1}}}
				var id int
				err := client.Call(ctx, "SubmitJob", []any{[]any{op}, name}, &id)
				if err == nil {
					acknowledged[name] = id
				}
				return err
			}
			const few, patience = 20, time.Minute
			for i := range few {
				if err := submit(fmt.Sprint("before-", i), patience); err != nil {
					t.Fatal(err)
				}
			}
			mend := c.failing(tc.call, tc.errno)
			if err := submit("while", 3*time.Second); err == nil {
				t.Error("a job was taken that cannot be stored")
			}
			if tc.ends {
				if err := c.Gone(); err == nil {
					t.Error("the controller ended without a word")
				}
				mend()
				c = from.start(t)
				client = c.dial()
			} else {
				mend()
			}
			for i := range few {
				name := fmt.Sprint("after-", i)
				for begun := time.Now(); ; {
					err := submit(name, patience)
					if err == nil {
						break
					}
					if time.Since(begun) > patience {
						t.Fatalf("the disk is well, the controller is not: %v", err)
					}
				}
			}
			c.kill()
			c.gone()
			c = from.start(t)
			byName := map[string]int{}
			for _, row := range jobs(t, c.dial()) {
				byName[row.name()] = row.id
			}
			for name, id := range acknowledged {
				if byName[name] != id {
					t.Errorf("%s was acknowledged as job %d, now it is %d", name, id, byName[name])
				}
			}
			c.stop()
			if out, err := exec.CommandContext(t.Context(), bin, "store", "check", from.data).CombinedOutput(); err != nil {
				t.Errorf("the store is not consistent: %v\n%s", err, out)
			}
		})
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
	for lines.Scan() && !strings.Contains(lines.Text(), "attached") {
	}
	if !strings.Contains(lines.Text(), "attached") {
		testkit.Missingf(c, "strace cannot attach to a process: %s", lines.Text())
	}
	go func() {
		for lines.Scan() { // let it write on
		}
	}()
	return func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // it lets go
		_ = cmd.Wait()
	}
}
