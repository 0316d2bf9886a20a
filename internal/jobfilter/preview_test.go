package jobfilter_test

import (
	"iter"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/opcode"
)

// aJob makes a job whose opcodes have the given statuses.
func aJob(id job.ID, in *opcode.Opcode, statuses ...job.Status) *job.Job {
	j := &job.Job{ID: id, Received: job.Time(id)}
	for _, s := range statuses {
		j.Ops = append(j.Ops, job.Op{Input: in, Status: s, Priority: in.Priority})
	}
	return j
}

func ended(id job.ID, start, end job.Time) *job.Job {
	j := aJob(id, delay(), job.Success)
	j.Started, j.Ended = start, end
	return j
}

func seq(jobs ...*job.Job) iter.Seq[*job.Job] { return slices.Values(jobs) }

func TestPreviewOfUnfinishedJobs(t *testing.T) {
	urgent := delay()
	urgent.Priority = -10
	start := op("OP_INSTANCE_STARTUP", map[string]any{"instance_name": "web1"})
	live := func() iter.Seq[*job.Job] {
		return seq(
			aJob(11, delay(), job.Queued),
			aJob(12, delay(), job.Waiting, job.Queued),
			aJob(13, delay(), job.Success, job.Running, job.Queued, job.Queued),
			aJob(14, delay(), job.Running),
			aJob(15, urgent, job.Queued),
			aJob(16, start, job.Queued),
		)
	}
	delays := `[["opcode", ["==", "OP_ID", "OP_TEST_DELAY"]]]`
	pausing := rule(t, 5, 0, jobfilter.Pause, `[["opcode", ["==", "priority", -10]]]`)
	pausing.UUID = "pausing"
	accepting := rule(t, 0, 0, jobfilter.Accept, `[]`)
	accepting.UUID = "accepting"
	for _, tc := range []struct {
		name     string
		rules    []jobfilter.Rule
		rule     jobfilter.Rule
		place    int
		headline string
		jobs     []string
	}{
		{"reject", nil, rule(t, 0, 10, jobfilter.Reject, delays), 1, "of 6 jobs in the queue it would cancel 4", []string{
			"job 11 (queued, TEST_DELAY(1.0e-3)): is cancelled",
			"job 12 (waiting, TEST_DELAY(1.0e-3), TEST_DELAY(1.0e-3)): gives up its wait for locks and is cancelled",
			"job 13 (running, TEST_DELAY(1.0e-3), TEST_DELAY(1.0e-3), TEST_DELAY(1.0e-3), TEST_DELAY(1.0e-3)): opcode 1 completes, the 2 behind it are cancelled",
			"job 14 (running, TEST_DELAY(1.0e-3)): nothing changes: its last opcode runs already and completes",
			"job 15 (queued, TEST_DELAY(1.0e-3)): is cancelled",
		}},
		{"limit", nil, rule(t, 0, 10, jobfilter.RateLimit, delays), 1, "of 6 jobs in the queue it would limit 5", []string{
			"job 11 (queued, TEST_DELAY(1.0e-3)): waits for one of the 2 places, as number 2 in line",
			"job 12 (waiting, TEST_DELAY(1.0e-3), TEST_DELAY(1.0e-3)): goes on, and has one of the places",
			"job 13 (running, TEST_DELAY(1.0e-3), TEST_DELAY(1.0e-3), TEST_DELAY(1.0e-3), TEST_DELAY(1.0e-3)): goes on, and has one of the places",
			"job 14 (running, TEST_DELAY(1.0e-3)): goes on, and has one of the places",
			"job 15 (queued, TEST_DELAY(1.0e-3)): waits for one of the 2 places, as number 1 in line",
		}},
		{"release", []jobfilter.Rule{pausing}, rule(t, 0, 10, jobfilter.Accept, delays), 1, "of 6 jobs in the queue it would release 1", []string{
			"job 11 (queued, TEST_DELAY(1.0e-3)): nothing changes: it may run as before",
			"job 12 (waiting, TEST_DELAY(1.0e-3), TEST_DELAY(1.0e-3)): nothing changes: it may run as before",
			"job 13 (running, TEST_DELAY(1.0e-3), TEST_DELAY(1.0e-3), TEST_DELAY(1.0e-3), TEST_DELAY(1.0e-3)): nothing changes: it may run as before",
			"job 14 (running, TEST_DELAY(1.0e-3)): nothing changes: it may run as before",
			"job 15 (queued, TEST_DELAY(1.0e-3)): may go on; it is held now",
		}},
		{"shadowed", []jobfilter.Rule{accepting}, rule(t, 1, 10, jobfilter.Reject, delays), 2, "of 6 jobs in the queue it would change nothing", nil},
	} {
		f, err := jobfilter.Preview(tc.rules, tc.rule, live(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, j := range f.Jobs {
			got = append(got, j.String())
		}
		if f.Headline != tc.headline || !slices.Equal(got, tc.jobs) {
			t.Errorf("%s: %s\n%q", tc.name, f.Headline, got)
		}
		if f.Place != tc.place || f.Of != len(tc.rules)+1 || f.Replaces {
			t.Errorf("%s: place %d of %d, replaces %v", tc.name, f.Place, f.Of, f.Replaces)
		}
	}
}

func TestPreviewOfReplacement(t *testing.T) {
	old := rule(t, 0, 0, jobfilter.Pause, `[]`)
	candidate := rule(t, 3, 20, jobfilter.Pause, `[["jobid", [">", "id", "watermark"]]]`)
	f, err := jobfilter.Preview([]jobfilter.Rule{old}, candidate, seq(aJob(11, delay(), job.Queued)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !f.Replaces || f.Place != 1 || f.Of != 1 || len(f.Jobs) != 1 || f.Jobs[0].Effect != jobfilter.WouldRelease {
		t.Errorf("got %+v", f)
	}
}

func TestPreviewOfThePast(t *testing.T) {
	const s = 1_000_000
	past := func() iter.Seq[*job.Job] {
		return seq(ended(5, 10*s, 20*s), ended(7, 10*s, 30*s), ended(6, 12*s, 14*s), ended(8, 20*s, 25*s), aJob(9, op("OP_NODE_ADD", nil), job.Canceled))
	}
	f, err := jobfilter.Preview(nil, rule(t, 0, 1000, jobfilter.RateLimit, `[["jobid", [">", "id", "watermark"]], ["opcode", ["=~", "OP_ID", "DELAY"]]]`), nil, past())
	if err != nil {
		t.Fatal(err)
	}
	p := f.Past
	// Job 6 gets the place of 5 at 20 and keeps it until 22, when 8 gets it.
	if p.Jobs != 5 || len(p.Affected) != 4 || p.Peak != 3 || p.PeakAt != 12*s || p.Delayed != 2 || p.TotalDelay != 10 || p.MaxDelay != 8 || p.From != 5 || p.To != 9 {
		t.Errorf("got %+v", p)
	}
	want := "of 0 jobs in the queue it would change nothing; of 5 jobs that have ended it would have limited 4, of which 3 ran at once at most, and delayed 2 of them by 8.0 s at most, 10.0 s in all"
	if f.Headline != want {
		t.Errorf("headline %s", f.Headline)
	}
}

// TestDelayedRunsKeepTheLimit checks the simulation: no more than the limit
// run at once, and without a limit in the way nothing is delayed.
func TestDelayedRunsKeepTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var past []*job.Job
		for i := range rapid.IntRange(1, 12).Draw(t, "jobs") {
			start := job.Time(rapid.IntRange(1, 20).Draw(t, "start"))
			past = append(past, ended(job.ID(i+1), start, start+job.Time(rapid.IntRange(1, 9).Draw(t, "length"))))
		}
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		r := jobfilter.Rule{Action: jobfilter.Action{Kind: jobfilter.RateLimit, Limit: limit}}
		f, err := jobfilter.Preview(nil, r, nil, seq(past...))
		if err != nil {
			t.Fatal(err)
		}
		if f.Past.Peak <= limit && f.Past.Delayed > 0 {
			t.Fatalf("delays below the limit: %+v", f.Past)
		}
		var again []*job.Job
		for _, j := range f.Past.Affected {
			shift := job.Time(j.Delay*1e6 + 0.5)
			again = append(again, ended(j.ID, j.Started+shift, j.Ended+shift))
		}
		g, err := jobfilter.Preview(nil, r, nil, seq(again...))
		if err != nil {
			t.Fatal(err)
		}
		if g.Past.Peak > limit || g.Past.Delayed != 0 {
			t.Fatalf("limit %d, after delaying: %+v", limit, g.Past)
		}
	})
}
