package jobfilter_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/reason"
)

const (
	first  = "11111111-f8e2-4470-99bd-1efe746e434f"
	second = "22222222-f8e2-4470-99bd-1efe746e434f"
)

func editMoment() jobfilter.Moment {
	return jobfilter.Moment{
		Now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), Watermark: 40,
		Hop: reason.Entry{Source: "luxid", Time: 9},
	}
}

func parts(t *testing.T, body string) jobfilter.Rule {
	t.Helper()
	r, err := jobfilter.ParseRule([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// shown tells of rules what the tests compare.
func shown(rules []*jobfilter.Rule) string {
	var out []string
	for _, r := range rules {
		out = append(out, strings.Join([]string{r.UUID[:4], r.Name, r.Action.String(), string(rune('0' + r.Priority)), string(rune('0' + r.Watermark/10))}, " "))
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

func TestApplyEdits(t *testing.T) {
	old := &jobfilter.Rule{UUID: first, Name: "rack3", Priority: 3, Watermark: 10, Predicates: []jobfilter.Predicate{},
		Action: jobfilter.Action{Kind: jobfilter.Pause}, Reason: reason.Trail{{Source: "ada", Time: 1}}}
	for name, tc := range map[string]struct {
		edits []jobfilter.Edit
		want  string
		code  fault.Code
	}{
		"add": {edits: []jobfilter.Edit{{Verb: jobfilter.Put, Rule: second, Parts: parts(t, `{"action":"ACCEPT"}`)}},
			want: "1111 rack3 PAUSE 3 1; 2222  ACCEPT 0 4"},
		"replace by name, with a new watermark": {edits: []jobfilter.Edit{{Verb: jobfilter.Put, Rule: "rack3", Parts: parts(t, `{"action":"REJECT"}`)}},
			want: "1111  REJECT 0 4"},
		"modify keeps the watermark": {edits: []jobfilter.Edit{{Verb: jobfilter.Change, Rule: "1111", Body: []byte(`{"priority":5}`)}},
			want: "1111 rack3 PAUSE 5 1"},
		"modify renews it when told": {edits: []jobfilter.Edit{{Verb: jobfilter.Change, Rule: "1111", Body: []byte(`{}`), Renew: true}},
			want: "1111 rack3 PAUSE 3 4"},
		"delete": {edits: []jobfilter.Edit{{Verb: jobfilter.Delete, Rule: "rack3"}}, want: ""},
		"a set, one on top of the other": {edits: []jobfilter.Edit{
			{Verb: jobfilter.Put, Rule: second, Parts: parts(t, `{"name":"new"}`)},
			{Verb: jobfilter.Change, Rule: "new", Body: []byte(`{"priority":2}`)},
			{Verb: jobfilter.Delete, Rule: first}}, want: "2222 new CONTINUE 2 4"},
		"the name of a deleted rule is free": {edits: []jobfilter.Edit{
			{Verb: jobfilter.Delete, Rule: first},
			{Verb: jobfilter.Put, Rule: second, Parts: parts(t, `{"name":"rack3"}`)}}, want: "2222 rack3 CONTINUE 0 4"},
		"a name twice":    {edits: []jobfilter.Edit{{Verb: jobfilter.Put, Rule: second, Parts: parts(t, `{"name":"rack3"}`)}}, code: fault.Exists},
		"over already":    {edits: []jobfilter.Edit{{Verb: jobfilter.Put, Rule: second, Parts: parts(t, `{"until":"2026-11-22T12:00:00Z"}`)}}, code: fault.Invalid},
		"delete nothing":  {edits: []jobfilter.Edit{{Verb: jobfilter.Delete, Rule: second}}, code: fault.NotFound},
		"modify nothing":  {edits: []jobfilter.Edit{{Verb: jobfilter.Change, Rule: "nosuch", Body: []byte(`{}`)}}, code: fault.NotFound},
		"put under a bad": {edits: []jobfilter.Edit{{Verb: jobfilter.Put, Rule: "nosuch"}}, code: fault.NotFound},
		"unknown verb":    {edits: []jobfilter.Edit{{Verb: "turn", Rule: first}}, code: fault.Invalid},
	} {
		got, err := jobfilter.Apply([]*jobfilter.Rule{old}, tc.edits, editMoment())
		if tc.code != "" {
			if !fault.Is(err, tc.code) {
				t.Errorf("%s: %v, want code %s", name, err, tc.code)
			}
			continue
		}
		if err != nil || shown(got.Rules) != tc.want || len(got.Changed) != len(tc.edits) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
			if err == nil {
				t.Logf("got %q", shown(got.Rules))
			}
		}
	}
	if old.Priority != 3 || len(old.Reason) != 1 || old.Watermark != 10 {
		t.Errorf("the old rule was changed: %+v", old)
	}
}

func TestEditsEndTheTrail(t *testing.T) {
	r := parts(t, `{"reason":[["ada","disks",1]]}`)
	out, err := jobfilter.Apply(nil, []jobfilter.Edit{
		{Verb: jobfilter.Put, Rule: first, Parts: r},
		{Verb: jobfilter.Change, Rule: first, Body: []byte(`{"reason":[["bob","more disks",2]]}`)},
	}, editMoment())
	if err != nil {
		t.Fatal(err)
	}
	var sources []string
	for _, e := range out.Rules[0].Reason {
		sources = append(sources, e.Source)
	}
	if got := strings.Join(sources, " "); got != "ada luxid bob luxid" {
		t.Errorf("trail of %s", got)
	}
}

func TestCheckDigest(t *testing.T) {
	rules := []*jobfilter.Rule{{UUID: first}}
	if jobfilter.CheckDigest(rules, "") != nil || jobfilter.CheckDigest(rules, jobfilter.Digest(rules)) != nil {
		t.Error("the present rules are refused")
	}
	if err := jobfilter.CheckDigest(rules, "0123"); !fault.Is(err, fault.Conflict) {
		t.Errorf("other rules pass: %v", err)
	}
}
