package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
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
