package machines

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/hypervisor/kvm"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/qmp"
	"github.com/drover-project/drover/internal/testkit"
)

// BenchmarkStart starts a machine by a job, from its submission to its end, through a controller and an agent of its own; and the same QEMU by
// hand, until its guest is let go. It tells both, and what the first costs more.
func BenchmarkStart(b *testing.B) {
	s := &site{TB: b, bin: testkit.Build(b), data: b.TempDir(), args: []string{"--agents"}}
	b.Cleanup(s.endGuests)
	s.begin()
	s.offer()
	s.drover("instance", "add", "one.example", "--os", "tiny", "--disk", "0:size=1M", "-B", "memory=64", "--name-check=no", "--ip-check=no")
	s.await("one.example", "GUEST-UP", 0)
	command := s.commandLine()
	c, err := luxiwire.Dial(b.Context(), filepath.Join(s.data, "luxi.sock"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	var jobs, hands time.Duration
	for b.Loop() {
		s.drover("instance", "stop", "one.example", "--timeout", "0")
		jobs += s.startByJob(c)
		hands += startByHand(b, command)
	}
	n := float64(b.N)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / n }
	b.ReportMetric(ms(jobs), "ms/job")
	b.ReportMetric(ms(hands), "ms/hand")
	b.ReportMetric(ms(jobs-hands), "ms-more")
}

// commandLine is that of the one guest.
func (s *site) commandLine() []string {
	s.Helper()
	pids := s.guests()
	if len(pids) != 1 {
		s.Fatal("the guests are", pids)
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pids[0]))
	if err != nil {
		s.Fatal(err)
	}
	var args []string
	for word := range bytes.SplitSeq(bytes.TrimRight(data, "\x00"), []byte{0}) {
		args = append(args, string(word))
	}
	return args
}

func (s *site) startByJob(c *luxiwire.Client) time.Duration {
	s.Helper()
	began := time.Now()
	var id int
	if err := c.Call(s.Context(), "SubmitJob", []any{[]any{map[string]any{"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "one.example", "reason": []any{}}}}, &id); err != nil {
		s.Fatal(err)
	}
	for status := any("queued"); ; {
		var answer []any
		if err := c.Call(s.Context(), "WaitForJobChange", []any{id, []string{"status"}, []any{status}, nil, 30}, &answer); err != nil {
			s.Fatal(err)
		}
		status = answer[0].([]any)[0]
		switch status {
		case "success":
			return time.Since(began)
		case "error", "canceled":
			s.Fatal("the job is", status)
		}
	}
}

// startByHand runs a guest's command line beside it, with files of its own, and ends it.
func startByHand(b *testing.B, command []string) time.Duration {
	b.Helper()
	dir := b.TempDir()
	var files []*os.File
	for _, name := range []string{"monitor", "serial"} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(dir, name)})
		if err != nil {
			b.Fatal(err)
		}
		f, err := l.File()
		if err != nil {
			b.Fatal(err)
		}
		files = append(files, f)
		defer func() { _ = l.Close() }()
	}
	for name, content := range map[string][]byte{"held": nil, "disk": kvm.TinyDisk()} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			b.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			b.Fatal(err)
		}
		if name == "held" {
			files = append(files[:2:2], append([]*os.File{f}, files[2:]...)...)
		} else {
			files = append(files, f)
		}
	}
	began := time.Now()
	cmd := exec.CommandContext(b.Context(), command[0], command[1:]...)
	cmd.ExtraFiles = files
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	for _, f := range files {
		_ = f.Close()
	}
	conn, err := net.Dial("unix", filepath.Join(dir, "monitor"))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.Context(), testkit.Patience())
	defer cancel()
	q, err := qmp.Open(ctx, conn, func(qmp.Event) {})
	if err == nil {
		err = q.Do(ctx, "cont", nil, nil)
	}
	took := time.Since(began)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil {
		b.Fatal(err)
	}
	return took
}
