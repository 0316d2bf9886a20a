package qemuimg

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/testkit"
)

func TestAllIsSaid(t *testing.T) {
	f := File{Path: "/a,file.filename=/etc/shadow", Format: "qcow2", Base: &File{Path: "/b", Format: "raw"}}
	want := "driver=qcow2,file.driver=file,file.filename=/a,,file.filename=/etc/shadow,backing.driver=raw,backing.file.driver=file,backing.file.filename=/b"
	if got := f.Options(); got != want {
		t.Errorf("%s", got)
	}
}

func TestRun(t *testing.T) {
	if _, err := exec.LookPath("qemu-img"); err != nil {
		testkit.Missingf(t, "qemu-img is not installed")
	}
	path := filepath.Join(t.TempDir(), "with,comma and space")
	if err := Run(t.Context(), "create", "-q", "-f", "qcow2", "--", path, "1M"); err != nil {
		t.Fatal(err)
	}
	f := File{Path: path, Format: "qcow2"}
	if err := Run(t.Context(), "resize", "-q", "--image-opts", "--", f.Options(), "2M"); err != nil {
		t.Error(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	err := Run(t.Context(), "resize", "-q", "--image-opts", "--", f.Options(), "2M")
	if !fault.Is(err, fault.Failed) || !strings.Contains(err.Error(), "No such file") {
		t.Error(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := Run(ctx, "--version"); !fault.Is(err, fault.Canceled) {
		t.Error(err)
	}
	t.Setenv("PATH", t.TempDir())
	if err := Run(t.Context(), "--version"); !fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), "qemu-img is not on the node") {
		t.Error(err)
	}
}
