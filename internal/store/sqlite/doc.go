// Package sqlite keeps a store in one SQLite database file.
//
// One goroutine writes. It takes what has queued up since its last commit, at
// most maxBatch transactions, decides each in order in memory (epoch,
// expectations), writes the final state of every object that the batch touched
// once, and commits with one fsync. What it writes gathers in the table recent, which
// takes few pages, until the other tables take it in together (recent.go). Readers
// have connections of their own and never wait for it, nor it for them.
//
// Invariants:
//   - One process at a time has a directory open; the lock file tells which.
//   - Nothing is answered before the commit that holds it has returned, with
//     journal_mode=WAL and synchronous=FULL.
//   - After a commit that failed in an unknown way nothing is accepted until
//     the store is opened anew, for the state in memory could differ from that on disk
//     (TestFailedFlushIsMended, TestAStoreIsMendedWithANewLog).
//   - A commit waits for who has the database locked for a moment; one that stays locked is refused, and
//     the store goes on when it is free (locked_test.go).
//   - Readers see the tables and what is recent as at one moment, and never an older one
//     than before.
//   - Files that were removed or replaced, a log that lost its end, and a feed or recent
//     commits with a gap are noticed; nothing is then answered as if all was well.
//   - After a clean stop the database file alone is the whole store.
//   - The live end of the feed is kept in memory as well, bounded in size; who follows
//     closely is served from there, everybody else from the database.
package sqlite
