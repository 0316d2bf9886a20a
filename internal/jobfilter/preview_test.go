package jobfilter_test

import (
	"iter"
	"slices"
	"strings"
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

// foretold is the forecast of putting one rule.
func foretold(rules []jobfilter.Rule, candidate jobfilter.Rule, effects []jobfilter.JobForecast, unaffected int, past iter.Seq[*job.Job]) (*jobfilter.Forecast, error) {
	present := make([]*jobfilter.Rule, len(rules))
	var before *jobfilter.Rule
	var after []*jobfilter.Rule
	for i := range rules {
		present[i] = &rules[i]
		if rules[i].UUID == candidate.UUID {
			before = &rules[i]
			continue
		}
		after = append(after, &rules[i])
	}
	edited := &jobfilter.Edited{Rules: append(after, &candidate), Changed: []jobfilter.Changed{{Before: before, After: &candidate}}}
	p := jobfilter.Prospect{Rules: present, Edited: edited, Effects: effects, Unaffected: unaffected, Past: past}
	return p.Forecast()
}

// TestPreviewSeesJobsToCome: a drain changes nothing for those in the queue, and
// everything for those that come; the newest job of each kind stands for them.
func TestPreviewSeesJobsToCome(t *testing.T) {
	drain := rule(t, 0, 20, jobfilter.Reject, `[["jobid", [">", "id", "watermark"]]]`)
	drain.UUID = "drain"
	recorded := seq(aJob(3, delay(), job.Success), aJob(9, delay(), job.Queued), aJob(4, op("OP_NODE_ADD", nil), job.Success))
	for verb, want := range map[string][]string{
		"put":    {"a new job as 9 (OP_TEST_DELAY): REJECT by", "a new job as 4 (OP_NODE_ADD): REJECT by"},
		"delete": {"a new job as 9 (OP_TEST_DELAY): no filter rule applies; now REJECT by", "a new job as 4 (OP_NODE_ADD): no filter rule applies; now REJECT by"},
	} {
		p := jobfilter.Prospect{Recorded: recorded, Next: 21}
		c := jobfilter.Changed{After: &drain}
		p.Edited = &jobfilter.Edited{Rules: []*jobfilter.Rule{&drain}}
		if verb == "delete" {
			p.Rules, p.Edited.Rules, c = p.Edited.Rules, nil, jobfilter.Changed{Before: &drain}
		}
		p.Edited.Changed = []jobfilter.Changed{c}
		f, err := p.Forecast()
		if err != nil {
			t.Fatal(err)
		}
		if len(f.New) != 2 || f.Removes != (verb == "delete") || f.Digest == "" {
			t.Errorf("%s: %+v", verb, f)
			continue
		}
		for _, text := range want {
			if !slices.ContainsFunc(f.New, func(n jobfilter.NewForecast) bool { return strings.HasPrefix(n.String(), text) }) {
				t.Errorf("%s: %v, want one that begins with %q", verb, f.New, text)
			}
		}
	}
}

func TestPreviewPlacesTheRule(t *testing.T) {
	old := rule(t, 5, 0, jobfilter.Pause, `[]`)
	old.UUID = "old"
	effects := []jobfilter.JobForecast{{ID: 11, Effect: jobfilter.WouldHold}, {ID: 12, Effect: jobfilter.NoEffect}}
	for uuid, place := range map[string]int{"new": 2, "old": 1} {
		candidate := rule(t, 6, 20, jobfilter.Pause, `[]`)
		candidate.UUID = uuid
		f, err := foretold([]jobfilter.Rule{old}, candidate, effects, 3, nil)
		if err != nil {
			t.Fatal(err)
		}
		if f.Place != place || f.Of != place || f.Replaces != (uuid == "old") || !strings.HasPrefix(f.Headline, "of 5 jobs in the queue it would hold 1; every job to come would be held") {
			t.Errorf("%s: %+v", uuid, f)
		}
	}
}

func TestPreviewOfThePast(t *testing.T) {
	const s = 1_000_000
	past := func() iter.Seq[*job.Job] {
		return seq(ended(5, 10*s, 20*s), ended(7, 10*s, 30*s), ended(6, 12*s, 14*s), ended(8, 20*s, 25*s), aJob(9, op("OP_NODE_ADD", nil), job.Canceled))
	}
	f, err := foretold(nil, rule(t, 0, 1000, jobfilter.RateLimit, `[["jobid", [">", "id", "watermark"]], ["opcode", ["=~", "OP_ID", "DELAY"]]]`), nil, 0, past())
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
		f, err := foretold(nil, r, nil, 0, seq(past...))
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
		g, err := foretold(nil, r, nil, 0, seq(again...))
		if err != nil {
			t.Fatal(err)
		}
		if g.Past.Peak > limit || g.Past.Delayed != 0 {
			t.Fatalf("limit %d, after delaying: %+v", limit, g.Past)
		}
	})
}
