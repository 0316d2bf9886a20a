package kvm

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-project/drover/internal/hypervisor"
)

// seeds is how large the CD of the running machine is in bytes, as QEMU sees it; 0 if there is none.
func (n *node) seeds(d *Driver) int64 {
	n.Helper()
	var nodes []struct {
		Name  string `json:"node-name"`
		RO    bool   `json:"ro"`
		Image struct {
			Size int64 `json:"virtual-size"`
		}
	}
	if err := d.things[uuid].running().do(n.Context(), "query-named-block-nodes", nil, &nodes); err != nil {
		n.Fatal(err)
	}
	for _, one := range nodes {
		if one.Name == "seed-content" {
			if !one.RO {
				n.Error("the guest may write on its seed")
			}
			return one.Image.Size
		}
	}
	return 0
}

// TestSeed: what a machine was given it has at each start, also by a driver that comes later, until it is taken away or the machine is removed.
func TestSeed(t *testing.T) {
	n := newNode(t)
	d := n.open()
	spec := n.guest(d)
	path := filepath.Join(n.dir, "kvm", uuid, seedFile)
	cd := bytes.Repeat([]byte("CD"), 40<<10)
	for _, step := range []struct {
		give []byte
		want int64
	}{{nil, 0}, {cd, 80 << 10}, {cd[:64<<10], 64 << 10}, {nil, 0}, {cd, 80 << 10}} {
		if err := d.Seed(t.Context(), one, step.give); err != nil {
			t.Fatal(err)
		}
		d = n.open()
		n.start(d, spec)
		if got := n.seeds(d); got != step.want {
			t.Errorf("QEMU sees a seed of %d bytes, want %d", got, step.want)
		}
		if info, err := os.Stat(path); step.want > 0 && (err != nil || info.Mode().Perm() != 0o600) {
			t.Errorf("the seed's file: %v, %v", info, err)
		}
		if _, err := d.Stop(t.Context(), one, hypervisor.Stop{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Remove(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("behind the removal: %v", err)
	}
}
