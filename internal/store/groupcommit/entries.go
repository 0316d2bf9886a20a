package groupcommit

import (
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// The feed's rows hold lines, one for each change, in the order of revisions:
//
//	OFFSET TAB KIND TAB ID TAB (P or D) NEWLINE
//
// OFFSET counts from the row's first revision; P is a put, D a deletion. Kinds
// and ids hold no control characters, so nothing needs quoting.

// Entries are the lines of changes from a revision on.
func Entries(first store.Revision, changes []store.Change) []byte {
	const usual = 24 // bytes of a line
	entries := make([]byte, 0, len(changes)*usual)
	for i := range changes {
		entries = appendEntry(entries, first, &changes[i])
	}
	return entries
}

// appendEntry adds a change's line.
func appendEntry(buf []byte, first store.Revision, c *store.Change) []byte {
	buf = strconv.AppendInt(buf, int64(c.Revision-first), 10)
	buf = append(buf, '\t')
	buf = append(buf, c.Kind...)
	buf = append(buf, '\t')
	buf = append(buf, c.ID...)
	if c.Deleted {
		return append(buf, "\tD\n"...)
	}
	return append(buf, "\tP\n"...)
}

// ParseEntries appends the changes of a row that are newer than after, without
// their values.
func ParseEntries(out []store.Change, entries string, first, after store.Revision) ([]store.Change, error) {
	for line := range strings.Lines(entries) {
		offset, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		kind, rest, _ := strings.Cut(rest, "\t")
		id, what, ok := strings.Cut(rest, "\t")
		n, err := strconv.ParseInt(offset, 10, 64)
		if err != nil || !ok {
			return nil, fault.New(fault.Internal, "the feed holds a line that cannot be read: %q", line)
		}
		if rev := first + store.Revision(n); rev > after {
			out = append(out, store.Change{Revision: rev, Key: store.Key{Kind: store.Kind(kind), ID: id}, Deleted: what == "D"})
		}
	}
	return out, nil
}

// WholeTransactions cuts changes at the first end of a transaction at or beyond
// the limit; last is the revision up to which they were read, and then reach.
func WholeTransactions(changes []store.Change, limit int, last store.Revision) ([]store.Change, store.Revision) {
	for i := limit; i < len(changes); i++ {
		if changes[i].Revision != changes[i-1].Revision {
			return changes[:i:i], changes[i-1].Revision
		}
	}
	return changes, last
}
