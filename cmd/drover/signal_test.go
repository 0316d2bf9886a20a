package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/testkit"
)

// TestReadingCommandsCanBeInterrupted sends signals to commands that wait for
// input which never comes.
func TestReadingCommandsCanBeInterrupted(t *testing.T) {
	t.Parallel()
	for _, words := range []string{"filter test -", "job submit -", "yaql eval --data - 1", "yaql eval --jsonl", "yaql repl"} {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			cmd, started := waiting(t, words)
			<-started
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
				t.Errorf("%s, after %v: %v", words, sig, err)
			}
		}
	}
}

// TestFollowingEndsWithItsReader follows a list that does not change, and leaves.
func TestFollowingEndsWithItsReader(t *testing.T) {
	t.Parallel()
	run := clusterCommands(t, 1)
	cmd := run("node", "list", "--watch")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	exit, ok := errors.AsType[*exec.ExitError](cmd.Wait())
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGPIPE {
		t.Errorf("it ended with %v", exit)
	}
}

// clusterCommands starts a cluster, and makes commands that talk to it, for the time of a test.
func clusterCommands(t *testing.T, nodes int) func(words ...string) *exec.Cmd {
	t.Helper()
	dir, stop, err := cluster(nodes)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("drover")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*testkit.Patience())
	t.Cleanup(cancel)
	return func(words ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, program, words...)
		cmd.Env = append(os.Environ(), "DROVER_LUXI="+filepath.Join(dir, "luxi.sock"))
		return cmd
	}
}

// waiting starts a command whose input stays open without anything in it. The
// channel is closed when the command reads it.
func waiting(t *testing.T, words string) (cmd *exec.Cmd, started <-chan struct{}) {
	t.Helper()
	program, err := exec.LookPath("drover")
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.CommandContext(t.Context(), program, strings.Fields(words)...)
	cmd.WaitDelay = time.Minute
	cmd.Env = append(os.Environ(), "DROVER_LUXI=/nonexistent/luxi.sock")
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	reads := make(chan struct{})
	go func() {
		defer close(reads)
		// A pipe that is full takes more when somebody has begun to read it.
		_, _ = input.Write([]byte(strings.Repeat("\n", 1<<16+1)))
	}()
	return cmd, reads
}
