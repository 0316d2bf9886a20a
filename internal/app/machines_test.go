package app

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoTinyGuest: where none can be made people are told, and the cluster is made without.
func TestNoTinyGuest(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(cache, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", cache)
	var o Options
	var told bytes.Buffer
	if err := o.bootsTiny(t.Context(), &told); err != nil || o.HVParams != nil || !strings.Contains(told.String(), "machines start from their disks") {
		t.Errorf("%v, %v, told is %q", err, o.HVParams, &told)
	}
}
