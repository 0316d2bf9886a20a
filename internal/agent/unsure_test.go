package agent

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agent/effect"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/hypervisor/fake"
)

// unsure is an agent of a controller that was sure that it leads until its script had begun, and is not any more.
type unsure struct {
	lead   effect.Lead
	again  string     // the file with which the script succeeds
	result chan error // of the installation
	told   []string   // of it, to be read behind its result
}

// installUnsure returns when the script has ended, with all that it started.
func installUnsure(ctx context.Context, t *testing.T) *unsure {
	t.Helper()
	dir := t.TempDir()
	u := &unsure{again: filepath.Join(dir, "again"), result: make(chan error, 1)}
	driver, err := fake.Open(fake.Config{Dir: filepath.Join(dir, "fake")})
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(Config{Node: "node1", Dir: filepath.Join(dir, "node"), Driver: driver, Lead: &u.lead})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\ntest -e %s && exit 0\nexec 3> %s\necho begun >&3\nsleep 600\n", u.again, pipe)
	writeOS(t, a, "os", map[string]string{"ganeti_api_version": "20\n", "create": script})
	go func() {
		u.result <- a.Install(ctx, Order{Epoch: 1, Job: 1, Step: 1}, hypervisor.Spec{UUID: "uuid", Name: "one"}, "os", nil, func(line string) { u.told = append(u.told, line) })
	}()
	r, err := os.Open(pipe) // when the script opens it
	if err == nil {
		_, err = r.Read(make([]byte, 1))
	}
	u.sure(50 * time.Millisecond)
	if err == nil {
		_, err = io.Copy(io.Discard, r) // until nobody has it open any more
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// sure has the controller be sure that it leads for a time.
func (u *unsure) sure(d time.Duration) { u.lead.Extend(time.Now().Add(effect.Margin + d)) }

// TestAScriptBeginsAnewWhenItsLeaderIsSureAgain has a controller not be sure for a while that it leads: no job fails of that.
func TestAScriptBeginsAnewWhenItsLeaderIsSureAgain(t *testing.T) {
	u := installUnsure(t.Context(), t)
	if err := os.WriteFile(u.again, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	u.sure(time.Hour)
	if err := <-u.result; err != nil {
		t.Errorf("a script that was ended while its controller was not sure: %v", err)
	}
	if len(u.told) != 1 || !strings.Contains(u.told[0], "begins anew") {
		t.Errorf("its job is told %q", u.told)
	}
}

// TestAScriptDoesNotWaitForALeadThatIsLost has the controller find out that another leads, or its job be ended.
func TestAScriptDoesNotWaitForALeadThatIsLost(t *testing.T) {
	u := installUnsure(t.Context(), t)
	u.lead.Lose(fault.New(fault.Fenced, "another leads"))
	if err := <-u.result; !fault.Is(err, fault.Fenced) {
		t.Errorf("a script whose controller lost the lead: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	u = installUnsure(ctx, t)
	stop()
	if err := <-u.result; !fault.Is(err, fault.Canceled) {
		t.Errorf("a script whose job was ended: %v", err)
	}
}
