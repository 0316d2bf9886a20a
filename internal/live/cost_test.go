package live_test

import (
	"iter"
	"runtime/metrics"
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/state"
)

// TestAChangeCostsAWatchWhatChanged counts what a change of one job allocates while watches follow
// few jobs, and many: a watch that asked its whole query anew would make a row of each.
func TestAChangeCostsAWatchWhatChanged(t *testing.T) {
	const few, many = 100, 10_000
	small, large := allocatedByChanges(t, few), allocatedByChanges(t, many)
	t.Logf("a change allocates %d objects beside %d jobs, and %d beside %d", small, few, large, many)
	if large > 2*small+many/10 { // one of the ten that asked anew would make a row of each job
		t.Errorf("a change allocates %d objects beside %d jobs, and %d beside %d", small, few, large, many)
	}
}

// allocatedByChanges returns how many objects the process allocates for each change of
// one of so many jobs, until ten watches have told it.
func allocatedByChanges(t *testing.T, jobs int) uint64 {
	r := newRig(t, 0)
	revision := r.Picture.Load().Revision
	publish := func(jobs ...*job.Job) {
		revision++
		r.Picture.Committed(&state.Change{Revision: revision, Jobs: jobs})
		r.Picture.Publish()
	}
	publish(manyJobs(jobs)...)
	var watches [10]func() (*live.Update, error, bool)
	see := func() {
		t.Helper()
		for _, next := range watches {
			if u, err, ok := next(); err != nil || !ok || len(u.Events) == 0 {
				t.Fatalf("a watch tells %v, %v", u, err)
			}
		}
	}
	for i := range watches {
		next, stop := iter.Pull2(r.Follow(t.Context(), query.Request{What: "job", Fields: jobColumns}, 0))
		defer stop()
		watches[i] = next
	}
	see()
	allocated := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}}
	const changes = 20
	metrics.Read(allocated)
	before := allocated[0].Value.Uint64()
	for i := range changes {
		publish(aJob(jobs-i, 2+i))
		see()
	}
	metrics.Read(allocated)
	return (allocated[0].Value.Uint64() - before) / changes
}
