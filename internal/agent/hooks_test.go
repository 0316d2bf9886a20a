package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hooks"
	"github.com/drover-project/drover/internal/hypervisor/fake"
	"github.com/drover-project/drover/internal/testkit"
)

// hooked is an agent with hooks.
type hooked struct {
	*testing.T
	dir   string
	agent *agent.Agent
}

const checked = "instance-start-pre.d"

func newHooked(t *testing.T, patience time.Duration) *hooked {
	t.Helper()
	h := &hooked{T: t, dir: t.TempDir()}
	driver, err := fake.Open(fake.Config{Dir: filepath.Join(h.dir, "fake")})
	if err == nil {
		h.agent, err = agent.New(agent.Config{Node: "node1", Dir: h.dir, Driver: driver, HooksTime: patience})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.agent.Close() })
	return h
}

func (h *hooked) script(name, text string, mode os.FileMode) {
	h.Helper()
	dir := filepath.Join(h.dir, "hooks", checked)
	err := os.MkdirAll(dir, 0o750)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name), []byte(text), mode)
	}
	if err != nil {
		h.Fatal(err)
	}
}

func (h *hooked) run(ctx context.Context, env map[string]string) ([]hooks.Result, error) {
	return h.agent.RunHooks(ctx, agent.Order{Epoch: 1, Job: 7, Step: 1}, agent.Hooks{Dir: checked, Env: env})
}

// Scripts run in the order of their names, all of them whatever one comes to, with no environment but theirs; other files do not.
func TestHooksRunInOrder(t *testing.T) {
	h := newHooked(t, 0)
	said := filepath.Join(t.TempDir(), "said")
	for name, text := range map[string]string{
		"20-b": "echo b >>$SAID; echo no way; echo second line >&2; exit 3", "10_a": "echo a $(pwd) $# >>$SAID; cat; echo fine", "A": "echo A >>$SAID", "30c": "echo c >>$SAID; exit 1",
	} {
		h.script(name, "#!/bin/sh\n"+text, 0o700)
	}
	for _, name := range []string{"40.sh", ".50", "60~", "70 x"} {
		h.script(name, "#!/bin/sh\necho wrong >>$SAID", 0o700)
	}
	h.script("80", "#!/bin/sh\necho not executable >>$SAID", 0o600)
	results, err := h.run(t.Context(), map[string]string{"SAID": said})
	want := []hooks.Result{{Script: checked + "/10_a"}, {Script: checked + "/20-b", Failed: true, Output: `no way\nsecond line`}, {Script: checked + "/30c", Failed: true}, {Script: checked + "/A"}}
	if err != nil || !slices.Equal(results, want) {
		t.Errorf("they came to %+v, %v; want %+v", results, err, want)
	}
	if text, err := os.ReadFile(said); err != nil || string(text) != "a / 0\nb\nc\nA\n" {
		t.Errorf("they said %q, %v", text, err)
	}
}

func TestHooksThatAreThere(t *testing.T) {
	h := newHooked(t, 0)
	there := func() []string {
		dirs, err := h.agent.HookDirs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s, err := h.agent.State(t.Context(), true)
		if err != nil || !slices.Equal(s.Hooks, dirs) {
			t.Errorf("its state tells of %q, %v, and it of %q", s.Hooks, err, dirs)
		}
		return dirs
	}
	if dirs := there(); len(dirs) > 0 {
		t.Errorf("there are %q without a directory", dirs)
	}
	h.script("note.txt", "", 0o700)
	if dirs := there(); len(dirs) > 0 {
		t.Errorf("there are %q without a script", dirs)
	}
	h.script("10", "#!/bin/sh\n", 0o700)
	if dirs := there(); !slices.Equal(dirs, []string{checked}) {
		t.Errorf("there are %q", dirs)
	}
}

// What hangs, floods or is no program at all is bounded, and told.
func TestHooksThatMisbehave(t *testing.T) {
	h := newHooked(t, 400*time.Millisecond)
	h.script("10flood", "#!/bin/sh\nyes floods | head -c 3000000; printf '\\033[2J\\377'; exit 1", 0o700)
	h.script("20rubbish", "\x7fELF rubbish", 0o700)
	h.script("30hang", "#!/bin/sh\necho hangs; sleep 1000 & sleep 1000", 0o700)
	h.script("40late", "#!/bin/sh\nexit 0", 0o700)
	results, err := h.run(t.Context(), nil)
	if err != nil || len(results) != 4 {
		t.Fatalf("they came to %+v, %v", results, err)
	}
	for i, r := range results {
		if !r.Failed || len(r.Output) > 10<<10 || strings.ContainsAny(r.Output, "\n\x1b") {
			t.Errorf("%s: %v with %d bytes: %.200q", r.Script, r.Failed, len(r.Output), r.Output)
		}
		if i > 1 && !strings.Contains(r.Output, "longer than 400ms") {
			t.Errorf("%s says %q", r.Script, r.Output)
		}
	}
	for i := range 101 {
		h.script("x"+strings.Repeat("y", i), "", 0o700)
	}
	if results, err := h.run(t.Context(), nil); err != nil || len(results) != 1 || !results[0].Failed {
		t.Errorf("too many came to %+v, %v", results, err)
	}
	for _, dir := range []string{"../../x-pre.d", "x", ""} {
		if _, err := h.agent.RunHooks(t.Context(), agent.Order{Epoch: 1, Job: 7}, agent.Hooks{Dir: dir}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", dir, err)
		}
	}
}

// A hook ends, with all that it began, with its order; and when a newer leader comes.
func TestHooksAreEnded(t *testing.T) {
	for what, end := range map[string]func(*hooked, context.CancelFunc){
		"its order": func(_ *hooked, cancel context.CancelFunc) { cancel() },
		"its leader": func(h *hooked, _ context.CancelFunc) {
			if err := h.agent.Follow(h.Context(), 2); err != nil {
				h.Error(err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			h := newHooked(t, 0)
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			h.script("10", "#!/bin/sh\nexec >$PIPE; echo; sleep 1000 & sleep 1000", 0o700)
			h.script("20", "#!/bin/sh\necho it ran >$AFTER", 0o700)
			after := filepath.Join(t.TempDir(), "after")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := h.run(ctx, map[string]string{"PIPE": pipe, "AFTER": after, "PATH": "/bin:/usr/bin"})
				ended <- err
			}()
			f, err := os.Open(pipe)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close() //nolint:errcheck // it was only read
			if _, err := f.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			end(h, cancel)
			select {
			case err := <-ended:
				if err == nil {
					t.Error("it succeeded")
				}
			case <-time.After(testkit.Patience()):
				t.Fatal("it goes on")
			}
			if n, err := f.Read(make([]byte, 1)); n > 0 || err == nil {
				t.Errorf("what it began goes on: %d, %v", n, err)
			}
			if _, err := os.Stat(after); err == nil {
				t.Error("the next one ran")
			}
		})
	}
}
