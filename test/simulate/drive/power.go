package main

import (
	"context"
	"slices"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/sim/overlay"
)

// within is how many seeds a known fault is to be found in.
const within = 2000

// knownFault is a fault that the code once had, or could have: what of the code becomes
// what else.
type knownFault struct {
	name, what string
	edits      []overlay.Edit
}

// power has each known fault found, or those that are named.
func (d driver) power(ctx context.Context, names []string) error {
	chosen := knownFaults
	if len(names) > 0 {
		chosen = nil
		for _, f := range knownFaults {
			if slices.Contains(names, f.name) {
				chosen = append(chosen, f)
			}
		}
		if len(chosen) != len(names) {
			return fault.New(fault.Invalid, "of %v only %d are known faults", names, len(chosen))
		}
	}
	ill, err := d.healthy(ctx)
	if err != nil {
		return err
	}
	found := 0
	for _, f := range chosen {
		h, n, err := d.find(ctx, f, ill)
		switch {
		case err != nil:
			return err
		case h == nil:
			d.sayf("%-24s NOT FOUND in %d histories: %s", f.name, n, f.what)
		default:
			found++
			of, err := d.rate(ctx, f, ill)
			if err != nil {
				return err
			}
			d.sayf("%-24s found by seed %d, and by %d of the first %d (%s): %s", f.name, h.seed, of, first, h.broken, f.what)
		}
	}
	d.sayf("%d of %d known faults found", found, len(chosen))
	switch {
	case found < len(chosen):
		return fault.New(fault.Failed, "%d known faults were not found", len(chosen)-found)
	case len(ill) > 0:
		return fault.New(fault.Failed, "%d seeds fail without any known fault", len(ill))
	}
	return nil
}

// first is how many seeds are lived through to tell how often a fault is found.
const first = 200

// rate tells how many of the first seeds find a fault, of which the program is built.
func (d driver) rate(ctx context.Context, f knownFault, ill map[uint64]bool) (finds int, err error) {
	all := &tally{reached: map[string]int{}, troubles: map[uint64]string{}}
	if err := all.some(ctx, d.program("power/"+f.name), task{From: 1, Count: first}); err != nil {
		return 0, err
	}
	for _, h := range all.failed {
		if !ill[h.seed] {
			finds++
		}
	}
	return finds, nil
}

// healthy are the seeds that fail without any known fault: they find none.
func (d driver) healthy(ctx context.Context) (ill map[uint64]bool, err error) {
	program, err := d.build(ctx, "healthy", nil)
	if err != nil {
		return nil, err
	}
	all := &tally{reached: map[string]int{}, troubles: map[uint64]string{}}
	if err := all.some(ctx, program, task{From: 1, Count: within}); err != nil {
		return nil, err
	}
	ill = map[uint64]bool{}
	for _, h := range all.failed {
		d.sayf("seed %d fails without any known fault: %s", h.seed, h.broken)
		ill[h.seed] = true
	}
	return ill, nil
}

// find looks for a fault; nil if it was not found in so many histories.
func (d driver) find(ctx context.Context, f knownFault, ill map[uint64]bool) (*told, int, error) {
	program, err := d.build(ctx, "power/"+f.name, f.edits)
	if err != nil {
		return nil, 0, err
	}
	histories := 0
	for from := uint64(1); from <= within && ctx.Err() == nil; {
		o, err := child(ctx, program, task{From: from, Count: within - from + 1, Stop: true})
		if err != nil {
			return nil, 0, err
		}
		histories += len(o.histories)
		h := firstBroken(o)
		if h == nil || !ill[h.seed] {
			return h, histories, nil
		}
		from = h.seed + 1
	}
	return nil, histories, nil
}

func firstBroken(o *outcome) *told {
	i := slices.IndexFunc(o.histories, func(h told) bool { return h.broken != "" })
	if i < 0 {
		return nil
	}
	return &o.histories[i]
}
