// Package postgres is the store on PostgreSQL, for several controllers over one
// database. One goroutine writes; it commits whatever has queued up since the
// last commit, in two round trips and with one flush of the server.
//
// Invariants:
//   - The row of head is locked for the length of a batch: batches of several
//     controllers follow each other, and each is decided on what the one before
//     left. A take-over of the lease waits for the batch under way, and the next
//     one of the former leader is refused.
//   - A commit whose outcome is unknown, because the connection broke, is looked
//     up by its transaction's number, never guessed, and the batch is made once
//     (TestACommitThatWasNotAnsweredIsLookedUp). Where nobody can tell, it is not tried
//     again, and no read lease is granted any more.
//   - What others commit is heard of by one notification a batch. A notification
//     that was missed is found by its number at the next connection
//     (TestWhatTookLongIsTakenAsItIs).
//   - What the server refuses is answered at once; what passes is tried again
//     (TestOnlyARefusalIsAnsweredAtOnce).
package postgres
