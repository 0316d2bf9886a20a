package servers

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/drover-project/drover/internal/cli/shell"
)

// TestReconciliationIsToldWithItsStatus: what a person reads of differences, and
// what a script learns from the exit status.
func TestReconciliationIsToldWithItsStatus(t *testing.T) {
	differs := `{"server":"s1","name":"web","instance":"snf-1","differences":[
		{"namespace":"user","tag":"a","raw":"cyclades:user:a","what":"lacking","why":"it is wanted","do":"a job adds it"},
		{"raw":"cyclades:user:x_y","what":"misspelt","why":"it stands for no name","do":"nothing"}]}`
	away := `{"server":"s2","name":"db","backend":"far","instance":"snf-2","unreachable":"no route","differences":[]}`
	gone := `{"server":"s3","name":"old","instance":"snf-3","missing":true,"absent":"the inventory of revision 7 does not have it","differences":[]}`
	busy := `{"server":"s4","name":"app","instance":"snf-4","differences":[{"namespace":"user","tag":"a","raw":"cyclades:user:a","what":"under-way",
		"why":"job 7 is to add it","do":"nothing before it has ended: drover job explain 7 tells what it waits for"}]}`
	for _, tc := range []struct {
		answer, text string
		fix          bool
		status       int
	}{
		{`{"looked":2,"findings":[]}`, "2 servers looked at; all of them agree with their clusters\n", false, shell.ExitOK},
		{`{"looked":1,"drift":true,"findings":[` + differs + `]}`, "s1 (web, snf-1 on cluster own)\n" +
			"  lacking      a: it is wanted; a job adds it\n  misspelt     cyclades:user:x_y: it stands for no name; nothing\n" +
			"1 server looked at; 1 of them differs from its cluster\n", false, shell.ExitWouldChange},
		{`{"looked":1,"drift":true,"fixed":true,"findings":[` + gone + `]}`, "s3 (old, snf-3 on cluster own)\n" +
			"  the instance is not there any more: the inventory of revision 7 does not have it; the server becomes DELETED, and keeps what its user wants\n" +
			"1 server looked at; 1 of them differs from its cluster, and was dealt with\n", true, shell.ExitOK},
		{`{"looked":1,"drift":true,"fixed":true,"left":true,"findings":[` + gone + `]}`, "s3 (old, snf-3 on cluster own)\n" +
			"  the instance is not there any more: the inventory of revision 7 does not have it; the server becomes DELETED, and keeps what its user wants\n" +
			"1 server looked at; 1 of them differs from its cluster, and something was left alone: drover server reconcile tells what\n", true, shell.ExitWouldChange},
		{`{"looked":1,"drift":false,"fixed":true,"findings":[` + busy + `]}`, "s4 (app, snf-4 on cluster own)\n" +
			"  under-way    a: job 7 is to add it; nothing before it has ended: drover job explain 7 tells what it waits for\n" +
			"1 server looked at; 1 of them differs from its cluster, and jobs are at it\n", true, shell.ExitOK},
		{`{"looked":1,"drift":true,"fixed":false,"findings":[` + away + `]}`, "s2 (db, snf-2 on cluster far)\n  the cluster cannot be asked: no route\n" +
			"1 server looked at; 1 of them differs from its cluster\n", true, shell.ExitFailed},
	} {
		var r reconciliation
		if err := json.Unmarshal([]byte(tc.answer), &r); err != nil {
			t.Fatal(err)
		}
		if got := r.text(); got != tc.text {
			t.Errorf("%s\n got  %q\n want %q", tc.answer, got, tc.text)
		}
		status := shell.ExitOK
		if e, is := errors.AsType[*shell.ExitError](r.verdict(tc.fix)); is {
			status = e.Status
		}
		if status != tc.status {
			t.Errorf("%s: status %d, want %d", tc.answer, status, tc.status)
		}
	}
}
