// Package expression evaluates the YAQL expressions of deployment tasks: the language with the functions that compare
// the state to be reached with the one of a task's last success (new, old, changed, changedAny, changedAll, added,
// deleted, isUndef) and those that write texts (toYaml, toJson).
//
// A Language is made once per process and compiles expressions. An Evaluator evaluates them for one plan; it
// remembers results by what was read, so that what all nodes share is computed and compared once.
//
// Invariants:
//   - A remembered result is what evaluation would give: it is used only where everything that it depends on has
//     the same class (see package state), and never for expressions with random or present-time functions.
//   - Every comparison that decided is told, with both sides.
package expression
