package app

import (
	"path/filepath"
	"testing"

	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/sqlite"
	"github.com/drover-project/drover/internal/tagsync"
)

// numbered is a directory with a store whose newest server has a number.
func numbered(t *testing.T, number string) string {
	t.Helper()
	dir := t.TempDir()
	s, err := sqlite.Open(filepath.Join(dir, storeDir), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Commit(t.Context(), s, store.Tx{Put: []store.Put{{Key: tagsync.NumberKey, Value: []byte(number)}}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// backUp runs `drover backup` with arguments.
func backUp(t *testing.T, args ...string) error {
	t.Helper()
	cmd := BackupCommand()
	cmd.SetArgs(args)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	return cmd.ExecuteContext(t.Context())
}

// TestNumbersOfServersAreNotGivenAgain: a server that was made after the backup
// may be on another cluster, under the name that comes from its number.
func TestNumbersOfServersAreNotGivenAgain(t *testing.T) {
	for number, want := range map[string]string{"7": "1000007", "seven": ""} {
		file, place := filepath.Join(t.TempDir(), "backup"), t.TempDir()
		if err := backUp(t, "create", file, "--at", numbered(t, number)); err != nil {
			t.Fatal(err)
		}
		if err := backUp(t, "restore", file, "--at", place); (err != nil) != (want == "") {
			t.Fatalf("restoring %s: %v", number, err)
		}
		if want == "" {
			continue
		}
		s, err := sqlite.Open(filepath.Join(place, storeDir), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o, err := s.Get(t.Context(), tagsync.NumberKey)
		if err != nil || string(o.Value) != want {
			t.Errorf("restored is %s, %v", o.Value, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
