// Package wire holds Drover's answers over LUXI and RAPI against those of a real
// Ganeti, call by call. `make wire-diff` makes random calls to both; a shortened
// recording of what Ganeti answered is replayed by the normal tests.
//
// Every difference must be in the ledger, ledger.json: a class with a name, what it
// looks like, and the sentence of docs/compat that tells users of it. Anything else
// fails.
package wire
