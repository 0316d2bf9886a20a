package events

import (
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/store"
)

// TestWhichJobsHaveChanged: of jobs and of their parts, each once, in the order of their first change; and what the newest of these is.
func TestWhichJobsHaveChanged(t *testing.T) {
	change := func(kind store.Kind, id string, revision store.Revision, deleted bool) store.Change {
		return store.Change{Key: store.Key{Kind: kind, ID: id}, Revision: revision, Deleted: deleted}
	}
	for _, c := range []struct {
		changes []store.Change
		jobs    []job.ID
		newest  store.Revision
	}{
		{nil, nil, 0},
		{[]store.Change{change(queue.KindJob, "7", 3, false), change(queue.KindJob, "5", 4, false), change(queue.KindJob, "7", 5, false)}, []job.ID{7, 5}, 5},
		{[]store.Change{change(queue.KindPart, "7/0", 3, false)}, []job.ID{7}, 3},
		{[]store.Change{change(queue.KindPart, "7/0", 3, false), change(queue.KindPart, "7/0", 4, true), change("node", "x", 5, false)}, []job.ID{7}, 3},
	} {
		if jobs, newest := jobsOf(c.changes); !slices.Equal(jobs, c.jobs) || newest != c.newest {
			t.Errorf("%v: %v up to %d, want %v up to %d", c.changes, jobs, newest, c.jobs, c.newest)
		}
	}
}
