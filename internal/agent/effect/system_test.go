package effect

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/testkit"
)

// long is how long something may take that is to come, on a machine that has much to do.
var long = testkit.Patience()

// childDir, if it is in the environment, makes this program an agent that begins effects in that directory, and lives until it is
// killed. Its epoch is in childEpoch.
const (
	childDir   = "DROVER_EFFECT_DIR"
	childEpoch = "DROVER_EFFECT_EPOCH"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		_, _ = os.Stdout.WriteString(child(dir).Error() + "\n")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// child begins a script and a task, says so, and waits for both.
func child(dir string) error {
	epoch, err := strconv.ParseInt(os.Getenv(childEpoch), 10, 64)
	if err != nil {
		return err
	}
	f, err := Open(Config{Node: "node1", Dir: dir})
	if err != nil {
		return err
	}
	ended := make(chan error)
	for _, c := range []Claim{scriptOf("one", epoch), taskOf("two", epoch)} {
		h, err := f.Enter(context.Background(), c)
		if err != nil {
			return err
		}
		p, err := h.Begin(working(dir, c))
		if err != nil {
			return err
		}
		h.Leave()
		go func() {
			exit, err := p.Wait(context.Background())
			ended <- errors.Join(err, fmt.Errorf("%s ended: %v", c.Name, exit))
		}()
	}
	_, _ = os.Stdout.WriteString("begun\n")
	return <-ended
}

func scriptOf(of string, epoch int64) Claim {
	return Claim{Order: Order{Epoch: epoch, Job: 1}, Of: of, Kind: Script, Name: "script " + of, What: "install " + of}
}

func taskOf(of string, epoch int64) Claim {
	return Claim{Order: Order{Epoch: epoch, Job: 1}, Of: of, Kind: Task, Name: "task " + of, What: "run " + of}
}

// working is a command that keeps a pipe open for as long as anything of it lives, and says there when it has begun.
func working(dir string, c Claim) Command {
	pipe := filepath.Join(dir, c.Of+".pipe")
	x := Command{Args: []string{"/bin/sh", "-c", "exec 5>" + pipe + "; sleep 1000 & echo begun >&5; wait"}, Dir: dir}
	if c.Kind == Task {
		x.Log, x.Keep, x.Files = filepath.Join(dir, c.Of+".log"), 1<<20, filepath.Join(dir, c.Of+".status")
	}
	return x
}

// watched is a pipe that a command holds open.
type watched struct {
	*testing.T

	begun, gone chan struct{}
}

// watch opens the pipe of a working command. It returns at once.
func watch(t *testing.T, dir, of string) *watched {
	t.Helper()
	w := &watched{t, make(chan struct{}), make(chan struct{})}
	path := filepath.Join(dir, of+".pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		f, err := os.Open(path)
		if err != nil {
			return
		}
		defer f.Close() //nolint:errcheck // it is only read
		if _, err := f.Read(make([]byte, 1)); err == nil {
			close(w.begun)
			_, _ = io.Copy(io.Discard, f)
			close(w.gone)
		}
	}()
	return w
}

func (w *watched) await(c <-chan struct{}, what string) {
	w.Helper()
	select {
	case <-c:
	case <-time.After(long):
		w.Fatal(what)
	}
}

func (w *watched) works() bool {
	select {
	case <-w.gone:
		return false
	default:
		return true
	}
}

func openIn(t *testing.T, dir string) *Fence {
	t.Helper()
	f, err := Open(Config{Node: "node1", Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// begin begins the effect of a claim with a command, and ends it with the test.
func begin(t *testing.T, f *Fence, c Claim, x Command) Process {
	t.Helper()
	h, err := f.Enter(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Leave()
	p, err := h.Begin(x)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func shell(text string) Command { return Command{Args: []string{"/bin/sh", "-c", text}, Dir: "/"} }

// until is a loop of the shell that ends when there is a file, or its directory is gone: what a test leaves behind ends with it.
func until(path string, pause float64) string {
	return fmt.Sprintf("while test -d %s && ! test -e %s; do sleep %g; done", filepath.Dir(path), path, pause)
}

// agentProcess starts an agent as a process of its own, which begins a script and a task, and returns when both have begun.
func agentProcess(t *testing.T, dir string, epoch int64) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir, childEpoch+"="+strconv.FormatInt(epoch, 10))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "begun\n" {
		t.Fatalf("the agent says %q, %v", line, err)
	}
	return cmd
}

// TestAKilledAgentLeavesNoScript kills an agent by kill -9. Its script ends at once with all that it started, though nobody gives an
// order; its task goes on and is joined.
func TestAKilledAgentLeavesNoScript(t *testing.T) {
	dir := t.TempDir()
	script, task := watch(t, dir, "one"), watch(t, dir, "two")
	agent := agentProcess(t, dir, 1)
	script.await(script.begun, "the script never began")
	task.await(task.begun, "the task never began")
	_ = agent.Process.Kill()
	_ = agent.Wait() // it was killed
	script.await(script.gone, "the script works on")
	f := openIn(t, dir)
	h, err := f.Enter(t.Context(), scriptOf("one", 1)) // the same epoch: nothing is ended on its behalf
	if err != nil {
		t.Fatal(err)
	}
	h.Leave()
	if h, err = f.Enter(t.Context(), taskOf("two", 2)); err != nil {
		t.Fatal(err)
	}
	h.Leave()
	p := h.Joined()
	if p == nil || !task.works() {
		t.Fatalf("the task was not joined: %v", p)
	}
	if err := f.End(Order{Epoch: 2}, p); err != nil {
		t.Fatal(err)
	}
	task.await(task.gone, "the task works on")
}

// TestAStoppedAgentsScriptIsEnded stops an agent as SIGSTOP does, so that it learns of nothing, and has no fence but the notes: the
// first order of a newer leader ends the script, though its parent is not there to bury it.
func TestAStoppedAgentsScriptIsEnded(t *testing.T) {
	dir := t.TempDir()
	script, task := watch(t, dir, "one"), watch(t, dir, "two")
	agent := agentProcess(t, dir, 1)
	script.await(script.begun, "the script never began")
	task.await(task.begun, "the task never began")
	if err := agent.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	f := openIn(t, dir)
	h, err := f.Enter(t.Context(), Claim{Order: Order{Epoch: 2}, Of: "one", What: "start one"})
	if err != nil {
		t.Fatal(err)
	}
	if script.works() {
		t.Error("the order is carried out while the script works")
	}
	h.Leave()
	if !task.works() {
		t.Error("the task was ended with it")
	}
	if h, err = f.Enter(t.Context(), Claim{Order: Order{Epoch: 2}, Of: "two", What: "run another attempt"}); err != nil {
		t.Fatal(err)
	}
	h.Leave()
	task.await(task.gone, "the task works on")
	_ = agent.Process.Kill()
	_ = agent.Wait() // it was killed
}

// TestTheNotesAloneEndAScript that has closed its lock.
func TestTheNotesAloneEndAScript(t *testing.T) {
	dir := t.TempDir()
	script := watch(t, dir, "one")
	x := working(dir, scriptOf("one", 1))
	x.Args[2] = "exec 3>&-; " + x.Args[2]
	begin(t, openIn(t, dir), scriptOf("one", 1), x)
	script.await(script.begun, "the script never began")
	h, err := openIn(t, dir).Enter(t.Context(), Claim{Order: Order{Epoch: 2}, Of: "one", What: "start one"})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Leave()
	script.await(script.gone, "the script works on") // what it began is killed with it, and nothing tells when that has ended
}

// TestTheLockAloneKeepsOthersOut has a script leave a child in a session of its own, which no signal reaches that is meant for the
// script: nothing happens to the thing while it works, and who it is is told.
func TestTheLockAloneKeepsOthersOut(t *testing.T) {
	dir := t.TempDir()
	stop := filepath.Join(dir, "stop")
	script := watch(t, dir, "one")
	x := working(dir, scriptOf("one", 1))
	x.Args[2] = "exec 5>" + filepath.Join(dir, "one.pipe") + "; setsid sh -c 'echo begun >&5; " + until(stop, 0.02) + "' & sleep 1000"
	begin(t, openIn(t, dir), scriptOf("one", 1), x)
	script.await(script.begun, "the script never began")
	f := openIn(t, dir)
	f.patience = 300 * time.Millisecond
	for range 2 { // also once its script is known to have ended
		_, err := f.Enter(t.Context(), Claim{Order: Order{Epoch: 2}, Of: "one", What: "start one"})
		if !fault.Is(err, fault.Busy) || !strings.Contains(err.Error(), "(sh)") || !script.works() {
			t.Fatalf("while a child of the script works: %v", err)
		}
	}
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f.patience = long
	h, err := f.Enter(t.Context(), Claim{Order: Order{Epoch: 2}, Of: "one", What: "start one"})
	if err != nil {
		t.Fatal(err)
	}
	h.Leave()
}

// TestTheLeadAloneEndsAScript whose lock is closed and whose note is gone, and to whom nobody else gives orders.
func TestTheLeadAloneEndsAScript(t *testing.T) {
	dir := t.TempDir()
	lead := &Lead{}
	f, err := Open(Config{Node: "node1", Dir: dir, Lead: lead})
	if err != nil {
		t.Fatal(err)
	}
	script := watch(t, dir, "one")
	h, err := f.Enter(t.Context(), scriptOf("one", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Leave()
	ended := make(chan error, 1)
	go func() {
		x := working(dir, scriptOf("one", 1))
		x.Args[2] = "exec 3>&-; " + x.Args[2]
		_, err := h.Run(context.Background(), x)
		ended <- err
	}()
	script.await(script.begun, "the script never began")
	if err := os.RemoveAll(filepath.Join(dir, effectsDir)); err != nil {
		t.Fatal(err)
	}
	lead.Extend(time.Now().Add(Margin + 50*time.Millisecond))
	script.await(script.gone, "the script works on")
	if err := <-ended; !fault.Is(err, fault.Unavailable) {
		t.Errorf("its end: %v", err)
	}
}

// TestWithoutTheWrapper kills the shell around a command: a script ends with it, and a task goes on and tells how it ended.
func TestWithoutTheWrapper(t *testing.T) {
	dir := t.TempDir()
	f := openIn(t, dir)
	script, task, stop := watch(t, dir, "one"), watch(t, dir, "two"), filepath.Join(dir, "stop")
	p := begin(t, f, scriptOf("one", 1), working(dir, scriptOf("one", 1)))
	script.await(script.begun, "the script never began")
	x := working(dir, taskOf("two", 1))
	x.Args[2] = "exec 5>" + filepath.Join(dir, "two.pipe") + "; echo begun >&5; " + until(stop, 0.02) + "; exit 7"
	q := begin(t, f, taskOf("two", 1), x)
	task.await(task.begun, "the task never began")
	for _, p := range []Process{p, q} {
		if err := syscall.Kill(p.Effect().Group.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	limit, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	if exit, err := p.Wait(limit); err != nil || exit != (Exit{}) {
		t.Errorf("the script: %v, %v", exit, err)
	}
	script.await(script.gone, "the script works on")
	if exit, ended := f.cfg.Host.Find(q.Effect()).Ended(); ended || !task.works() {
		t.Errorf("the task ended: %v", exit)
	}
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if exit, err := q.Wait(limit); err != nil || exit != (Exit{7, true}) {
		t.Errorf("the task: %v, %v", exit, err)
	}
}

// TestKnownByItsLock ends a task whose wrapper is gone, and with it the number of its group.
func TestKnownByItsLock(t *testing.T) {
	dir := t.TempDir()
	task := watch(t, dir, "two")
	p := begin(t, openIn(t, dir), taskOf("two", 1), working(dir, taskOf("two", 1)))
	task.await(task.begun, "the task never began")
	if err := syscall.Kill(p.Effect().Group.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	task.await(p.(*process).reaped, "its parent has not buried it")
	h, err := openIn(t, dir).Enter(t.Context(), Claim{Order: Order{Epoch: 2}, Of: "two", What: "run another attempt"})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Leave()
	task.await(task.gone, "the task works on")
}

// TestWhatEndedWellHoldsNobodyUp runs one script after the other, each of which leaves a child behind that holds its lock.
func TestWhatEndedWellHoldsNobodyUp(t *testing.T) {
	dir := t.TempDir()
	f := openIn(t, dir)
	f.patience = 0 // what is held is not waited for
	gone := filepath.Join(dir, "gone")
	t.Cleanup(func() { _ = os.WriteFile(gone, nil, 0o600) })
	for n := range 30 {
		h, err := f.Enter(t.Context(), scriptOf("one", 1))
		if err != nil {
			t.Fatalf("script %d: %v", n, err)
		}
		exit, err := h.Run(t.Context(), shell("("+until(gone, 0.2)+") >/dev/null 2>&1 & exit "+strconv.Itoa(n)))
		h.Leave()
		if err != nil || exit != (Exit{n, true}) {
			t.Fatalf("script %d: %v, %v", n, exit, err)
		}
		if noted, err := f.cfg.Host.Noted("one"); err != nil || noted != nil {
			t.Fatalf("script %d is still noted: %v, %v", n, noted, err)
		}
	}
	if left, err := os.ReadDir(filepath.Join(dir, effectsDir)); err != nil || len(left) != 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}

// TestWhoHoldsWhatWasLeftHoldsNothing: of two who have opened the file of a thing one has its turn and leaves, which removes the file. The
// other has a file that is nobody's then: whoever comes next makes another, and would hold the thing beside it.
func TestWhoHoldsWhatWasLeftHoldsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "thing"+holdEnd)
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	is := func(who string, f *os.File, want bool) {
		t.Helper()
		if held, err := holds(f, path); held != want || err != nil {
			t.Errorf("%s holds it: %t, %v", who, held, err)
		}
	}
	first, second := open(), open()
	is("the first", first, true)
	is("the second, meanwhile", second, false)
	if err := errors.Join(os.Remove(path), first.Close()); err != nil {
		t.Fatal(err)
	}
	is("the second, behind the first", second, false)
	third := open()
	is("the third", third, true)
	is("the second, beside the third", second, false)
}

// TestAgentsTakeTurns has agents of one node act on one thing.
func TestAgentsTakeTurns(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	at, turns := 0, 0 // only who has the turn looks at them
	var mu sync.Mutex
	for range 4 {
		f := openIn(t, dir)
		f.patience = long
		all.Go(func() {
			for range 25 {
				h, err := f.Enter(t.Context(), Claim{Order: Order{Epoch: 1}, Of: "one", What: "start one"})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				at++
				if turns++; at > 1 {
					t.Errorf("%d have the turn", at)
				}
				mu.Unlock()
				mu.Lock()
				at--
				mu.Unlock()
				h.Leave()
			}
		})
	}
	all.Wait()
	if turns != 100 {
		t.Errorf("%d turns", turns)
	}
	f := openIn(t, dir)
	h, err := f.Enter(t.Context(), Claim{Order: Order{Epoch: 1}, Of: "one", What: "start one"})
	if err != nil {
		t.Fatal(err)
	}
	other := openIn(t, dir)
	other.patience = 10 * time.Millisecond
	name, _ := os.ReadFile("/proc/self/comm")
	me := fmt.Sprintf("process %d (%s)", os.Getpid(), strings.TrimSpace(string(name)))
	if _, err := other.Enter(t.Context(), Claim{Order: Order{Epoch: 1}, Of: "one", What: "stop one"}); !fault.Is(err, fault.Busy) || !strings.Contains(err.Error(), me) {
		t.Errorf("while another acts: %v", err)
	}
	h.Leave()
}

// TestStrangersAreNotKilled has notes name the number of a process that is none of theirs.
func TestStrangersAreNotKilled(t *testing.T) {
	dir := t.TempDir()
	f := openIn(t, dir)
	stranger := exec.CommandContext(t.Context(), "sleep", "1000")
	stranger.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- stranger.Wait() }()
	stat, err := readStat(stranger.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	for name, group := range map[string]Group{
		"it started later":      {PID: stranger.Process.Pid, Start: stat.start - 1, Boot: bootID()},
		"the machine did":       {PID: stranger.Process.Pid, Start: stat.start, Boot: "another"},
		"nobody has the number": {PID: 0, Boot: bootID()},
	} {
		if err := f.cfg.Host.Note(Effect{Name: name, Of: name, Kind: Script, Epoch: 1, Group: group}); err != nil {
			t.Fatal(err)
		}
		f.cfg.Host.Find(Effect{Group: group}).Kill()
		h, err := f.Enter(t.Context(), Claim{Order: Order{Epoch: 2}, Of: name, What: "start it"})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		h.Leave()
	}
	_ = stranger.Process.Signal(syscall.SIGTERM) // only now it ends
	if err := <-ended; err == nil || err.Error() != "signal: terminated" {
		t.Errorf("the stranger ended: %v", err)
	}
}

// TestDamagedNotesAreRefused with the file, and what to do: whoever took one for none would have two work on one thing.
func TestDamagedNotesAreRefused(t *testing.T) {
	dir := t.TempDir()
	f := openIn(t, dir)
	for _, tc := range []struct{ file, text string }{
		{epochName, ""},
		{epochName, "\x00\x00"},
		{filepath.Join(effectsDir, filepath.Base(f.cfg.Host.(*system).path("one"))+noteEnd), `{"name":`},
	} {
		path := filepath.Join(dir, tc.file)
		if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := f.Enter(t.Context(), Claim{Order: Order{Epoch: 1}, Of: "one", What: "start one"})
		told, ok := errors.AsType[*fault.Error](err)
		if !ok || told.Code != fault.Environment || !strings.Contains(told.Error(), path) || told.Hint == "" {
			t.Errorf("%s with %q: %v", tc.file, tc.text, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if h, err := f.Enter(t.Context(), Claim{Order: Order{Epoch: 1}, Of: "one", What: "start one"}); err != nil {
		t.Error(err)
	} else {
		h.Leave()
	}
}

// TestNothingBeginsUnnoted has a disk refuse the note.
func TestNothingBeginsUnnoted(t *testing.T) {
	dir := t.TempDir()
	f := openIn(t, dir)
	h, err := f.Enter(t.Context(), taskOf("one", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Leave()
	// The place of the file that the note is written to first.
	s := f.cfg.Host.(*system)
	if err := os.Mkdir(filepath.Join(s.dir, "."+filepath.Base(s.path("one"))+noteEnd), 0o700); err != nil {
		t.Fatal(err)
	}
	did := filepath.Join(dir, "did")
	x := shell("echo >" + did)
	x.Log, x.Keep, x.Files = filepath.Join(dir, "log"), 1<<20, filepath.Join(dir, "status")
	if _, err := h.Begin(x); !fault.Is(err, fault.Environment) {
		t.Errorf("a command that cannot be noted: %v", err)
	}
	if _, err := os.Stat(did); err == nil || isLocked(x.Files+lockEnd) {
		t.Errorf("it began: %v", err)
	}
}

// TestALateBeginningIsRefused follows another leader between the decision and the beginning.
func TestALateBeginningIsRefused(t *testing.T) {
	dir := t.TempDir()
	f := openIn(t, dir)
	h, err := f.Enter(t.Context(), scriptOf("one", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Leave()
	if err := openIn(t, dir).Check(t.Context(), Claim{Order: Order{Epoch: 2}, What: "look"}); err != nil {
		t.Fatal(err)
	}
	did := filepath.Join(dir, "did")
	if _, err := h.Begin(shell("echo >" + did)); !fault.Is(err, fault.Fenced) {
		t.Errorf("a late beginning: %v", err)
	}
	if _, err := os.Stat(did); err == nil {
		t.Error("it began")
	}
}

// TestExits runs commands in both wrappers.
func TestExits(t *testing.T) {
	dir := t.TempDir()
	f := openIn(t, dir)
	for n, tc := range []struct {
		command, output string
		status          int
	}{
		{"echo one; echo two >&2", "one\ntwo\n", 0},
		{"printf noend; exit 7", "noend", 7},
		{"kill -9 $$ 2>/dev/null", "Killed\n", 137}, // as the shell around it says
		{"exec 3>&- 4>&-; cat", "", 0},
	} {
		script, output := scriptOf("one", 1), &bytes.Buffer{}
		h, err := f.Enter(t.Context(), script)
		if err != nil {
			t.Fatal(err)
		}
		x := shell(tc.command)
		x.Output = output
		exit, err := h.Run(t.Context(), x)
		h.Leave()
		if err != nil || exit != (Exit{tc.status, true}) || output.String() != tc.output {
			t.Errorf("script %q: %v, %v, %q", tc.command, exit, err, output)
		}
		x.Output, x.Keep, x.Log, x.Files = nil, 1<<20, filepath.Join(dir, fmt.Sprint("log", n)), filepath.Join(dir, fmt.Sprint("status", n))
		p := begin(t, f, taskOf("two", 1), x)
		exit, err = p.Wait(t.Context())
		awaitFile(t, AllWritten(x.Files))
		text, _ := os.ReadFile(x.Log)
		if err != nil || exit != (Exit{tc.status, true}) || string(text) != tc.output {
			t.Errorf("task %q: %v, %v, %q", tc.command, exit, err, text)
		}
		if again, ended := f.cfg.Host.Find(p.Effect()).Ended(); !ended || again != exit {
			t.Errorf("task %q, found by another: %v", tc.command, again)
		}
		f.Forget(p)
	}
}

func awaitFile(t *testing.T, path string) {
	t.Helper()
	limit := time.After(long)
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-limit:
			t.Fatalf("%s never came", path)
		case <-time.After(again):
		}
	}
}

// TestOutputIsKeptFromItsBeginning of a task that writes more than is kept, and goes on.
func TestOutputIsKeptFromItsBeginning(t *testing.T) {
	dir := t.TempDir()
	f := openIn(t, dir)
	const keep = 64 << 10
	x := shell("yes 'a line' | head -c 20000000 && echo the end >" + filepath.Join(dir, "did"))
	x.Keep, x.Log, x.Files = keep, filepath.Join(dir, "log"), filepath.Join(dir, "status")
	p := begin(t, f, taskOf("one", 1), x)
	if exit, err := p.Wait(t.Context()); err != nil || exit != (Exit{0, true}) {
		t.Fatal(exit, err)
	}
	awaitFile(t, AllWritten(x.Files))
	text, err := os.ReadFile(x.Log)
	if err != nil || len(text) != keep || !bytes.HasPrefix(text, []byte("a line\na line\n")) {
		t.Errorf("%d bytes are kept, %v", len(text), err)
	}
	if _, err := os.Stat(filepath.Join(dir, "did")); err != nil {
		t.Error(err)
	}
}

// TestFilesArePrivate: parameters of tasks hold passwords, and effects are nobody's business.
func TestFilesArePrivate(t *testing.T) {
	old := syscall.Umask(0o022)
	defer syscall.Umask(old)
	dir := t.TempDir()
	f := openIn(t, dir)
	mask := filepath.Join(dir, "mask")
	x := shell("umask >" + mask)
	x.Keep, x.Log, x.Files = 1<<20, filepath.Join(dir, effectsDir, "log"), filepath.Join(dir, effectsDir, "status")
	p := begin(t, f, taskOf("one", 1), x)
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitFile(t, AllWritten(x.Files))
	files, err := os.ReadDir(filepath.Join(dir, effectsDir))
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, e := range files {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", e.Name(), info.Mode(), err)
		}
	}
	if text, err := os.ReadFile(mask); err != nil || string(text) != "0022\n" {
		t.Errorf("the command has the mask %q, %v", text, err)
	}
}

func TestAge(t *testing.T) {
	dir := t.TempDir()
	f := openIn(t, dir)
	before := time.Now()
	p := begin(t, f, taskOf("one", 1), working(dir, taskOf("one", 1)))
	const tick = time.Second / ticks
	for _, p := range []Process{p, f.cfg.Host.Find(p.Effect())} {
		awaitAge := time.After(long)
		for p.Age() < 5*tick {
			select {
			case <-awaitAge:
				t.Fatal("it does not grow old")
			case <-time.After(tick):
			}
		}
		if age := p.Age(); age > time.Since(before)+2*tick {
			t.Errorf("it is %v old after %v", age, time.Since(before))
		}
	}
}

// A task may be over before whoever let it go has closed its pipe: that is no failure to begin it.
func TestATaskMayBeOverBeforeItIsLetGo(t *testing.T) {
	for kind, open := range map[Kind]bool{Task: true, Script: false} {
		ours, theirs, err := newPipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = theirs.Close()
		p := &process{effect: Effect{Kind: kind}, command: exec.Command("/bin/true"), life: ours, reaped: make(chan struct{})}
		if err := p.command.Start(); err != nil {
			t.Fatal(err)
		}
		p.reap()
		if err := ours.Close(); (err == nil) != open {
			t.Errorf("closing the pipe of a %s that is over: %v", kind, err)
		}
	}
}
