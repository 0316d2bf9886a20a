package app_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/tinyguest/tinyguesttest"
)

// TestATinyGuestIsMadeOnce: who asks for it is told where it is, and how machines start from it; what is there is not made anew.
func TestATinyGuestIsMadeOnce(t *testing.T) {
	guest := tinyguesttest.Guest(t)
	dir := filepath.Dir(filepath.Dir(guest.Kernel))
	out := must(t, app.ImageCommand(), "build-tiny", "--dir", dir)
	for _, want := range []string{guest.Version, "kernel  " + guest.Kernel, "initrd_path=" + guest.Initrd} {
		if !strings.Contains(out, want) || strings.Contains(out, "tiny guest:") {
			t.Errorf("it says\n%s\nand not %s", out, want)
		}
	}
	cmd := app.ImageCommand()
	cmd.PersistentFlags().String("output", "json", "")
	var told struct {
		HVParams map[string]string `json:"hvparams"`
	}
	if err := json.Unmarshal([]byte(must(t, cmd, "build-tiny", "--dir", dir)), &told); err != nil || told.HVParams["kernel_path"] != guest.Kernel || told.HVParams["initrd_path"] != guest.Initrd {
		t.Errorf("%+v, %v", told, err)
	}
}

// TestATinyGuestThatCannotBeMade leaves nothing, and says what is missing.
func TestATinyGuestThatCannotBeMade(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := filepath.Join(t.TempDir(), "guests")
	_, err := command(t, app.ImageCommand(), "build-tiny", "--dir", dir)
	if !fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), "apt") {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	if _, err := command(t, app.ImageCommand(), "build-tiny"); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "--dir") {
		t.Error(err)
	}
}
