package jobfilter_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/testkit"
)

// deviations are the predicates of the recorded matrix that match here and did
// not there, because there only comparisons work in reason and jobid.
// docs/compat/filters.md tells why.
var deviations = map[string]bool{
	`["reason",["=~","reason","^maint"]]`:                             true,
	`["reason",["!",["=~","reason","^maint"]]]`:                       true,
	`["reason",["|",["=~","reason","^maint"],["=","source","user"]]]`: true,
	`["jobid",["=~","id","[0-9]+"]]`:                                  true,
}

// TestConformancePredicateMatrix runs every predicate that was recorded with
// what it matched, on the same job.
func TestConformancePredicateMatrix(t *testing.T) {
	var recorded struct {
		Response []struct {
			Predicate json.RawMessage   `json:"predicate"`
			StoredAs  []json.RawMessage `json:"stored_as"`
			JobStatus string            `json:"job_status"`
			Refused   string            `json:"refused"`
		} `json:"response"`
	}
	testkit.DecodeConformance(t, &recorded, "golden", "luxi", "effect_predicate_matrix.json")
	ops := []*opcode.Opcode{delay(reason.Entry{Source: "user", Reason: "maintenance window", Time: 1795249676439303579})}
	passed, deviating := 0, 0
	for _, c := range recorded.Response {
		predicate := compact(t, c.Predicate)
		parsed, err := jobfilter.ParsePredicates([]byte("[" + predicate + "]"))
		if c.Refused != "" {
			_, want, _ := strings.Cut(c.Refused, "error: ")
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want an error with %q", predicate, err, want)
				continue
			}
			passed++
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", predicate, err)
			continue
		}
		stored, err := json.Marshal(parsed[0])
		if err != nil || compact(t, stored) != compact(t, c.StoredAs[0]) {
			t.Errorf("%s: stored as %s, %v", predicate, stored, err)
			continue
		}
		r := jobfilter.Rule{UUID: "u", Watermark: 24, Priority: 1, Predicates: parsed, Action: jobfilter.Action{Kind: jobfilter.Reject}}
		got := chain(t, r).Decide(25, ops).Rule != nil
		want := c.JobStatus == "canceled"
		if deviations[predicate] {
			want = true
			deviating++
		}
		if got != want {
			t.Errorf("%s: applies %v, want %v", predicate, got, want)
			continue
		}
		passed++
	}
	t.Logf("effect_predicate_matrix.json: %d of %d passed, %d of them with the documented deviation", passed, len(recorded.Response), deviating)
	if deviating != len(deviations) || passed == 0 {
		t.Errorf("%d deviations, want %d", deviating, len(deviations))
	}
}

func compact(t *testing.T, raw []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}
