package agent

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor/fake"
)

// tasked is the agent of a node that allows tasks, with its files in a directory.
func tasked(t *testing.T, dir string) *Agent {
	t.Helper()
	driver, err := fake.Open(fake.Config{Dir: filepath.Join(dir, "fake")})
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(Config{Node: "node1", Dir: dir, Driver: driver, Tasks: true})
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
		want       []string   // output
		err        fault.Code // none: it succeeds
	}{
		{"shell", map[string]any{"cmd": "echo one; echo two >&2; printf three", "cwd": "/"}, false, []string{"one", "two", "three"}, ""},
		{"shell", map[string]any{"cmd": "pwd", "cwd": "/usr"}, false, []string{"/usr"}, ""},
		{"shell", map[string]any{"cmd": "echo it is off; exit 3", "cwd": "/"}, false, []string{"it is off"}, fault.Failed},
		{"shell", map[string]any{"cmd": "rm -rf " + target, "cwd": "/"}, true, []string{"would run: rm -rf " + target}, ""},
		{"shell", map[string]any{"cwd": "/"}, false, nil, fault.Invalid},
		{"shell", map[string]any{"cmd": "exec 3>&1; while :; do :; done", "timeout": 0.0001, "cwd": "/nowhere"}, false, nil, fault.Environment},
		{"shell", map[string]any{"cmd": "sleep 1000 & sleep 1000", "timeout": 0.05, "cwd": "/"}, false, nil, fault.Failed},
		{"upload_file", map[string]any{"path": target, "data": "hello\n", "permissions": "0600"}, false, []string{"wrote " + target}, ""},
		{"copy_files", map[string]any{"files": []any{map[string]any{"src": target, "dst": target + ".copy"}}}, false, []string{"wrote " + target + ".copy"}, ""},
		{"copy_files", map[string]any{"files": []any{map[string]any{"src": target + ".gone", "dst": target + ".copy"}}}, false, nil, fault.Failed},
		{"upload_file", map[string]any{"path": target, "data": "no", "permissions": "rwx"}, false, nil, fault.Invalid},
		{"erase_node", map[string]any{}, false, nil, fault.NotFound},
		{"../shell", map[string]any{}, false, nil, fault.Invalid},
	} {
		out := &lines{}
		task := aTask(i, tc.kind, tc.parameters)
		task.Noop = tc.noop
		err := a.RunTask(t.Context(), Order{Epoch: 1, Job: 1, Step: 1}, task, out.add)
		if fault.CodeOf(err) != tc.err && (err != nil || tc.err != "") {
			t.Errorf("%s %v: %v, want %s", tc.kind, tc.parameters, err, tc.err)
		}
		if !slices.Equal(out.all, tc.want) {
			t.Errorf("%s %v: output %q, want %q", tc.kind, tc.parameters, out.all, tc.want)
		}
	}
	text, err := os.ReadFile(target + ".copy")
	if err != nil || string(text) != "hello\n" {
		t.Errorf("the copy holds %q, %v", text, err)
	}
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
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
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho $1; cat\n"), 0o700); err != nil { // a program
		t.Fatal(err)
	}
	out := &lines{}
	if err := a.RunTask(t.Context(), Order{Epoch: 1}, aTask(1, "reboot", map[string]any{"timeout": 60}), out.add); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(out.all, " "); got != `run {"timeout":60}` {
		t.Errorf("the program got %q", got)
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

// TestACommandIsNotBegunTwice has one agent begin a command, give up the wait as a controller that ends does, and another
// agent of the same node get the order again, while the command runs and after it has ended.
func TestACommandIsNotBegunTwice(t *testing.T) {
	dir := t.TempDir()
	gate := filepath.Join(dir, "go")
	task := aTask(1, "shell", map[string]any{"cmd": "echo begun; until test -e " + gate + "; do sleep 0.05; done; echo done", "cwd": "/"})
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

// TestKilledCommand ends a command with all that it started.
func TestKilledCommand(t *testing.T) {
	dir := t.TempDir()
	ctx, kill := context.WithCancelCause(t.Context())
	out := &lines{on: func(string) { kill(fault.New(fault.Failed, "Job killed on request")) }}
	task := aTask(1, "shell", map[string]any{"cmd": "echo begun; sleep 1000 & sleep 1000", "cwd": "/"})
	if err := tasked(t, dir).RunTask(ctx, Order{Epoch: 1}, task, out.add); !fault.Is(err, fault.Canceled) {
		t.Errorf("a killed task: %v", err)
	}
}
