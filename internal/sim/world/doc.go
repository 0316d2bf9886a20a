// Package world is the whole of a group in one process: controllers with their stores,
// queues, executors and agents as they are, over a database, nodes and clients that are
// pretended. It lives through one history, as a plan says, in a bubble of testing/synctest,
// and is then held to what package check knows.
//
// A controller is killed, stands still, or is cut off at its ports alone: what it says to
// the database, to nodes and to clients, and what these say to it. Nobody outside can tell
// that from the real thing. A life that was killed is told so at each of its ports, winds
// down, and reaches nothing; what it began on nodes becomes what becomes of it when a
// process dies.
//
// Invariants:
//   - A history is a function of its plan, of the order of goroutines and of the code.
//   - Nothing that waits holds a mutex: waiting for one is not idle, and time would stand
//     still.
//   - When the trouble is over everything is healed, and everything is to end well.
package world
