package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/drover-project/drover/internal/fault"
)

// Classes and codes of SQLSTATE that mean something of their own here
// (PostgreSQL's documentation, appendix A).
const (
	classResources = "53"    // out of disk, memory or connections
	classShutdown  = "57"    // the server ends this connection, or starts
	classRetry     = "40"    // the server took the transaction back to let another go on
	stateReadOnly  = "25006" // a standby server, or one that is told not to write
	stateTooLarge  = "54000" // a limit of the server
	stateIdle      = "25P03" // the server gave up a transaction in which nothing was asked for too long
)

// refusal is an answer of the server to a statement: the transaction did not
// take effect, and would not if it were tried again. ok is false for errors of
// another kind.
func refusal(err error) (answer error, ok bool) {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || e.Code[:2] == classShutdown || e.Code[:2] == classRetry || e.Code == stateIdle {
		return nil, false
	}
	switch {
	case e.Code[:2] == classResources:
		return fault.New(fault.Exhausted, "PostgreSQL has no room: %w", err), true
	case e.Code == stateTooLarge:
		return fault.New(fault.TooLarge, "the change is too large for PostgreSQL: %w", err), true
	case e.Code == stateReadOnly:
		return fault.New(fault.Unavailable, "PostgreSQL takes no changes: %w", err).
			WithHint("name the primary server in the store's URL, or add target_session_attrs=read-write"), true
	}
	return fault.New(fault.Unavailable, "PostgreSQL refused a change: %w", err), true
}

func unreachable(err error) error {
	return fault.New(fault.Unavailable, "PostgreSQL cannot be reached: %w", err).
		WithHint("see to the server; the store goes on by itself when it answers")
}
