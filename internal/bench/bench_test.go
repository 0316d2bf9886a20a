package bench_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/bench"
	"github.com/drover-project/drover/internal/luxiwire"
)

// startDev runs a cluster and returns its ready file.
func startDev(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "bench") //nolint:usetesting // short, for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	said, says := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- app.Run(ctx, app.Options{Data: dir, RAPI: "127.0.0.1:0", Compute: "127.0.0.1:0", Nodes: 1, Out: says, Log: slog.New(slog.DiscardHandler)})
		_ = says.Close()
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "is ready") {
			go func() { _, _ = io.Copy(io.Discard, said) }()
			return filepath.Join(dir, "ready.json")
		}
	}
	t.Fatalf("the cluster did not come up: %v", <-ended)
	return ""
}

func run(args ...string) (string, error) {
	cmd := bench.Command()
	cmd.PersistentFlags().String("output", "table", "") // as the root command has it
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

// measured runs a measurement, and holds its figures to the names and units that are
// expected (patterns, in order), and to times that fit into the run's own.
func measured(t *testing.T, want []string, args ...string) map[string]float64 {
	t.Helper()
	begun := time.Now()
	out, err := run(append(args, "--output", "json")...)
	took := time.Since(begun)
	if err != nil {
		t.Fatal(err)
	}
	var report bench.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Figures) != len(want) || report.Fdatasync[0] <= 0 || report.Fdatasync[1] <= 0 {
		t.Fatalf("%d figures, want %d: %s", len(report.Figures), len(want), out)
	}
	figures := map[string]float64{}
	for i, f := range report.Figures {
		if !regexp.MustCompile("^" + want[i] + "$").MatchString(f.Name + " [" + f.Unit + "]") {
			t.Errorf("figure %q [%s], want %q", f.Name, f.Unit, want[i])
		}
		if f.Value <= 0 || f.Target == "" || f.Unit == "ms" && f.Value > float64(took.Milliseconds()) {
			t.Errorf("figure %+v of a run of %v", f, took)
		}
		figures[f.Name] = f.Value
	}
	return figures
}

// jobs counts the jobs of the controller by status.
func jobs(t *testing.T, ready string) map[string]int {
	t.Helper()
	var at struct{ LUXI string }
	data, err := os.ReadFile(ready)
	if err == nil {
		err = json.Unmarshal(data, &at)
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := luxiwire.Dial(t.Context(), at.LUXI)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	var rows [][]string
	if err := c.Call(t.Context(), "QueryJobs", []any{nil, []string{"status"}}, &rows); err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, row := range rows {
		out[row[0]]++
	}
	return out
}

func TestQueueIsMeasured(t *testing.T) {
	ready := startDev(t)
	before := jobs(t, ready)
	begun := time.Now()
	figures := measured(t, []string{
		`memory before the run \[MiB\]`, `submit a job over LUXI, median \[ms\]`, `submit a no-op job and wait for its end over LUXI, median \[ms\]`,
		`no-op jobs from submission to end over LUXI, 8 clients, 100 jobs \[1/s\]`, `submissions over RAPI, 8 keep-alive clients, 100 jobs \[1/s\]`,
		`a new filter rule is in force, median \[ms\]`, `a held job ends after its rule is deleted, median \[ms\]`, `a held job is cancelled, median \[ms\]`,
	}, "queue", "--ready-file", ready, "--jobs", "100", "--rounds", "5")
	took := time.Since(begun)
	// One by one 5, in batches 100, over RAPI 100, and three times a held one that ends and one that is cancelled.
	after := jobs(t, ready)
	if made, gone := after["success"]-before["success"], after["canceled"]-before["canceled"]; made != 208 || gone != 3 {
		t.Errorf("%d jobs succeeded and %d were cancelled", made, gone)
	}
	if figures["submit a job over LUXI, median"] > figures["submit a no-op job and wait for its end over LUXI, median"] {
		t.Errorf("a job ends before it is submitted: %v", figures)
	}
	for name, rate := range figures {
		if strings.HasSuffix(name, " 100 jobs") && 100/rate > took.Seconds() {
			t.Errorf("%s: 100 jobs would have taken longer than the run: %v, %v", name, rate, took)
		}
	}
	out, err := run("queue", "--ready-file", ready, "--jobs", "50", "--rounds", "2")
	if err != nil || strings.Count(out, "\n") != 11 {
		t.Errorf("table %v\n%s", err, out)
	}
}

func TestListsAreMeasured(t *testing.T) {
	ready := startDev(t)
	for range 2 { // the second time the instances are there
		figures := measured(t, []string{
			`all \d{3} fields of all instances, first byte, median \[ms\]`, `all \d{3} fields of all instances, all 0\.[1-9] MB, median \[ms\]`,
			`8 fields of instances, a filter that an index answers, first byte, median \[ms\]`, `8 fields of instances, a filter that an index answers, all 0\.0 MB, median \[ms\]`,
			`8 fields of instances, a filter that looks at all, first byte, median \[ms\]`, `8 fields of instances, a filter that looks at all, all 0\.0 MB, median \[ms\]`,
			`submissions over LUXI, one client, 300 jobs \[1/s\]`, `the same while lists of all fields are read \[1/s\]`,
			`a query that looks at all instances, median \[ms\]`, `the same beside \d+ no-op jobs a second \[ms\]`,
		}, "query", "--ready-file", ready, "--instances", "60", "--rounds", "3")
		for name, first := range figures {
			list, isFirst := strings.CutSuffix(name, ", first byte, median")
			for other, whole := range figures {
				if isFirst && other != name && strings.HasPrefix(other, list+", all ") && first > whole {
					t.Errorf("%s: the first byte comes after the last: %v", list, figures)
				}
			}
		}
	}
}

func TestTagsAreMeasured(t *testing.T) {
	measured(t, []string{`add one tag.* \[ms\]`, `50 tags on 5 servers until they are ACTIVE \[1/s\]`, `list 5 servers with their tags \[ms\]`},
		"tags", "--ready-file", startDev(t), "--servers", "5", "--rounds", "3")
}

// Two programs are asked for the same, as often and as much; here both are one.
func TestTwoAreMeasuredInTurns(t *testing.T) {
	ready := startDev(t)
	before := jobs(t, ready)
	took, err := bench.Pair(t.Context(), ready, ready, bench.Amount{Cycles: 6, Instances: 100, Jobs: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range took {
		if len(x.Before) < 3 || len(x.Before) != len(x.Now) || bench.Median(x.Before) <= 0 || x.Ratio() <= 0 {
			t.Errorf("%s: %v and %v, %v times", x.Name, x.Before, x.Now, x.Ratio())
		}
	}
	// One by one 6 of three kinds, three times three turns with a rule that lets one go and has one cancelled, three times 100 of two kinds: of each. The instances
	// are there once.
	after := jobs(t, ready)
	if made, gone := after["success"]-before["success"], after["canceled"]-before["canceled"]; made != 100+2*(18+9+600) || gone != 2*9 {
		t.Errorf("%d jobs succeeded and %d were cancelled", made, gone)
	}
	if _, err := bench.Pair(t.Context(), ready, filepath.Join(t.TempDir(), "none"), bench.Amount{Cycles: 1}); err == nil || !strings.Contains(err.Error(), "ready") {
		t.Error(err)
	}
	if two := (bench.Times{Before: []time.Duration{3, 1, 2}, Now: []time.Duration{4, 9, 1}}).Ratio(); two != 2 {
		t.Errorf("4 is %v times 2", two)
	}
}

func TestMissingReadyFile(t *testing.T) {
	for _, args := range [][]string{{"queue"}, {"query"}, {"queue", "--ready-file", filepath.Join(t.TempDir(), "none")}} {
		if _, err := run(args...); err == nil || !strings.Contains(err.Error(), "ready") {
			t.Errorf("%v: %v", args, err)
		}
	}
}
