package picture

import (
	"context"
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/state"
)

// However a wait for a job ends, it leaves nothing behind.
func TestWaitsLeaveNothingBehind(t *testing.T) {
	p := New()
	p.Committed(&state.Change{Revision: 1, Jobs: []*job.Job{{ID: 1}}})
	p.Publish()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, wait := range map[string]func(){
		"it holds at once":   func() { p.WaitJob(t.Context(), 1, func(*job.Job) bool { return true }) },
		"there is none":      func() { p.WaitJob(t.Context(), 9, func(*job.Job) bool { return false }) },
		"the client is gone": func() { p.WaitJob(ended, 1, func(*job.Job) bool { return false }) },
	} {
		if wait(); len(p.waiting.jobs) > 0 {
			t.Errorf("%s: %d jobs are still waited for", name, len(p.waiting.jobs))
		}
	}
}
