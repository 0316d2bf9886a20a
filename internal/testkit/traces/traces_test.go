package traces

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

func TestTwoAtOnceAreSeen(t *testing.T) {
	for _, tc := range []struct {
		marks       string
		runs, wrong int
	}{
		{"", 0, 0},
		{"one a\none a\none b\none b\n", 2, 0},
		{"one a\ntwo b\none a\ntwo b\n", 2, 0},
		{"one a\none b\none a\none b\none a\n", 2, 2},
	} {
		file := filepath.Join(t.TempDir(), "marks")
		if err := os.WriteFile(file, []byte(tc.marks), 0o600); err != nil {
			t.Fatal(err)
		}
		if runs, wrong := Read(t, file); len(runs) != tc.runs || len(wrong) != tc.wrong {
			t.Errorf("%q: %v, %q", tc.marks, runs, wrong)
		}
	}
}

func TestMarksAreLeft(t *testing.T) {
	file := filepath.Join(t.TempDir(), "marks")
	end := Hold(t, file)
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", Marks(file, "one", 2))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for runs, _ := Read(t, file); len(runs) == 0 || runs[0].Marks < 4; runs, _ = Read(t, file) {
		runtime.Gosched()
	}
	end()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if runs, wrong := Read(t, file); len(runs) != 1 || runs[0].Marks < 4 || wrong != nil {
		t.Errorf("%v, %q", runs, wrong)
	}
}
