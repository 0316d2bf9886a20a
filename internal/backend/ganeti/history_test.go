package ganeti

import (
	"net/http"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/events"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
)

// TestHistory: jobs and instances as a stock Ganeti tells of them.
func TestHistory(t *testing.T) {
	answers := map[string]string{
		"/2/info": `{"name":"far.example"}`,
		"/2/jobs": `[{"id":"7","uri":"/2/jobs/7"},{"id":8,"uri":"/2/jobs/8"}]`,
		"/2/jobs/7": `{"id":7,"status":"cancelled","ops":[{"OP_ID":"OP_TAGS_SET","kind":"instance","name":"snf-1","tags":["a"],"dry_run":true,"new_in_4":1}],
			"opstatus":["cancelled"],"opresult":[null],"oplog":[[[1,[1,2],"message","one"],[2,[1,2],"message","two"]]],"end_ts":[5,6]}`,
		"/2/jobs/9":          `{"id":9,"status":"success","ops":[{}],"opstatus":[],"opresult":[]}`,
		"/2/jobs/10":         `{"id":10,"status":"success","ops":{},"opstatus":[],"opresult":[]}`,
		"/2/jobs/11":         `<html>`,
		"/2/jobs/12":         `{"id":12,"status":"success","ops":[],"opstatus":[],"opresult":["` + strings.Repeat("x", maxJob) + `"]}`,
		"/2/jobs/13":         `{"id":13,"status":"success","ops":[],"opstatus":[],"opresult":[` + strings.Repeat("1,", maxValues) + `1]}`,
		"/2/instances/snf-2": `{"nic.macs":["` + strings.Repeat("x", maxSmall) + `"]}`,
		"/2/instances/snf-1": `{"nic.names":[null],"nic.uuids":["u1"],"nic.macs":["aa"],"nic.ips":[null],"nic.networks.names":["net"],"disk.sizes":[128],
			"disk.names":["root"],"hvparams":{"x":1},"tags":["synnefo:network:u1:protected"]}`,
	}
	c := stock(t, func(w http.ResponseWriter, r *http.Request) {
		text, known := answers[r.URL.Path]
		if !known {
			w.WriteHeader(http.StatusNotFound)
			text = notFound
		}
		_, _ = w.Write([]byte(text)) // a client that is gone fails the test by itself
	})
	if name, err := c.Name(t.Context()); name != "far.example" || err != nil {
		t.Errorf("the name is %q, %v", name, err)
	}
	if ids, err := c.Jobs(t.Context()); len(ids) != 2 || ids[0] != 7 || ids[1] != 8 || err != nil {
		t.Errorf("the jobs are %v, %v", ids, err)
	}
	machine, err := c.Machine(t.Context(), "snf-1")
	if err != nil || machine.NICs[0] != (events.NIC{Name: "u1", MAC: "aa", Network: "net", Firewall: "ENABLED"}) || machine.Disks[0] != (events.Disk{Name: "root", Size: 128}) {
		t.Errorf("the instance is %+v, %v", machine, err)
	}
	if none, err := c.Machine(t.Context(), "nosuch"); none != nil || err != nil {
		t.Errorf("an instance that is not there: %v %v", none, err)
	}
	j, err := c.Job(t.Context(), 7)
	if err != nil {
		t.Fatal(err)
	}
	m, ended := events.Of("far.example", j, 0, nil)
	want := `{"type":"ganeti-op-status","instance":"snf-1","operation":"OP_TAGS_SET","status":"canceled","jobId":7,"event_time":[5,6],"cluster":"far.example",` +
		`"tags":["a"],"job_fields":{"dry_run":true},"logmsg":"two","result":null}`
	if !ended || m.ID != "far.example:7:0:canceled" || string(m.Body) != want {
		t.Errorf("%v %s\n got  %s\n want %s", ended, m.ID, m.Body, want)
	}
	if _, err := c.Machine(t.Context(), "snf-2"); !fault.Is(err, fault.TooLarge) {
		t.Errorf("an instance of which too much is told: %v", err)
	}
	// What comes again however often it is asked for is told from what may pass.
	for id, code := range map[job.ID]fault.Code{8: fault.NotFound, 9: fault.Invalid, 10: fault.Invalid, 11: fault.Unavailable, 12: fault.TooLarge, 13: fault.TooLarge} {
		if _, err := c.Job(t.Context(), id); !fault.Is(err, code) {
			t.Errorf("job %d: %v", id, err)
		}
	}
}
