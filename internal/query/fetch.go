package query

import "iter"

// The rows of a large inventory are not in the processor's caches, and a test
// or a cell would wait for the memory once for each row. Rows are taken by
// blocks instead: reading a word of each row of a block right after each other
// waits once for all. A scan of 100,000 instances takes half as long.

// blockSize is how many rows are fetched together: some more than a processor
// has reads under way at once.
const blockSize = 16

// blocks yields the rows by blocks, each fetched as far as filters mostly need,
// in a slice that is the same each time.
func (t *Table[R]) blocks(rows iter.Seq[R]) iter.Seq[[]R] {
	return func(yield func([]R) bool) {
		block := make([]R, 0, blockSize)
		for r := range rows {
			if block = append(block, r); len(block) < blockSize {
				continue
			}
			fetch(block, t.Touch)
			if !yield(block) {
				return
			}
			block = block[:0]
		}
		yield(block)
	}
}

// fetch brings rows into the caches. touch reads a word of a row; nil for items
// that are few or small.
func fetch[R any](rows []R, touch func(R) int) {
	if touch == nil {
		return
	}
	for _, r := range rows {
		took(touch(r))
	}
}

// took is where words go that were read for their own sake: a compiler may
// leave out a read whose result nobody takes.
//
//go:noinline
func took(int) {}
