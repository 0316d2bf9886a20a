// Package simulate lives through histories of a whole group (internal/sim/world) and holds
// them to what must be true of all: some in each run of the tests, in whatever order
// goroutines happen to run; many by command drive, where a seed is one history.
package simulate
