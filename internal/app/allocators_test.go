package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// programs makes a directory with programs of these texts, for sh.
func programs(t *testing.T, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A program is asked by a file, with options, and what it says comes back; one that fails, hangs, floods or is not there is told of, and leaves nothing.
func TestAllocatorPrograms(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := programs(t, map[string]string{
		"good": `cat "$1"; shift; echo "$@"`, "bad": "echo out; echo err >&2; exit 3", "flood": "yes", "hang": "sleep 600 & sleep 600",
		"closes": "exec 1>&- 2>&-; sleep 600",
	})
	if err := os.WriteFile(filepath.Join(dir, "plain"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a := newAllocators("/nonexistent::" + dir)
	a.most = 1 << 16
	out, err := a.Run(t.Context(), "good", []string{"--a", "--b=c"}, []byte("asked "))
	if string(out) != "asked --a --b=c\n" || err != nil {
		t.Fatalf("%q, %v", out, err)
	}
	for name, want := range map[string]string{
		"bad": "iallocator module 'bad' failed: exit status 3, output 'err\nout'", "flood": "iallocator module 'flood' failed: it said more than 65536 bytes",
		"nosuch": "iallocator module 'nosuch' not found in the search path", "plain": "'plain' not found", "../" + filepath.Base(dir) + "/good": "not found", ".": "not found", "": "not found",
	} {
		if _, err := a.Run(t.Context(), name, nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s comes to %v", name, err)
		}
		if there := name == "bad" || name == "flood"; a.Has(name) != there {
			t.Errorf("there is %q: %t", name, !there)
		}
	}
	a.patience = 200 * time.Millisecond
	for _, name := range []string{"hang", "closes"} {
		if _, err := a.Run(t.Context(), name, nil, nil); err == nil || !strings.Contains(err.Error(), "failed: it took longer than 200ms") {
			t.Errorf("%s comes to %v", name, err)
		}
	}
	if files, err := filepath.Glob(filepath.Join(os.TempDir(), "drover-iallocator.*")); err != nil || len(files) > 0 {
		t.Errorf("left are %v, %v", files, err)
	}
	if newAllocators("").Has("good") {
		t.Error("there are programs without a directory")
	}
}
