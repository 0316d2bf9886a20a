package image_test

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/image"
	"github.com/drover-project/drover/internal/testkit"
)

// TestABackupDoesNotFillItsDisk, which may be that of the store: it is given up before, and leaves nothing.
func TestABackupDoesNotFillItsDisk(t *testing.T) {
	dir := testkit.SmallDisk(t, "16m")
	all := &image.Image{Revision: 7, Objects: func(yield func(store.Object, error) bool) {
		for i := range 12 {
			var value bytes.Buffer
			for value.Len() < 1<<20 {
				value.WriteString(rand.Text())
			}
			if !yield(store.Object{Key: store.Key{Kind: "job", ID: strconv.Itoa(i + 1)}, Revision: 7, Value: value.Bytes()}, nil) {
				return
			}
		}
	}}
	for _, name := range []string{"plain", "small" + image.Compressed} {
		if _, err := image.Create(filepath.Join(dir, name), all, time.Now(), false); !fault.Is(err, fault.Exhausted) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind is %v, %v", left, err)
	}
	if _, err := image.Create(filepath.Join(t.TempDir(), "roomy"), all, time.Now(), false); err != nil {
		t.Errorf("with room: %v", err)
	}
}

// TestWhatAKilledBackupLeftGoes with the next one.
func TestWhatAKilledBackupLeftGoes(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".drover-backup-1"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	none := &image.Image{Revision: 7, Objects: func(func(store.Object, error) bool) {}}
	if _, err := image.Create(filepath.Join(dir, "b"), none, time.Now(), false); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "b" {
		t.Errorf("there are %v, %v", left, err)
	}
}
