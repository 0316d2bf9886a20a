package query

import (
	"iter"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
)

func TestWrittenTimes(t *testing.T) {
	zone := time.FixedZone("", 3600)
	now := time.Unix(1_800_000_000, 0).In(zone)
	for text, want := range map[string]int64{
		"2026-11-15":                time.Date(2026, 11, 15, 0, 0, 0, 0, zone).Unix(),
		"2026-11-15 08:30":          time.Date(2026, 11, 15, 8, 30, 0, 0, zone).Unix(),
		"2026-11-15 08:30:15":       time.Date(2026, 11, 15, 8, 30, 15, 0, zone).Unix(),
		"2026-11-15T08:30:15Z":      time.Date(2026, 11, 15, 8, 30, 15, 0, time.UTC).Unix(),
		"2026-11-15T08:30:15-02:00": time.Date(2026, 11, 15, 10, 30, 15, 0, time.UTC).Unix(),
		"-1h":                       now.Unix() - 3600,
		"-1h30m":                    now.Unix() - 5400,
		"-2w":                       now.Unix() - 14*86400,
		"+10s":                      now.Unix() + 10,
	} {
		if got, ok := writtenTime(text, now); !ok || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "-", "1h", "-h", "-1", "-1y", "2026-13-01", "yesterday", "-99999999999h"} {
		if got, ok := writtenTime(text, now); ok {
			t.Errorf("%q: got %d", text, got)
		}
	}
}

func TestWrittenSizes(t *testing.T) {
	for text, want := range map[string]int64{"1G": 1024, "1.5g": 1536, "512M": 512, "2TiB": 2 << 20, "3GB": 3072, "0.5m": 1} {
		if got, ok := writtenSize(text); !ok || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "1", "G", "-1G", "1k", "1.G"} {
		if got, ok := writtenSize(text); ok {
			t.Errorf("%q: got %d", text, got)
		}
	}
}

func TestNanosKeepAllDigits(t *testing.T) {
	for n, want := range map[nanos]string{1795309512465136129: "1795309512.465136129", 5_000_000_000: "5", -1: "-0.000000001", 1_500_000_000: "1.5"} {
		if got := string(appendValue(nil, n)); got != want {
			t.Errorf("%d: got %s, want %s", int64(n), got, want)
		}
	}
	at := nanos(1795309512465136129)
	for want, c := range map[int64]int{1795309512465136129: 0, 1795309512465136128: 1, 1795309512465136130: -1, 1795309512: 1, 1795309513: -1} {
		if got := at.compare(big.NewInt(want)); got != c {
			t.Errorf("against %d: got %d, want %d", want, got, c)
		}
	}
	if compareCells(known(nanos(5)), known(nanos(7))) != -1 || compareCells(known(at), known(1795309512.0)) != 1 {
		t.Error("wrong order")
	}
}

// Moments that differ by less than a float can tell are sorted and paged right.
func TestPagesOfNanoseconds(t *testing.T) {
	in := &opcode.Opcode{ID: "OP_TEST_DUMMY"}
	for i := range 5 {
		in.Reason = append(in.Reason, reason.Entry{Source: "s", Time: 1795309512465136129 + int64(4-i)})
	}
	jobs := []*job.Job{{ID: 1, Ops: []job.Op{{Input: in, Status: job.Success}}}}
	src := &Source{Inventory: cluster.Empty(), Jobs: func(bool) iter.Seq2[*job.Job, error] { return readable(slices.Values(jobs)) }}
	after, seen := "", ""
	for range 3 {
		res, err := Run(src, "reason", []string{"hop"}, nil, Options{Sort: ParseSort([]string{"timestamp"}), Limit: 2, After: after})
		if err != nil {
			t.Fatal(err)
		}
		for row := range res.Rows() {
			seen += string(appendValue(nil, row[0].Value))
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
		if got := run(t, src, tc.what, tc.fields, tc.filter, Options{}); got != tc.want {
			t.Errorf("%s %s where %s: got %s, want %s", tc.what, tc.fields, tc.filter, got, tc.want)
		}
	}
}
