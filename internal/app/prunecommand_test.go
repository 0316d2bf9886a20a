package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/image"
)

// TestPruneCommand: it says what it would do, does that when it is told to, a second time nothing, and its status tells of a backup that
// is not whole.
func TestPruneCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all []string
	for day, name := range []string{"one", "two", "three"} {
		path := filepath.Join(dir, name)
		img := &image.Image{Revision: 1, Objects: func(func(store.Object, error) bool) {}}
		if _, err := image.Create(path, img, time.Date(2030, 1, 1+day, 0, 0, 0, 0, time.UTC), false); err != nil {
			t.Fatal(err)
		}
		all = append(all, path)
	}
	there := func() (n int) {
		for _, path := range all {
			if _, err := os.Stat(path); err == nil {
				n++
			}
		}
		return n
	}
	for _, keep := range []string{"0", "-1"} {
		if _, err := command(t, app.BackupCommand(), "prune", dir, "--keep", keep, "--yes"); !fault.Is(err, fault.Invalid) {
			t.Errorf("--keep %s: %v", keep, err)
		}
	}
	if _, err := command(t, app.BackupCommand(), "prune", dir, "--yes"); !fault.Is(err, fault.Invalid) {
		t.Errorf("without --keep: %v", err)
	}
	would := all[0] + ", made 2030-01-01T00:00:00Z, would be removed\n1 would be removed, 2 kept\nnothing was changed: say --yes\n"
	if out := must(t, app.BackupCommand(), "prune", dir, "--keep", "2"); out != would || there() != 3 {
		t.Errorf("it would do %q, and %d are there", out, there())
	}
	did := all[0] + ", made 2030-01-01T00:00:00Z, removed\n1 removed, 2 kept\n"
	if out := must(t, app.BackupCommand(), "prune", dir, "--keep", "2", "--yes"); out != did || there() != 2 {
		t.Errorf("it does %q, and %d are there", out, there())
	}
	if out := must(t, app.BackupCommand(), "prune", dir, "--keep", "2", "--yes"); out != "0 removed, 2 kept\n" || there() != 2 {
		t.Errorf("a second time it does %q, and %d are there", out, there())
	}
	text, err := os.ReadFile(all[2])
	if err == nil {
		err = os.WriteFile(all[2], text[:len(text)-5], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := command(t, app.BackupCommand(), "prune", dir, "--keep", "1", "--yes")
	if !fault.Is(err, fault.WrongState) || !strings.Contains(err.Error(), all[2]) || out != "0 removed, 1 kept\n" || there() != 2 {
		t.Errorf("of one that is not whole: %v, %q, and %d are there", err, out, there())
	}
}
