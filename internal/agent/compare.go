package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/deploy/secret"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/textdiff"
)

// Check asks whether what a task brings about is on the node. To ask changes nothing, as far as the task's own command keeps to that, and leaves no files.
type Check struct {
	// Type and Parameters are those of the task.
	Type       string          `json:"type"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
	// Command is the task's own check, a text or a map of what says how a command runs; empty for what the type itself can compare.
	Command json.RawMessage `json:"command,omitempty"`
	// Hidden are texts that are told nowhere.
	Hidden *secret.Values `json:"-"`
}

// Finding is what came of a check.
type Finding struct {
	// Differs: something on the node is not as the task brings it about. Summary says what in a line, and Difference in more of them, of which More tells
	// that there would be further ones.
	Differs    bool     `json:"differs"`
	Summary    string   `json:"summary,omitempty"`
	Difference []string `json:"difference,omitempty"`
	More       bool     `json:"more,omitempty"`
}

// How long a check may take, and how much of what differs is told.
const (
	checkTime     = 30 * time.Second
	mostCheckTime = 10 * time.Minute
	// checkOutput is how much of its output is read, and comparedBytes how large a file may be whose lines are told.
	checkOutput   = 64 << 10
	comparedBytes = 1 << 20
	// MostDifference is of how many lines, and longestShown of how many characters of each of them, a difference is told.
	MostDifference = 100
	longestShown   = 300
)

// Exit statuses of shells that say that a command did not come to tell anything: it cannot be run, or it was ended by a signal.
const (
	statusSyntax    = 2 // also that of commands which mean something else with it
	statusNotRun    = 126
	statusNotFound  = 127
	statusBySignals = 128
)

// Compare carries a check out. Failed says that the check itself did not succeed, so that nothing is known; Unsupported that there is nothing to compare.
func (a *Agent) Compare(ctx context.Context, c Check) (Finding, error) {
	if !a.cfg.Tasks {
		return Finding{}, fault.New(fault.WrongState, "node %s does not allow tasks of deployments", a.cfg.Node)
	}
	r := &taskRun{agent: a, ctx: ctx, task: Task{Type: c.Type, Parameters: c.Parameters, Hidden: c.Hidden}}
	var found Finding
	var err error
	switch {
	case len(c.Command) > 0:
		found, err = r.check(c.Command)
	case c.Type == "upload_file":
		found, err = r.compareFile()
	default:
		return Finding{}, fault.New(fault.Unsupported, "a task of type %s has no check, and nothing that could be compared without one", c.Type)
	}
	found.bound(c.Hidden)
	return found, c.Hidden.Error(err)
}

// bound hides what is not told, and keeps what is told within its bounds.
func (f *Finding) bound(hidden *secret.Values) {
	f.Summary = clipped(secret.Line(hidden.Text(f.Summary)))
	if len(f.Difference) > MostDifference {
		f.Difference, f.More = f.Difference[:MostDifference], true
	}
	for i, line := range f.Difference {
		f.Difference[i] = clipped(secret.Line(hidden.Text(line)))
	}
}

// clipped is the beginning of a line.
func clipped(line string) string {
	if r := []rune(line); len(r) > longestShown {
		return string(r[:longestShown-1]) + "…"
	}
	return line
}

// checking are the parameters of a check.
type checking struct {
	Cmd     string            `json:"cmd"`
	Args    []word            `json:"args"`
	Env     map[variable]word `json:"env"`
	Cwd     string            `json:"cwd"`
	Timeout length            `json:"timeout"`
}

// readCheck reads the field of a task. What means nothing in it is refused.
func readCheck(text json.RawMessage) (*checking, error) {
	p := &checking{}
	var err error
	if text[0] == '"' {
		err = json.Unmarshal(text, &p.Cmd)
	} else {
		err = intake.Read(text, p)
	}
	switch limit := p.Timeout.or(checkTime); {
	case err != nil:
		return nil, fault.New(fault.Invalid, "the check of the task cannot be read: %w", err).At("check")
	case strings.TrimSpace(p.Cmd) == "":
		return nil, fault.New(fault.Invalid, "the check of the task has no command").At("check")
	case limit == 0 || limit > mostCheckTime:
		return nil, fault.New(fault.Invalid, "a check may take up to %s, and more than nothing", mostCheckTime).At("check.timeout")
	}
	if p.Cwd == "" {
		p.Cwd = "/"
	}
	if !filepath.IsAbs(p.Cwd) {
		return nil, fault.New(fault.Invalid, "the cwd of the check is no absolute path: %q", p.Cwd).At("check.cwd")
	}
	return p, nil
}

// check runs the task's own check.
func (r *taskRun) check(text json.RawMessage) (Finding, error) {
	p, err := readCheck(text)
	if err != nil {
		return Finding{}, err
	}
	limit := p.Timeout.or(checkTime)
	late := fault.New(fault.Failed, "the check took longer than %s on node %s and was ended", limit, r.agent.cfg.Node)
	ctx, cancel := context.WithTimeoutCause(r.ctx, limit, late)
	defer cancel()
	script := withArguments(p.Cmd, p.Args)
	status, said, err := r.run(ctx, p, script)
	if err == nil && status == statusSyntax { // or it is what the command means by it
		wrong, told, e := r.run(ctx, p, script, "-n")
		if err = e; err == nil && wrong != 0 {
			return Finding{}, r.unchecked("it is no command that a shell can read", told)
		}
	}
	switch {
	case r.ctx.Err() != nil:
		return Finding{}, interrupted(r.ctx)
	case ctx.Err() != nil:
		return Finding{}, late
	case err != nil:
		return Finding{}, fault.New(fault.Failed, "the check cannot be run on node %s: %w", r.agent.cfg.Node, err)
	case status == 0:
		return Finding{}, nil
	case status == statusNotRun || status == statusNotFound:
		return Finding{}, r.unchecked(fmt.Sprintf("it cannot be run (exit status %d)", status), said)
	case status < 0 || status >= statusBySignals:
		return Finding{}, r.unchecked("it was ended by a signal", said)
	}
	f := Finding{Differs: true, Summary: fmt.Sprintf("the check exited with %d", status), Difference: said.lines(r.task.Hidden), More: said.cut}
	if i := slices.IndexFunc(f.Difference, func(line string) bool { return strings.TrimSpace(line) != "" }); i >= 0 {
		f.Summary = strings.TrimSpace(f.Difference[i])
	}
	return f, nil
}

// unchecked is the error of a check that came to no answer, with what it said.
func (r *taskRun) unchecked(why string, said *beginning) error {
	text := ""
	if lines := said.lines(r.task.Hidden); len(lines) > 0 {
		text = ": " + clipped(secret.Line(lines[len(lines)-1]))
	}
	return fault.New(fault.Failed, "the check of the task failed on node %s: %s%s", r.agent.cfg.Node, why, text)
}

// checkWrapper runs the script of descriptor 3, which is in no file and not among arguments that everybody on the machine can read. The end of descriptor 4
// means that the agent is gone: all that the check started goes, too.
const checkWrapper = `(exec 3<&-; read -r gone <&4; kill -9 0) >/dev/null 2>&1 & w=$!
exec 4<&-
/bin/sh "$@" /dev/fd/3; s=$?
exec 3<&-
kill $w; wait $w 2>/dev/null
exit $s`

// run runs a script with the options of a shell, and returns its exit status, -1 if a signal ended it, and what it wrote.
func (r *taskRun) run(ctx context.Context, p *checking, script string, options ...string) (int, *beginning, error) {
	said := &beginning{limit: checkOutput}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return 0, said, err
	}
	gone, life, err := os.Pipe()
	if err != nil {
		return 0, said, errors.Join(err, theirs.Close(), ours.Close())
	}
	defer life.Close() //nolint:errcheck // nothing is written
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", checkWrapper, "check"}, options...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.Cwd, said, said
	if len(p.Env) > 0 {
		cmd.Env = append(os.Environ(), environ(p.Env)...)
	}
	cmd.ExtraFiles = []*os.File{theirs, gone}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // before it is waited for, so the number is its own
	cmd.WaitDelay = outputEnd
	err = cmd.Start()
	_, _ = theirs.Close(), gone.Close() // the command has its own
	if err != nil {
		return 0, said, errors.Join(err, ours.Close())
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = io.WriteString(ours, script+"\n") // a command may end before it has read all
		_ = ours.Close()
	}()
	err = cmd.Wait()
	_ = ours.Close() // what it left running may have the other end
	<-written
	if _, exited := errors.AsType[*exec.ExitError](err); exited || errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	return cmd.ProcessState.ExitCode(), said, err
}

// beginning keeps the beginning of what is written to it.
type beginning struct {
	limit int
	kept  []byte
	cut   bool // there was more
}

// Write never fails.
func (b *beginning) Write(text []byte) (int, error) {
	n := min(len(text), b.limit-len(b.kept))
	b.kept = append(b.kept, text[:n]...)
	b.cut = b.cut || n < len(text)
	return len(text), nil
}

// lines are those that were kept. Of one that was cut nothing is told that may be the beginning of a secret.
func (b *beginning) lines(hidden *secret.Values) (out []string) {
	for line := range bytes.Lines(b.kept) {
		if b.cut && line[len(line)-1] != '\n' {
			line = line[:hidden.Cut(string(line))]
		}
		out = append(out, hidden.Text(oneLine(line)))
		if len(out) > MostDifference {
			break
		}
	}
	return out
}

// compareFile compares the file that a task writes with what it would write.
func (r *taskRun) compareFile() (Finding, error) {
	p, path, err := r.readUpload()
	if err != nil {
		return Finding{}, err
	}
	late := fault.New(fault.Failed, "%s could not be read on node %s within %s", path, r.agent.cfg.Node, checkTime)
	ctx, cancel := context.WithTimeoutCause(r.ctx, checkTime, late)
	defer cancel()
	type outcome struct {
		found Finding
		err   error
	}
	done := make(chan outcome, 1) // a file may be where nobody answers: who reads is left behind
	go func() {
		f, err := compared(path, string(*p.Data), p.Permissions.or(usualPermissions), r.task.Hidden)
		done <- outcome{f, err}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			return Finding{}, fault.New(fault.Failed, "%s cannot be read on node %s: %w", path, r.agent.cfg.Node, o.err)
		}
		return o.found, nil
	case <-ctx.Done():
		if r.ctx.Err() != nil {
			return Finding{}, interrupted(r.ctx)
		}
		return Finding{}, late
	}
}

// permissionBits are those of a file that permissions of a task say.
const permissionBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// compared compares what is at a path with what is wanted there.
func compared(path, want string, permissions fs.FileMode, hidden *secret.Values) (Finding, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return Finding{Differs: true, Summary: path + " is not there"}, nil
	case err != nil:
		return Finding{}, err
	case !info.Mode().IsRegular():
		return Finding{Differs: true, Summary: path + " is no file that holds anything"}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return Finding{}, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	text, err := io.ReadAll(io.LimitReader(f, max(int64(len(want))+1, comparedBytes+1)))
	if err != nil {
		return Finding{}, err
	}
	found := difference(path, string(text), want, hidden)
	if is := info.Mode() & permissionBits; is != permissions {
		told := fmt.Sprintf("its permissions are %s, not %s", octal(is), octal(permissions))
		if found.Differs {
			found.Summary += "; " + told
		} else {
			found = Finding{Differs: true, Summary: path + ": " + told}
		}
	}
	return found, nil
}

// octal is how permissions are written.
func octal(m fs.FileMode) string {
	bits := uint32(m.Perm())
	for bit, its := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if m&its != 0 {
			bits |= bit
		}
	}
	return fmt.Sprintf("%04o", bits)
}

// difference tells what a file lacks, and what it has instead.
func difference(path, is, want string, hidden *secret.Values) Finding {
	switch {
	case is == want:
		return Finding{}
	case len(is) > comparedBytes || len(want) > comparedBytes || !isText(is) || !isText(want):
		same := 0
		for same < len(is) && same < len(want) && is[same] == want[same] {
			same++
		}
		return Finding{Differs: true, Summary: fmt.Sprintf("%s differs from byte %d on", path, same+1)}
	}
	const around = 1
	found, came, went := Finding{Differs: true}, 0, 0
	for _, h := range textdiff.Between(is, want, around) {
		found.Difference = append(found.Difference, h.Header())
		covered := secretsIn(h.Lines, hidden)
		for i, l := range h.Lines {
			line := string(l.Mark) + secret.Line(hidden.Text(l.Text))
			switch l.Mark {
			case '-':
				went++
				if covered[i] {
					line = "-" + secret.Mark
				}
			case '+':
				came++
			}
			found.Difference = append(found.Difference, line)
			if l.Open {
				found.Difference = append(found.Difference, textdiff.NoEnd)
			}
		}
		if len(found.Difference) > MostDifference+1 { // the rest is counted
			found.Difference, found.More = found.Difference[:MostDifference], true
		}
	}
	found.Summary = fmt.Sprintf("%s: %s", path, inLines(went, came))
	return found
}

// inLines counts lines that are on the node and should not be, and those that should and are not.
func inLines(went, came int) string {
	switch {
	case went == came && came == 1:
		return "a line differs"
	case went == came:
		return fmt.Sprintf("%d lines differ", came)
	}
	return fmt.Sprintf("%d of its lines are not wanted, and %d that are wanted are not there", went, came)
}

// secretsIn tells which lines are on the node in place of wanted ones that hold a secret: what they hold is another, or an old one, which nobody here
// knows.
func secretsIn(lines []textdiff.Line, hidden *secret.Values) []bool {
	covered := make([]bool, len(lines))
	for from := 0; from < len(lines); from++ {
		to, is := from, false
		for ; to < len(lines) && lines[to].Mark != ' '; to++ {
			is = is || lines[to].Mark == '+' && hidden.Text(lines[to].Text) != lines[to].Text
		}
		for i := from; i < to; i++ {
			covered[i] = is
		}
		from = to
	}
	return covered
}

// isText tells whether people can read it.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
