// Package syntax turns YAQL text into a syntax tree.
//
// The language has no statements and no comments: a text is one expression. Tokens are found by trying a fixed
// list of rules in order, and expressions are parsed by operator precedence over a table that the host may
// change (see [Table]). The tree says what was written; meaning is given to it elsewhere.
//
// Invariants: parsing uses no shared state and may run from many goroutines at once; a hostile text costs time
// and memory linear in its length and never more than [MaxDepth] levels of nesting.
package syntax
