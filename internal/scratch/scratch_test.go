package scratch_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/drover-project/drover/internal/scratch"
)

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// TestWhatIsNobodysGoes, and nothing else: neither what a process has, nor what has another name, belongs to somebody else or is no file.
func TestWhatIsNobodysGoes(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	d, err := scratch.NewDir(dir, ".x-")
	if err != nil {
		t.Fatal(err)
	}
	f, err := scratch.NewFile(dir, ".x-")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, ".x-left", "below"), filepath.Join(dir, "other"), filepath.Join(dir, ".x-foreign")} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{filepath.Join(dir, ".x-left", "below", "file"), filepath.Join(dir, ".x-file"), filepath.Join(dir, ".y-file"), filepath.Join(d.Path, "content"), filepath.Join(elsewhere, "kept")} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(elsewhere, filepath.Join(dir, ".x-link")); err != nil {
		t.Fatal(err)
	}
	want := []string{".x-link", ".y-file", filepath.Base(d.Path), filepath.Base(f.Name()), "other"}
	if os.Geteuid() == 0 {
		if err := os.Chown(filepath.Join(dir, ".x-foreign"), 1, 1); err != nil {
			t.Fatal(err)
		}
		want = append(want, ".x-foreign")
	}
	slices.Sort(want)
	scratch.Clear(dir, ".x-")
	scratch.Clear(filepath.Join(dir, "nosuch"), ".x-")
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("there are %q, want %q", got, want)
	}
	if got := append(names(t, elsewhere), names(t, d.Path)...); !slices.Equal(got, []string{"kept", "content"}) {
		t.Errorf("behind a link and in what is in use there are %q", got)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(); err != nil {
		t.Fatal(err)
	}
	scratch.Clear(dir, ".x-")
	if got := names(t, dir); slices.Contains(got, filepath.Base(f.Name())) || slices.Contains(got, filepath.Base(d.Path)) {
		t.Errorf("what was given up is there: %q", got)
	}
}

// TestWhatIsMadeIsThere: also while others clear all the time, who may come between its making and its lock.
func TestWhatIsMadeIsThere(t *testing.T) {
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	var clearing sync.WaitGroup
	defer clearing.Wait()
	defer stop()
	for range 3 {
		clearing.Go(func() {
			for ctx.Err() == nil {
				scratch.Clear(dir, ".x-")
			}
		})
	}
	for range 300 {
		d, err := scratch.NewDir(dir, ".x-")
		if err != nil {
			t.Fatal(err)
		}
		f, err := scratch.NewFile(dir, ".x-")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{d.Path, f.Name()} {
			if _, err := os.Stat(path); err != nil {
				t.Errorf("it was removed: %v", err)
			}
		}
		_ = f.Close()
		if err := d.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := scratch.NewDir(filepath.Join(dir, "nosuch"), ".x-"); !os.IsNotExist(err) {
		t.Errorf("in no directory: %v", err)
	}
}
