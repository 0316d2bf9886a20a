// Package groupcommit is what stores have in common that commit many
// transactions with one flush: the queue in front of the one goroutine that
// writes, the decision what a batch comes to, the leases, and the live end of
// the feed. What is left to an adapter is to read and write its database.
//
// Invariants:
//   - Requests are decided and answered in the order in which they came.
//   - Deciding changes nothing: it is a function of the requests, the revision,
//     the leases and the revisions of the objects that are expected.
//   - An object that a batch touches several times is written once, as it is at
//     the end; the feed tells of each change.
//   - The queue never refuses for want of room, and a watcher never delays a
//     writer.
package groupcommit
