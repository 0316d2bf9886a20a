package console

import (
	"context"

	"github.com/drover-project/drover/internal/audit"
)

// Kind is a kind of console, in Nova's words.
type Kind string

// The kinds of consoles.
const (
	Serial Kind = "serial" // the serial line
	VNC    Kind = "novnc"  // the screen
)

// Grant is what somebody is let in for: one console of one machine, for one user.
type Grant struct {
	Kind Kind
	// Of is the id of the server, or of the instance, whose console it is; User is the user's, and Project that of the project in which they act, if there
	// are any.
	Of, User, Project string
	// By is who that is and why they look, as events tell it.
	By audit.By
	// Still refuses who may not act on the server any more: Denied. Any other error says that nobody can tell at the moment.
	Still func(context.Context) error
}
