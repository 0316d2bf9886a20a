package agent

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/agent/effect"
	"github.com/drover-project/drover/internal/fault"
)

const (
	// tailPause is how often the output of a running command is looked at. Nobody tells of new output in a file.
	tailPause = 50 * time.Millisecond
	// maxOutput is how much of the output of a command is kept and shown, in bytes, from its beginning on.
	maxOutput = 4 << 20
	// maxPiece is how much of it is handed over between two looks at whether the command is to be ended.
	maxPiece = 256 << 10
	// longestLine is where longer lines of output are broken, in bytes.
	longestLine = 8 << 10
	// outputEnd is how long the output is awaited after the command has ended: what it left running in the background may
	// hold it open for ever.
	outputEnd = time.Second
)

// program is what a task has run.
type program struct {
	args []string
	// script is the text of the file that is the last argument, if there is one, and input what is read on the standard input.
	script string
	input  []byte
	// env is what the program's environment has beside the agent's.
	env []string
	// good are exit statuses that are successes, beside 0.
	good []int
}

// command runs a program until it succeeds, as often as the parameters allow.
func (r *taskRun) command(p *running, x program) error {
	if p.Cwd == "" {
		p.Cwd = "/"
	}
	if !filepath.IsAbs(p.Cwd) {
		return fault.New(fault.Invalid, "the parameter cwd is no absolute path: %q", p.Cwd).At("parameters.cwd")
	}
	limit, err := p.Timeout.limit()
	if err != nil {
		return err
	}
	dir, err := r.dir()
	if err != nil {
		return fault.New(fault.Environment, "cannot prepare to run a task on node %s: %w", r.agent.cfg.Node, err)
	}
	for try := 1; ; try++ {
		c := &command{run: r, running: p, program: x, try: try, limit: limit, files: filepath.Join(dir, "status."+strconv.Itoa(try)), output: filepath.Join(dir, "output."+strconv.Itoa(try))}
		status, err := c.wait()
		switch {
		case err == nil && (status == 0 || slices.Contains(x.good, status)):
			return nil
		case err != nil && !fault.Is(err, fault.Failed):
			return err
		case err == nil:
			err = fault.New(fault.Failed, "the command of the task exited with %d on node %s", status, r.agent.cfg.Node)
		}
		if try > int(p.Retries) {
			return err
		}
		r.log(err.Error() + "; it is tried again")
		if err := r.pause(p.Interval.or(taskInterval)); err != nil {
			return err
		}
	}
}

func (r *taskRun) pause(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-r.ctx.Done():
		return interrupted(r.ctx)
	}
}

// command is one try of a command.
type command struct {
	*running
	program

	run   *taskRun
	try   int
	limit time.Duration
	// files is the path of the exit status, which other files of the effect are beside.
	files, output string
	shown         int64 // bytes of the output that were handed over
	full          bool  // it was said that there is more
	over          bool  // it runs no more
}

// wait has the command run to its end, which may have been before, and returns its exit status. A command that takes too long is
// killed with all that it started, and Failed.
func (c *command) wait() (int, error) {
	status, err := c.await()
	if c.over {
		c.tidy()
	}
	return status, err
}

// await begins the command if no agent has, and follows its output.
func (c *command) await() (int, error) {
	if status, ok := c.ended(); ok {
		return c.past(status)
	}
	claim := c.run.claim()
	claim.Kind, claim.Name = effect.Task, fmt.Sprintf("%s, attempt %d, try %d", claim.Of, c.run.task.Attempt, c.try)
	hold, err := c.run.enter(claim)
	if err != nil {
		return 0, err
	}
	if status, ok := c.ended(); ok { // between the two looks
		hold.Leave()
		return c.past(status)
	}
	p, err := c.begin(hold)
	hold.Leave()
	if err != nil {
		return 0, err
	}
	return c.follow(p)
}

// past shows a command that is over.
func (c *command) past(status int) (int, error) {
	c.over = true
	c.run.log("the command had ended while no controller waited for it; its output follows")
	return status, c.rest()
}

func (c *command) trouble(err error) error {
	return fault.New(fault.Environment, "cannot run the command of the task on node %s: %w", c.run.agent.cfg.Node, err)
}

// ended returns the exit status that an earlier run left.
func (c *command) ended() (int, bool) {
	text, err := os.ReadFile(c.files)
	if err != nil {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return n, err == nil
}

// begin joins the command if an agent has begun it, and begins it otherwise.
func (c *command) begin(hold *effect.Hold) (effect.Process, error) {
	const joins = "the command was begun before and still runs; its output follows"
	if p := hold.Joined(); p != nil {
		c.run.log(joins)
		return p, nil
	}
	x := effect.Command{Args: slices.Clone(c.args), Env: c.environment(), Dir: c.Cwd, Log: c.output, Keep: maxOutput, Files: c.files}
	if _, err := os.Stat(c.output); err == nil {
		if p, err := hold.Adopt(x); p != nil || err != nil {
			c.run.log(joins)
			return p, err
		}
		c.run.log("the command was begun before and died with the node; it is begun again")
	}
	if err := c.prepare(&x); err != nil {
		return nil, c.trouble(err)
	}
	return hold.Begin(x)
}

// environment is that of the agent, with what the task adds to it; nil for that of the agent alone.
func (c *command) environment() []string {
	if c.env == nil {
		return nil
	}
	return append(os.Environ(), c.env...)
}

// prepare writes the files that the command reads.
func (c *command) prepare(x *effect.Command) error {
	if c.script != "" {
		name := c.scriptFile()
		if err := os.WriteFile(name, []byte(c.script+"\n"), 0o600); err != nil {
			return err
		}
		x.Args = append(x.Args, name)
	}
	if c.input != nil {
		x.Input = c.inputFile()
		return os.WriteFile(x.Input, c.input, 0o600)
	}
	return nil
}

// follow hands over the output until the command has ended.
func (c *command) follow(p effect.Process) (int, error) {
	r, limit := c.run, c.limit
	timeout := time.NewTimer(limit - p.Age()) // whichever controller began it
	defer timeout.Stop()
	tick := time.NewTicker(tailPause)
	defer tick.Stop()
	watch, stop := context.WithCancel(context.WithoutCancel(r.ctx))
	defer stop()
	ended := make(chan effect.Exit, 1)
	go func() {
		if exit, err := p.Wait(watch); err == nil {
			ended <- exit
		}
	}()
	for {
		select {
		case exit := <-ended:
			c.over = true
			if err := c.rest(); err != nil {
				return 0, err
			}
			r.agent.fence.Forget(p)
			if !exit.Known {
				return 0, fault.New(fault.Failed, "the command of the task was killed on node %s", r.agent.cfg.Node)
			}
			return exit.Status, nil
		case <-tick.C:
			if _, err := c.lines(false); err != nil {
				return 0, err
			}
		case <-timeout.C:
			if err := r.agent.fence.End(r.order, p); err != nil {
				return 0, err
			}
			c.over = true
			_ = c.show() // the timeout is what counts
			return 0, fault.New(fault.Failed, "the command of the task took longer than %s on node %s and was killed", limit, r.agent.cfg.Node)
		case <-r.ctx.Done():
			if !goesOn(context.Cause(r.ctx)) {
				if err := r.agent.fence.End(r.order, p); err != nil {
					return 0, err
				}
				c.over = true
			}
			return 0, interrupted(r.ctx)
		}
	}
}

// rest hands over what is left of the output of a command that has just ended, of which the last may not be written yet.
func (c *command) rest() error {
	late := time.NewTimer(outputEnd)
	defer late.Stop()
	tick := time.NewTicker(tailPause / 10)
	defer tick.Stop()
	for {
		if _, err := os.Stat(effect.AllWritten(c.files)); err == nil {
			return c.show()
		}
		select {
		case <-tick.C:
		case <-late.C:
			return c.show()
		case <-c.run.ctx.Done():
			return c.show()
		}
	}
}

// show hands over what is left of the output.
func (c *command) show() error {
	for {
		if more, err := c.lines(true); err != nil || !more {
			return err
		}
	}
}

// lines hands over a piece of the output, and tells whether there is more. The last line may lack its end: it is shown only
// if all is.
func (c *command) lines(all bool) (more bool, err error) {
	f, err := os.Open(c.output)
	if err != nil {
		return false, c.trouble(err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	info, err := f.Stat()
	if err != nil {
		return false, c.trouble(err)
	}
	end := min(info.Size(), maxOutput)
	piece := io.NewSectionReader(f, c.shown, min(maxPiece, end-c.shown))
	for b := bufio.NewReaderSize(piece, longestLine); ; {
		line, err := b.Peek(longestLine)
		if n := bytes.IndexByte(line, '\n'); n >= 0 {
			line, err = line[:n+1], nil
		} else if err == nil { // what may be the beginning of a secret waits for the rest
			line = line[:c.run.task.Hidden.Cut(string(line))]
		}
		last := all && len(line) > 0 && c.shown+int64(len(line)) == end
		if err != nil && !last {
			break
		}
		c.shown += int64(len(line))
		_, _ = b.Discard(len(line)) // they are there
		if c.shown == maxOutput {
			line = line[:c.run.task.Hidden.Cut(string(line))] // what is left out may be the rest of a secret
		}
		c.run.log(oneLine(line))
	}
	if c.shown == maxOutput && !c.full {
		c.full = true
		c.run.log(fmt.Sprintf("[the task wrote %d MiB or more; the rest of its output is left out]", maxOutput>>20))
	}
	return c.shown < end, nil
}
