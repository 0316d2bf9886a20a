package filters

import (
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cli/shelltest"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
)

func TestForecastText(t *testing.T) {
	jobs := make([]jobfilter.JobForecast, 25)
	for i := range jobs {
		jobs[i] = jobfilter.JobForecast{ID: job.ID(i + 1), Status: job.Queued, Summary: []string{"TEST_DELAY(1.0)"}, Effect: jobfilter.WouldCancel, Text: "is cancelled"}
	}
	f := jobfilter.Forecast{
		Rule: &jobfilter.Rule{Action: jobfilter.Action{Kind: jobfilter.Reject}}, Place: 2, Of: 3, Jobs: jobs, Unaffected: 4,
		Headline: "it would cancel 25", Warnings: []jobfilter.Warning{{Place: "predicates[0]", Message: "odd", Hint: "mean it?"}},
		Past: jobfilter.PastForecast{Jobs: 7, From: 1e6, To: 2e6, Peak: 2, PeakAt: 15e5, Delayed: 1, TotalDelay: 1.5, MaxDelay: 1.5,
			Affected: []jobfilter.PastJob{{ID: 1, Status: job.Success, Summary: []string{"A", "B"}, Delay: 1.5}}},
	}
	s := shelltest.New("", nil)
	if err := printPreview(s.Shell, &f); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"it would cancel 25\nIt would be asked as number 2 of 3.\nwarning: predicates[0]: odd (mean it?)\n",
		"\n  20 queued TEST_DELAY(1.0) is cancelled\n  ... and 5 more; --output json shows all\nFor 4 other jobs in the queue nothing",
		"\nJobs that have ended: 7 jobs from 1970-01-01 00:00:01 to 1970-01-01 00:00:02\n",
		"  it would have concerned 1 of them, at most 2 at once (1970-01-01 00:00:01)\n  1 would have waited, 1.5s in all and up to 1.5s\n",
		"  1 success A,B would have waited 1.5s\n",
	} {
		if !strings.Contains(s.Out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, &s.Out)
		}
	}
}

func TestRulesFromCommandLines(t *testing.T) {
	for text, want := range map[string]string{
		"PAUSE": `"PAUSE"`, "RATE_LIMIT 3": `["RATE_LIMIT",3]`, "RATE_LIMIT  3 please": `["RATE_LIMIT",3]`, `["RATE_LIMIT", 2]`: `["RATE_LIMIT",2]`,
		"nonsense": `"nonsense"`,
	} {
		if got, err := actionJSON(text); err != nil || string(got) != want {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	if got, err := actionJSON("RATE_LIMIT two"); err == nil || !strings.Contains(err.Error(), "RATE_LIMIT 2") {
		t.Errorf("%s, %v", got, err)
	}
	s := shelltest.New(`[{"uuid": "u", "watermark": 5, "priority": 1, "reason_trail": [["a", "b", 1]], "predicates": [], "action": "PAUSE"}, {"name": "x", "when": "every job", "action": "CONTINUE"}]`, nil)
	s.Flags.Reason = "moved"
	rules, err := readRules(s.Shell, "-")
	if err != nil || len(rules) != 2 || rules[0]["uuid"] != nil || rules[1]["name"] != "x" || rules[1]["action"] != "CONTINUE" {
		t.Errorf("got %v, %v", rules, err)
	}
	if trail, ok := rules[0]["reason"].([]any); !ok || len(trail) != 2 {
		t.Errorf("the reason of the command is not in %v", rules[0]["reason"])
	}
	for _, bad := range []string{"{", "[1]", `{"colour": "red"}`, "/nonexistent", `{}`, `{"action": "PAUSE"}`, `{"action": "PAUSE", "when": null}`,
		`{"uuid": "u", "action": "PAUSE", "predicates": null}`, `{"predicates": []}`, `{"predicates": [], "action": null}`} {
		if rules, err := readRules(s.Shell, bad); err == nil {
			t.Errorf("%s: %v", bad, rules)
		}
	}
}
