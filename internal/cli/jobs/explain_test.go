package jobs

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/shelltest"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/queue/machine"
)

func TestExplanationText(t *testing.T) {
	x := machine.Explanation{
		Job: 7, Status: job.Waiting, Summary: []string{"INSTANCE_STARTUP(web1)"}, Step: "in-flight",
		Why: "waits for the lock instance/web1", Change: []machine.Remedy{{Kind: job.WaitForLock, Text: "job 5 has to end"}},
		Reason: "gnt:user: rack 3", Received: 1e12, Expected: &machine.Expectation{At: 1e12 + 5e6, Text: "if all goes well"},
		Dependencies: []machine.Dependency{{Job: 3, Statuses: []string{"success"}, Status: job.Success, Met: true, Why: "job 3 ended as success"}},
		Buckets: []machine.BucketPlace{{Name: "rate limit 2 of filter rule x", Limit: 2, InFlight: []job.ID{4, 7}, Inside: true},
			{Name: "ad-hoc limit rate-limit:1:a", Limit: 1, InFlight: []job.ID{4}, Place: 3}},
		Slots: machine.Slots{Running: 2, Max: 20, Priority: -10, Ahead: 4},
		Locks: machine.Locks{Needs: []machine.Lock{{Name: "cluster/BGL", Mode: "shared"}, {Name: "instance/web1", Mode: "exclusive"}},
			Held:  []machine.Lock{{Name: "cluster/BGL", Mode: "shared"}},
			Waits: &machine.LockWait{Lock: machine.Lock{Name: "instance/web1", Mode: "exclusive"}, Holders: []lock.Owner{5}, Ahead: []lock.Owner{6}}},
	}
	text, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	s := shelltest.New("", nil)
	s.Now = func() time.Time { return time.Unix(1e6, 0).Add(2 * time.Second) }
	if err := printExplanation(s.Shell, text); err != nil {
		t.Fatal(err)
	}
	received, expected := shell.Moment(1e12), shell.Moment(1e12+5e6)
	want := `Job 7 INSTANCE_STARTUP(web1)
waiting: waits for the lock instance/web1
likely to go on: in about 3s (` + expected + `), if all goes well
received ` + received + `, 2s ago; priority -10
reason: gnt:user: rack 3

For it to go on
  job 5 has to end

Filter rules
  there are none

Dependencies
  job 3 has to end as success: met, job 3 ended as success

Limits
  rate limit 2 of filter rule x: 2 of 2 in flight (jobs 4, 7); this job is one of them
  ad-hoc limit rate-limit:1:a: 1 of 1 in flight (jobs 4); this job is number 3 in the line
  slots: 2 of 20 jobs run; priority -10; served before it: 4 jobs

Locks
  cluster/BGL   shared    held
  instance/web1 exclusive waits; held by job 5, wanted before by job 6
`
	if got := s.Out.String(); got != want {
		t.Errorf("got:\n%s", got)
	}
	s = shelltest.New("", nil)
	s.Colour = true
	if err := printExplanation(s.Shell, text); err != nil || !strings.Contains(s.Out.String(), "\x1b[32mwaiting: ") {
		t.Errorf("no colours for a person: %q", &s.Out)
	}
}
