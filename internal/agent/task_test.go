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
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agent/effect"
	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/deploy/secret"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor/fake"
	"github.com/drover-project/drover/internal/testkit"
)

// tasked is the agent of a node that allows tasks, with its files in a directory.
func tasked(t *testing.T, dir string) *Agent {
	t.Helper()
	return taskedOn(t, dir, nil)
}

// taskedOn is one whose commands run on a host.
func taskedOn(t *testing.T, dir string, host effect.Host) *Agent {
	t.Helper()
	driver, err := fake.Open(fake.Config{Dir: filepath.Join(dir, "fake")})
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(Config{Node: "node1", Dir: dir, Driver: driver, Tasks: true, Host: host})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// lines collects the output of a task.
type lines struct {
	mu  sync.Mutex
	all []string
	on  func(string)
}

func (l *lines) add(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, s)
	if l.on != nil {
		l.on(s)
	}
}

func aTask(step int, kind string, parameters map[string]any) Task {
	text, err := json.Marshal(parameters)
	if err != nil {
		panic(err)
	}
	return Task{Deployment: 1, Step: step, Attempt: 1, Type: kind, Parameters: text}
}

func TestTasks(t *testing.T) {
	dir := t.TempDir()
	a := tasked(t, dir)
	target := filepath.Join(dir, "etc", "motd")
	for i, tc := range []struct {
		kind       string
		parameters map[string]any
		noop       bool
		want       []string // output
		err        string   // the beginning of code and message; empty: it succeeds
	}{
		{"shell", map[string]any{"cmd": "echo one; echo two >&2; printf three", "cwd": "/"}, false, []string{"one", "two", "three"}, ""},
		{"shell", map[string]any{"cmd": "pwd", "cwd": "/usr"}, false, []string{"/usr"}, ""},
		{"shell", map[string]any{"cmd": "pwd"}, false, []string{"/"}, ""},
		{"shell", map[string]any{"cmd": "pwd", "cwd": "usr"}, false, nil, "invalid: the parameter cwd is no absolute path"},
		{"shell", map[string]any{"cmd": "echo it is off; exit 3", "cwd": "/"}, false, []string{"it is off"}, "failed: the command of the task exited with 3"},
		{"shell", map[string]any{"cmd": "rm -rf " + target, "cwd": "/"}, true, []string{"would run: rm -rf " + target}, ""},
		{"shell", map[string]any{"cwd": "/"}, false, nil, "invalid: a task of type shell needs the parameter cmd"},
		{"shell", map[string]any{"cmd": "exec 3>&1; while :; do :; done", "timeout": 0.0001, "cwd": "/nowhere"}, false, nil, "environment: "},
		{"shell", map[string]any{"cmd": "sleep 1000 & sleep 1000", "timeout": "50ms", "cwd": "/"}, false, nil, "failed: the command of the task took longer than 50ms"},
		{"shell", map[string]any{"cmd": "kill -9 $$", "cwd": "/"}, false, []string{"Killed"}, "failed: the command of the task exited with 137"},
		{"shell", map[string]any{"cmd": "sleep 1000 >/dev/null & echo left", "cwd": "/", "timeout": "10m", "retries": "0", "interval": 0}, false, []string{"left"}, ""},
		{"shell", map[string]any{"cmd": "true", "timeout": 9999999999}, false, nil, "invalid: the parameter timeout is refused: a time of a task is 31622400 seconds at most"},
		{"shell", map[string]any{"cmd": "true", "timeout": 1e300}, false, nil, "invalid: the parameter timeout is refused: a time of a task is 31622400 seconds at most"},
		{"shell", map[string]any{"cmd": "true", "timeout": "NaN"}, false, nil, "invalid: the parameter timeout is refused"},
		{"shell", map[string]any{"cmd": "true", "timeout": -1}, false, nil, "invalid: the parameter timeout is refused"},
		{"shell", map[string]any{"cmd": "true", "timeout": 0}, false, nil, "invalid: the parameter timeout is 0"},
		{"shell", map[string]any{"cmd": "true", "timeout": "soon"}, false, nil, "invalid: the parameter timeout is refused"},
		{"shell", map[string]any{"cmd": "true", "interval": []int{1}}, false, nil, "invalid: the parameter interval is refused"},
		{"shell", map[string]any{"cmd": "true", "retries": 1001}, false, nil, "invalid: the parameter retries is refused"},
		{"shell", map[string]any{"cmd": "true", "retries": 1.5}, false, nil, "invalid: the parameter retries is refused"},
		{"shell", map[string]any{"cmd": "true", "retries": nil, "timeout": nil, "cwd": nil}, false, nil, ""},
		{"shell", map[string]any{"cmd": []string{"true"}}, false, nil, "invalid: the parameter cmd of a task of type shell is a JSON array"},
		{"shell", map[string]any{"cmd": `printf '%s|' "$@"; echo "$#$X$PATH"`, "args": []any{"a b", "it's; $(id) `id`", "", 7, true, []any{1, "x"}, "-n", "é\nz"}, "env": map[string]any{"X": "'$1'", "PATH": "/usr/bin:/bin"}},
			false, []string{"a b|it's; $(id) `id`||7|true|[1,\"x\"]|-n|é", "z|8'$1'/usr/bin:/bin"}, ""},
		{"shell", map[string]any{"cmd": "echo $HOME$X", "env": map[string]any{"X": map[string]any{"a": 1}}, "args": nil}, false, []string{os.Getenv("HOME") + `{"a":1}`}, ""},
		{"shell", map[string]any{"cmd": "rm $1", "args": []any{"a b"}}, true, []string{"would run: set -- 'a b'\nrm $1"}, ""},
		{"shell", map[string]any{"cmd": "true", "args": []any{nil}}, false, nil, "invalid: the parameter args is refused: null is no argument"},
		{"shell", map[string]any{"cmd": "true", "args": "x"}, false, nil, "invalid: the parameter args of a task of type shell is a JSON string"},
		{"shell", map[string]any{"cmd": "true", "args": []any{"a\x00b"}}, false, nil, "invalid: the parameter args is refused: an argument or variable of a command cannot hold the character NUL"},
		{"shell", map[string]any{"cmd": "true", "env": map[string]any{"A=B": "x"}}, false, nil, `invalid: the parameter env is refused: "A=B" is no name of a variable`},
		{"shell", map[string]any{"cmd": "true", "env": map[string]any{"": "x"}}, false, nil, `invalid: the parameter env is refused: "" is no name of a variable`},
		{"upload_file", map[string]any{"path": target, "data": "hello\n", "permissions": "0600"}, false, []string{"wrote " + target}, ""},
		{"upload_file", map[string]any{"path": "motd", "cwd": dir + "/etc", "data": 7, "permissions": 640}, true, []string{"would write " + target}, ""},
		{"upload_file", map[string]any{"path": "motd", "data": "hello"}, false, nil, `invalid: "motd" is no absolute path`},
		{"upload_file", map[string]any{"path": target}, false, nil, "invalid: a task of type upload_file needs the parameter path and data"},
		{"copy_files", map[string]any{"files": []any{map[string]any{"src": target, "dst": target + ".copy"}}}, false, []string{"wrote " + target + ".copy"}, ""},
		{"copy_files", map[string]any{"files": []any{map[string]any{"src": target + ".gone", "dst": target + ".copy"}}}, false, nil, "failed: cannot write " + target + ".copy"},
		{"copy_files", map[string]any{"files": []any{map[string]any{"src": "motd", "dst": target + ".copy"}}}, false, nil, `invalid: "motd" is no absolute path`},
		{"copy_files", map[string]any{"files": "motd"}, false, nil, "invalid: the parameter files of a task of type copy_files is a JSON string"},
		{"upload_file", map[string]any{"path": target, "data": "no", "permissions": "rwx"}, false, nil, "invalid: the parameter permissions is refused"},
		{"upload_file", map[string]any{"path": target, "data": "no", "permissions": "17777"}, false, nil, "invalid: the parameter permissions is refused"},
		{"erase_node", map[string]any{}, false, nil, "not_found: "},
		{"../shell", map[string]any{}, false, nil, "invalid: "},
	} {
		out := &lines{}
		task := aTask(i, tc.kind, tc.parameters)
		task.Noop = tc.noop
		err := a.RunTask(t.Context(), Order{Epoch: 1, Job: 1, Step: 1}, task, out.add)
		got := ""
		if err != nil {
			got = string(fault.CodeOf(err)) + ": " + err.Error()
		}
		if !strings.HasPrefix(got, tc.err) || (got == "") != (tc.err == "") {
			t.Errorf("%s %v: %s, want %s", tc.kind, tc.parameters, got, tc.err)
		}
		if !slices.Equal(out.all, tc.want) {
			t.Errorf("%s %v: output %q, want %q", tc.kind, tc.parameters, out.all, tc.want)
		}
	}
	text, err := os.ReadFile(target + ".copy")
	if err != nil || string(text) != "hello\n" {
		t.Errorf("the copy holds %q, %v", text, err)
	}
	if there, err := os.ReadDir(filepath.Join(dir, "etc")); err != nil || len(there) != 2 {
		t.Errorf("besides there are %v, %v", there, err)
	}
}

// TestNeededParameters holds what is said of a graph before it is deployed (graph.Lint) to what tasks need.
func TestNeededParameters(t *testing.T) {
	a := tasked(t, t.TempDir())
	for kind := range taskKinds {
		want := ""
		if needs := graph.Needed(kind); len(needs) > 0 {
			want = "a task of type " + kind + " needs the parameter " + strings.Join(needs, " and ")
		}
		got := ""
		if err := taskKinds[kind](&taskRun{agent: a, ctx: t.Context(), task: Task{Type: kind, Parameters: json.RawMessage("{}")}, log: func(string) {}}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}

func TestPermissionsOfFiles(t *testing.T) {
	dir := t.TempDir()
	a := tasked(t, dir)
	for i, tc := range []struct {
		file, dir any
		want      fs.FileMode
		wantDir   fs.FileMode
	}{
		{nil, nil, 0o644, 0o755 &^ 0o022},
		{"0600", "0700", 0o600, 0o700},
		{640, 750, 0o640, 0o750},
		{"0", nil, 0, 0o755 &^ 0o022},
		{"0000", "0777", 0, 0o777},
		{"4755", "2775", 0o755 | fs.ModeSetuid, 0o775 | fs.ModeSetgid},
		{"1777", "1777", 0o777 | fs.ModeSticky, 0o777 | fs.ModeSticky},
	} {
		below := filepath.Join(dir, strconv.Itoa(i), "below")
		parameters := map[string]any{"path": filepath.Join(below, "file"), "data": "", "permissions": tc.file, "dir_permissions": tc.dir}
		if err := a.RunTask(t.Context(), Order{Epoch: 1}, aTask(i, "upload_file", parameters), func(string) {}); err != nil {
			t.Errorf("%v: %v", parameters, err)
			continue
		}
		for path, want := range map[string]fs.FileMode{filepath.Join(below, "file"): tc.want, below: tc.wantDir | fs.ModeDir, filepath.Dir(below): tc.wantDir | fs.ModeDir} {
			if info, err := os.Stat(path); err != nil || info.Mode() != want {
				t.Errorf("%v: %s has %v, %v, want %v", parameters, path, info.Mode(), err, want)
			}
		}
	}
}

func TestTasksAreRefusedUnlessTheNodeAllowsThem(t *testing.T) {
	a, _ := counted(t, t.TempDir())
	err := a.RunTask(t.Context(), Order{Epoch: 1}, aTask(1, "shell", map[string]any{"cmd": "true"}), func(string) {})
	if !fault.Is(err, fault.WrongState) {
		t.Errorf("a node that allows no tasks: %v", err)
	}
}

func TestOwnProgramsKnowFurtherTypes(t *testing.T) {
	dir := t.TempDir()
	a := tasked(t, dir)
	if err := os.MkdirAll(filepath.Join(dir, programsDir), 0o750); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, programsDir, "reboot")
	if err := os.WriteFile(program, []byte("#!/bin/sh\npwd; echo $1; cat\n"), 0o700); err != nil { // a program
		t.Fatal(err)
	}
	const left = " is left to the program: it says nothing about how the program runs"
	for i, tc := range []struct {
		parameters string
		want       []string
	}{
		{`{"timeout":60}`, []string{"/", "run", `{"timeout":60}`}},
		{`{"cwd":"/usr","retries":1}`, []string{"/usr", "run", `{"cwd":"/usr","retries":1}`}},
		// Names of parameters that other types have mean what the program takes them for.
		{`{"files":"a b c","permissions":"rwx","cmd":["a"],"path":1}`, []string{"/", "run", `{"files":"a b c","permissions":"rwx","cmd":["a"],"path":1}`}},
		{`{"timeout":{"connect":3}}`, []string{"the parameter timeout" + left, "/", "run", `{"timeout":{"connect":3}}`}},
		{`["a"]`, []string{"/", "run", `["a"]`}},
	} {
		out := &lines{}
		task := aTask(i, "reboot", nil)
		task.Parameters = []byte(tc.parameters)
		if err := a.RunTask(t.Context(), Order{Epoch: 1}, task, out.add); err != nil || !slices.Equal(out.all, tc.want) {
			t.Errorf("%s: %q, %v", tc.parameters, out.all, err)
		}
	}
}

func TestRetriesOfACommand(t *testing.T) {
	dir := t.TempDir()
	a := tasked(t, dir)
	count := filepath.Join(dir, "count")
	cmd := "echo x >>" + count + "; test $(wc -l <" + count + ") = 3"
	out := &lines{}
	err := a.RunTask(t.Context(), Order{Epoch: 1}, aTask(1, "shell", map[string]any{"cmd": cmd, "retries": 5, "interval": 0.001, "cwd": "/"}), out.add)
	if text, _ := os.ReadFile(count); err != nil || string(text) != "x\nx\nx\n" {
		t.Errorf("%v after %q, %q", err, text, out.all)
	}
}

// until is a loop of the shell that ends when there is a file, or its directory is gone: what a test leaves behind ends with it.
func until(path string) string {
	return fmt.Sprintf("while test -d %s && ! test -e %s; do sleep 0.02; done", filepath.Dir(path), path)
}

// TestACommandIsNotBegunTwice has one agent begin a command, give up the wait as a controller that ends does, and another
// agent of the same node get the order again, while the command runs and after it has ended.
func TestACommandIsNotBegunTwice(t *testing.T) {
	dir := t.TempDir()
	gate := filepath.Join(dir, "go")
	task := aTask(1, "shell", map[string]any{"cmd": "echo begun; " + until(gate) + "; echo done", "cwd": "/"})
	ctx, stop := context.WithCancelCause(t.Context())
	first := &lines{on: func(s string) {
		if s == "begun" {
			stop(fault.New(fault.Unavailable, "the controller is shutting down"))
		}
	}}
	if err := tasked(t, dir).RunTask(ctx, Order{Epoch: 1}, task, first.add); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("the wait was given up: %v", err)
	}
	second := &lines{on: func(s string) {
		if s == "begun" {
			if err := os.WriteFile(gate, nil, 0o600); err != nil {
				t.Error(err)
			}
		}
	}}
	again := tasked(t, dir)
	if err := again.RunTask(t.Context(), Order{Epoch: 2}, task, second.add); err != nil {
		t.Fatal(err)
	}
	third := &lines{}
	if err := again.RunTask(t.Context(), Order{Epoch: 2}, task, third.add); err != nil {
		t.Fatal(err)
	}
	for i, l := range []*lines{second, third} {
		if got := strings.Join(l.all[1:], " "); got != "begun done" {
			t.Errorf("order %d showed %q", i+2, l.all)
		}
	}
	if err := again.RunTask(t.Context(), Order{Epoch: 1}, task, third.add); !fault.Is(err, fault.Fenced) {
		t.Errorf("the order of a controller that another has followed: %v", err)
	}
}

// held makes a pipe that a command is to hold open, and returns what waits until nobody does.
func held(t *testing.T) (pipe string, awaitGone func()) {
	t.Helper()
	pipe = filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return pipe, func() {
		t.Helper()
		err := f.SetReadDeadline(time.Now().Add(testkit.Patience()))
		if err == nil {
			_, err = io.Copy(io.Discard, f)
		}
		if err != nil {
			t.Fatalf("what the command started goes on: %v", err)
		}
	}
}

// TestKilledCommand ends a command with all that it started, on request and when its time is over.
func TestKilledCommand(t *testing.T) {
	a := tasked(t, t.TempDir())
	for i, timeout := range []any{"1h", "300ms"} {
		ctx, kill := context.WithCancelCause(t.Context())
		pipe, awaitGone := held(t)
		out := &lines{on: func(string) {
			if i == 0 {
				kill(fault.New(fault.Failed, "Job killed on request"))
			}
		}}
		task := aTask(i, "shell", map[string]any{"cmd": "exec 5>" + pipe + "; echo begun; sleep 1000 & sleep 1000", "cwd": "/", "timeout": timeout})
		if err := a.RunTask(ctx, Order{Epoch: 1}, task, out.add); fault.CodeOf(err) != []fault.Code{fault.Canceled, fault.Failed}[i] {
			t.Errorf("a killed task: %v", err)
		}
		awaitGone()
		kill(nil)
	}
}

// TestOutputThatOutrunsTheReader has commands write without end. They are ended like any other, and what is kept is bounded.
func TestOutputThatOutrunsTheReader(t *testing.T) {
	dir := t.TempDir()
	a := tasked(t, dir)
	ctx, kill := context.WithCancelCause(t.Context())
	out, full := &lines{}, make(chan struct{})
	out.on = func(s string) {
		if strings.HasPrefix(s, "[the task wrote 4 MiB or more") {
			close(full)
		}
	}
	go func() {
		<-full // the beginning was shown, and the command goes on
		kill(fault.New(fault.Failed, "Job killed on request"))
	}()
	if err := a.RunTask(ctx, Order{Epoch: 1}, aTask(1, "shell", map[string]any{"cmd": "yes", "cwd": "/"}), out.add); !fault.Is(err, fault.Canceled) {
		t.Errorf("a killed task: %v", err)
	}
	if n := len(out.all); n != maxOutput/2+1 {
		t.Errorf("%d lines were shown", n)
	}
	kept := int64(0)
	out = &lines{}
	if err := a.RunTask(t.Context(), Order{Epoch: 1}, aTask(2, "shell", map[string]any{"cmd": "yes", "cwd": "/", "timeout": 0.2}), out.add); !fault.Is(err, fault.Failed) {
		t.Errorf("a task whose time is over: %v", err)
	}
	out = &lines{}
	if err := a.RunTask(t.Context(), Order{Epoch: 1}, aTask(3, "shell", map[string]any{"cmd": "yes 'a line' | head -c 20000000; echo end >&2", "cwd": "/"}), out.add); err != nil {
		t.Errorf("a task that ends well: %v", err)
	}
	const line = len("a line\n")
	n := len(out.all)
	if n != maxOutput/line+2 || !strings.HasPrefix(out.all[n-1], "[the task wrote") || slices.ContainsFunc(out.all[:n-2], func(s string) bool { return s != "a line" }) {
		t.Errorf("%d lines were shown, at the end %q", n, out.all[n-3:])
	}
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), "output.") {
			info, err := d.Info()
			if err != nil {
				return err
			}
			kept = max(kept, info.Size())
		}
		return err
	})
	if err != nil || kept != maxOutput {
		t.Errorf("%d bytes are kept of one of them, %v", kept, err)
	}
}

// TestSourcesThatNeverAnswer has a task copy what nobody writes. It is ended like any other, and leaves nothing.
func TestSourcesThatNeverAnswer(t *testing.T) {
	dir := t.TempDir()
	a := tasked(t, filepath.Join(dir, "node"))
	source, target := filepath.Join(dir, "source"), filepath.Join(dir, "etc", "target")
	if err := syscall.Mkfifo(source, 0o600); err != nil {
		t.Fatal(err)
	}
	parameters := map[string]any{"files": []any{map[string]any{"src": source, "dst": target}}, "timeout": 0.05}
	if err := a.RunTask(t.Context(), Order{Epoch: 1}, aTask(1, "copy_files", parameters), func(string) {}); !fault.Is(err, fault.Failed) || !strings.Contains(err.Error(), "longer than 50ms") {
		t.Errorf("a copy whose time is over: %v", err)
	}
	delete(parameters, "timeout")
	for code, cause := range map[fault.Code]error{
		fault.Canceled:    fault.New(fault.Failed, "Job killed on request"),
		fault.Unavailable: fault.New(fault.Unavailable, "the controller is shutting down"),
	} {
		ctx, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(20*time.Millisecond, func() { stop(cause) })
		if err := a.RunTask(ctx, Order{Epoch: 1}, aTask(2, "copy_files", parameters), func(string) {}); !fault.Is(err, code) {
			t.Errorf("a copy that is ended: %v, want %s", err, code)
		}
	}
	// One that never ends is no better.
	parameters = map[string]any{"files": []any{map[string]any{"src": "/dev/zero", "dst": target}}, "timeout": 0.05}
	if err := a.RunTask(t.Context(), Order{Epoch: 1}, aTask(1, "copy_files", parameters), func(string) {}); !fault.Is(err, fault.Failed) {
		t.Errorf("a copy whose time is over: %v", err)
	}
	for limit := time.After(testkit.Patience()); ; {
		if left, err := os.ReadDir(filepath.Dir(target)); err == nil && len(left) == 0 {
			break
		}
		select {
		case <-limit:
			t.Fatal("what was copied stays")
		case <-time.After(10 * time.Millisecond):
		}
	}
	// Now the source answers those who wait for it. They may have let go of it before it has said anything.
	f, err := os.OpenFile(source, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.WriteString("too late"); errors.Is(err, syscall.EPIPE) {
		err = nil
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(target); err == nil {
		t.Error("a copy came after its end")
	}
}

// TestALateCopyIsRefused has another leader follow while a file is copied.
func TestALateCopyIsRefused(t *testing.T) {
	dir := t.TempDir()
	a, newer := tasked(t, filepath.Join(dir, "node")), tasked(t, filepath.Join(dir, "node"))
	source, target := filepath.Join(dir, "source"), filepath.Join(dir, "target")
	if err := syscall.Mkfifo(source, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		parameters := map[string]any{"files": []any{map[string]any{"src": source, "dst": target}}}
		done <- a.RunTask(t.Context(), Order{Epoch: 1}, aTask(1, "copy_files", parameters), func(string) {})
	}()
	f, err := os.OpenFile(source, os.O_WRONLY, 0) // when it is read
	if err != nil {
		t.Fatal(err)
	}
	if err := newer.RunTask(t.Context(), Order{Epoch: 2}, aTask(2, "shell", map[string]any{"cmd": "true"}), func(string) {}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("old"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !fault.Is(err, fault.Fenced) {
		t.Errorf("the copy of a former leader: %v", err)
	}
	if _, err := os.Stat(target); err == nil {
		t.Error("it shows")
	}
}

// old is a host on which all effects have run for longer than any task may.
type old struct{ effect.Host }

func (o old) Find(e effect.Effect) effect.Process { return ages{o.Host.Find(e)} }

type ages struct{ effect.Process }

func (ages) Age() time.Duration { return 10 * maxLength }

// TestTasksThatSayNothingOfTime: one try has an hour, of a command as of copying files, and a second lies before the next.
func TestTasksThatSayNothingOfTime(t *testing.T) {
	for _, parameters := range []string{`{}`, `{"timeout": null, "interval": null}`} {
		var command running
		var files writing
		for _, into := range []any{&command, &files} {
			if err := json.Unmarshal([]byte(parameters), into); err != nil {
				t.Fatal(err)
			}
		}
		of, err := command.Timeout.limit()
		ofFiles, bad := files.Timeout.limit()
		if pause := command.Interval.or(taskInterval); of != time.Hour || ofFiles != time.Hour || pause != time.Second || err != nil || bad != nil {
			t.Errorf("%s: a command has %s, copying %s, and the next try comes after %s; %v, %v", parameters, of, ofFiles, pause, err, bad)
		}
	}
}

// TestTimeOutsOutliveControllers: the time of a task begins with its command, whoever waits for it.
func TestTimeOutsOutliveControllers(t *testing.T) {
	dir := t.TempDir()
	pipe, awaitGone := held(t)
	task := aTask(1, "shell", map[string]any{"cmd": "exec 5>" + pipe + "; echo begun; sleep 1000", "cwd": "/", "timeout": "10m"})
	ctx, stop := context.WithCancelCause(t.Context())
	first := &lines{on: func(string) { stop(fault.New(fault.Unavailable, "the controller is shutting down")) }}
	if err := tasked(t, dir).RunTask(ctx, Order{Epoch: 1}, task, first.add); !fault.Is(err, fault.Unavailable) {
		t.Fatal(err)
	}
	host, err := effect.System(dir)
	if err != nil {
		t.Fatal(err)
	}
	next := taskedOn(t, dir, old{host})
	if err := next.RunTask(t.Context(), Order{Epoch: 2}, task, func(string) {}); !fault.Is(err, fault.Failed) || !strings.Contains(err.Error(), "longer than 10m0s") {
		t.Errorf("a task whose time ended while nobody waited: %v", err)
	}
	awaitGone()
}

// former is how agents ran commands that had no notes of them yet.
const former = `status=$1; shift; echo $$ >"$status.pid"; "$@" 3>&-; echo $? >"$status.new"; mv "$status.new" "$status"`

// TestCommandsOfAFormerVersionAreJoined by their numbers.
func TestCommandsOfAFormerVersionAreJoined(t *testing.T) {
	dir := t.TempDir()
	a := tasked(t, dir)
	files := filepath.Join(dir, tasksDir, "1", "1.1")
	if err := os.MkdirAll(files, 0o700); err != nil {
		t.Fatal(err)
	}
	gate := filepath.Join(dir, "go")
	output, err := os.Create(filepath.Join(files, "output.1"))
	if err != nil {
		t.Fatal(err)
	}
	command := "echo begun; " + until(gate) + "; echo done; yes | head -c 5000000; exit 3"
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", former, "task", filepath.Join(files, "status.1"), "/bin/sh", "-c", command)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait() //nolint:errcheck // its status is in a file
	for limit := time.After(testkit.Patience()); ; {
		if text, _ := os.ReadFile(filepath.Join(files, "output.1")); len(text) > 0 {
			break
		}
		select {
		case <-limit:
			t.Fatal("it never began")
		case <-time.After(10 * time.Millisecond):
		}
	}
	out := &lines{on: func(s string) {
		if s == "begun" {
			if err := os.WriteFile(gate, nil, 0o600); err != nil {
				t.Error(err)
			}
		}
	}}
	err = a.RunTask(t.Context(), Order{Epoch: 2}, aTask(1, "shell", map[string]any{"cmd": command, "cwd": "/"}), out.add)
	if got := strings.Join(out.all[:min(len(out.all), 4)], " | "); got != "the command was begun before and still runs; its output follows | begun | done | y" || !fault.Is(err, fault.Failed) {
		t.Errorf("%s; %v", got, err)
	}
	if last := out.all[len(out.all)-1]; !strings.HasPrefix(last, "[the task wrote 4 MiB or more") {
		t.Errorf("the last line is %q", last)
	}
}

// TestFilesOfTasksArePrivate: their parameters hold passwords.
func TestFilesOfTasksArePrivate(t *testing.T) {
	mask := syscall.Umask(0o022)
	defer syscall.Umask(mask)
	dir := t.TempDir()
	a := tasked(t, dir)
	if err := os.MkdirAll(filepath.Join(dir, programsDir), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, programsDir, "mytool"), []byte("#!/bin/sh\ncat\n"), 0o700); err != nil { // a program
		t.Fatal(err)
	}
	for i, kind := range []string{"shell", "mytool"} {
		if err := a.RunTask(t.Context(), Order{Epoch: 1}, aTask(i, kind, map[string]any{"cmd": "echo secret"}), func(string) {}); err != nil {
			t.Fatal(err)
		}
	}
	files := 0
	err := filepath.WalkDir(filepath.Join(dir, tasksDir), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if want := fs.FileMode(0o600); err == nil && !d.IsDir() {
			if files++; info.Mode() != want {
				t.Errorf("%s: %v", path, info.Mode())
			}
		} else if err == nil && info.Mode() != fs.ModeDir|0o700 {
			t.Errorf("%s: %v", path, info.Mode())
		}
		return err
	})
	if err != nil || files < 8 {
		t.Errorf("%d files, %v", files, err)
	}
}

// TestSecretsOfTasksAreNotTold: not in its output, however long its lines are and wherever they are divided, and not in errors.
func TestSecretsOfTasksAreNotTold(t *testing.T) {
	a := tasked(t, t.TempDir())
	const text = "correct-horse"
	for i, tc := range []struct {
		kind       string
		parameters map[string]any
		tells      string
		noop, dry  bool
	}{
		{"shell", map[string]any{"cmd": "echo 'a correct-horse b'"}, "a <redacted> b", false, false},
		{"shell", map[string]any{"cmd": "echo correct-horse"}, "would run: echo <redacted>", true, false},
		{"shell", map[string]any{"cmd": "echo correct-horse"}, `would run a task of type shell with {"cmd":"echo <redacted>"}`, false, true},
		{"shell", map[string]any{"cmd": "head -c 8185 /dev/zero | tr '\\0' x; printf correct-horse; head -c 8185 /dev/zero | tr '\\0' y; echo"}, "<redacted>", false, false},
		{"shell", map[string]any{"cmd": "head -c 4194299 /dev/zero | tr '\\0' x; echo correct-horse"}, "xxx", false, false},
		{"upload_file", map[string]any{"path": "/proc/correct-horse/x", "data": ""}, "", false, false},
		{"shell", map[string]any{"cmd": "true", "cwd": "correct-horse"}, "", false, false},
		{"shell", map[string]any{"cmd": "echo $1", "args": []any{"battery'staple"}}, "set -- '<redacted>'", true, false},
		{"shell", map[string]any{"cmd": `echo 'battery'\''staple'`}, `with {"cmd":"echo '<redacted>'"}`, false, true},
		{"shell", map[string]any{"cmd": "env | grep X=", "env": map[string]any{"X": "battery'staple"}}, "X=<redacted>", false, false},
	} {
		out := &lines{}
		task := aTask(i, tc.kind, tc.parameters)
		task.Noop, task.Dry, task.Hidden = tc.noop, tc.dry, secret.NewValues([]string{text, "battery'staple"})
		err := a.RunTask(t.Context(), Order{Epoch: 1, Job: 1, Step: i}, task, out.add)
		told := strings.Join(out.all, "")
		if (err != nil) != (tc.tells == "") || !strings.Contains(told, tc.tells) {
			t.Errorf("%d: %v, told %.200q", i, err, told)
		}
		if err != nil && !strings.Contains(err.Error(), secret.Mark) {
			t.Errorf("%d: %v", i, err)
		}
		if strings.Contains(told, "battery") || strings.Contains(told, "staple") {
			t.Errorf("%d: told %q", i, told)
		}
		for n := 4; n <= len(text); n++ {
			if strings.Contains(told, text[:n]) || err != nil && strings.Contains(err.Error(), text[:n]) {
				t.Fatalf("%d: %q is told: %v", i, text[:n], err)
			}
		}
	}
}

// What a command read is gone when it has ended, however it did, and its output has no secret. While it runs, the files are there.
func TestSecretsDoNotStayOnTheNode(t *testing.T) {
	const text = "correct-horse"
	for name, tc := range map[string]struct {
		kind       string
		parameters map[string]any
		begun      bool // it is ended when it has begun
	}{
		"success":  {"shell", map[string]any{"cmd": "echo correct-horse; true correct-horse"}, false},
		"failure":  {"shell", map[string]any{"cmd": "echo correct-horse; false", "retries": 1, "interval": 0}, false},
		"much":     {"shell", map[string]any{"cmd": "head -c 4194299 /dev/zero | tr '\\0' x; echo correct-horse"}, false},
		"time-out": {"shell", map[string]any{"cmd": "echo correct-horse; sleep 100", "timeout": 1}, false},
		"killed":   {"shell", map[string]any{"cmd": "echo correct-horse; echo begun; sleep 100"}, true},
		"own type": {"greet", map[string]any{"password": text}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			a := tasked(t, dir)
			program := filepath.Join(a.cfg.Dir, programsDir, "greet")
			if err := errors.Join(os.MkdirAll(filepath.Dir(program), 0o700), os.WriteFile(program, []byte("#!/bin/sh\ncat\n"), 0o700)); err != nil {
				t.Fatal(err)
			}
			ctx, end := context.WithCancelCause(t.Context())
			task := aTask(1, tc.kind, tc.parameters)
			task.Hidden = secret.NewValues([]string{text})
			seen := false
			log := func(line string) {
				if tc.begun && line == "begun" {
					seen = slices.ContainsFunc(filesWith(t, dir, text), func(name string) bool { return strings.HasPrefix(name, "command.") })
					end(fault.New(fault.Canceled, "enough"))
				}
			}
			err := a.RunTask(ctx, Order{Epoch: 1, Job: 1}, task, log)
			if tc.begun && (!seen || !fault.Is(err, fault.Canceled)) {
				t.Errorf("it had no file to be read from, or was not ended: %v", err)
			}
			for n := 5; n <= len(text); n++ {
				if found := filesWith(t, dir, text[:n]); len(found) > 0 {
					t.Fatalf("%v have %q in them (%v)", found, text[:n], err)
				}
			}
		})
	}
}

// filesWith names the files in which a text is.
func filesWith(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		whole, err := os.ReadFile(path)
		if bytes.Contains(whole, []byte(text)) {
			found = append(found, d.Name())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A line without end of a secret that overlaps itself is shown in as many pieces as it has, all hidden.
func TestALineOfNothingButASecret(t *testing.T) {
	output := filepath.Join(t.TempDir(), "output")
	if err := os.WriteFile(output, []byte(strings.Repeat("0", 3*longestLine)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hidden := secret.NewValues([]string{"000000"})
	var lines []string
	r := &taskRun{ctx: t.Context(), task: Task{Hidden: hidden}, log: func(line string) {
		if lines = append(lines, hidden.Text(line)); len(lines) > 100 {
			panic("it is followed without end")
		}
	}}
	more, err := (&command{run: r, output: output}).lines(true)
	if shown := strings.ReplaceAll(strings.Join(lines, ""), secret.Mark, ""); more || err != nil || len(lines) > 4 || len(shown) >= 6 {
		t.Errorf("%t, %v: %d lines that show %q", more, err, len(lines), shown)
	}
}
