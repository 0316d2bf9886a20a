package rapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/store/format"
)

const web1 = "/2/instances/web1.gntpeer.example"

func TestInstanceLife(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.create("web1.gntpeer.example")
	r.succeed(http.MethodPut, web1+"/shutdown", nil)
	r.succeed(http.MethodPut, web1+"/startup", nil)
	r.succeed(http.MethodPost, web1+"/reboot?type=hard", nil)
	r.succeed(http.MethodPut, web1+"/tags?tag=a&tag=b", nil)
	var tags []string
	r.do(http.MethodGet, web1+"/tags", nil).decode(t, &tags)
	if strings.Join(tags, ",") != "a,b" {
		t.Errorf("tags = %v", tags)
	}
	r.succeed(http.MethodDelete, web1+"/tags?tag=a", nil)
	r.succeed(http.MethodDelete, web1, nil)
	if a := r.do(http.MethodGet, web1, nil); a.status != http.StatusNotFound {
		t.Errorf("removed instance: %d %s", a.status, a.text)
	}
}

// TestTheInstanceThatIsMeant: whoever gives its UUID does nothing to another one that has the name.
func TestTheInstanceThatIsMeant(t *testing.T) {
	for what, stored := range map[string]int{"the format lets jobs hold it": format.Identities, "the format of before": format.First} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, rigOptions{format: stored})
			r.create("web1.gntpeer.example")
			before := r.shown.Load().Inventory.InstanceNamed("web1.gntpeer.example")
			const other = "instance_uuid=11111111-2222-3333-4444-555555555555"
			verbs := []struct {
				method, path string
				body         any
			}{
				{http.MethodPut, web1 + "/tags?tag=a&", nil}, {http.MethodDelete, web1 + "/tags?tag=a&", nil},
				{http.MethodPost, web1 + "/reboot?type=hard&", nil}, {http.MethodPut, web1 + "/modify?", map[string]any{"beparams": map[string]any{"vcpus": 2}}},
				{http.MethodPut, web1 + "/shutdown?", nil}, {http.MethodPut, web1 + "/startup?", nil}, {http.MethodDelete, web1 + "?", nil},
			}
			for _, v := range verbs {
				a := r.do(v.method, v.path+other, v.body)
				if a.status == http.StatusOK {
					var id job.ID
					a.decode(t, &id)
					j, err := r.queue.Wait(t.Context(), id, (*job.Job).Final)
					r.check(err)
					if j.Status() != job.Error {
						t.Errorf("%s %s of another one: %s", v.method, v.path, j.Status())
					}
				}
				if now := r.shown.Load().Inventory.InstanceNamed(before.Name); now != before {
					t.Errorf("behind %s %s it is %+v", v.method, v.path, now)
				}
			}
			for _, v := range verbs {
				j := r.succeed(v.method, v.path+"instance_uuid="+before.UUID, v.body)
				if op := j.Ops[0].Input; stored == format.First && strings.HasPrefix(op.ID, "OP_TAGS") && op.Has("instance_uuid") {
					t.Errorf("below the format a job holds %+v", op.Params)
				}
			}
		})
	}
}

// TestEveryChangeHeedsTheInstanceThatIsMeant: whatever changes an instance leaves another one that has the name alone.
func TestEveryChangeHeedsTheInstanceThatIsMeant(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.create("web1.gntpeer.example")
	before := r.shown.Load().Inventory.InstanceNamed("web1.gntpeer.example")
	const other = "11111111-2222-3333-4444-555555555555"
	bodies := map[string]any{ // where one is needed, or says what is to be done
		"/reinstall": map[string]any{"os": "noop"}, "/rename": map[string]any{"new_name": "web2.gntpeer.example", "ip_check": false, "name_check": false},
		"/modify": map[string]any{"beparams": map[string]any{"vcpus": 2}}, "/disk/0/grow": map[string]any{"amount": 1}, "/replace-disks": map[string]any{"mode": "replace_auto"},
		"/export": map[string]any{"mode": "local", "destination": "node1.gntpeer.example", "shutdown": true, "remove_instance": true},
	}
	tried := 0
	for _, path := range rapi.InstancePaths() {
		for _, method := range path.Changes {
			tried++
			below := strings.TrimPrefix(strings.ReplaceAll(path.Path, "{disk}", "0"), "/2/instances/{name}")
			query, body := "?instance_uuid="+other, bodies[below]
			switch below {
			case "/tags":
				query += "&tag=a"
			case "/prepare-export":
				query += "&mode=local"
			}
			if method == http.MethodDelete {
				body = nil
			}
			j := r.job(method, web1+below+query, body)
			if result := string(j.Ops[0].Result); j.Status() != job.Error || !strings.Contains(result, other) {
				t.Errorf("%s %s of another one: %s %s", method, below, j.Status(), result)
			}
			if now := r.shown.Load().Inventory.InstanceNamed(before.Name); now != before {
				t.Errorf("behind %s %s it is %+v", method, below, now)
			}
		}
	}
	const least = 19
	if tried < least {
		t.Errorf("only %d were tried", tried)
	}
}

// TestLookingAtAnInstanceIsNoChange: its details are for whoever reads, as in the reference.
func TestLookingAtAnInstanceIsNoChange(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.create("web1.gntpeer.example")
	if a := r.send(http.MethodGet, web1+"/info?static=1", nil, header("reader", "read")); a.status != http.StatusOK {
		t.Errorf("%d %s", a.status, a.text)
	}
	if a := r.send(http.MethodGet, web1+"/info", nil, nil); a.status != http.StatusUnauthorized {
		t.Errorf("without an account: %d %s", a.status, a.text)
	}
}

// TestReplacedDisksTakeNothingForABody: in any form, as a reinstallation does.
func TestReplacedDisksTakeNothingForABody(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.create("web1.gntpeer.example")
	for _, empty := range []any{nil, `[]`, `{}`, `null`, `""`, `0`, `false`} {
		if j := r.job(http.MethodPost, web1+"/replace-disks?mode=replace_auto&dry-run=1", empty); j.Ops[0].Input.Str("mode") != "replace_auto" {
			t.Errorf("%v: %s", empty, j.Ops[0].Input.AppendJSON(nil))
		}
	}
}

func TestAuthentication(t *testing.T) {
	closed, opened := newRig(t, rigOptions{}), newRig(t, rigOptions{openReading: true})
	garbage := http.Header{"Authorization": {"Basic %%%"}}
	bearer := http.Header{"Authorization": {"Bearer x"}}
	for _, tc := range []struct {
		rig          *rig
		method, path string
		header       http.Header
		status       int
	}{
		{closed, "GET", "/version", nil, 401},
		{closed, "GET", "/2/nosuch", nil, 401},
		{closed, "GET", "/version", header("reader", "read"), 200},
		{closed, "GET", "/version", header("admin", "secret"), 200},
		{closed, "GET", "/version", header("reader", "wrong"), 401},
		{closed, "GET", "/version", garbage, 401},
		{closed, "GET", "/version", bearer, 401},
		{closed, "PUT", "/2/tags?tag=x", header("reader", "read"), 403},
		{closed, "GET", "/2/jobs/1/wait", header("reader", "read"), 403},
		{closed, "GET", "/2/query/job?fields=id", header("reader", "read"), 200},
		{closed, "GET", "/2/query/job?fields=id", header("admin", "secret"), 200},
		{opened, "GET", "/version", nil, 200},
		{opened, "GET", "/version", garbage, 401},
		{opened, "GET", "/2/nosuch", nil, 404},
		{opened, "GET", "/2/query/job?fields=id", nil, 401},
		{opened, "PUT", "/2/tags?tag=x", nil, 401},
		{opened, "POST", "/2/filters", nil, 401},
	} {
		got := tc.rig.send(tc.method, tc.path, nil, tc.header)
		if got.status != tc.status {
			t.Errorf("%s %s %v: %d, want %d", tc.method, tc.path, tc.header, got.status, tc.status)
		}
		if got.status == http.StatusUnauthorized && got.header.Get("WWW-Authenticate") != `Basic realm="Ganeti Remote API"` {
			t.Errorf("%s %s: WWW-Authenticate %q", tc.method, tc.path, got.header.Get("WWW-Authenticate"))
		}
	}
}

func TestBadRequestsAreExplainedAndChangeNothing(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.create("web1.gntpeer.example")
	before := r.queue.Jobs().Len()
	create := map[string]any{"__version__": 1, "mode": "create", "disks": []any{}, "nics": []any{}}
	for _, tc := range []struct {
		method, path string
		body         any
		status       int
		text         string
	}{
		{"POST", "/2/instances", create, 400, "('Parameter 'OP_INSTANCE_CREATE.instance_name' fails validation', 'wrong_input')"},
		{"POST", "/2/instances", map[string]any{"__version__": 2}, 400, "Unsupported request data version 2"},
		{"POST", "/2/instances", `{"__version__":0.0}`, 400, "Instance creation request version 0 is no longer supported"},
		{"POST", "/2/instances", `{"reason":["x"]}`, 400, "Instance creation request version 0 is no longer supported"},
		{"POST", "/2/instances", `{"__version__":null}`, 400, "Unsupported request data version None"},
		{"POST", "/2/instances", `{"__version__":"x"}`, 400, "Unsupported request data version x"},
		{"POST", "/2/instances", `{"__version__":1.0}`, 400, "OP_INSTANCE_CREATE.instance_name"},
		{"POST", "/2/instances", map[string]any{"__version__": 1, "os": "a", "os_type": "b"}, 400, "Parameter 'os' was renamed to 'os_type', but both are specified"},
		{"POST", "/2/instances", `{"__version__":1,"reason":"x"}`, 400, "Can't overwrite static parameters {'reason'}"},
		{"POST", "/2/instances?dry-run=1", `{"__version__":1,"dry_run":true}`, 400, "Can't overwrite static parameters {'dry_run'}"},
		{"POST", "/2/instances", nil, 400, "Body contents: Type is 'NoneType', but 'dict' is expected"},
		{"POST", "/2/instances", `null`, 400, "Body contents: Type is 'NoneType', but 'dict' is expected"},
		{"POST", "/2/instances", `{}`, 400, "Instance creation request version 0 is no longer supported"},
		{"POST", "/2/instances-multi-alloc", nil, 400, "Body contents: Type is 'NoneType', but 'dict' is expected"},
		{"POST", web1 + "/reinstall", `[1]`, 400, "Body contents: Type is 'list', but 'dict' is expected"},
		{"POST", "/2/instances", `[]`, 400, "Body contents: Type is 'list', but 'dict' is expected"},
		{"POST", "/2/instances", `{"a":1}{"b":2}`, 400, "Unable to parse JSON data"},
		{"POST", "/2/instances", `{"a":1,"a":2}`, 400, "Unable to parse JSON data"},
		{"POST", "/2/instances", "{\"a\":\"\xff\"}", 400, "Unable to parse JSON data"},
		{"PUT", web1 + "/modify", nil, 400, "Body contents: Type is 'NoneType', but 'dict' is expected"},
		{"PUT", web1 + "/modify", map[string]any{"instance_name": "x"}, 400, "Can't overwrite static parameters {'instance_name'}"},
		{"PUT", web1 + "/modify", map[string]any{"hvparam": 1}, 400, "Object OpInstanceSetParams doesn't support the parameter 'hvparam' (did you mean \"hvparams\"?)"},
		{"PUT", "/2/modify", map[string]any{"compression_tools": []any{}}, 403, "compression_tools cannot be set via RAPI"},
		{"PUT", "/2/modify", nil, 400, "'dict' is expected"},
		{"PUT", web1 + "/startup?force=yes", nil, 400, "Invalid value for the 'force' parameter"},
		{"GET", web1 + "/startup?force=1", nil, 501, "Method GET is unsupported for path " + web1 + "/startup?force=1"},
		{"PUT", "/2/tags?tag=%ff", nil, 400, "not valid UTF-8"},
		{"PUT", "/2/tags?tag=%zz", nil, 400, "query string"},
		{"POST", web1 + "/replace-disks", map[string]any{"mode": "replace_auto", "disks": "0,x"}, 400, "Invalid disk index passed: x"},
		{"POST", web1 + "/reboot?type=quick", nil, 400, "OP_INSTANCE_REBOOT.reboot_type"},
		{"POST", web1 + "/reinstall?os=a", map[string]any{"os": "b"}, 400, "Can't combine query and body parameters"},
		{"POST", "/2/instances-multi-alloc", `{}`, 400, "Request is missing required 'instances' field in body"},
		{"POST", "/2/nodes/node1.gntpeer.example/migrate?live=1&mode=live", nil, 400, "Only one of"},
		{"POST", "/2/nodes/node1.gntpeer.example/migrate?live=1", map[string]any{"target_node": "nosuch"}, 400, "'target_node'"},
		{"POST", "/2/nodes/node1.gntpeer.example/migrate?mode=live", map[string]any{"mode": "non-live"}, 400, "'mode'"},
		{"POST", "/2/nodes/node1.gntpeer.example/migrate?mode=live", map[string]any{"bogus": 1}, 400, "'bogus'"},
		{"POST", web1 + "/replace-disks?mode=replace_auto", `[1]`, 400, "Body contents: Type is 'list', but 'dict' is expected"},
		{"DELETE", web1 + "?instance_uuid=", nil, 400, "must be one UUID"},
		{"DELETE", web1 + "?instance_uuid=%20", nil, 400, "must be one UUID"},
		{"DELETE", web1 + "?instance_uuid=&instance_uuid=11111111-2222-3333-4444-555555555555", nil, 400, "must be one UUID"},
		{"PUT", web1 + "/tags?tag=a&instance_uuid", nil, 400, "must be one UUID"},
		{"GET", web1 + "?instance_uuid=11111111-2222-3333-4444-555555555555", nil, 400, "means nothing here"},
		{"GET", web1 + "/info?instance_uuid=11111111-2222-3333-4444-555555555555", nil, 400, "means nothing here"},
		{"GET", web1 + "/console?instance_uuid=11111111-2222-3333-4444-555555555555", nil, 400, "means nothing here"},
		{"PUT", "/2/tags?tag=a&instance_uuid=11111111-2222-3333-4444-555555555555", nil, 400, "means nothing here"},
		{"GET", "/2/nodes/node1.gntpeer.example/storage?storage_type=lvm-vg&output_fields=name,,size", nil, 400, "output_fields"},
		{"GET", "/2/jobs/1/wait", map[string]any{}, 400, "Required parameter 'fields' is missing"},
		{"GET", "/2/nodes/node1.gntpeer.example/storage", nil, 400, "Missing the required 'output_fields' parameter"},
		{"PUT", "/2/nodes/node1.gntpeer.example/storage/repair", nil, 400, "Missing the required 'name' parameter"},
		{"GET", "/2/jobs/1/wait", nil, 400, "'dict' is expected"},
		{"GET", "/2/jobs/1/wait", `{"fields":["id"],"previous_job_info":1}`, 400, "The 'previous_job_info' parameter should be a list"},
		{"GET", "/2/jobs/1/wait", `{"fields":["id"],"previous_log_serial":"x"}`, 400, "The 'previous_log_serial' parameter should be a number"},
		{"GET", "/2/jobs/99999999999999999999", nil, 404, "there is no job"},
		{"GET", "/2/jobs/77/explain", nil, 404, "Job 77"},
		{"GET", "/2/jobs/77/wait", `{"fields":["id"]}`, 404, "Job 77"},
		{"GET", "/2/instances/nosuch/console", nil, 404, "nosuch"},
		{"GET", "/2/nodes/nosuch/role", nil, 404, "nosuch"},
		{"GET", "/2/instances/nosuch/tags", nil, 404, "nosuch"},
		{"GET", "/2/instances/%77eb1", nil, 404, "Not Found"},
		{"GET", "/2/query/instance?fields=", nil, 400, "Missing 'fields' query argument"},
		{"PUT", "/2/query/instance", map[string]any{"fields": []any{1}}, 400, "list of strings"},
		{"PUT", "/2/query/instance", map[string]any{"fields": []any{"name"}, "qfilter": []any{"=", "nam", "x"}}, 400, "nam"},
		{"POST", "/2/filters", map[string]any{"priorty": 1}, 400, "filter rule doesn't support the parameter 'priorty' (did you mean \"priority\"?)"},
		{"POST", "/2/filters", map[string]any{"priority": true}, 400, "Type is 'bool', but 'int' is expected"},
		{"POST", "/2/filters", `{"predicates":[["reason",["=~","reason","("]]]}`, 400, "predicates[0]"},
		{"PUT", "/2/filters/" + "01234567-89AB-cdef-0123-456789abcdef", map[string]any{}, 400, "UUID"},
		{"POST", "/2/filters?dry-run=1&days=x", map[string]any{}, 400, "Invalid value for the 'days' parameter"},
		{"DELETE", "/2/filters/none", nil, 404, "Filter rule with UUID none does not exist"},
	} {
		got := r.do(tc.method, tc.path, tc.body)
		if got.status != tc.status {
			t.Errorf("%s %s: %d %s, want %d", tc.method, tc.path, got.status, got.text, tc.status)
			continue
		}
		text := strings.NewReplacer("&#x27;", "'", "&quot;", `"`).Replace(got.message(t))
		if !strings.Contains(strings.ReplaceAll(text, `"`, "'"), strings.ReplaceAll(tc.text, `"`, "'")) {
			t.Errorf("%s %s: message %s, want %s", tc.method, tc.path, text, tc.text)
		}
	}
	if after := r.queue.Jobs().Len(); after != before || len(r.shown.Load().Rules) != 0 {
		t.Errorf("bad requests made %d jobs and %d filter rules", after-before, len(r.shown.Load().Rules))
	}
}

func TestContentType(t *testing.T) {
	r := newRig(t, rigOptions{})
	for contentType, status := range map[string]int{
		"application/json": 200, "Application/JSON": 200, "application/json; charset=utf-8": 200,
		"": 415, "text/plain": 415, "application/json; charset=latin1": 415, "application/jsonp": 415,
	} {
		h := header("admin", "secret")
		h["Content-Type"] = []string{contentType}
		if a := r.send(http.MethodPut, "/2/query/job", `{"fields":["id"]}`, h); a.status != status {
			t.Errorf("content type %q: %d %s, want %d", contentType, a.status, a.text, status)
		}
	}
}

// TestIDOfARequest: an answer names the request by the id that it brought, or by one of ours where that is none.
func TestIDOfARequest(t *testing.T) {
	r := newRig(t, rigOptions{newID: func() string { return "ours-1" }})
	for brought, want := range map[string]string{"theirs-1": "theirs-1", "": "ours-1", "two words": "ours-1", strings.Repeat("x", 65): "ours-1"} {
		h := header("admin", "secret")
		h.Set("X-Request-ID", brought)
		if got := r.send(http.MethodGet, "/2/info", nil, h).header.Get("X-Request-ID"); got != want {
			t.Errorf("request %q: the answer names %q, want %q", brought, got, want)
		}
	}
}

// TestReinstallWithoutABody: a body that says nothing is taken for none, as there; PHP's
// clients write [] for an object without keys.
func TestReinstallWithoutABody(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.create("web1.gntpeer.example")
	for _, empty := range []any{nil, `[]`, `{}`, `null`, `""`, `0`, `0.0`, `false`} {
		for path, ops := range map[string]int{"/reinstall": 3, "/reinstall?os=noop&nostartup=1": 2} {
			if j := r.job(http.MethodPost, web1+path, empty); len(j.Ops) != ops {
				t.Errorf("%s %v: %d opcodes", path, empty, len(j.Ops))
			}
		}
	}
}

// TestADryReinstallIsDry: also the stop before it and the start behind it, and all are about the one instance that is meant.
func TestADryReinstallIsDry(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.create("web1.gntpeer.example")
	uuid := r.keeper.Snapshot().InstanceNamed("web1.gntpeer.example").UUID
	j := r.job(http.MethodPost, web1+"/reinstall", map[string]any{"os": "noop", "dry_run": true, "priority": -10, "instance_uuid": uuid, "comment": "tried"})
	for i := range j.Ops {
		if op := j.Ops[i].Input; !op.DryRun || op.Priority != -10 || op.Str("instance_uuid") != uuid || op.Comment == nil || *op.Comment != "tried" {
			t.Errorf("opcode %d is %s", i, op.AppendJSON(nil))
		}
	}
	j = r.job(http.MethodPost, "/2/nodes/node1.gntpeer.example/migrate?live=1", map[string]any{"dry_run": true, "reason": []any{[]any{"ticket", "OPS-1", 1}}})
	if op := j.Ops[0].Input; !op.DryRun || op.Str("mode") != "live" || op.Reason[0].Source != "ticket" {
		t.Errorf("a migration is %s", op.AppendJSON(nil))
	}
}

func TestReasonTrails(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.create("web1.gntpeer.example")
	j := r.succeed(http.MethodPut, web1+"/startup?reason=f%C3%BCr+M%C3%BCller", nil)
	want := reason.Trail{{Source: "gnt:user", Reason: "für Müller"}, {Source: "gnt:library:rlib2:instances_name_startup"},
		{Source: "gnt:account:rapi", Reason: "admin (127.0.0.1)"}, {Source: "gnt:opcode:instance_startup", Reason: fmt.Sprintf("job=%d;index=0", j.ID)}}
	if got := withoutTimes(j.Ops[0].Input.Reason); !reflect.DeepEqual(got, want) {
		t.Errorf("trail %v, want %v", got, want)
	}
	own := r.job(http.MethodPut, web1+"/startup?reason=user", `{"reason":[["other-app:gui","clicked",5]]}`)
	want[0].Reason = "user"
	want = append(reason.Trail{{Source: "other-app:gui", Reason: "clicked"}}, want...)
	want[len(want)-1].Reason = fmt.Sprintf("job=%d;index=0", own.ID)
	if got := withoutTimes(own.Ops[0].Input.Reason); !reflect.DeepEqual(got, want) {
		t.Errorf("with a program's own hop: trail %v, want %v", got, want)
	}
	reinstall := r.job(http.MethodPost, web1+"/reinstall?reason=why", map[string]any{"os": "noop", "start": false})
	if len(reinstall.Ops) != 2 || reinstall.Ops[1].Input.Reason[0].Reason != "why" {
		t.Errorf("reinstall: %d opcodes, trail %v", len(reinstall.Ops), reinstall.Ops[0].Input.Reason)
	}
}

func withoutTimes(t reason.Trail) reason.Trail {
	out := reason.Trail{}
	for _, e := range t {
		out = append(out, reason.Entry{Source: e.Source, Reason: e.Reason})
	}
	return out
}

func TestReservedSources(t *testing.T) {
	r := newRig(t, rigOptions{})
	for trail, status := range map[string]int{
		`[["user","a",1],["gnt:client","",2]]`:                                    200, // what the stock client sends
		`[["user","für Müller 😀",1]]`:                                             200,
		`[["user","a",1],["gnt:client","",1],["luxid","",2],["gnt:client","",3]]`: 200, // a rule that was read and is sent back
		`[["luxid","rule taken on behalf of root",1]]`:                            400,
		`[["LUXID","",1]]`:                                  400,
		`[["user","a",1],["gnt:client","b",2]]`:             400,
		`[["gnt:user","a",1]]`:                              200, // what the reference's own tests send
		`[["gnt:user:x","a",1]]`:                            400,
		`[["gnt:opcode:test","a",1],["gnt:client","",2]]`:   400,
		`[["gnt:client:gnt-filter","a",1],["user","b",12]]`: 400,
	} {
		a := r.do(http.MethodPost, "/2/filters", `{"reason":`+trail+`}`)
		if a.status != status {
			t.Errorf("%s: %d %s, want %d", trail, a.status, a.text, status)
		}
	}
	if a := r.do(http.MethodPut, web1+"/startup", `{"reason":[["gnt:opcode:x","forged",5]]}`); a.status != http.StatusBadRequest || !strings.Contains(a.text, "reserved") {
		t.Errorf("a forged hop of a job: %d %s", a.status, a.text)
	}
	if a := r.do(http.MethodPut, web1+"/startup", `{"reason":[["luxid","",5]]}`); a.status != http.StatusBadRequest || !strings.Contains(a.text, "reserved") {
		t.Errorf("a hop of the queue on a job: %d %s", a.status, a.text)
	}
	var kept []struct {
		UUID   string
		Reason json.RawMessage `json:"reason_trail"`
	}
	r.do(http.MethodGet, "/2/filters?bulk=1", nil).decode(t, &kept)
	if a := r.do(http.MethodPut, "/2/filters/"+kept[0].UUID, `{"reason":`+string(kept[0].Reason)+`}`); a.status != http.StatusOK {
		t.Errorf("a rule that was read and is sent back: %d %s", a.status, a.text)
	}
	if a := r.do(http.MethodPut, "/2/filters/"+kept[0].UUID, `{"reason":[["gnt:account:rapi","root",1]]}`); a.status != http.StatusBadRequest {
		t.Errorf("a forged account: %d %s", a.status, a.text)
	}
	body := `{"instances":[{"name":"a","mode":"create","disks":[],"nics":[],"reason":[["gnt:user","x",1]]}]}`
	if a := r.do(http.MethodPost, "/2/instances-multi-alloc", body); a.status != http.StatusBadRequest || !strings.Contains(a.text, "reserved") {
		t.Errorf("inner trail: %d %s", a.status, a.text)
	}
}

// Lists of rules are in order of UUID, as the reference's; a query gives the order
// in which they are asked.
func TestOrderOfRules(t *testing.T) {
	r := newRig(t, rigOptions{})
	const first, second, third = "cccccccc-1111-4111-8111-111111111111", "aaaaaaaa-2222-4222-8222-222222222222", "bbbbbbbb-3333-4333-8333-333333333333"
	put := func(uuid string, priority int) {
		t.Helper()
		if a := r.do(http.MethodPut, "/2/filters/"+uuid, map[string]any{"priority": priority}); a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.text)
		}
	}
	put(third, 5)
	put(first, 3)
	if a := r.do(http.MethodPut, web1+"/startup", nil); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.text)
	}
	put(second, 3)
	var listed []struct{ UUID string }
	r.do(http.MethodGet, "/2/filters?bulk=1", nil).decode(t, &listed)
	if len(listed) != 3 || listed[0].UUID != second || listed[1].UUID != third || listed[2].UUID != first {
		t.Errorf("listed: %v", listed)
	}
	var asked struct{ Data [][][2]any }
	r.do(http.MethodGet, "/2/query/filter?fields=uuid&sort=priority,watermark,uuid", nil).decode(t, &asked)
	if got := fmt.Sprint(asked.Data); got != fmt.Sprintf("[[[0 %s]] [[0 %s]] [[0 %s]]]", first, second, third) {
		t.Errorf("asked: %s", got)
	}
}

func TestFilterRoundTrip(t *testing.T) {
	r := newRig(t, rigOptions{})
	var uuid string
	a := r.do(http.MethodPost, "/2/filters?reason=calm+down", map[string]any{"priority": 3, "action": []any{"RATE_LIMIT", 2},
		"predicates": []any{[]any{"opcode", []any{"=", "OP_ID", "OP_INSTANCE_CREATE"}}}, "reason": []any{[]any{"user", "中文", 7}}})
	a.decode(t, &uuid)
	var rule struct {
		UUID        string
		Action      any
		ReasonTrail reason.Trail `json:"reason_trail"`
	}
	r.do(http.MethodGet, "/2/filters/"+uuid, nil).decode(t, &rule)
	if rule.UUID != uuid || fmt.Sprint(rule.Action) != "[RATE_LIMIT 2]" {
		t.Errorf("rule %+v", rule)
	}
	if len(rule.ReasonTrail) != 4 || rule.ReasonTrail[0].Reason != "中文" || rule.ReasonTrail[1].Reason != "calm down" {
		t.Errorf("trail %v", rule.ReasonTrail)
	}
	preview := r.do(http.MethodPost, "/2/filters?dry-run=1&days=0", `{"action":"REJECT"}`)
	if preview.status != http.StatusOK || !strings.Contains(preview.text, "{") || len(r.shown.Load().Rules) != 1 {
		t.Errorf("preview: %d %s, then %d rules", preview.status, preview.text, len(r.shown.Load().Rules))
	}
	warned := r.do(http.MethodPut, "/2/filters/"+uuid, `{"predicates":[["opcode",["=","OP_IDD","x"]]]}`)
	if warned.status != http.StatusOK || !strings.Contains(warned.header.Get("Warning"), "OP_ID") {
		t.Errorf("unknown field: %d %s, warning %q", warned.status, warned.text, warned.header.Get("Warning"))
	}
	if d := r.do(http.MethodDelete, "/2/filters/"+uuid, nil); d.status != http.StatusOK || d.text != "null\n" {
		t.Errorf("delete: %d %s", d.status, d.text)
	}
	if g := r.do(http.MethodGet, "/2/filters/"+uuid, nil); g.status != http.StatusNotFound {
		t.Errorf("deleted rule: %d", g.status)
	}
}

func TestCancel(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.do(http.MethodPost, "/2/filters", `{"action":"PAUSE"}`)
	var id job.ID
	r.do(http.MethodPut, "/2/tags?tag=x", nil).decode(t, &id)
	var why struct{ Why string }
	r.do(http.MethodGet, fmt.Sprintf("/2/jobs/%d/explain", id), nil).decode(t, &why)
	if !strings.Contains(why.Why, "PAUSE") && !strings.Contains(why.Why, "rule") {
		t.Errorf("explanation %q does not speak of the rule", why.Why)
	}
	if a := r.do(http.MethodDelete, fmt.Sprintf("/2/jobs/%d", id), nil); a.text != fmt.Sprintf("[true,\"Dequeued job %d\"]\n", id) {
		t.Errorf("cancel: %d %s", a.status, a.text)
	}
	var j struct{ Status string }
	r.do(http.MethodGet, fmt.Sprintf("/2/jobs/%d", id), nil).decode(t, &j)
	if j.Status != "canceled" {
		t.Errorf("status %s", j.Status)
	}
}

func TestWaitForChange(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.do(http.MethodPost, "/2/filters", `{"action":"PAUSE"}`)
	var id job.ID
	r.do(http.MethodPut, "/2/tags?tag=x", nil).decode(t, &id)
	path := fmt.Sprintf("/2/jobs/%d/wait", id)
	if a := r.do(http.MethodGet, path, `{"fields":["status","id"],"previous_job_info":null,"previous_log_serial":null}`); a.text !=
		fmt.Sprintf("{\"job_info\":[\"queued\",%d],\"log_entries\":[]}\n", id) {
		t.Errorf("first answer: %s", a.text)
	}
	changed := make(chan answer, 1)
	go func() {
		changed <- r.do(http.MethodGet, path, fmt.Sprintf(`{"fields":["status","id"],"previous_job_info":["queued",%d]}`, id))
	}()
	r.do(http.MethodDelete, fmt.Sprintf("/2/jobs/%d", id), nil)
	if a := <-changed; !strings.Contains(a.text, `"canceled"`) {
		t.Errorf("after the change: %d %s", a.status, a.text)
	}
	if a := r.do(http.MethodGet, path, `{"fields":["status","nosuch"]}`); a.text != "{\"job_info\":[null,null],\"log_entries\":[]}\n" {
		t.Errorf("unknown field: %s", a.text)
	}
}

func TestConsole(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.create("web1.gntpeer.example")
	if a := r.do(http.MethodGet, web1+"/console", nil); a.status != http.StatusOK || !strings.Contains(a.text, `"instance":"web1.gntpeer.example"`) {
		t.Errorf("console: %d %s", a.status, a.text)
	}
	r.succeed(http.MethodPut, web1+"/shutdown", nil)
	if a := r.do(http.MethodGet, web1+"/console", nil); a.status != http.StatusServiceUnavailable || !strings.Contains(a.text, "Instance console unavailable") {
		t.Errorf("console of a stopped instance: %d %s", a.status, a.text)
	}
}

func TestObjectsByUUID(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.create("web1.gntpeer.example")
	var byName, byUUID map[string]json.RawMessage
	r.do(http.MethodGet, web1, nil).decode(t, &byName)
	r.do(http.MethodGet, "/2/instances/"+strings.Trim(string(byName["uuid"]), `"`), nil).decode(t, &byUUID)
	if string(byUUID["name"]) != `"web1.gntpeer.example"` {
		t.Errorf("by UUID: %s", byUUID["name"])
	}
}

func TestRepeatedSubmission(t *testing.T) {
	r := newRig(t, rigOptions{})
	h := header("admin", "secret")
	h["Idempotency-Key"] = []string{"deploy-17"}
	first := r.send(http.MethodPut, "/2/tags?tag=x", nil, h)
	second := r.send(http.MethodPut, "/2/tags?tag=x", nil, h)
	if first.status != http.StatusOK || first.text != second.text {
		t.Errorf("answers %s and %s", first.text, second.text)
	}
	if n := r.queue.Jobs().Len(); n != 1 {
		t.Errorf("%d jobs", n)
	}
}

func TestConnectionsAreKept(t *testing.T) {
	r := newRig(t, rigOptions{})
	for range 3 {
		if a := r.do(http.MethodGet, "/version", nil); a.header.Get("Connection") == "close" {
			t.Fatal("the server closes the connection")
		}
	}
}

// The end of a request's context, which is when its client leaves, ends what is
// computed for it. That is no fault of ours.
func TestQueryOfAClientThatLeft(t *testing.T) {
	r := newRig(t, rigOptions{})
	ctx, leave := context.WithCancel(t.Context())
	leave()
	for _, path := range []string{"/2/jobs", "/2/instances?bulk=1", "/2/query/node?fields=name", "/2/query/job?fields=id&group_by=status&figures=count"} {
		request := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
		request.Header = header("admin", "secret")
		answer := httptest.NewRecorder()
		r.rapi.ServeHTTP(answer, request)
		if answer.Code != http.StatusServiceUnavailable || !strings.Contains(answer.Body.String(), "given up") {
			t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
		}
	}
}

// FuzzBody sends any body to resources that read it: an answer must come, a
// refusal must be explained, and it must not be the server's fault.
func FuzzBody(f *testing.F) {
	paths := []string{"POST /2/instances", "PUT " + web1 + "/modify", "POST /2/filters", "PUT /2/query/job", "POST /2/instances-multi-alloc",
		"PUT /2/nodes/node1.gntpeer.example/role", "POST " + web1 + "/reinstall", "POST " + web1 + "/replace-disks", "GET /2/jobs/999/wait"}
	f.Add(uint8(0), `{"__version__":1,"mode":"create","name":"a","disks":[{"size":"1g"}],"nics":[{}],"depends":[[-1,[]]]}`)
	f.Add(uint8(1), `{"hvparams":{"usb_devices":"a b"},"disks":[["add",{}]]}`)
	f.Add(uint8(2), `{"priority":1,"predicates":[["not",["reason",["=~","reason","x"]]]],"action":["RATE_LIMIT",2],"reason":[["u","r",1.5]]}`)
	f.Add(uint8(3), `{"fields":["id"],"qfilter":["|",["=","id",1],["!",["=[]","ops","x"]]]}`)
	f.Add(uint8(4), `{"instances":[{"mode":"create"}]}`)
	f.Add(uint8(5), `"drained"`)
	f.Add(uint8(6), `{"os":"noop","start":true}`)
	f.Add(uint8(7), `{"disks":"0,1","mode":"replace_auto"}`)
	f.Add(uint8(8), `{"fields":["status"],"previous_job_info":[1],"previous_log_serial":2}`)
	shared := newRig(f, rigOptions{})
	shared.check(shared.queue.SetDrained(f.Context(), true, queue.By{}))
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		r := *shared
		r.TB = t
		method, path, _ := strings.Cut(paths[int(which)%len(paths)], " ")
		a := r.do(method, path, body)
		if a.status == http.StatusOK {
			return
		}
		if a.status >= 500 && a.status != http.StatusServiceUnavailable && a.status != http.StatusNotImplemented {
			t.Fatalf("%s %s %q: %d %s", method, path, body, a.status, a.text)
		}
		if a.message(t) == "" {
			t.Fatalf("%s %s %q: %d without a message", method, path, body, a.status)
		}
	})
}

// TestRulesAreChangedAsTheyWereSeen: PATCH keeps what is not given, a rule is
// found by its name, and If-Match refuses a change of rules that are not those
// of the preview.
func TestRulesAreChangedAsTheyWereSeen(t *testing.T) {
	r := newRig(t, rigOptions{})
	var uuid string
	r.do(http.MethodPost, "/2/filters", `{"priority":3,"action":"PAUSE","name":"lab","predicates":[["opcode",["=","OP_ID","OP_TEST_DELAY"]]]}`).decode(t, &uuid)
	var seen struct {
		Digest  string `json:"digest"`
		Removes bool   `json:"removes"`
	}
	r.do(http.MethodDelete, "/2/filters/lab?dry-run=1", nil).decode(t, &seen)
	if !seen.Removes || len(r.shown.Load().Rules) != 1 {
		t.Fatalf("the preview of a deletion: %+v, then %d rules", seen, len(r.shown.Load().Rules))
	}
	if a := r.do(http.MethodPatch, "/2/filters/lab?reason=urgent", `{"priority":1,"comment":"ask Ada"}`); a.status != http.StatusOK {
		t.Fatalf("PATCH: %d %s", a.status, a.text)
	}
	rule := r.shown.Load().Rules[0]
	if rule.UUID != uuid || rule.Priority != 1 || rule.Comment != "ask Ada" || rule.Action.Kind != jobfilter.Pause || len(rule.Predicates) != 1 {
		t.Errorf("after PATCH: %+v", rule)
	}
	h := header("admin", "secret")
	h.Set("If-Match", seen.Digest)
	if a := r.send(http.MethodDelete, "/2/filters/lab", nil, h); a.status != http.StatusPreconditionFailed {
		t.Errorf("deleted other rules than those that were seen: %d %s", a.status, a.text)
	}
	r.do(http.MethodDelete, "/2/filters/lab?dry-run=1", nil).decode(t, &seen)
	h.Set("If-Match", `"`+seen.Digest+`"`)
	if a := r.send(http.MethodDelete, "/2/filters/lab?reason=over", nil, h); a.status != http.StatusOK || len(r.shown.Load().Rules) != 0 {
		t.Errorf("%d %s, then %d rules", a.status, a.text, len(r.shown.Load().Rules))
	}
	var events struct{ Data [][][]any }
	r.do(http.MethodGet, "/2/query/event?fields=what,who,reason", nil).decode(t, &events)
	if len(events.Data) != 3 || events.Data[2][0][1] != "filter.delete" || events.Data[2][1][1] != "admin" || events.Data[2][2][1] != "over" {
		t.Errorf("events: %v", events.Data)
	}
}

// TestBodiesThatCanBeSeenToBeWrong are answered at once, and make no job.
func TestBodiesThatCanBeSeenToBeWrong(t *testing.T) {
	r := newRig(t, rigOptions{})
	add := func(key, value string) string {
		return `{"network_name":"n","network":"192.0.2.0/24",` + key + `:` + value + `}`
	}
	for _, c := range [][3]string{
		{http.MethodPost, "/2/networks", `{"network_name":"n","network":"nonsense"}`},
		{http.MethodPost, "/2/networks", add(`"gateway"`, `"192.0.2"`)},
		{http.MethodPost, "/2/networks", add(`"network6"`, `"192.0.2.0/24"`)},
		{http.MethodPut, "/2/networks/n/modify", `{"gateway6":"192.0.2.1"}`},
		{http.MethodPut, "/2/networks/n/modify", `{"remove_reserved_ips":["192.0.2.1","x"]}`},
		{http.MethodPut, "/2/redistribute-config", `{"x":1}`},
		{http.MethodPut, "/2/redistribute-config", `5`},
	} {
		if a := r.do(c[0], c[1], c[2]); a.status != http.StatusBadRequest {
			t.Errorf("%v: %d %s", c, a.status, a.text)
		}
	}
	r.succeed(http.MethodPost, "/2/networks", add(`"add_reserved_ips"`, `["192.0.2.9"]`))
	r.succeed(http.MethodPut, "/2/redistribute-config", nil)
}
