// Package order makes the order of goroutines, of cases of select, of timers and of maps
// a function of a seed. It does so in a program that is built with the tag simulation and
// the overlay of package overlay, on one processor (GOMAXPROCS=1); in any other it does
// nothing, and the same test runs in an order that does not come again.
package order
