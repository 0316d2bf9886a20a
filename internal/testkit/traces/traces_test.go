package traces

import (
	"os"
	"os/exec"
	"path/filepath"
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
	if out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", Marks(file, "one", 2)).CombinedOutput(); err != nil {
		t.Fatal(err, out)
	}
	if runs, wrong := Read(t, file); len(runs) != 1 || runs[0].Marks != 2 || wrong != nil {
		t.Errorf("%v, %q", runs, wrong)
	}
}
