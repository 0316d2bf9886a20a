package jobs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cli/work"
	"github.com/drover-project/drover/internal/testkit"
)

// TestConformanceJobWatch compares the recorded outputs of following a job with
// what its recorded log and results give.
func TestConformanceJobWatch(t *testing.T) {
	jobs := recordedJobs(t)
	for file, id := range map[string]string{"gnt-job_watch.txt": "54", "gnt-job_watch_error.txt": "56"} {
		d := jobs[id]
		got := watchHeading(d.ID)
		for _, entries := range d.OpLog {
			for _, e := range entries {
				got += e.Line() + "\n"
			}
		}
		if want := testkit.RecordedOutput(t, file); got != want {
			t.Fatalf("%s: %s", file, testkit.FirstDifference(got, want))
		}
		_, failure, _ := strings.Cut(string(testkit.ReadConformance(t, "golden/cli/"+file)), "# ---- stderr\n")
		end := work.Ending{ID: d.ID, Status: d.Status, Statuses: d.OpStatus, Results: d.OpResult}
		if text := fmt.Sprintf("Job %d failed: %s\n", d.ID, end.ClassicVerdict()); failure != "" && text != failure {
			t.Fatalf("%s: %s", file, testkit.FirstDifference(text, failure))
		}
	}
	t.Log("gnt-job watch: 2 of 2 outputs equal")
}
