package store

import (
	"context"
	"iter"
	"time"

	"github.com/drover-project/drover/internal/readlease"
)

// Shared is a store that several controllers use at the same time, each through a
// handle of its own. One of them leads, by a lease; the others follow what it commits.
// Package storetest checks this contract too (RunShared).
type Shared interface {
	Store

	// Follow is Watch for readers who also want to know of transactions that changed
	// nothing: a revision may be waited for that is one of those. It tells of what was
	// committed through any handle.
	Follow(ctx context.Context, after Revision) iter.Seq2[Progress, error]

	// Lease returns a lease as it is: without a holder when it was released;
	// fault.NotFound if nobody ever had it.
	Lease(ctx context.Context, name string) (Lease, error)

	// Clock reads the clock by which leases expire.
	Clock(ctx context.Context) (time.Time, error)

	// AwaitLease waits until a lease can be acquired, and acquires it: when it is
	// released or has expired, or as soon as the store notices that the process which
	// acquired it is gone. One that was taken from a holder who did not give it up is
	// returned after a time to linger, in which that holder may still think that it has it.
	AwaitLease(ctx context.Context, name, holder string, ttl, linger time.Duration) (Lease, error)

	// HandLease gives a lease up in favour of another holder, who has so long to
	// acquire it before others may; fault.Fenced if it is lost already.
	HandLease(ctx context.Context, lease Lease, to string, ttl time.Duration) error

	// Lend has batches wait, from the next one on, for read leases that a lessor has
	// granted: none is committed through this handle while one runs, and none is granted
	// between the commit of a batch and its answers. Nil for none.
	Lend(l *readlease.Lessor)
}
