package agent

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// How long commands of tasks may take that do not say so, and how long a retry waits.
const (
	taskTimeout  = time.Hour
	taskInterval = time.Second
)

// maxRetries bounds how often a command is tried again.
const maxRetries = 1000

// tailPause is how often the output of a running command is looked at. Nobody tells of new output in a file.
const tailPause = 50 * time.Millisecond

// wrapper runs the command that its arguments are behind the first, and leaves its exit status in the file that the
// first one names. It outlives the agent. Descriptor 3 holds the lock by which a later agent knows that it runs.
const wrapper = `status=$1; shift; echo $$ >"$status.pid"; "$@" 3>&-; echo $? >"$status.new"; mv "$status.new" "$status"`

// command runs a command until it succeeds, as often as the parameters allow; statuses other than 0 may be successes too.
func (r *taskRun) command(args []string, input []byte, good ...int) error {
	dir, err := r.dir()
	if err != nil {
		return fault.New(fault.Environment, "cannot prepare to run a task on node %s: %w", r.agent.cfg.Node, err)
	}
	tries := 1 + min(max(int(r.p.Retries), 0), maxRetries)
	for try := 1; ; try++ {
		c := &command{run: r, args: args, input: input, status: filepath.Join(dir, "status."+strconv.Itoa(try)), output: filepath.Join(dir, "output."+strconv.Itoa(try))}
		status, err := c.wait()
		switch {
		case err == nil && (status == 0 || slices.Contains(good, status)):
			return nil
		case err != nil && !fault.Is(err, fault.Failed):
			return err
		case err == nil:
			err = fault.New(fault.Failed, "the command of the task exited with %d on node %s", status, r.agent.cfg.Node)
		}
		if try == tries {
			return err
		}
		r.log(err.Error() + "; it is tried again")
		if err := r.pause(); err != nil {
			return err
		}
	}
}

// dir is where output and results of the task are kept.
func (r *taskRun) dir() (string, error) {
	all := filepath.Join(r.agent.cfg.Dir, tasksDir)
	mine := filepath.Join(all, strconv.FormatInt(r.task.Deployment, 10))
	if _, err := os.Stat(mine); errors.Is(err, fs.ErrNotExist) {
		r.agent.prune(all)
	}
	dir := filepath.Join(mine, strconv.Itoa(r.task.Step)+"."+strconv.Itoa(r.task.Attempt))
	return dir, os.MkdirAll(dir, 0o700)
}

func (r *taskRun) pause() error {
	timer := time.NewTimer(r.p.Interval.or(taskInterval))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-r.ctx.Done():
		return interrupted(r.ctx)
	}
}

// interrupted is the error of a wait that ended early. Unavailable: the controller ends, and the task goes on.
func interrupted(ctx context.Context) error {
	cause := context.Cause(ctx)
	if goesOn(cause) {
		return fault.New(fault.Unavailable, "the wait for the task was given up: %w", cause)
	}
	return fault.New(fault.Canceled, "the task was ended: %w", cause)
}

func goesOn(cause error) bool {
	return fault.Is(cause, fault.Unavailable) || fault.Is(cause, fault.Fenced)
}

// command is one try of a command.
type command struct {
	run            *taskRun
	args           []string
	input          []byte
	status, output string
	pid            int // of the command, if this agent began it
}

// wait begins the command if no agent has, follows its output, and returns its exit status. A command that takes too long is
// killed with all that it started, and Failed.
func (c *command) wait() (int, error) {
	r := c.run
	if status, ok := c.ended(); ok {
		r.log("the command had ended while no controller waited for it; its output follows")
		return status, c.show(0)
	}
	lock, err := os.OpenFile(c.status+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return 0, c.trouble(err)
	}
	defer lock.Close() //nolint:errcheck // nothing was written
	switch err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		r.log("the command was begun before and still runs; its output follows")
	case err != nil:
		return 0, c.trouble(err)
	default:
		if status, ok := c.ended(); ok { // between the two looks
			return status, c.show(0)
		}
		if _, err := os.Stat(c.output); err == nil {
			r.log("the command was begun before and died with the node; it is begun again")
		}
		if err := c.begin(lock); err != nil {
			return 0, c.trouble(err)
		}
	}
	_ = lock.Close() // the command has it now
	return c.follow()
}

func (c *command) trouble(err error) error {
	return fault.New(fault.Environment, "cannot run the command of the task on node %s: %w", c.run.agent.cfg.Node, err)
}

// ended returns the exit status that an earlier run left.
func (c *command) ended() (int, bool) {
	text, err := os.ReadFile(c.status)
	if err != nil {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return n, err == nil
}

// begin starts the command in a session of its own, which holds the lock.
func (c *command) begin(lock *os.File) error {
	output, err := os.OpenFile(c.output, os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer output.Close()                                                                            //nolint:errcheck // the command has its own
	cmd := exec.Command("/bin/sh", append([]string{"-c", wrapper, "task", c.status}, c.args...)...) //nolint:noctx // it is what nodes that allow tasks are for, and outlives the agent
	cmd.Dir = c.run.p.Cwd
	cmd.Stdout, cmd.Stderr = output, output
	if c.input != nil {
		input := c.output + ".input"
		if err := os.WriteFile(input, c.input, 0o600); err != nil {
			return err
		}
		f, err := os.Open(input)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // it is only read
		cmd.Stdin = f
	}
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.pid = cmd.Process.Pid
	go func() { _ = cmd.Wait() }() // its status is in the file
	return nil
}

// follow hands over the output until the command has ended.
func (c *command) follow() (int, error) {
	r := c.run
	timeout := time.NewTimer(r.p.Timeout.or(taskTimeout))
	defer timeout.Stop()
	tick := time.NewTicker(tailPause)
	defer tick.Stop()
	released := c.released()
	shown := int64(0)
	for {
		select {
		case <-released:
			if err := c.show(shown); err != nil {
				return 0, err
			}
			status, ok := c.ended()
			if !ok {
				return 0, fault.New(fault.Failed, "the command of the task was killed on node %s", r.agent.cfg.Node)
			}
			return status, nil
		case <-tick.C:
			n, err := c.lines(shown, false)
			if shown = n; err != nil {
				return 0, err
			}
		case <-timeout.C:
			c.kill()
			<-released
			_ = c.show(shown) // the timeout is what counts
			return 0, fault.New(fault.Failed, "the command of the task took longer than %s on node %s and was killed", r.p.Timeout.or(taskTimeout), r.agent.cfg.Node)
		case <-r.ctx.Done():
			if !goesOn(context.Cause(r.ctx)) {
				c.kill()
				<-released
			}
			return 0, interrupted(r.ctx)
		}
	}
}

// released tells when nobody holds the lock any more.
func (c *command) released() <-chan struct{} {
	out := make(chan struct{})
	go func() {
		defer close(out)
		f, err := os.Open(c.status + ".lock")
		if err != nil {
			return
		}
		defer f.Close() //nolint:errcheck // it is only locked
		for errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX), syscall.EINTR) {
		}
	}()
	return out
}

// kill ends the command with all that it started. It holds the lock, so the number is still its own.
func (c *command) kill() {
	if text, err := os.ReadFile(c.status + ".pid"); err == nil && c.pid == 0 {
		c.pid, _ = strconv.Atoi(strings.TrimSpace(string(text))) // 0 if it cannot be read
	}
	if c.pid > 1 {
		_ = syscall.Kill(-c.pid, syscall.SIGKILL) // it may just have ended
	}
}

// show hands over what is left of the output.
func (c *command) show(from int64) error {
	_, err := c.lines(from, true)
	return err
}

// longestLine is where longer lines of output are broken, in bytes.
const longestLine = 8 << 10

// lines hands over the lines of the output from a place on, and returns the place behind them. The last line may lack
// its end: it is shown only if all is.
func (c *command) lines(from int64, all bool) (int64, error) {
	f, err := os.Open(c.output)
	if err != nil {
		return from, c.trouble(err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return from, c.trouble(err)
	}
	for b := bufio.NewReaderSize(f, longestLine); ; {
		line, err := b.ReadSlice('\n')
		whole := err == nil || errors.Is(err, bufio.ErrBufferFull)
		if !whole && (!all || len(line) == 0) {
			return from, nil // the end
		}
		from += int64(len(line))
		c.run.log(strings.ToValidUTF8(string(bytes.TrimRight(line, "\r\n")), "\uFFFD"))
		if !whole {
			return from, nil
		}
	}
}
