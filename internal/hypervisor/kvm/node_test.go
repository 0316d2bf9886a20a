package kvm

import (
	"slices"
	"testing"
)

// TestTakes: a node tells which models of processors its QEMU runs as they are, and which firmware it has.
func TestTakes(t *testing.T) {
	n := newNode(t)
	d := n.open()
	d.cfg.firmware = []string{firmwares(t, map[string]string{"x": described("code", `"pc-q35-*"`, "")})}
	t.Setenv("PATH", t.TempDir())
	figures, err := d.Node(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	takes := figures.Takes
	if got, want := takes["firmware"], []string{"bios", "uefi"}; !slices.Equal(got, want) {
		t.Errorf("firmware: %q, want %q", got, want)
	}
	if got, want := takes["tpm"], []string{"none"}; !slices.Equal(got, want) {
		t.Errorf("tpm: %q, want %q", got, want)
	}
	models := takes["cpu_type"]
	for model, want := range map[string]bool{"max": true, "qemu64": true, "host": false, "nosuch": false} { // "host" takes KVM
		if slices.Contains(models, model) != want {
			t.Errorf("the model %s is among %q: %v", model, models, !want)
		}
	}
	for name, values := range takes {
		for _, value := range values {
			if err := (params{name: value}).check(); err != nil {
				t.Errorf("it tells that it takes %s=%s: %v", name, value, err)
			}
		}
	}
}
