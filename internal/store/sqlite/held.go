package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/drover-project/drover/internal/store/groupcommit"
)

// held keeps a query of the writer's connection unfinished from one commit to the next.
// While one is, SQLite keeps the connection's locks for reading, which it would else
// take and release with each transaction and each query: ten calls of the system to a
// commit, of which two are left. Other processes read as before.
//
// SQLite empties its log into the database only while no query is under way, so
// some commits are made without.
type held struct {
	rows    driver.Rows
	commits int
	size    int
}

// How many commits, and bytes in them, go by between two that may empty the log: few beside
// the thousand pages after which it is emptied.
const (
	heldCommits = 16
	heldSize    = 1 << 20
)

// next is to be called behind the commit of a batch. That is durable: if nothing can
// be held, the next one takes its locks itself, and fails if it cannot.
func (h *held) next(query *stmt, b *groupcommit.Batch) {
	h.commits++
	for i := range b.Writes {
		h.size += len(b.Writes[i].Value)
	}
	if h.commits >= heldCommits || h.size >= heldSize {
		h.commits, h.size = 0, 0
		_ = h.end()
		return
	}
	if h.rows != nil {
		return
	}
	if rows, err := query.raw.(driver.StmtQueryContext).QueryContext(context.Background(), nil); err == nil {
		h.rows = rows
	}
}

// end finishes the query, if there is one.
func (h *held) end() error {
	if h.rows == nil {
		return nil
	}
	rows := h.rows
	h.rows = nil
	return rows.Close()
}
