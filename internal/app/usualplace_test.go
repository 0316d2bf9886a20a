package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store/sqlite"
)

// TestTheStoreOfThisMachineIsFound where its configuration says that it is, or where `drover dev` has it.
func TestTheStoreOfThisMachineIsFound(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_STATE_HOME", home)
	config := filepath.Join(home, "drover.toml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	here := filepath.Join(home, "here")
	write("data = \"" + here + "\"\n")
	if got, err := usualPlace(config); !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), here) {
		t.Errorf("none: %q, %v", got, err)
	}
	made := func(dir string) {
		t.Helper()
		s, err := sqlite.Open(filepath.Join(dir, storeDir), sqlite.Options{})
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() { made(DefaultData()) }, DefaultData()},
		{func() { made(here) }, here},
		{func() { write("store = \"postgres://db.example/drover\"\n") }, "postgres://db.example/drover"},
	} {
		step.do()
		if got, err := usualPlace(config); err != nil || got != step.want {
			t.Errorf("%q, %v instead of %q", got, err, step.want)
		}
	}
	write("stor = 1\n")
	if got, err := usualPlace(config); !fault.Is(err, fault.Invalid) {
		t.Errorf("a configuration with mistakes: %q, %v", got, err)
	}
}

// TestABackupIsOfThisMachinesStore where nothing says of which it is.
func TestABackupIsOfThisMachinesStore(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	s, err := sqlite.Open(filepath.Join(DefaultData(), storeDir), sqlite.Options{})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := BackupCommand()
	var told strings.Builder
	cmd.SetOut(&told)
	cmd.SetErr(&told)
	cmd.SetArgs([]string{"create", filepath.Join(t.TempDir(), "backup")})
	if err := cmd.Execute(); err != nil || !strings.Contains(told.String(), DefaultData()) {
		t.Errorf("%v\n%s", err, told.String())
	}
}
