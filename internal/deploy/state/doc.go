// Package state holds what expressions of tasks look at: the state of an environment, which is a part common to all
// nodes and a part of each node's own, and the union of the two as one node sees it.
//
// Invariants:
//   - Values are never changed once they are in a state; parts and views share them freely.
//   - Two values have the same class if and only if no expression can tell them apart. Whoever remembers the result
//     of an expression for the classes of what it read, may give it back for other values of these classes.
//   - What an expression reads of a view is reported to whoever asked for it.
package state
