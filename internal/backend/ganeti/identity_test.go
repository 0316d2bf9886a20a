package ganeti

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
)

// TestAStockGanetiIsAskedForNothingOfAnother: it does things by name, so whoever has the name is looked at before.
func TestAStockGanetiIsAskedForNothingOfAnother(t *testing.T) {
	var there atomic.Value // the UUID of the instance that has the name
	var wrote atomic.Int32
	c := stock(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet:
			wrote.Add(1)
			_, _ = w.Write([]byte(`7`))
		case there.Load() == "":
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(notFound))
		default:
			_, _ = fmt.Fprintf(w, `{"name":"snf-1","uuid":%q,"tags":[],"admin_state":"up"}`, there.Load())
		}
	})
	s := &server.Server{ID: "s1", Instance: "snf-1", UUID: "u1", Backend: "far"}
	ops := map[string]func() (*opcode.Opcode, error){
		"add a tag": func() (*opcode.Opcode, error) {
			return s.TagOpcode(&servertag.Job{Action: servertag.Add, Tags: []servertag.Ref{{Raw: "x"}}})
		},
		"remove a tag": func() (*opcode.Opcode, error) {
			return s.TagOpcode(&servertag.Job{Action: servertag.Remove, Tags: []servertag.Ref{{Raw: "x"}}})
		},
		"apply a label": func() (*opcode.Opcode, error) {
			return s.EffectOpcode(&servertag.Applied{Effect: servertag.Effect{Label: "x"}})
		},
		"apply a parameter": func() (*opcode.Opcode, error) {
			return s.EffectOpcode(&servertag.Applied{Effect: servertag.Effect{Parameter: "vcpus", Value: int64(2)}})
		},
	}
	for _, do := range []server.Do{server.Delete, server.Start, server.Stop, server.Reboot, server.RebootHard} {
		ops[string(do)] = func() (*opcode.Opcode, error) { return s.Opcode(&server.Task{Do: do}) }
	}
	for what, opcode := range ops {
		for uuid, want := range map[string]fault.Code{"u1": "", "u2": fault.Exists, "": fault.NotFound} {
			op, err := opcode()
			if err != nil {
				t.Fatal(err)
			}
			there.Store(uuid)
			before := wrote.Load()
			if _, err := c.Submit(t.Context(), "key", op); fault.CodeOf(err) != want || (wrote.Load() == before) != (want != "") {
				t.Errorf("%s, with %q there: %v, and %d requests that change something", what, uuid, err, wrote.Load()-before)
			}
		}
	}
}

// TestAStockGanetiIsAskedByUUID where another instance has the name, or none; a cluster that cannot be asked so has none.
func TestAStockGanetiIsAskedByUUID(t *testing.T) {
	row := func(cells string) string { return `{"fields":[],"data":[[` + cells + `]]}` }
	for what, c := range map[string]struct {
		status int
		query  string // the answer to one by UUID
		uuid   string // of what is seen
		name   string
		want   fault.Code
	}{
		"renamed":                 {200, row(`[0,"renamed"],[0,"u1"],[0,["a"]],[0,"down"],[0,15.25]`), "u1", "renamed", ""},
		"gone":                    {200, `{"fields":[],"data":[]}`, "u2", "snf-1", ""},
		"no such resource":        {404, notFound, "u2", "snf-1", ""},
		"away":                    {503, `{}`, "", "", fault.Unavailable},
		"too few cells":           {200, row(`[0,"renamed"]`), "", "", fault.Unavailable},
		"another one":             {200, row(`[0,"renamed"],[0,"u3"],[0,[]],[0,"down"],[0,1]`), "", "", fault.Unavailable},
		"a cell that is not told": {200, row(`[0,"renamed"],[0,"u1"],[3,null],[0,"down"],[2,"x"]`), "", "", fault.Unavailable},
	} {
		t.Run(what, func(t *testing.T) {
			cluster := stock(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet && r.URL.Path == "/2/instances" {
					_, _ = w.Write([]byte(`[{"name":"snf-1","uuid":"u2"}]`))
					return
				}
				if r.Method == http.MethodGet {
					_, _ = w.Write([]byte(`{"name":"snf-1","uuid":"u2","tags":[],"admin_state":"up"}`))
					return
				}
				var asked struct{ QFilter []string }
				body, _ := io.ReadAll(r.Body)
				if r.URL.Path != "/2/query/instance" || json.Unmarshal(body, &asked) != nil || strings.Join(asked.QFilter, " ") != "= uuid u1" {
					t.Errorf("it is asked %s %s %s", r.Method, r.URL, body)
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.query))
			})
			sight, err := cluster.Look(t.Context(), server.Ref{UUID: "u1", Name: "snf-1"}, nil)
			if fault.CodeOf(err) != c.want || sight.UUID != c.uuid || sight.Name != c.name || sight.Instance != (c.uuid != "") {
				t.Errorf("it is seen as %+v, %v", sight, err)
			}
			if (sight.Absent != "") != (c.uuid == "u2") { // another one has the name
				t.Errorf("it is not there since %q", sight.Absent)
			}
			if what == "renamed" && (!sight.Stopped || sight.Made != 15.25e6 || strings.Join(sight.Tags, " ") != "a") {
				t.Errorf("it is seen as %+v", sight)
			}
		})
	}
}

// TestCreationsOfAStockGaneti are found by their reason, as long as the jobs are known; of several the one counts that
// made the instance.
func TestCreationsOfAStockGaneti(t *testing.T) {
	text := func(id int, op, why, status string) string {
		return fmt.Sprintf(`{"id":%d,"ops":[{"OP_ID":%q,"instance_name":"snf-1","reason":[["gnt:library:rlib2","alice; %s",1]]}],"status":%q,"opstatus":[%q],"opresult":[null],"start_ts":[10,5],"end_ts":[20,7]}`,
			id, op, why, status, status)
	}
	for what, c := range map[string]struct {
		jobs  map[int]string
		known bool
		ok    bool
	}{
		"it made it":               {map[int]string{5: text(5, "OP_INSTANCE_CREATE", "create server s1, request r", "success")}, true, true},
		"the second of two failed": {map[int]string{5: text(5, "OP_INSTANCE_CREATE", "create server s1", "success"), 6: text(6, "OP_INSTANCE_CREATE", "create server s1", "error")}, true, true},
		"it failed":                {map[int]string{5: text(5, "OP_INSTANCE_CREATE", "create server s1", "error")}, true, false},
		"it runs":                  {map[int]string{5: text(5, "OP_INSTANCE_CREATE", "create server s1", "running")}, false, false},
		"another server's":         {map[int]string{5: text(5, "OP_INSTANCE_CREATE", "create server s2", "success")}, false, false},
		"another job of it":        {map[int]string{5: text(5, "OP_INSTANCE_STARTUP", "create server s1", "success")}, false, false},
		"not known any more":       {map[int]string{}, false, false},
	} {
		t.Run(what, func(t *testing.T) {
			cluster := stock(t, func(w http.ResponseWriter, r *http.Request) {
				var id int
				if _, err := fmt.Sscanf(r.URL.Path, "/2/jobs/%d", &id); err == nil {
					_, _ = w.Write([]byte(c.jobs[id]))
					return
				}
				var all []string
				for id := range 10 {
					if c.jobs[id] != "" {
						all = append(all, c.jobs[id])
					}
				}
				_, _ = w.Write([]byte("[" + strings.Join(all, ",") + "]"))
			})
			o, known, err := cluster.Creation(t.Context(), "key", &server.Server{ID: "s1", Instance: "snf-1"})
			if err != nil || known != c.known || o.OK != c.ok || known && (o.Began != 10e6+5 || o.Ended != 20e6+7) && o.OK {
				t.Errorf("it is told as %+v %v, %v", o, known, err)
			}
		})
	}
}
