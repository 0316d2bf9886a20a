package app_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/app"
)

// TestARestoredStoreRebuildsNothing: a rebuild was asked for, and waited, when the store was backed up. The store itself goes on with it; where the backup was restored
// it may have been done long ago, with what was written since.
func TestARestoredStoreRebuildsNothing(t *testing.T) {
	dir, restored := t.TempDir(), t.TempDir()
	o := app.Options{Data: dir, Compute: "127.0.0.1:0"}
	c := computeOf(t, startWith(t, o))
	id := c.createOf("1", "nova")
	c.call(t, "SetDrainFlag", nil, true)
	c.request(http.MethodPost, c.ready.Compute+"/servers/"+id+"/action", map[string]any{"rebuild": map[string]any{"imageRef": "5d7d4e4c-6f4c-4c8b-9a52-0d1f6c0e5a01"}}, nil, http.StatusAccepted)
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "backup")
	must(t, app.BackupCommand(), "create", file, "--at", dir)
	must(t, app.BackupCommand(), "restore", file, "--at", restored)
	for data, is := range map[string]func(row []string) bool{
		dir:      func(row []string) bool { return row[0] == "ACTIVE" && row[1] == "" },
		restored: func(row []string) bool { return row[0] == "ERROR" && strings.Contains(row[2], "restored") },
	} {
		o.Data = data
		c := &compute{T: t, cluster: startWith(t, o)}
		c.call(t, "SetDrainFlag", nil, false)
		c.until("server", []string{"status", "task", "fault"}, id, is)
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}
}
