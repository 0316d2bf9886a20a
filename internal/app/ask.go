package app

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// ask is a program of the operator's that is asked something on this machine: how long it may take, and how many bytes it may answer.
type ask struct {
	program  string
	args     []string
	env      []string // beside what all have
	patience time.Duration
	most     int
}

// run returns what the program says. One that takes too long, or says too much, is ended, with all that it began.
func (a ask) run(ctx context.Context) ([]byte, error) {
	ctx, done := context.WithTimeoutCause(ctx, a.patience, fault.New(fault.Failed, "it took longer than %v", a.patience))
	defer done()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out := &bounded{most: a.most, full: func() { stop(fault.New(fault.Failed, "it said more than %d bytes", a.most)) }}
	said := &bounded{most: 4096, full: func() {}}
	cmd := exec.CommandContext(ctx, a.program, a.args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = out, said, []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}
	cmd.Env = append(cmd.Env, a.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fault.New(fault.Failed, "%w, output '%s'", err, fault.Clip(strings.TrimSpace(said.kept.String()+out.kept.String()), 500))
	}
	return out.kept.Bytes(), nil
}

// bounded keeps what comes, up to a bound. It is no bytes.Buffer: that would read all there is by itself (io.ReaderFrom).
type bounded struct {
	kept bytes.Buffer
	most int
	full func()
}

// Write takes all, and keeps what there is room for.
func (b *bounded) Write(p []byte) (int, error) {
	room := min(b.most-b.kept.Len(), len(p))
	b.kept.Write(p[:room])
	if room < len(p) {
		b.full()
	}
	return len(p), nil
}
