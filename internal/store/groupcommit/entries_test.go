package groupcommit

import (
	"fmt"
	"testing"

	"github.com/drover-project/drover/internal/store"
)

// TestWholeTransactionsAreCutOff: a reader that falls behind is given about as much as it asks for at a time, never a part of a transaction, and goes
// on from where it was cut.
func TestWholeTransactionsAreCutOff(t *testing.T) {
	changes := func(revisions ...store.Revision) (out []store.Change) {
		for _, r := range revisions {
			out = append(out, store.Change{Revision: r})
		}
		return out
	}
	for _, c := range []struct {
		of    []store.Change
		limit int
		want  string
	}{
		{changes(1, 2, 3, 4), 2, "[1 2] to 2"},
		{changes(1, 2, 2, 2, 3), 2, "[1 2 2 2] to 2"},
		{changes(1, 1, 1), 2, "[1 1 1] to 9"}, // what comes behind it changed nothing
		{changes(1, 2), 2, "[1 2] to 9"},
		{changes(1, 2, 3), 4, "[1 2 3] to 9"},
		{nil, 2, "[] to 9"},
	} {
		got, last := WholeTransactions(c.of, c.limit, 9)
		revisions := []store.Revision{}
		for i := range got {
			revisions = append(revisions, got[i].Revision)
		}
		if text := fmt.Sprintf("%v to %d", revisions, last); text != c.want {
			t.Errorf("of %d changes at most %d: %s, want %s", len(c.of), c.limit, text, c.want)
		}
	}
}
