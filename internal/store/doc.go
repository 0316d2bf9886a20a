// Package store is the port to the durable state of a controller: objects by
// kind and id, changed by transactions, each of which has a revision, with a
// feed of what changed. Every adapter (SQLite, PostgreSQL) keeps the same
// contract, and package storetest checks it. One that several controllers may use at the
// same time is Shared.
//
// Invariants:
//   - A transaction is all or nothing, over any number of objects.
//   - Whoever is told that a transaction succeeded may rely on it: it survives
//     the death of the process and of the machine.
//   - Revisions grow strictly, one for each transaction that was accepted;
//     transactions take effect and are answered in the order of their revisions.
//     A revision may be skipped, never reused.
//   - The feed holds each accepted transaction whole and in order, from any
//     revision that is still kept. A reader that lags never delays a writer.
//   - A controller that lost its lease can commit nothing under its old epoch.
//   - A store's format (FormatKey) and its database's schema are raised together or not at
//     all.
//
// But for that one object the store does not read values and knows no kinds by name:
// what an object means is the business of the packages that own it.
package store
