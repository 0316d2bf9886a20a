package jobfilter_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/reason"
)

func TestCheckWarns(t *testing.T) {
	for in, want := range map[string][]string{
		`["jobid", [">", "id", "watermark"]]`: nil,
		`["jobid", [">", "id", "watermrk"]]`: {
			`predicates[0][1][2]: id is a number, and never equal to "watermrk", smaller or greater (did you mean "watermark"?)`},
		`["jobid", ["&", ["==", "ID", 5]]]`: {
			`predicates[0][1][1][1]: the predicate jobid has only the field id, not "ID"; this part is never true (did you mean "id"?)`},
		`["opcode", ["&", ["==", "OP_ID", "OP_INSTANCE_CREATE"], ["==", "instance_nam", "x"]]]`: {
			`predicates[0][1][2][1]: OP_INSTANCE_CREATE has no parameter "instance_nam"; this part is never true (did you mean "instance_name"?)`},
		`["opcode", ["==", "hvparams.acpi", 1]]`: nil,
		`["opcode", ["==", "comment", "hi"]]`:    nil,
		`["opcode", ["==", "qwertz", 1]]`: {
			`predicates[0][1][1]: no opcode has a parameter "qwertz"; this part is never true`},
		`["opcode", ["=", "instance_name", 5]]`: {
			`predicates[0][1][2]: instance_name is text, and never equal to 5, smaller or greater`},
		`["opcode", ["<", "duration", "5"]]`: {
			`predicates[0][1][2]: duration is a number, and never equal to "5", smaller or greater`},
		`["opcode", ["=", "no_remember", 1]]`: {
			`predicates[0][1]: no_remember is true or false, which no value equals; this part is never true (ask by ["?", "no_remember"])`},
		`["opcode", ["?", "no_remember"]]`:  nil,
		`["opcode", ["=", "mode", "live"]]`: nil,
		`["opcode", ["=~", "reason", "x"]]`: {
			`predicates[0][1]: the reason of an opcode is a list of entries, which this test never fits; this part is never true ` +
				`(the predicate reason asks each entry: ["reason", ["=~", "reason", "TEXT"]])`},
		`["opcode", ["=", "OP_ID", "instance_craete"]]`: {
			`predicates[0][1][2]: there is no opcode "instance_craete" (did you mean "OP_INSTANCE_CREATE"?)`},
		`["opcode", ["=~", "OP_ID", "^op_"]]`: {
			`predicates[0][1][2]: no opcode's OP_ID matches "^op_" (OP_IDs look like OP_INSTANCE_CREATE, in capitals)`},
		`["reason", ["==", "resaon", "x"]]`: {
			`predicates[0][1][1]: an entry of a reason trail has the fields source, reason, timestamp, not "resaon"; this part is never true (did you mean "reason"?)`},
		`["reason", ["&", ["=", "source", "user"], ["!", ["=~", "reason", "maintenance pink bunny"]]]]`: {
			`predicates[0][1][2]: this negation is asked of each entry of the reason trails by itself, and one entry that satisfies it is enough; ` +
				`every trail has entries of several hops, so it holds for almost every job ` +
				`(to mean the jobs that have no such entry, write the predicate ["not", ["reason", ["=~","reason","maintenance pink bunny"]]])`},
		`["reason", ["!=", "reason", "x"]]`: {
			`predicates[0][1]: this negation is asked of each entry of the reason trails by itself, and one entry that satisfies it is enough; ` +
				`every trail has entries of several hops, so it holds for almost every job ` +
				`(to mean the jobs that have no such entry, write the predicate ["not", ["reason", ["==","reason","x"]]])`},
		`["not", ["reason", ["=~", "reason", "x"]]]`: nil,
		`["not", ["reason", ["?", "source"]]]`:       {`predicates[0][1][1]: source is text, and "?" asks about booleans`},
	} {
		r := rule(t, 0, 0, jobfilter.Reject, "["+in+"]")
		var got []string
		for _, w := range jobfilter.Check(&r) {
			got = append(got, w.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s", in, strings.Join(got, "\n"))
		}
	}
}

func TestCheckAmong(t *testing.T) {
	all := func(k jobfilter.Kind) *jobfilter.Rule {
		return &jobfilter.Rule{UUID: "b", Action: jobfilter.Action{Kind: k}, Reason: reason.Trail{}}
	}
	other := []*jobfilter.Rule{{UUID: "aaaaaaaa-0", Priority: 0, Watermark: 0}}
	for _, tc := range []struct {
		rule   *jobfilter.Rule
		others []*jobfilter.Rule
		want   []string
	}{
		{all(jobfilter.Reject), nil, []string{"predicates: without predicates the rule concerns every job: all that wait are cancelled, and all that come are refused"}},
		{all(jobfilter.Pause), nil, []string{"predicates: without predicates the rule concerns every job: nothing begins any more"}},
		{all(jobfilter.Accept), nil, nil},
		{&jobfilter.Rule{UUID: "b", Action: jobfilter.Action{Kind: jobfilter.Reject}, Shadow: true}, nil, nil},
		{all(jobfilter.Accept), other, []string{"priority: rule aaaaaaaa has the same priority as b and no job came in between: the order of their UUIDs decides which is asked first"}},
		{&jobfilter.Rule{UUID: "b", Watermark: 1}, other, nil},
	} {
		got := jobfilter.CheckAmong(tc.rule, tc.others)
		if len(got) != len(tc.want) {
			t.Errorf("%s: got %v, want %v", tc.rule.Action, got, tc.want)
			continue
		}
		for i, w := range got {
			if !strings.HasPrefix(w.String(), tc.want[i]) {
				t.Errorf("got %s, want %s", w, tc.want[i])
			}
		}
	}
}
