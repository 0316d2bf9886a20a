package wholefile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestNobodyElseReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("before"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("after")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "after" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestEverybodyReadsWhatIsShared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, text := range []string{"before", "after"} {
		if err := Share(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o444 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		if is, err := os.ReadFile(path); err != nil || string(is) != text {
			t.Errorf("%q, %v", is, err)
		}
	}
}

// TestWhatFailsLeavesWhatWasThere puts a file where a directory is.
func TestWhatFailsLeavesWhatWasThere(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.MkdirAll(filepath.Join(path, "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("text")); err == nil {
		t.Error("a directory was replaced")
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 || !all[0].IsDir() {
		t.Errorf("it leaves %v, %v", all, err)
	}
	if err := Write(filepath.Join(dir, "none", "f"), nil); err == nil {
		t.Error("there is no such directory")
	}
}
