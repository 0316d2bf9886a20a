// Package memory is a shared store in memory, for simulations: a Database with as many
// handles as there are controllers, each over a line that can be slow, cut or lose an
// answer. What a batch comes to, who has a lease and what followers hear is decided by
// package groupcommit, as for PostgreSQL; what stands for PostgreSQL here is the order of
// the writers, the moment of a commit, the connections and what becomes of them.
//
// Invariants:
//   - A Database keeps the contract of store.Shared (storetest), over lines that work.
//   - Nothing that waits holds a mutex, so a bubble of testing/synctest goes on.
//   - A commit whose answer is lost is looked up, as long as the store has patience; when
//     that fails too, its outcome is answered as not known.
//   - All lists are in the order that the contract says: nothing depends on that of a map.
package memory
