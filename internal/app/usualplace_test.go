package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/sealed"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/image"
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

// TestABackupIsRestoredWhereTheConfigurationSays that the controller of this machine has its store, which is told; with the file of its keys.
func TestABackupIsRestoredWhereTheConfigurationSays(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "drover.toml")
	for _, c := range []struct{ text, place, keys, told string }{
		{"", "/var/lib/drover", "/var/lib/drover/key", "/var/lib/drover"},
		{"data = \"/data\"\n", "/data", "/data/key", "/data"},
		{"data = \"/data\"\nkey-file = \"/etc/drover/key\"\n", "/data", "/etc/drover/key", "/data"},
		{"data = \"/data\"\nstore = \"postgres://drover:secret@db.example/drover\"\n", "postgres://drover:secret@db.example/drover", "/data/key", "postgres://drover:xxxxx@db.example/drover"},
	} {
		if c.text != "" {
			if err := os.WriteFile(config, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := BackupCommand()
		var told strings.Builder
		cmd.SetErr(&told)
		place, keys, err := placeToMake(cmd, "", config)
		if err != nil || place != c.place || keys != c.keys || told.String() != "the store is made in "+c.told+"\n" {
			t.Errorf("%q: %s, %s, %v; told is %q", c.text, place, keys, err, told.String())
		}
		if place, keys, err := placeToMake(cmd, "/elsewhere", config); err != nil || place != "/elsewhere" || keys != "" {
			t.Errorf("what is named: %s, %s, %v", place, keys, err)
		}
	}
	if err := os.WriteFile(config, []byte("stor = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if place, _, err := placeToMake(BackupCommand(), "", config); !fault.Is(err, fault.Invalid) {
		t.Errorf("a configuration with mistakes: %q, %v", place, err)
	}
	if f := restoreBackup().Flag("at"); f.DefValue != "" {
		t.Errorf("--at is %s by itself", f.DefValue)
	}
}

// TestTheKeysThatARestoreLacks are looked for in the file that the configuration names.
func TestTheKeysThatARestoreLacks(t *testing.T) {
	dir := t.TempDir()
	file, keys := filepath.Join(dir, "backup"), filepath.Join(dir, "keys")
	img := &image.Image{Revision: 7, Objects: func(yield func(store.Object, error) bool) {
		yield(store.Object{Key: store.Key{Kind: sealed.KindKey, ID: "3f2a9c41d07e"}, Revision: 7, Value: []byte(`{}`)}, nil)
	}}
	if _, err := image.Create(file, img, time.Now(), false); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ place, keys, want string }{
		{dir, "", filepath.Join(dir, keyName)}, {dir, keys, keys}, {"postgres://db.example/drover", keys, keys}, {"postgres://db.example/drover", "", "its controllers"},
	} {
		if text, err := lackedAt(file, c.place, c.keys); err != nil || !strings.Contains(text, c.want) {
			t.Errorf("%s with %q: %q, %v", c.place, c.keys, text, err)
		}
	}
}
