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
	classLogin     = "28"    // no such user, a wrong password, or nobody may come from here
	stateNoBase    = "3D000" // no such database
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

// opening is the error of a connection, or a statement, of the start: what a person has to
// mend is told from what may pass.
func opening(err error) error {
	e, answered := errors.AsType[*pgconn.PgError](err)
	switch {
	case err == nil || fault.CodeOf(err) != fault.Internal:
		return err
	case answered && e.Code[:2] == classLogin:
		return fault.New(fault.Environment, "PostgreSQL does not let this user in: %s", e.Message).At("store").
			WithHint("name user and password in the store's URL, or the password in PGPASSWORD, and see to the server's pg_hba.conf")
	case answered && e.Code == stateNoBase:
		return fault.New(fault.Environment, "PostgreSQL has no such database: %s", e.Message).At("store").
			WithHint("make it, or name another in the store's URL")
	}
	answer, certain := refusal(err)
	switch {
	case !certain, e.Code[:2] == classResources: // or it has no connection to spare
		return unreachable(err)
	case e.Code == stateReadOnly:
		return answer
	}
	return fault.New(fault.Environment, "PostgreSQL refuses what a store needs: %w", err).At("store")
}

func unreachable(err error) error {
	return fault.New(fault.Unavailable, "PostgreSQL cannot be reached: %w", err).
		WithHint("see to the server; the store goes on by itself when it answers")
}
