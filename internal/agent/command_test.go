package agent

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agent/effect"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor/fake"
)

// commanded is an agent with restricted commands.
type commanded struct {
	*testing.T
	dir   string
	agent *Agent
}

func newCommanded(t *testing.T, patience time.Duration) *commanded {
	t.Helper()
	c := &commanded{T: t, dir: filepath.Join(t.TempDir(), "commands")}
	home := t.TempDir()
	driver, err := fake.Open(fake.Config{Dir: filepath.Join(home, "fake")})
	if err == nil {
		c.agent, err = New(Config{Node: "node1", Dir: home, Driver: driver, Commands: c.dir, CommandTime: patience})
	}
	if err == nil {
		err = os.Mkdir(c.dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.agent.Close() })
	return c
}

func (c *commanded) program(name, text string, mode fs.FileMode) {
	c.Helper()
	path := filepath.Join(c.dir, name)
	err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o600)
	if err == nil {
		err = os.Chmod(path, mode)
	}
	if err != nil {
		c.Fatal(err)
	}
}

func (c *commanded) run(ctx context.Context, name string) (string, error) {
	return c.agent.RunCommand(ctx, Order{Epoch: 1, Job: 7, Step: 1}, name)
}

// Commands have no arguments, nothing to read and no environment but a search path; all that they say is told.
func TestCommands(t *testing.T) {
	c := newCommanded(t, 0)
	t.Setenv("SECRET", "of the agent")
	c.program("look-around_1.sh", `cat; echo "$# $(pwd) $SECRET"; echo beside >&2; printf '\377'`, 0o755)
	if said, err := c.run(t.Context(), "look-around_1.sh"); err != nil || said != "0 / \nbeside\n�" {
		t.Errorf("it said %q, %v", said, err)
	}
	c.program("fails", "echo a part; exit 3", 0o700)
	if said, err := c.run(t.Context(), "fails"); !fault.Is(err, fault.Failed) || said != "" || err.Error() != "Restricted command 'fails' failed: exited with exit code 3; output: a part\n" {
		t.Errorf("it said %q, %v", said, err)
	}
	if err := os.Symlink(filepath.Join(c.dir, "look-around_1.sh"), filepath.Join(c.dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.run(t.Context(), "link"); err != nil {
		t.Errorf("a link to one: %v", err)
	}
}

// What is no name, or none that the operator has put there, does not run.
func TestCommandsThatAreNone(t *testing.T) {
	c := newCommanded(t, 0)
	trace := filepath.Join(t.TempDir(), "trace")
	c.program("../outside", "touch "+trace, 0o755)
	c.program("unable", "touch "+trace, 0o644)
	if err := os.Mkdir(filepath.Join(c.dir, "dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		code fault.Code
		text string
	}{
		"":              {fault.Invalid, "Missing command name"},
		" ":             {fault.Invalid, "Missing command name"},
		"../outside":    {fault.Invalid, "Invalid command name"},
		"/bin/true":     {fault.Invalid, "Invalid command name"},
		"..":            {fault.Invalid, "forbidden characters"},
		"a b":           {fault.Invalid, "forbidden characters"},
		"a;b":           {fault.Invalid, "forbidden characters"},
		"nosuch":        {fault.NotFound, "There is no " + c.dir + "/nosuch"},
		"unable":        {fault.WrongState, "not a file that can be executed"},
		"dir":           {fault.WrongState, "not a file that can be executed"},
		"unable/../dir": {fault.Invalid, "Invalid command name"},
	} {
		if _, err := c.run(t.Context(), name); !fault.Is(err, want.code) || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := os.Stat(trace); err == nil {
		t.Error("one of them ran")
	}
}

// Nothing runs that others than root and the agent's user could have changed, nor what runs with another's rights.
func TestCommandsOfOthers(t *testing.T) {
	c := newCommanded(t, 0)
	trace := filepath.Join(t.TempDir(), "trace")
	for _, mode := range []fs.FileMode{0o775, 0o757, 0o777, 0o755 | fs.ModeSetuid, 0o755 | fs.ModeSetgid} {
		c.program("open", "touch "+trace, mode)
		if _, err := c.run(t.Context(), "open"); !fault.Is(err, fault.WrongState) || !strings.Contains(err.Error(), "too permissive") {
			t.Errorf("%v: %v", mode, err)
		}
	}
	c.program("fine", "touch "+trace, 0o755)
	if err := os.Chmod(c.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := c.run(t.Context(), "fine"); !fault.Is(err, fault.WrongState) || !strings.Contains(err.Error(), c.dir+" are too permissive") {
		t.Errorf("in a directory of everybody's: %v", err)
	}
	if _, err := os.Stat(trace); err == nil {
		t.Error("one of them ran")
	}
}

func TestNoCommandsUnlessNamed(t *testing.T) {
	c := newCommanded(t, 0)
	c.program("any", "true", 0o755)
	c.agent.cfg.Commands = ""
	if _, err := c.run(t.Context(), "any"); !fault.Is(err, fault.WrongState) || !strings.Contains(err.Error(), "restricted-commands") {
		t.Errorf("without a directory: %v", err)
	}
}

// A command that hangs is ended with all that it began, and one that talks without end is told by the end of what it says.
func TestCommandsThatHangAndFlood(t *testing.T) {
	c := newCommanded(t, 200*time.Millisecond)
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := os.ReadFile(fifo) // until all have let go of it
		ended <- err
	}()
	c.program("hangs", "exec 9>"+fifo+"; sleep 1000 & echo waiting; wait", 0o755)
	_, err := c.run(t.Context(), "hangs")
	if !fault.Is(err, fault.Failed) || !strings.Contains(err.Error(), "terminated after 200ms; output: waiting") {
		t.Errorf("it came to %v", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	c.program("floods", "exec yes flood", 0o755)
	if _, err = c.run(t.Context(), "floods"); !fault.Is(err, fault.Failed) || !strings.Contains(err.Error(), "terminated after") || len(err.Error()) > 70<<10 {
		t.Errorf("it came to %.300v", err)
	}
	d := newCommanded(t, 0)
	d.program("much", "yes much | head -c 1000000; echo the end", 0o755)
	said, err := d.run(t.Context(), "much")
	if err != nil || len(said) > 66<<10 || !strings.HasPrefix(said, "[only the last 65536 bytes] ") || !strings.HasSuffix(said, "\nthe end\n") {
		t.Errorf("it said %d bytes, %.100q, %v", len(said), said, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	e := newCommanded(t, 0)
	fifo = filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	e.program("waits", "echo begun >"+fifo+"; sleep 1000", 0o755)
	go func() {
		_, _ = os.ReadFile(fifo)
		cancel()
	}()
	if _, err := e.run(ctx, "waits"); err == nil {
		t.Error("nobody waits any more, and it came to its end")
	}
}

// A command that was ended because its controller was not sure that it leads does not begin anew, as scripts do that may run twice.
func TestACommandOfAnUnsureLeader(t *testing.T) {
	c := newCommanded(t, 0)
	lead, home := &effect.Lead{}, t.TempDir()
	driver, err := fake.Open(fake.Config{Dir: filepath.Join(home, "fake")})
	if err != nil {
		t.Fatal(err)
	}
	if c.agent, err = New(Config{Node: "node1", Dir: home, Driver: driver, Commands: c.dir, Lead: lead}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.agent.Close() })
	fifo := filepath.Join(home, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	c.program("waits", "exec 9>"+fifo+"; echo begun >&9; sleep 1000", 0o755)
	result := make(chan error, 1)
	go func() {
		_, err := c.run(t.Context(), "waits")
		result <- err
	}()
	r, err := os.Open(fifo) // when the command opens it
	if err == nil {
		_, err = r.Read(make([]byte, 1))
	}
	if err != nil {
		t.Fatal(err)
	}
	lead.Extend(time.Now().Add(effect.Margin + 50*time.Millisecond))
	if err := <-result; !fault.Is(err, fault.Failed) || !strings.Contains(err.Error(), "it is not run again") {
		t.Errorf("it came to %v", err)
	}
	if _, err := io.Copy(io.Discard, r); err != nil { // until nobody has it open any more
		t.Error(err)
	}
}
