package storage

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// Begin checks what every call of a driver has checked: that somebody waits for it, and that there may be a disk of that id.
func Begin(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return fault.New(fault.Canceled, "nothing was done about disk %s: %w", id, err)
	}
	return CheckID(id)
}

// InDirectory lists the volumes of a driver that has a file for each in a directory, named by the disk's id and a suffix. Those that are
// NotFound when they are looked at were removed since, or are not whole.
func InDirectory(dir, suffix string, look func(id string) (Volume, error)) ([]Volume, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot list the directory of disks: %w", err)
	}
	out := []Volume{}
	for _, e := range entries {
		id, is := strings.CutSuffix(e.Name(), suffix)
		if !is || CheckID(id) != nil {
			continue
		}
		switch v, err := look(id); {
		case err == nil:
			out = append(out, v)
		case !fault.Is(err, fault.NotFound):
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b Volume) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}
