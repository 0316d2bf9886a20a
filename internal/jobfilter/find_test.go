package jobfilter_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/jobfilter"
)

func named(uuid, name string) *jobfilter.Rule { return &jobfilter.Rule{UUID: uuid, Name: name} }

func TestFind(t *testing.T) {
	rules := []*jobfilter.Rule{
		named("8b53f7de-f8e2-4470-99bd-1efe746e434f", "rack3"), named("8b53aaaa-f8e2-4470-99bd-1efe746e434f", "rack3-soft"),
		named("0123f7de-f8e2-4470-99bd-1efe746e434f", ""), named("beefbeef-f8e2-4470-99bd-1efe746e434f", "drain"),
	}
	for ref, want := range map[string]string{
		"8b53f7de-f8e2-4470-99bd-1efe746e434f": "8b53f7de-f8e2-4470-99bd-1efe746e434f",
		"rack3":                                "8b53f7de-f8e2-4470-99bd-1efe746e434f", // a whole name goes before a prefix
		"rack3-":                               "8b53aaaa-f8e2-4470-99bd-1efe746e434f",
		"0123":                                 "0123f7de-f8e2-4470-99bd-1efe746e434f",
		"drai":                                 "beefbeef-f8e2-4470-99bd-1efe746e434f",
		"8b53":                                 "ambiguous",
		"rack":                                 "ambiguous",
		"dra":                                  "not_found",
		"":                                     "not_found",
		"nosuch":                               "not_found",
	} {
		r, err := jobfilter.Find(rules, ref)
		got := string(fault.CodeOf(err))
		if err == nil {
			got = r.UUID
		}
		if got != want {
			t.Errorf("%q: got %s (%v), want %s", ref, got, err, want)
		}
	}
	if _, err := jobfilter.Find(rules, "8b53"); !strings.Contains(err.Error(), "rack3 (8b53f7de") || !strings.Contains(err.Error(), "rack3-soft (8b53aaaa") {
		t.Errorf("the candidates are not named: %v", err)
	}
}

func TestModifyKeepsWhatIsNotGiven(t *testing.T) {
	r, err := jobfilter.ParseRule([]byte(`{"priority":3,"action":"PAUSE","predicates":[["jobid",["=","id","watermark"]]],` +
		`"name":"drain","comment":"ask Ada","until":"2026-11-22T15:00:00+01:00","reason":[["ada","disks",1]]}`))
	if err != nil {
		t.Fatal(err)
	}
	r.UUID, r.Watermark = "u", 17
	for body, want := range map[string]string{
		`{}`:             `{"uuid":"u","watermark":17,"priority":3,"predicates":[["jobid",["==","id","watermark"]]],"action":"PAUSE","reason_trail":[["ada","disks",1]],"name":"drain","comment":"ask Ada","until":"2026-11-22T14:00:00Z"}`,
		`{"priority":4}`: `{"uuid":"u","watermark":17,"priority":4,"predicates":[["jobid",["==","id","watermark"]]],"action":"PAUSE","reason_trail":[["ada","disks",1]],"name":"drain","comment":"ask Ada","until":"2026-11-22T14:00:00Z"}`,
		`{"until":"","shadow":true,"name":"","reason":[["bob","longer",2]]}`: `{"uuid":"u","watermark":17,"priority":3,"predicates":[["jobid",["==","id","watermark"]]],"action":"PAUSE","reason_trail":[["ada","disks",1],["bob","longer",2]],"comment":"ask Ada","shadow":true}`,
	} {
		got, err := jobfilter.Modify(r, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(got)
		if err != nil || string(text) != want {
			t.Errorf("%s:\n got %s (%v)\nwant %s", body, text, err, want)
		}
	}
	if len(r.Reason) != 1 {
		t.Error("modifying a rule changed the old one")
	}
	if _, err := jobfilter.Modify(r, []byte(`{"watermark":3}`)); !fault.Is(err, fault.Invalid) {
		t.Errorf("a watermark was taken: %v", err)
	}
}

func TestDigestFollowsTheRules(t *testing.T) {
	a, b := named("a", ""), named("b", "")
	one, same := jobfilter.Digest([]*jobfilter.Rule{a, b}), jobfilter.Digest([]*jobfilter.Rule{b, a})
	if one != same || len(one) != 16 {
		t.Errorf("%q and %q for the same rules", one, same)
	}
	c := *b
	c.Comment = "x"
	for _, rules := range [][]*jobfilter.Rule{{a}, {a, &c}, {}} {
		if other := jobfilter.Digest(rules); other == one {
			t.Errorf("%d other rules have the same digest", len(rules))
		}
	}
}

func TestExpired(t *testing.T) {
	end := time.Date(2026, 11, 22, 15, 0, 0, 0, time.UTC)
	r := jobfilter.Rule{Until: end}
	if r.Expired(end.Add(-1)) || !r.Expired(end) || (&jobfilter.Rule{}).Expired(end) {
		t.Error("a rule ends at its time, not before; one without a time never")
	}
}
