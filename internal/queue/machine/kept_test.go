package machine

import (
	"errors"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/job"
)

// What the store refuses for good is given up, and what it does then ends: it would act for a job that there is not.
func TestWhatIsGivenUpActsNoMore(t *testing.T) {
	d := newDesk(t, 1, Loaded{})
	id := d.submit("")
	r := d.do(Unstorable{Job: id, Err: errors.New("too large")})
	if !slices.Equal(r.Kills, []job.ID{id}) {
		t.Errorf("to be ended are %v, want job %d, which runs", r.Kills, id)
	}
}
