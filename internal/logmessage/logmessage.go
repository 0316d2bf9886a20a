// Package logmessage is the table of what the log says at WARN and ERROR: why, and what to do. docs/messages.md is the same table.
//
// Invariants:
//   - Each message that the program writes at WARN or ERROR has a row, and each row a message (TestEachMessageHasItsRow).
package logmessage

// Level is how a message is written.
type Level string

// The levels. An Error is for somebody to act on; a Warn tells of what may become one, or passes by itself.
const (
	Warn  Level = "WARN"
	Error Level = "ERROR"
)

// Message is a row of the table.
type Message struct {
	// Part is what the message is about; rows of one part stand together.
	Part  string
	Level Level
	// Text is what the log says. Where a part of it differs it has "…".
	Text string
	// Cause is why it is said, and Remedy what to do.
	Cause, Remedy string
}

// Table is the table, in the order in which it is read.
func Table() []Message { return table }
