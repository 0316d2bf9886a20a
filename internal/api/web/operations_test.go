package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/reason"
)

// TestOperationsAreOnesOfTheirOpcodes: each takes the parameters that it is given, knows which thing is meant by more than a name, and can be asked for.
func TestOperationsAreOnesOfTheirOpcodes(t *testing.T) {
	for item, all := range operations {
		for _, o := range all {
			def, ok := opcode.Lookup(o.opcode)
			if !ok {
				t.Errorf("%s %s is no opcode: %s", item, o.Name, o.opcode)
				continue
			}
			params := []string{o.target}
			if (o.uuid == "") != (o.Name == "add") {
				t.Errorf("%s %s is about whatever has the name by then", item, o.Name)
			}
			if o.uuid != "" {
				params = append(params, o.uuid)
			}
			for name := range o.fixed {
				params = append(params, name)
			}
			for _, a := range o.Asks {
				if a.param != "" {
					params = append(params, a.param)
				}
				if a.param == "" && o.complete == nil {
					t.Errorf("%s %s asks for %s in vain", item, o.Name, a.Name)
				}
			}
			for _, name := range params {
				if !slices.ContainsFunc(def.Params, func(p opcode.Param) bool { return p.Name == name }) {
					t.Errorf("%s %s: %s has no parameter %s", item, o.Name, o.opcode, name)
				}
			}
		}
	}
}

// operate has something done, or shown with "/preview" behind it, and returns the status and the answer.
func (r *rig) operate(session, what, body string) (int, string) {
	r.Helper()
	status, text, _ := r.ask("POST", "/api/operations/"+what, session, body)
	return status, text
}

// outlook is what an operation would do.
func (r *rig) outlook(session, what, body string) (out operationShown) {
	r.Helper()
	status, text := r.operate(session, what+"/preview", body)
	if status != http.StatusOK {
		r.Fatalf("%s %s: %d %s", what, body, status, text)
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		r.Fatal(err)
	}
	return out
}

// carriedOut is the job that an operation makes, when it has ended.
func (r *rig) carriedOut(session, what, body string) *job.Job {
	r.Helper()
	var out carriedOut
	status, text := r.operate(session, what, body)
	if err := json.Unmarshal([]byte(text), &out); err != nil || status != http.StatusOK {
		r.Fatalf("%s %s: %d %s", what, body, status, text)
	}
	j, err := r.c.Queue.Wait(r.Context(), out.Job, func(j *job.Job) bool { return j.Status().Final() })
	if err != nil {
		r.Fatal(err)
	}
	return j
}

// TestOperations: an instance is made where it was shown to go, stopped, and removed when its name was typed; each says who wanted it and why.
func TestOperations(t *testing.T) {
	r := newRig(t)
	ada, bo := r.signIn("ada", "secret"), r.signIn("bo", "secret")
	const answers = `"name":"web1.example.com","given":{"os":"noop","size":"1.5G","memory":"256M","vcpus":"2","template":"file","stopped":"yes"}`
	seen := r.outlook(ada, "instance/add", "{"+answers+"}")
	if seen.Problem != nil || len(seen.Steps) == 0 || seen.Placement == nil || seen.Placement.Node == "" || seen.Placement.Disk < 1536 || seen.Placement.Memory != 256 {
		t.Fatalf("what would be done: %+v", seen)
	}
	if want := "drover instance add web1.example.com --os noop --os-size 1.5G --disk-template file --no-start -B 'memory=256M,vcpus=2'"; seen.Command != want {
		t.Errorf("the command is %s", seen.Command)
	}
	if n := r.c.Queue.Jobs().Len(); n != 0 {
		t.Fatalf("a preview made %d jobs", n)
	}
	const add = "{" + answers + `,"reason":"OPS-1: a shop","key":"a"}`
	made := r.carriedOut(ada, "instance/add", add)
	if made.Status() != job.Success {
		t.Fatalf("it was not made: %s", made.Ops[0].Result)
	}
	if again := r.carriedOut(ada, "instance/add", add); again.ID != made.ID {
		t.Errorf("handed in twice it was done twice: jobs %d and %d", made.ID, again.ID)
	}
	if trail := fmt.Sprint(made.Trail()); !strings.Contains(trail, "OPS-1: a shop") || !strings.Contains(trail, "drover-web") || !strings.Contains(trail, "gnt:account:web ada") {
		t.Errorf("it was made because of %s", trail)
	}
	rows := r.query("instance", "name,pnode,status,disk.sizes,be/vcpus,uuid", "")
	if len(rows) != 1 || !strings.Contains(rows[0], seen.Placement.Node) || !strings.Contains(rows[0], "ADMIN_down") || !strings.Contains(rows[0], "1536") {
		t.Fatalf("there is %s, and it was to be on %s", rows, seen.Placement.Node)
	}
	inst := slices.Collect(r.c.Keeper.Snapshot().Instances())[0]
	about := fmt.Sprintf(`"name":"web1.example.com","uuid":%q,`, inst.UUID)

	if out := r.outlook(ada, "instance/start", `{`+about+`"given":{}}`); out.Problem != nil || len(out.Steps) == 0 || out.Command != "drover instance start web1.example.com" {
		t.Errorf("a start: %+v", out)
	}
	r.addRule(`{"action":"PAUSE","name":"freeze"}`, `reason: reason =~ m/^OPS-9/`)
	if out := r.outlook(ada, "instance/start", `{`+about+`"reason":"OPS-9: now"}`); !strings.Contains(out.Rule, "would be held by filter rule freeze") {
		t.Errorf("a start that a rule would hold: %+v", out)
	}
	if out := r.outlook(ada, "instance/start", `{`+about+`"reason":"OPS-8: now"}`); out.Rule != "" {
		t.Errorf("a start that no rule would hold: %s", out.Rule)
	}
	if out := r.outlook(ada, "instance/migrate", `{`+about+`"given":{}}`); out.Problem == nil {
		t.Errorf("a migration without a mirror: %+v", out)
	}
	another := `"name":"web1.example.com","uuid":"c2a4e8b0-0000-4000-8000-000000000000",`
	if out := r.outlook(ada, "instance/remove", `{`+another+`"given":{}}`); out.Problem == nil {
		t.Error("it would remove another instance than the one that was shown")
	}
	for what, c := range map[string][3]string{
		"no name":                  {"instance/start", `{"uuid":"x","reason":"r","key":"k"}`, "say which instance"},
		"no UUID":                  {"instance/start", `{"name":"web1.example.com","reason":"r","key":"k"}`, "was shown under that name"},
		"no reason":                {"instance/start", `{` + about + `"key":"k"}`, "say why"},
		"no key":                   {"instance/start", `{` + about + `"reason":"r"}`, "key"},
		"what it does not ask for": {"instance/start", `{` + about + `"reason":"r","key":"k","given":{"force":"yes"}}`, `asks for no \"force\"`},
		"no name typed":            {"instance/remove", `{` + about + `"reason":"r","key":"k"}`, "type the name"},
		"another name typed":       {"instance/remove", `{` + about + `"reason":"r","key":"k","typed":"web2"}`, "type the name"},
		"no number":                {"instance/stop", `{` + about + `"reason":"r","key":"k","given":{"timeout":"soon"}}`, "is a number"},
		"no choice":                {"instance/reboot", `{` + about + `"reason":"r","key":"k","given":{"type":"gently"}}`, "hard, soft, full"},
		"no size":                  {"instance/add", `{"name":"x","reason":"r","key":"k","given":{"os":"noop","size":"large"}}`, "a unit M, G or T"},
		"nothing that there is":    {"instance/paint", `{` + about + `"reason":"r","key":"k"}`, "the page does nothing"},
		"a kind that there is not": {"moon/start", `{` + about + `"reason":"r","key":"k"}`, "the page does nothing"},
	} {
		if status, text := r.operate(ada, c[0], c[1]); status < 400 || status >= 500 || !strings.Contains(text, c[2]) {
			t.Errorf("%s: %d %s", what, status, text)
		}
	}
	if status, _ := r.operate(bo, "instance/start", `{`+about+`"reason":"r","key":"k"}`); status != http.StatusForbidden {
		t.Errorf("who may only look starts it: %d", status)
	}
	if j := r.carriedOut(ada, "instance/remove", `{`+another+`"typed":"web1.example.com","reason":"r","key":"b"}`); j.Status() != job.Error || len(slices.Collect(r.c.Keeper.Snapshot().Instances())) != 1 {
		t.Errorf("another instance than the one that was shown is removed: %s", j.Status())
	}
	if j := r.carriedOut(ada, "instance/remove", `{`+about+`"typed":"web1.example.com","reason":"OPS-2: over","key":"c"}`); j.Status() != job.Success || len(slices.Collect(r.c.Keeper.Snapshot().Instances())) != 0 {
		t.Errorf("it is not removed: %s %s", j.Status(), j.Ops[0].Result)
	}
}

// TestWhatMayBeAnswered: images and operating systems, nodes and groups, as the cluster has them.
func TestWhatMayBeAnswered(t *testing.T) {
	r := newRig(t)
	bo := r.signIn("bo", "secret")
	status, text, _ := r.ask("GET", "/api/operations/instance", bo, "")
	var all []operation
	if err := json.Unmarshal([]byte(text), &all); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	add := all[slices.IndexFunc(all, func(o operation) bool { return o.Name == "add" })]
	for name, want := range map[string]string{"os": "noop", "node": "node1.example", "group": "default", "template": "file"} {
		i := slices.IndexFunc(add.Asks, func(a question) bool { return a.Name == name })
		if !slices.ContainsFunc(add.Asks[i].Choices, func(c string) bool { return strings.HasPrefix(c, want) }) {
			t.Errorf("%s may be %q", name, add.Asks[i].Choices)
		}
	}
	if status, text, _ := r.ask("GET", "/api/operations/moon", bo, ""); status != http.StatusNotFound {
		t.Errorf("%d %s", status, text)
	}
}

// addRule adds a filter rule as somebody else.
func (r *rig) addRule(parts, when string) {
	r.Helper()
	e, err := jobfilter.ParseEdit([]byte(`{"do":"put","rule":"","parts":` + parts + `}`))
	if err != nil {
		r.Fatal(err)
	}
	if e.Parts.Predicates, err = jobfilter.ParseWhen(when); err != nil {
		r.Fatal(err)
	}
	by := queue.By{Account: reason.Account{Name: "root", Surface: "luxi"}}
	if _, err := r.c.Queue.ChangeFilters(r.Context(), queue.FilterChange{Edits: []jobfilter.Edit{e}, By: by}); err != nil {
		r.Fatal(err)
	}
}
