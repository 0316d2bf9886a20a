// Package plan computes what a deployment does: which tasks of a graph run on which nodes, with what parameters, in
// what order, and why.
//
// Build takes a graph, the new state of an environment and the state of each task's last success on each node, and
// returns a Plan, a value: the same input gives the same plan.
//
// Invariants:
//   - A plan names for every task and node whether it runs and what decided that.
//   - Relations between all nodes of a role are kept as such: a thousand nodes that depend on a thousand others are
//     one relation, which Edges spells out and Order obeys as it is.
//   - An error names the task, the node, and the place in the file.
package plan
