package app

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// allocators runs programs that choose nodes. They are in directories that the operator has named; in none, if none is.
type allocators struct {
	dirs []string
	// patience is how long a program may take, and most how many bytes it may answer.
	patience time.Duration
	most     int
}

const (
	allocatorPatience = time.Minute
	allocatorMost     = 16 << 20
)

func newAllocators(path string) *allocators {
	a := &allocators{patience: allocatorPatience, most: allocatorMost}
	for dir := range strings.SplitSeq(path, ":") {
		if dir != "" {
			a.dirs = append(a.dirs, dir)
		}
	}
	return a
}

// allocatorName is what a program may be called.
var allocatorName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// Has reports whether there is a program of that name.
func (a *allocators) Has(name string) bool { return a.find(name) != "" }

// find returns the first program of that name; empty if there is none.
func (a *allocators) find(name string) string {
	if !allocatorName.MatchString(name) {
		return ""
	}
	for _, dir := range a.dirs {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// Run asks a program, and returns what it says. One that takes too long, or says too much, is ended, with all that it began.
func (a *allocators) Run(ctx context.Context, name string, options []string, input []byte) ([]byte, error) {
	program := a.find(name)
	if program == "" {
		return nil, fault.New(fault.Failed, "iallocator module '%s' not found in the search path", name)
	}
	file, err := os.CreateTemp("", "drover-iallocator.")
	if err != nil {
		return nil, fault.New(fault.Environment, "iallocator module '%s' cannot be asked: %w", name, err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.Write(input)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fault.New(fault.Environment, "iallocator module '%s' cannot be asked: %w", name, err)
	}
	ctx, done := context.WithTimeoutCause(ctx, a.patience, fault.New(fault.Failed, "it took longer than %v", a.patience))
	defer done()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out := &bounded{most: a.most, full: func() { stop(fault.New(fault.Failed, "it said more than %d bytes", a.most)) }}
	said := &bounded{most: 4096, full: func() {}}
	cmd := exec.CommandContext(ctx, program, append([]string{file.Name()}, options...)...)
	cmd.Stdout, cmd.Stderr, cmd.Env = out, said, []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fault.New(fault.Failed, "iallocator module '%s' failed: %w, output '%s'", name, err, fault.Clip(strings.TrimSpace(said.kept.String()+out.kept.String()), 500))
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
