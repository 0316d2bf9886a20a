// Package course holds the course of a deployment: what is stored of environments, graphs and deployments, and a
// machine that decides which tasks of a plan may begin, and what the end of one means for the others.
//
// Invariants:
//   - A task begins after all that it waits for has succeeded, and at most once in an attempt.
//   - What depends on a task that failed never begins; when more nodes of a group fail than it tolerates, nothing does.
//   - The machine is a value: the same events lead to the same decisions, each with its reason.
//   - A stored record never changes its meaning; fields are only added.
package course
