// Package backoff says how long to leave alone what has just failed, or is not
// there yet: a little the first time, twice as long each further one, up to a bound.
//
// Invariants:
//   - A pause is never shorter than one after fewer failures, and never longer
//     than the longest, however many failures there were.
package backoff

import "time"

// Pauses are the pauses between tries of one thing: the first one, and the longest,
// both above zero.
type Pauses struct{ First, Longest time.Duration }

// After is how long to wait after so many failures in a row, counted from 1.
func (p Pauses) After(failures int) time.Duration {
	pause := min(p.First, p.Longest)
	for range failures - 1 {
		if pause > p.Longest/2 {
			return p.Longest
		}
		pause *= 2
	}
	return pause
}
