package console

import "context"

// Kind is a kind of console, in Nova's words.
type Kind string

// The kinds of consoles.
const (
	Serial Kind = "serial" // the serial line
	VNC    Kind = "novnc"  // the screen
)

// Grant is what somebody is let in for: one console of one server, for one user in one project.
type Grant struct {
	Kind Kind
	// Server, User and Project are ids, and Name is the user's.
	Server, User, Project, Name string
	// Still refuses who may not act on the server any more: Denied. Any other error says that nobody can tell at the moment.
	Still func(context.Context) error
}
