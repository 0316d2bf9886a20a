//go:build simulation

package order

import _ "unsafe" // for linkname

// Repeats tells whether a seed is one order.
const Repeats = true

// Begin begins the order of a seed.
func Begin(seed uint64) { simBegin(seed) }

// End ends it. steps is how often a goroutine was chosen, and digest is of all choices:
// two histories with the same one had the same order.
func End() (steps, digest uint64) { return simEnd() }

//go:linkname simBegin runtime.simBegin
func simBegin(seed uint64)

//go:linkname simEnd runtime.simEnd
func simEnd() (steps, digest uint64)
