package jobfilter_test

import (
	"testing"

	"github.com/drover-project/drover/internal/jobfilter"
)

// TestARenewedWatermarkCounts: a rule whose watermark alone was renewed is asked with that, also where its tests were prepared
// before.
func TestARenewedWatermarkCounts(t *testing.T) {
	rule, err := jobfilter.ParseRule([]byte(`{"predicates": [["jobid", [">", "id", "watermark"]]], "action": "PAUSE"}`))
	if err != nil {
		t.Fatal(err)
	}
	rule.UUID, rule.Watermark = "00000000-0000-4000-8000-000000000001", 10
	chain, err := jobfilter.Compile([]jobfilter.Rule{rule})
	if err != nil {
		t.Fatal(err)
	}
	edited, err := jobfilter.Apply([]*jobfilter.Rule{&rule}, []jobfilter.Edit{{Verb: jobfilter.Change, Rule: rule.UUID, Body: []byte(`{}`), Renew: true}}, jobfilter.Moment{Watermark: 20})
	if err != nil {
		t.Fatal(err)
	}
	renewed, err := chain.With([]jobfilter.Rule{*edited.Rules[0]})
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[int64]struct{ before, after bool }{10: {}, 11: {before: true}, 20: {before: true}, 21: {true, true}} {
		before, after := chain.Decide(id, nil).Rule != nil, renewed.Decide(id, nil).Rule != nil
		if before != want.before || after != want.after {
			t.Errorf("job %d: it held %v and holds %v, want %+v", id, before, after, want)
		}
	}
}
