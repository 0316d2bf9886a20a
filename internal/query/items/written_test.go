package items

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/reason"
)

// Fields that last are compared with durations as people write them; other
// numbers are not.
func TestDurationsInFilters(t *testing.T) {
	src := &query.Source{Inventory: cluster.Empty(), Jobs: func(bool) iter.Seq2[*job.Job, error] {
		var jobs []*job.Job
		for i, seconds := range []job.Time{30, 60, 61, 5400, 90_000} {
			jobs = append(jobs, &job.Job{ID: job.ID(i + 1), Received: 1e6, Ended: (1 + seconds) * 1e6,
				Ops: []job.Op{{Status: job.Canceled, End: (1 + seconds) * 1e6, Input: &opcode.Opcode{ID: "OP_TEST_DUMMY"}}}})
		}
		return readable(slices.Values(jobs))
	}}
	for filter, want := range map[string]string{
		`waited > 1m`:                     `3 61; 4 5400; 5 90000`,
		`waited == 1m or waited >= 1d1h`:  `2 60; 5 90000`,
		`waited == "1h30m"`:               `4 5400`,
		`waited > 90s and waited < 2h`:    `4 5400`,
		`waited <= 60`:                    `1 30; 2 60`,
		`waited != 30s and not waited>1h`: `2 60; 3 61`,
		`waited > 1G`: `error: Invalid types in comparison, trying to compare 30 with 'QuotedString "1G"' ` +
			`(numbers stand without quotes; times are "2026-11-15", "2026-11-15 08:30" or -1h, durations 90s or 1h30m, sizes 512M or 2G)`,
	} {
		if got := run(t, src, "job", "id,waited", filter, query.Options{}); got != want {
			t.Errorf("%s: got %s, want %s", filter, got, want)
		}
	}
	if got := run(t, src, "job", "id", `id > 1m`, query.Options{}); !strings.HasPrefix(got, "error: ") {
		t.Errorf("a number as a duration: %s", got)
	}
}

// Slips that are found out only when a filter is applied are answered by what to
// write instead, too.
func TestHintsOfTests(t *testing.T) {
	src := historySource(t)
	src.Rules = func() []*jobfilter.Rule { return []*jobfilter.Rule{{UUID: "r"}} }
	src.Events = func() iter.Seq2[*audit.Event, error] {
		return func(yield func(*audit.Event, error) bool) {
			yield(&audit.Event{ID: 9, Trail: reason.Trail{{Source: "gnt:user", Reason: "OPS-1", Time: 1}}}, nil)
		}
	}
	for _, tc := range []struct{ what, filter, hint string }{
		{"reason", `object and hop == 0`, `a field alone is asked whether it is true; a text is compared: object == "TEXT" or object =~ m/PATTERN/`},
		{"reason", `hop`, `a field alone is asked whether it is true; a number is compared: hop > 0`},
		{"reason", `timestamp`, `a field alone is asked whether it is true; a number is compared: timestamp > 0`},
		{"job", `not summary`, `a field alone is asked whether it is true; a list is tested for what is in it: "VALUE" in summary`},
		{"job", `reason_trail =~ m/OPS/`, `the field reason has it as text: reason =~ m/PATTERN/`},
		{"job", `reason_trail == "OPS"`, `the field reason has it as text: reason =~ m/PATTERN/`},
		{"opcode", `"OPS" in reason_trail`, `the field reason has it as text: reason =~ m/PATTERN/`},
		{"event", `reason_trail =~ m/OPS/`, `the field reason has it as text: reason =~ m/PATTERN/`},
		{"filter", `predicates =~ m/OP_/`, `the field predicates_text has it as text: predicates_text =~ m/PATTERN/`},
		{"filter", `name == "lab"`, `the name of a rule is the field rule_name`},
		{"node", `mused > 1G`, `a node tells mtotal, mfree and mnode, which is what its own system uses; instances use mtotal - mfree - mnode`},
		{"node", `nam == "x"`, `did you mean 'name'?`},
	} {
		_, err := All.Run(src, tc.what, nil, mustParse(t, tc.filter), query.Options{})
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Hint != tc.hint {
			t.Errorf("%s where %s: got %v", tc.what, tc.filter, err)
		}
	}
	_, err := All.Run(src, "node", nil, nil, query.Options{Sort: query.ParseSort([]string{"-dused"})})
	if f, ok := errors.AsType[*fault.Error](err); !ok || !strings.Contains(f.Hint, "dtotal - dfree") {
		t.Errorf("an order by what no field has: %v", err)
	}
}

// The reason of a rule is what was said, not who said it: sources, hops of the
// system and accounts are no reasons.
func TestReasonsOfRulesAreSearched(t *testing.T) {
	src := historySource(t)
	src.Rules = func() []*jobfilter.Rule {
		return []*jobfilter.Rule{
			{UUID: "a", Reason: reason.Trail{{Source: "gnt:user", Reason: "rack 3", Time: 1}, {Source: "gnt:client:gnt-filter", Time: 2},
				{Source: "gnt:account:luxi", Reason: "root", Time: 3}, {Source: "luxid", Time: 4}, {Source: "gnt:user", Reason: "OPS-7", Time: 5}}},
			{UUID: "b", Reason: reason.Trail{{Source: "luxid", Time: 4}}},
		}
	}
	for filter, want := range map[string]string{
		`reason =~ m/luxid|gnt:|root/`:              ``,
		`reason =~ m/^rack 3; OPS-7$/`:              `"a" "rack 3; OPS-7" "root"`,
		`reason == ""`:                              `"b" "" !3`,
		`added_by == "root" and reason =~ m/OPS-7/`: `"a" "rack 3; OPS-7" "root"`,
	} {
		if got := run(t, src, "filter", "uuid,reason,added_by", filter, query.Options{}); got != want {
			t.Errorf("%s: got %s, want %s", filter, got, want)
		}
	}
}

// Moments that differ by less than a float can tell are sorted and paged right.
func TestPagesOfNanoseconds(t *testing.T) {
	in := &opcode.Opcode{ID: "OP_TEST_DUMMY"}
	for i := range 5 {
		in.Reason = append(in.Reason, reason.Entry{Source: "s", Time: 1795309512465136129 + int64(4-i)})
	}
	jobs := []*job.Job{{ID: 1, Ops: []job.Op{{Input: in, Status: job.Success}}}}
	src := &query.Source{Inventory: cluster.Empty(), Jobs: func(bool) iter.Seq2[*job.Job, error] { return readable(slices.Values(jobs)) },
		Job: func(job.ID) (*job.Job, error) { return jobs[0], nil }}
	after, seen := "", ""
	for range 3 {
		res, err := All.Run(src, "reason", []string{"hop"}, nil, query.Options{Sort: query.ParseSort([]string{"timestamp"}), Limit: 2, After: after})
		if err != nil {
			t.Fatal(err)
		}
		for row := range res.Rows() {
			seen += string(query.AppendValue(nil, row[0].Value))
		}
		after = res.Next
	}
	if seen != "43210" {
		t.Errorf("got hops %s", seen)
	}
}

// What Drover has of its own tells no stories: a value that is not there meets
// no test. Fields of the reference keep its rule.
func TestMissingValuesOfOwnFieldsMeetNoTest(t *testing.T) {
	src := historySource(t)
	src.Now = time.Unix(100, 0).UTC()
	old := src.Jobs
	src.Jobs = func(archived bool) iter.Seq2[*job.Job, error] {
		return func(yield func(*job.Job, error) bool) {
			for j, err := range old(archived) {
				if !yield(j, err) {
					return
				}
			}
			delay := func(words string, dry bool) *opcode.Opcode {
				return &opcode.Opcode{ID: "OP_TEST_DELAY", DryRun: dry, Reason: reason.Trail{{Source: "gnt:user", Reason: words, Time: 7}}}
			}
			yield(&job.Job{ID: 3, Received: 50e6, Ops: []job.Op{{Status: job.Success, Input: delay("first", false)}, {Status: job.Success, Input: delay("second", true)}}}, nil)
		}
	}
	src.Events = func() iter.Seq2[*audit.Event, error] {
		return func(yield func(*audit.Event, error) bool) { yield(&audit.Event{ID: 9, What: audit.QueueDrain}, nil) }
	}
	src.Rules = func() []*jobfilter.Rule { return []*jobfilter.Rule{{UUID: "r"}} }
	for _, tc := range []struct{ what, fields, filter, want string }{
		{"event", "id", `reason =~ m/OPS/ or who == "alice"`, ``},
		{"filter", "uuid", `rule_name =~ m/lab/ or until < 5`, ``},
		{"reason", "job", `object == "web1"`, `1; 1`},
		{"reason", "job", `object =~ m/^web/ and hop == 0`, `1; 2`},
		{"reason", "job", `object != "web1"`, `2`},
		{"reason", "job", `not object == "web1"`, `2; 3; 3`},
		{"opcode", "id", `beparams.maxmem > 0`, `"2.0"`},
		{"opcode", "id", `beparams.maxmem != 5`, `"2.0"`},
		{"opcode", "id", `object == "a" or object == "b" or object == "c" or object == "d" or object == "e" or object == "f" or object == "g" or object == "web2"`, `"2.0"`},
		{"opcode", "id,summary", `dry_run`, `"3.1" "TEST_DELAY(None) [dry run]"`},
		{"job", "id", `dry_run`, `3`},
		{"job", "id", `held_by == "r"`, `2`},
		{"job", "id", `held_by != "x"`, `2`},
		{"job", "id", `held_since > -1d`, `2`},
		{"job", "id", `end_ts > 5`, `2; 8; 3`}, // the reference's rule: not ended, so met
		{"job", "id", `reason =~ m/second/`, `3`},
		{"job", "reason_trail", `id == 3 and reason =~ m/./`, `[["gnt:user","first",7],["gnt:user","second",7]]`},
		{"job", "id", `summary =~ m/^TEST_/`, `3`},
		{"job", "id", `received_ts >= -1m and received_ts < "1970-01-01 00:01" and status == "success"`, `3`},
		{"reason", "job", `timestamp == 1000000000 or timestamp == 3`, ``},
		{"reason", "job", `timestamp < "1970-01-01 00:00:02" and hop == 0 and job == 1`, `1`},
	} {
		if got := run(t, src, tc.what, tc.fields, tc.filter, query.Options{}); got != tc.want {
			t.Errorf("%s %s where %s: got %s, want %s", tc.what, tc.fields, tc.filter, got, tc.want)
		}
	}
}
