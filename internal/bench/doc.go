// Package bench measures a running controller from outside, as its clients see
// it, and sets the figures in proportion to what the disk can do at all: the
// time of one fdatasync, measured in the same run.
//
// Invariants:
//   - What is measured is real: jobs are submitted, run and end like any others,
//     and every one of them is checked to have succeeded.
//   - A run leaves the cluster as it found it, but for its jobs and the
//     instances that it is told to create: rules that it adds are deleted, and
//     hold no job but its own.
package bench
