package jobs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cli/classic"
	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/testkit"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // the recordings were made in this zone
	os.Exit(m.Run())
}

// recordedJobs are the jobs of the recorded cluster, by id.
func recordedJobs(t *testing.T) map[string]*jobDetails {
	t.Helper()
	var rec struct {
		Response struct{ Result listing.Answer }
	}
	if err := json.Unmarshal(testkit.ReadConformance(t, "golden/luxi/Query_job_all_fields.json"), &rec); err != nil {
		t.Fatal(err)
	}
	answer := rec.Response.Result
	out := map[string]*jobDetails{}
	for _, cells := range answer.Data {
		byName := map[string]json.RawMessage{}
		for i, f := range answer.Fields {
			byName[f.Name] = cells[i].Value
		}
		names, _ := new(jobDetails).details()
		row := make([]json.RawMessage, len(names))
		for i, name := range names {
			row[i] = byName[name]
		}
		d, err := newJobDetails(row)
		if err != nil {
			t.Fatal(err)
		}
		out[d.ID.String()] = d
	}
	return out
}

// TestConformanceJobInfo compares what info shows of recorded jobs with the
// recorded output, byte for byte. Recordings of jobs that went on afterwards
// have no counterpart among the recorded values.
func TestConformanceJobInfo(t *testing.T) {
	jobs := recordedJobs(t)
	files, err := filepath.Glob(filepath.Join(testkit.Conformance(t, "golden", "cli"), "gnt-job_info_*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	equal, unfinished := 0, 0
	id := regexp.MustCompile(`^- Job ID: (\d+)\n`)
	for _, file := range files {
		want := testkit.RecordedOutput(t, filepath.Base(file))
		m := id.FindStringSubmatch(want)
		if m == nil { // the job that does not exist; the scripts show it
			continue
		}
		d := jobs[m[1]]
		if d == nil || !strings.Contains(want, "  Status: "+d.Status+"\n") {
			unfinished++
			continue
		}
		got := classic.Outline([]any{d.outline()})
		if got != want {
			t.Errorf("%s:\n%s", filepath.Base(file), testkit.FirstDifference(got, want))
			continue
		}
		equal++
	}
	t.Logf("gnt-job info: %d of %d outputs equal, %d of jobs that went on afterwards", equal, len(files), unfinished)
}
