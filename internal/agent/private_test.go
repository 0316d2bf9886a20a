package agent

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// TestWhatATaskReadsIsPrivateWhileItRuns: its parameters hold passwords, and the files are gone when it has ended.
func TestWhatATaskReadsIsPrivateWhileItRuns(t *testing.T) {
	mask := syscall.Umask(0o022)
	defer syscall.Umask(mask)
	dir := t.TempDir()
	a := tasked(t, dir)
	if err := os.MkdirAll(filepath.Join(dir, programsDir), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, programsDir, "mytool"), []byte("#!/bin/sh\nexec stat -L -c '%F %a' /proc/self/fd/0\n"), 0o700); err != nil { // a program
		t.Fatal(err)
	}
	for i, kind := range []string{"shell", "mytool"} {
		out := &lines{}
		task := aTask(i, kind, map[string]any{"cmd": "stat -c '%F %a' \"$0\""})
		if err := a.RunTask(t.Context(), Order{Epoch: 1}, task, out.add); err != nil {
			t.Fatal(err)
		}
		if want := "regular file 600"; !slices.Contains(out.all, want) {
			t.Errorf("a task of type %s reads %q, want %q", kind, out.all, want)
		}
	}
}
