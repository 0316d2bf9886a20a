package app

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/sqlite"
	"github.com/drover-project/drover/internal/tagsync"
)

// holding is a directory with a store that has objects.
func holding(t *testing.T, puts ...store.Put) string {
	t.Helper()
	dir := t.TempDir()
	s, err := sqlite.Open(filepath.Join(dir, storeDir), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Commit(t.Context(), s, store.Tx{Put: puts})
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
// may be on another cluster, under the name that comes from its number; also the first one of all.
func TestNumbersOfServersAreNotGivenAgain(t *testing.T) {
	five := store.Put{Key: store.Key{Kind: tagsync.KindServer, ID: "s"}, Value: []byte(`{"id":"s","number":5}`)}
	number := func(text string) store.Put { return store.Put{Key: tagsync.NumberKey, Value: []byte(text)} }
	floor := func(text string) store.Put { return store.Put{Key: tagsync.FloorKey, Value: []byte(text)} }
	for what, c := range map[string]struct {
		puts          []store.Put
		floor, number string
	}{
		"no server yet":                {nil, `{"number":1000000}`, ""},
		"seven servers":                {[]store.Put{five, number("7")}, `{"number":1000007}`, "1000007"},
		"a number that cannot be read": {[]store.Put{five, number("seven")}, `{"number":1000005}`, "seven"},
		"restored before":              {[]store.Put{number("7"), floor(`{"number":2000007}`)}, `{"number":3000007}`, "1000007"},
		"a floor that cannot be read":  {[]store.Put{number("7"), floor(`[]`)}, `{"number":1000007}`, "1000007"},
		"objects behind it":            {[]store.Put{number("7"), {Key: store.Key{Kind: tagsync.KindNumber, ID: "z"}, Value: []byte("1")}}, `{"number":1000007}`, "1000007"},
	} {
		t.Run(what, func(t *testing.T) {
			file, place := filepath.Join(t.TempDir(), "backup"), t.TempDir()
			if err := errors.Join(backUp(t, "create", file, "--at", holding(t, c.puts...)), backUp(t, "restore", file, "--at", place)); err != nil {
				t.Fatal(err)
			}
			s, err := sqlite.Open(filepath.Join(place, storeDir), sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}()
			for key, want := range map[store.Key]string{tagsync.FloorKey: c.floor, tagsync.NumberKey: c.number} {
				o, err := s.Get(t.Context(), key)
				if string(o.Value) != want || (err == nil) != (want != "") {
					t.Errorf("%s is restored as %s, %v; want %s", key.ID, o.Value, err, want)
				}
			}
		})
	}
}
