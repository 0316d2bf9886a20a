package effect

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// The wrappers of commands. What they run inherits descriptor 3, the lock, and they read descriptor 4 from the agent: a line when
// the effect is noted, and the end when the agent is gone or lets go of it. One that is gone before means that nothing is to begin.
// The first argument is the path that the exit status goes to.
const (
	// scriptWrapper ends with the agent: somebody in its group waits for the end of what comes from there. It buries that one,
	// for on some machines nobody else does.
	scriptWrapper = `status=$1; shift
read -r go <&4 || exit 1
(read -r gone <&4; kill -9 0) >/dev/null 2>&1 & w=$!
exec 4<&-
"$@"; s=$?
(umask 077; echo $s >"$status.new" && mv -f "$status.new" "$status")
kill $w; wait $w 2>/dev/null
exit $s`
	// taskWrapper outlives the agent. Of the output it keeps so many blocks of 512 bytes, and takes the rest, so that the
	// command goes on. The status may be there before all output is.
	taskWrapper = `status=$1 blocks=$2; shift 2
read -r go <&4 || exit 1
exec 4<&-
{ "$@" 2>&1; s=$?; umask 077; echo $s >"$status.new" && mv -f "$status.new" "$status"; } |
{ exec 3>&-; umask 077; (trap '' XFSZ; ulimit -f "$blocks"; exec cat) 2>/dev/null; cat >/dev/null; : >"$status.end"; }`
)

// outputEnd is how long the output of an effect is awaited after its command has ended:
// what it left running in the background may hold it open for ever.
const outputEnd = time.Second

// Begin starts the wrapper, notes it, and lets it go on.
func (s *system) Begin(e Effect, c Command) (Process, error) {
	if e.Files == "" {
		e.Files = s.path(e.Of)
	}
	lock, err := newLock(e.Files)
	if err != nil {
		return nil, err
	}
	defer lock.Close() //nolint:errcheck // the effect has it
	ours, theirs, err := newPipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close() //nolint:errcheck // as the lock
	cmd, files, err := prepare(e, c)
	if err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	cmd.ExtraFiles = []*os.File{lock, theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = outputEnd
	err = cmd.Start()
	for _, f := range files {
		_ = f.Close() // the command has its own
	}
	if err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	p := &process{system: s, effect: e, command: cmd, life: ours, reaped: make(chan struct{})}
	go p.reap()
	if err := p.letGo(); err != nil { // the wrapper reads the end, and goes
		_ = ours.Close()
		<-p.reaped
		return nil, errors.Join(err, s.Forget(e))
	}
	return p, nil
}

// newLock makes the lock of an effect anew: what an earlier one left behind may hold its own for ever. What that one left beside it goes.
func newLock(files string) (*os.File, error) {
	for _, end := range []string{"", ".new", restEnd, lockEnd} {
		if err := os.Remove(files + end); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	f, err := os.OpenFile(files+lockEnd, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func newPipe() (ours, theirs *os.File, err error) {
	theirs, ours, err = os.Pipe()
	return ours, theirs, err
}

// prepare makes the command of an effect in its wrapper, and opens its files.
func prepare(e Effect, c Command) (cmd *exec.Cmd, files []*os.File, err error) {
	defer func() {
		if err != nil {
			for _, f := range files {
				_ = f.Close() // the first error counts
			}
		}
	}()
	args := []string{"-c", scriptWrapper, string(e.Kind), e.Files}
	if e.Kind.joins() {
		const block = 512
		args = []string{"-c", taskWrapper, string(e.Kind), e.Files, strconv.FormatInt(c.Keep/block, 10)}
	}
	cmd = exec.Command("/bin/sh", append(args, c.Args...)...) //nolint:noctx // it is ended with all that it started, and not by itself
	cmd.Dir, cmd.Env = c.Dir, c.Env
	if c.Output != nil {
		cmd.Stdout, cmd.Stderr = c.Output, c.Output
	}
	if c.Log != "" {
		log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o600)
		if err != nil {
			return nil, files, err
		}
		files = append(files, log)
		cmd.Stdout, cmd.Stderr = log, log
	}
	if c.Input != "" {
		input, err := os.Open(c.Input)
		if err != nil {
			return nil, files, err
		}
		files = append(files, input)
		cmd.Stdin = input
	}
	return cmd, files, nil
}

// process is the processes of an effect, begun by this agent or found.
type process struct {
	system *system
	effect Effect
	// Of those that this agent began: the wrapper, the pipe that a script lives by, and what is closed when the wrapper has ended.
	command *exec.Cmd
	life    *os.File
	reaped  chan struct{}
}

// reap waits for the wrapper. The pipe of a task is closed by whoever lets it go, who may still be about to: it can be over by then.
func (p *process) reap() {
	defer close(p.reaped)
	_ = p.command.Wait() // its state says all
	if !p.effect.Kind.joins() {
		_ = p.life.Close()
	}
}

// letGo notes the effect, and lets it begin.
func (p *process) letGo() (err error) {
	pid := p.command.Process.Pid
	stat, err := readStat(pid)
	if err != nil {
		return err
	}
	p.effect.Group = Group{PID: pid, Start: stat.start, Boot: p.system.boot}
	p.effect.Begun = time.Now().UTC()
	if err := p.system.Note(p.effect); err != nil {
		return err
	}
	switch follows, err := p.system.Follows(); {
	case err != nil:
		return err
	case follows > p.effect.Epoch: // and who followed it may not have seen the note
		return fault.New(fault.Fenced, "the node follows a controller of epoch %d by now", follows)
	}
	if err := os.WriteFile(p.effect.Files+pidEnd, []byte(strconv.Itoa(pid)+"\n"), 0o600); err != nil {
		return err
	}
	if _, err := p.life.WriteString("go\n"); err != nil {
		return err
	}
	if p.effect.Kind.joins() {
		return p.life.Close()
	}
	return nil
}

// Effect is what the processes are of.
func (p *process) Effect() Effect { return p.effect }

// Ended looks for an exit status, or for the last who could leave one.
func (p *process) Ended() (Exit, bool) {
	if p.command != nil && !p.effect.Kind.joins() {
		select {
		case <-p.reaped:
			if status := p.command.ProcessState.ExitCode(); status >= 0 {
				return Exit{Status: status, Known: true}, true // also where it could not be written
			}
		default:
			return Exit{}, false // its output is still read
		}
	}
	if status, ok := readStatus(p.effect.Files); ok {
		return Exit{Status: status, Known: true}, true
	}
	if p.runs() || isLocked(p.effect.Files+lockEnd) {
		return Exit{}, false
	}
	if status, ok := readStatus(p.effect.Files); ok { // between the two looks
		return Exit{Status: status, Known: true}, true
	}
	return Exit{}, true
}

func readStatus(path string) (int, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return n, err == nil
}

// isLocked tells whether anybody holds the lock of an effect. It looks with a lock that many may have, so that
// two who look do not take one another for the effect.
func isLocked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // it was only locked
	return errors.Is(flock(f, syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// Wait waits for the wrapper of a script that is this agent's. For others it looks again and again: a task's wrapper may wait for
// what the command left behind.
func (p *process) Wait(ctx context.Context) (Exit, error) {
	reaped := p.reaped
	tick := time.NewTicker(again)
	defer tick.Stop()
	for {
		if exit, ended := p.Ended(); ended {
			return exit, nil
		}
		looked := tick.C
		if reaped != nil && !p.effect.Kind.joins() {
			looked = nil
		}
		select {
		case <-reaped:
			reaped = nil
		case <-looked:
		case <-ctx.Done():
			return Exit{}, context.Cause(ctx)
		}
	}
}

// Kill ends the group of processes. While the process that leads it is known, if only as a zombie, its number is that of no
// other group. Without it the group is known by who holds the lock.
func (p *process) Kill() {
	g := p.effect.Group
	if g.PID <= 1 || g.Boot != p.system.boot {
		return
	}
	if stat, err := readStat(g.PID); err == nil && stat.start == g.Start {
		_ = syscall.Kill(-g.PID, syscall.SIGKILL) // it may just have ended
		return
	}
	for _, pid := range holdersOf(p.effect.Files + lockEnd) {
		if stat, err := readStat(pid); err == nil && stat.group == g.PID {
			_ = syscall.Kill(-g.PID, syscall.SIGKILL)
			return
		}
	}
}

// runs tells whether the process that leads the group is there and no zombie.
func (p *process) runs() bool {
	g := p.effect.Group
	if g.Boot != p.system.boot {
		return false
	}
	stat, err := readStat(g.PID)
	return err == nil && stat.start == g.Start && !stat.dead
}

// Holders names who holds the lock.
func (p *process) Holders() string { return holders(p.effect.Files + lockEnd) }

// Age is how long ago the process started that leads the group.
func (p *process) Age() time.Duration { return age(p.effect.Group.Start) }
