package agent

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/testkit"
)

// installing runs a creation script and waits for its outcome, for a time in
// which nothing that the scripts of these tests leave behind comes to its end.
func installing(ctx context.Context, t *testing.T, script string) error {
	t.Helper()
	a := testAgent(t)
	writeOS(t, a, "os", map[string]string{"ganeti_api_version": "20\n", "create": "#!/bin/sh\n" + script})
	done := make(chan error, 1)
	go func() {
		done <- a.Install(ctx, Order{}, hypervisor.Spec{UUID: "uuid", Name: "one"}, "os", nil, func(string) {})
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(testkit.Patience()):
		t.Fatal("the script holds up its job")
		return nil
	}
}

func TestBackgroundChildDoesNotHoldUpTheJob(t *testing.T) {
	if err := installing(t.Context(), t, "sleep 600 &\nexit 0\n"); err != nil {
		t.Errorf("a script that succeeded: %v", err)
	}
	if err := installing(t.Context(), t, "sleep 600 &\necho broken\nexit 3\n"); err == nil || !strings.HasSuffix(err.Error(), "\nbroken") {
		t.Errorf("a script that failed: %v", err)
	}
}

// TestKilledScriptTakesItsChildrenAlong ends a job whose script waits for a
// child. Both hold a pipe open, whose end shows that neither is left.
func TestKilledScriptTakesItsChildrenAlong(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		defer stop()
		r, err := os.Open(pipe) // when the script opens it
		if err == nil {
			_, err = r.Read(make([]byte, 1))
		}
		stop()
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		gone <- err
	}()
	if err := installing(ctx, t, "exec 3> "+pipe+"\nsleep 600 &\necho begun >&3\nwait\n"); !fault.Is(err, fault.Canceled) {
		t.Errorf("a killed script: %v", err)
	}
	select {
	case err := <-gone:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(testkit.Patience()):
		t.Error("the child of a killed script goes on")
	}
}

func TestOutputIsKeptWithinBounds(t *testing.T) {
	err := installing(t.Context(), t, "yes 'one line of very many' | head -c 30000000\nprintf '\\nthe\\377 end'\nexit 1\n")
	if err == nil || !strings.HasSuffix(err.Error(), "\nthe\uFFFD end") || len(err.Error()) > keptOutput {
		t.Errorf("%v", err)
	}
	err = installing(t.Context(), t, "head -c 30000000 /dev/zero | tr '\\0' x\nexit 1\n")
	if err == nil || !strings.Contains(err.Error(), "\n[...]xxx") || len(err.Error()) > 2*keptOutput {
		t.Errorf("one long line: %.200v", err)
	}
}

// TestTail compares with keeping everything.
func TestTail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		out := &tail{limit: rapid.IntRange(1, 20).Draw(t, "limit")}
		all := ""
		for range rapid.IntRange(0, 10).Draw(t, "writes") {
			piece := rapid.StringMatching("[a-c\n]{0,30}").Draw(t, "piece")
			all += piece
			if n, err := out.Write([]byte(piece)); n != len(piece) || err != nil {
				t.Fatalf("%d, %v", n, err)
			}
		}
		if want := all[max(0, len(all)-out.limit):]; string(out.kept) != want || out.cut != (len(all) > out.limit) {
			t.Fatalf("kept %q of %q, cut %v", out.kept, all, out.cut)
		}
	})
}
