package main

import (
	"context"
	"maps"
	"slices"

	"github.com/drover-project/drover/internal/fault"
)

// repeat lives through seeds in two processes each, in the second from the last one to the
// first, and tells which are two histories.
func (d driver) repeat(ctx context.Context, seeds, from uint64, shape string) error {
	if err := d.testOrder(ctx); err != nil {
		return err
	}
	program, err := d.build(ctx, "healthy", nil)
	if err != nil {
		return err
	}
	from = d.first(from)
	ways := [2]*repeated{{hashes: map[uint64]told{}}, {hashes: map[uint64]told{}, back: true}}
	errs := make(chan error, len(ways))
	for _, w := range ways {
		go func() { errs <- w.all(ctx, program, task{From: from, Count: seeds, Shape: shape}) }()
	}
	for range ways {
		if err := <-errs; err != nil {
			return err
		}
	}
	return d.tellDifferences(ways[0].hashes, ways[1].hashes)
}

// repeated is what seeds came to, lived through in one direction.
type repeated struct {
	back   bool
	hashes map[uint64]told
}

// all lives through seeds, a portion to a process; one that ends its process is the last of its portion.
func (r *repeated) all(ctx context.Context, program string, do task) error {
	do.Back = r.back
	for end := do.From + do.Count; do.From < end && ctx.Err() == nil; do.From += portion {
		do.Count = min(portion, end-do.From)
		o, err := child(ctx, program, do)
		if err != nil {
			return err
		}
		for _, h := range o.histories {
			r.hashes[h.seed] = h
		}
	}
	return nil
}

// tellDifferences compares what seeds came to, each the first and the second time.
func (d driver) tellDifferences(first, second map[uint64]told) error {
	compared, different := 0, 0
	for _, seed := range slices.Sorted(maps.Keys(first)) {
		again, there := second[seed]
		if !there {
			continue // its process ended before it
		}
		compared++
		if was := first[seed]; was != again {
			different++
			d.sayf("seed %d is two histories: %s (%s) and %s (%s)", seed, was.hash, was.broken, again.hash, again.broken)
		}
	}
	d.sayf("%d seeds, %d differences", compared, different)
	if different > 0 {
		return fault.New(fault.Failed, "%d of %d seeds are two histories", different, compared)
	}
	return nil
}
