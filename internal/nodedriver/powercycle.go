package nodedriver

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/guarded"
)

const (
	// sysrq is the setting by which the kernel resets the machine.
	sysrq = "sysrq"
	// sysrqTrigger is the file in which it is told to.
	sysrqTrigger = "/proc/sysrq-trigger"
	// powercycleTime is how long a program may take by which the machine is to be gone.
	powercycleTime = 5 * time.Minute
)

// powercycle is how a machine is switched off and on, by the setting; nil if there is none. What cannot be done is refused before.
func powercycle(setting, trigger string) func() (reset func(ctx context.Context) error, err error) {
	switch setting {
	case "":
		return nil
	case sysrq:
		return func() (func(context.Context) error, error) {
			f, err := os.OpenFile(trigger, os.O_WRONLY, 0)
			if err != nil {
				return nil, fault.New(fault.Environment, "The kernel cannot be told to reset the machine: %w", err).WithHint("that takes root; or name a program in the setting powercycle")
			}
			return func(context.Context) error {
				_, err := f.WriteString("b")
				_ = f.Close()
				return err
			}, nil
		}
	}
	return func() (func(context.Context) error, error) {
		program, err := guarded.Program(filepath.Dir(setting), filepath.Base(setting))
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) error { return runPowercycle(ctx, program) }, nil
	}
}

// runPowercycle runs a program that has the machine switched off and on: what it says matters only if it failed.
func runPowercycle(ctx context.Context, program string) error {
	ctx, cancel := context.WithTimeout(ctx, powercycleTime)
	defer cancel()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, program)
	out := &clipped{&said} // one for both, so that one writes at a time
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env, cmd.Dir = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, "/"
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return fault.New(fault.Failed, "%s failed: %w, output '%s'", program, err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}

// clipped keeps the beginning of what is written.
type clipped struct{ to *bytes.Buffer }

// Write takes all.
func (c *clipped) Write(p []byte) (int, error) {
	const most = 4096
	c.to.Write(p[:min(len(p), max(0, most-c.to.Len()))])
	return len(p), nil
}
