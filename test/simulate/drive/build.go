package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/sim/overlay"
)

// writeOverlay writes the overlay that makes a seed one history, with further changes.
func writeOverlay(ctx context.Context, dir string, more []overlay.Edit) (name string, err error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fault.New(fault.Environment, "cannot tell where Go is: %w", err)
	}
	edits, added := overlay.Runtime(strings.TrimSpace(string(root)))
	return overlay.Write(dir, append(edits, more...), added)
}

// below are changes of files of the tree at a root.
func below(root string, changes []overlay.Edit) []overlay.Edit {
	out := slices.Clone(changes)
	for i := range out {
		out[i].File = filepath.Join(root, filepath.FromSlash(out[i].File))
	}
	return out
}

// program is where the test is that build builds under a name.
func (d driver) program(name string) string {
	return filepath.Join(d.dir, filepath.FromSlash(name), "simulate.test")
}

// build builds the test that lives through histories, with changes of the code, and
// returns its path.
func (d driver) build(ctx context.Context, name string, changes []overlay.Edit) (program string, err error) {
	root, err := os.Getwd()
	if err != nil {
		return "", fault.New(fault.Environment, "cannot tell where this is: %w", err)
	}
	program = filepath.Join(root, d.program(name))
	file, err := writeOverlay(ctx, filepath.Join(filepath.Dir(program), "overlay"), below(root, changes))
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-tags", "simulation", "-overlay", file, "-o", program, "./test/simulate")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fault.New(fault.Environment, "cannot build the simulation: %w\n%s", err, out)
	}
	return program, nil
}

// testOrder tests what the order of a seed rests upon, by itself: those tests have nothing to say without the overlay.
func (d driver) testOrder(ctx context.Context) error {
	file, err := writeOverlay(ctx, filepath.Join(d.dir, "order"), nil)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-vet=off", "-tags", "simulation", "-overlay", file, "./internal/sim/order")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fault.New(fault.Failed, "a seed is not one order: %w\n%s", err, out)
	}
	return nil
}
