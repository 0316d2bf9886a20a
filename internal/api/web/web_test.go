package web

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/query/items"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/queue/machine"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/rollout"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/yaql"
)

// TestEachRequestNeedsItsRight goes through the whole table as nobody, and as accounts that may nothing, look, and change.
func TestEachRequestNeedsItsRight(t *testing.T) {
	r := newRig(t)
	for _, q := range requests {
		path := strings.NewReplacer("{id}", "1", "{item}", "job", "{do}", "stop", "{other}", "1").Replace(q.path)
		for _, who := range []struct {
			name string
			may  []rights.Right
		}{{"", []rights.Right{rights.None}}, {"cy", []rights.Right{rights.None, rights.Known}}, {"bo", []rights.Right{rights.None, rights.Known, rights.Look}},
			{"ada", []rights.Right{rights.None, rights.Known, rights.Look, rights.Change}}} {
			session := ""
			if who.name != "" {
				session = r.signIn(who.name, "secret")
			}
			status, text, _ := r.ask(q.method, path, session, "[]")
			lets := slices.Contains(who.may, q.needs)
			refused := status == http.StatusUnauthorized || status == http.StatusForbidden
			if lets == refused {
				t.Errorf("%s %s as %q: %d %s", q.method, path, who.name, status, text)
			}
			if !lets && (status == http.StatusUnauthorized) != (who.name == "") {
				t.Errorf("%s %s as %q is refused by %d", q.method, path, who.name, status)
			}
		}
	}
}

// TestWhatChangesSomethingNeedsTheRightTo: whatever is no question, but for signing in and out.
func TestWhatChangesSomethingNeedsTheRightTo(t *testing.T) {
	for _, q := range requests {
		if q.method != http.MethodGet && q.path != "/session" && q.needs != rights.Change {
			t.Errorf("%s %s needs %v", q.method, q.path, q.needs)
		}
	}
}

// TestSessionsEnd: with the account, with its password, with time, and when somebody signs out; and with a session what it has open.
func TestSessionsEnd(t *testing.T) {
	for name, end := range map[string]func(r *rig, session string){
		"the account is gone":       func(r *rig, _ string) { r.people.set("bo", "", "") },
		"it has another password":   func(r *rig, _ string) { r.people.set("bo", "other", "read") },
		"it was signed out":         func(r *rig, s string) { r.ask("DELETE", "/session", s, "") },
		"nothing was heard of it":   func(r *rig, _ string) { r.clock.pass(sessionIdle) },
		"its time is over":          func(r *rig, s string) { passInUse(r, s, sessionTime) },
		"the controller is another": func(r *rig, _ string) { r.web.sessions = newSessions(r.clock.Now) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			session := r.signIn("bo", "secret")
			if status, text, _ := r.ask("GET", "/session", session, ""); status != http.StatusOK || !strings.Contains(text, `"account":"bo","change":false`) {
				t.Fatalf("signed in: %d %s", status, text)
			}
			end(r, session)
			if status, text, _ := r.ask("GET", "/session", session, ""); status != http.StatusUnauthorized {
				t.Errorf("the session goes on: %d %s", status, text)
			}
			r.people.set("bo", "secret", "read") // it is as it was
			if status, text, _ := r.ask("GET", "/session", session, ""); status != http.StatusUnauthorized {
				t.Errorf("the session has come back: %d %s", status, text)
			}
		})
	}
	r := newRig(t)
	s := r.openStream(r.signIn("bo", "secret"))
	r.people.set("bo", "secret", "") // it may look no more
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience())
	defer cancel()
	for {
		if _, _, err := s.conn.Read(ctx); err != nil {
			if websocket.CloseStatus(err) != signedOut {
				t.Errorf("a tab of an account that may look no more ends with %v", err)
			}
			return
		}
	}
}

// passInUse has time pass while a session is in use.
func passInUse(r *rig, session string, d time.Duration) {
	for ; d > 0; d -= sessionIdle / 2 {
		r.ask("GET", "/session", session, "")
		r.clock.pass(sessionIdle / 2)
	}
}

// TestOtherSites: pages of other sites, and names that lead here, change nothing and see nothing.
func TestOtherSites(t *testing.T) {
	r := newRig(t)
	session := r.signIn("ada", "secret")
	id := r.submit(600)
	cancel := fmt.Sprintf("/api/jobs/%d/cancel", id)
	for _, headers := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Host", "evil.example"}, {"Content-Type", "text/plain"},
		{"Content-Type", "application/x-www-form-urlencoded"},
	} {
		if status, text, _ := r.ask("POST", cancel, session, `{"reason":"x"}`, headers...); status != http.StatusForbidden && status != http.StatusBadRequest {
			t.Errorf("%q: %d %s", headers, status, text)
		}
	}
	if status, text, _ := r.ask("GET", "/session", session, "", "Host", "rebound.example:80"); status != http.StatusForbidden {
		t.Errorf("another name: %d %s", status, text)
	}
	_, answer, err := websocket.Dial(t.Context(), r.http.URL+"/stream", &websocket.DialOptions{HTTPHeader: http.Header{"Cookie": {r.web.cookie() + "=" + session}, "Origin": {"https://evil.example"}}}) //nolint:bodyclose // it was read
	if err == nil || answer == nil || answer.StatusCode != http.StatusForbidden {
		t.Errorf("a stream for another site: %v", err)
	}
	j, err := r.c.Queue.Job(t.Context(), id)
	if err != nil || j.Final() {
		t.Errorf("the job is over: %v", err)
	}
}

// TestHeaders: the page runs alone, with what it came with.
func TestHeaders(t *testing.T) {
	r := newRig(t)
	for _, path := range []string{"/", "/jobs/7", "/session", "/assets/none.js"} {
		_, _, h := r.ask("GET", path, "", "")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "trusted-types 'none'", "base-uri 'none'"} {
			if !strings.Contains(h.Get("Content-Security-Policy"), part) {
				t.Errorf("%s: the policy lacks %s", path, part)
			}
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cross-Origin-Opener-Policy") != "same-origin" {
			t.Errorf("%s: %v", path, h)
		}
	}
	_, text, h := r.ask("POST", "/session", "", `{"name":"ada","password":"secret"}`)
	for _, part := range []string{"__Host-drover-", "; Path=/", "; Secure", "; HttpOnly", "; SameSite=Strict"} {
		if !strings.Contains(h.Get("Set-Cookie"), part) {
			t.Errorf("the cookie %q lacks %s (%s)", h.Get("Set-Cookie"), part, text)
		}
	}
}

// TestLinks: a link signs in once, for five minutes, and only its hash is kept.
func TestLinks(t *testing.T) {
	r := newRig(t)
	code := strings.TrimPrefix(r.web.Link("root"), "#code=")
	sign := func() (int, string) {
		status, _, h := r.ask("POST", "/session", "", fmt.Sprintf(`{"code":%q}`, code))
		return status, sessionIn(h)
	}
	status, secret := sign()
	if status != http.StatusOK {
		t.Fatalf("a link: %d", status)
	}
	if _, text, _ := r.ask("GET", "/session", secret, ""); !strings.Contains(text, `"account":"root","change":true`) {
		t.Errorf("signed in by a link: %s", text)
	}
	if status, _ := sign(); status != http.StatusForbidden {
		t.Errorf("the second time: %d", status)
	}
	code = strings.TrimPrefix(r.web.Link("root"), "#code=")
	for _, all := range []map[key]*session{r.web.sessions.codes, r.web.sessions.open} {
		for k, of := range all {
			if kept := fmt.Sprintf("%s %+v", k[:], *of); strings.Contains(kept, code[:10]) || strings.Contains(kept, secret[:10]) {
				t.Errorf("a secret is kept: %q", kept)
			}
		}
	}
	r.clock.pass(codeTime)
	if status, _ := sign(); status != http.StatusForbidden {
		t.Errorf("after five minutes: %d", status)
	}
	for range 2 * mostCodes {
		r.web.Link("root")
	}
	if n := len(r.web.sessions.codes); n > mostCodes {
		t.Errorf("%d codes are kept", n)
	}
	for range 2 * mostOfAccount {
		r.signIn("bo", "secret")
	}
	if n := count(r.web.sessions.open, func(s *session) bool { return s.name == "bo" }); n > mostOfAccount {
		t.Errorf("%d sessions are kept", n)
	}
}

// TestWhatIsDoneSaysWhy: without a reason nothing is done; with one, it is kept with who did it and where.
func TestWhatIsDoneSaysWhy(t *testing.T) {
	r := newRig(t)
	session := r.signIn("ada", "secret")
	preview := func(edit string) string {
		status, text, _ := r.ask("POST", "/api/rules/preview", session, edit)
		var f struct{ Digest string }
		if err := json.Unmarshal([]byte(text), &f); err != nil || status != http.StatusOK {
			t.Fatalf("preview: %d %s", status, text)
		}
		return f.Digest
	}
	const edit = `"edit":{"do":"put","rule":"","parts":{"action":"PAUSE","name":"lab"}},"when":"opcode: OP_ID == \"OP_TEST_DELAY\""`
	digest := preview("{" + edit + "}")
	for body, want := range map[string]int{
		"{" + edit + `,"digest":"` + digest + `"}`:                        http.StatusBadRequest, // no reason
		"{" + edit + `,"reason":"OPS-1"}`:                                 http.StatusBadRequest, // nobody has seen what it would do
		"{" + edit + `,"reason":"OPS-1","digest":"of other rules"}`:       http.StatusConflict,
		"{" + edit + `,"reason":"OPS-1","digest":"` + digest + `","x":1}`: http.StatusBadRequest,
	} {
		if status, text, _ := r.ask("POST", "/api/rules", session, body); status != want {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	all := strings.Replace(edit, `opcode: OP_ID == \"OP_TEST_DELAY\"`, "", 1)
	if status, text, _ := r.ask("POST", "/api/rules", session, "{"+all+`,"reason":"OPS-1","digest":"`+preview("{"+all+"}")+`"}`); status != http.StatusBadRequest || !strings.Contains(text, "say which jobs") {
		t.Errorf("a rule for every job by a field that was left empty: %d %s", status, text)
	}
	if status, text, _ := r.ask("POST", "/api/rules", session, "{"+edit+`,"reason":"OPS-1","digest":"`+digest+`"}`); status != http.StatusOK {
		t.Fatalf("a rule: %d %s", status, text)
	}
	id := r.submit(1)
	for _, c := range [][3]string{{"priority", `{"priority":-10}`, "say why"}, {"cancel", `{}`, "say why"}, {"cancel", `{"reason":" \t"}`, "say why"},
		{"priority", `{"reason":"OPS-2"}`, "say which priority"}} {
		if status, text, _ := r.ask("POST", fmt.Sprintf("/api/jobs/%d/%s", id, c[0]), session, c[1]); status != http.StatusBadRequest || !strings.Contains(text, c[2]) {
			t.Errorf("%s %s: %d %s", c[0], c[1], status, text)
		}
	}
	for _, body := range [][2]string{{"priority", `{"priority":-10,"reason":"OPS-2"}`}, {"cancel", `{"reason":"OPS-3"}`}} {
		if status, text, _ := r.ask("POST", fmt.Sprintf("/api/jobs/%d/%s", id, body[0]), session, body[1]); status != http.StatusOK || !strings.Contains(text, `"done":true`) {
			t.Errorf("%v: %d %s", body, status, text)
		}
	}
	events := r.query("event", "what,who,surface,reason_trail", "")
	for what, why := range map[string]string{"filter.add": "OPS-1", "job.change-priority": "OPS-2", "job.cancel": "OPS-3"} {
		if !slices.ContainsFunc(events, func(row string) bool {
			return strings.Contains(row, `"`+what+`"`) && strings.Contains(row, `"ada"`) && strings.Contains(row, `"web"`) && strings.Contains(row, `["gnt:user","`+why+`"`) && strings.Contains(row, `"gnt:client:drover-web"`)
		}) {
			t.Errorf("nothing tells of %s because of %s: %s", what, why, events)
		}
	}
}

// TestManyJobsAreCancelled: those that a preview named, if no other fits by then; with the reason, and never for want of a filter.
func TestManyJobsAreCancelled(t *testing.T) {
	r := newRig(t)
	session := r.signIn("ada", "secret")
	ids := []job.ID{r.submit(600), r.submit(600), r.submit(600)}
	filter := fmt.Sprintf(`"filter":"id <= %d"`, ids[1])
	preview := func() (seen manyMeant) {
		status, text, _ := r.ask("POST", "/api/jobs/cancel/preview", session, "{"+filter+"}")
		if err := json.Unmarshal([]byte(text), &seen); err != nil || status != http.StatusOK {
			t.Fatalf("preview: %d %s", status, text)
		}
		return seen
	}
	seen := preview()
	if !slices.Equal(seen.IDs, ids[:2]) || len(seen.Jobs) != 2 || seen.Jobs[0].Text == "" || len(seen.Jobs[0].Summary) != 1 {
		t.Errorf("the preview: %+v", seen)
	}
	all := fmt.Sprintf(`"ids":[%d,%d]`, ids[0], ids[1])
	for body, want := range map[string]int{
		"{" + filter + "," + all + "}":                                  http.StatusBadRequest, // no reason
		`{` + filter + `,"reason":"OPS-1"}`:                             http.StatusBadRequest, // no preview
		`{"filter":" ",` + all + `,"reason":"OPS-1"}`:                   http.StatusBadRequest,
		`{"filter":"(",` + all + `,"reason":"OPS-1"}`:                   http.StatusBadRequest,
		fmt.Sprintf(`{%s,"ids":[%d],"reason":"OPS-1"}`, filter, ids[0]): http.StatusConflict, // another one fits
		`{"filter":"id > 0",` + all + `,"reason":"OPS-1"}`:              http.StatusConflict,
		`{` + filter + `,` + all + `,"reason":"OPS-1","unknown":1}`:     http.StatusBadRequest,
	} {
		if status, text, _ := r.ask("POST", "/api/jobs/cancel", session, body); status != want {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	if preview(); len(r.query("event", "id", `what == "job.cancel"`)) != 0 {
		t.Error("a request that was refused, or a preview, cancelled something")
	}
	if _, err := r.c.Queue.Cancel(t.Context(), ids[0], true, queue.By{}); err != nil {
		t.Fatal(err)
	}
	for limit := time.Now().Add(testkit.Patience()); len(preview().IDs) != 1; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("the first job does not end")
		}
	}
	status, text, _ := r.ask("POST", "/api/jobs/cancel", session, "{"+filter+","+all+`,"reason":"OPS-2"}`)
	if status != http.StatusOK || !strings.Contains(text, "1 had ended already") {
		t.Errorf("%d %s", status, text)
	}
	events := r.query("event", "object,who,surface,reason_trail", `what == "job.cancel"`)
	if len(events) != 1 || !strings.Contains(events[0], `"`+ids[1].String()+`"`) || !strings.Contains(events[0], "OPS-2") || !strings.Contains(events[0], `"ada"`) {
		t.Errorf("the events: %s", events)
	}
	r.submit(600)
	if _, text, _ := r.ask("POST", "/api/jobs/cancel/preview", session, `{"filter":"end_ts < -1h"}`); !strings.Contains(text, `"ids":[]`) {
		t.Errorf("jobs that have not ended would be cancelled for when they ended: %s", text)
	}
	if status, text, _ := r.ask("POST", "/api/jobs/cancel/preview", session, `{}`); status != http.StatusBadRequest || !strings.Contains(text, "say which jobs") {
		t.Errorf("without a filter: %d %s", status, text)
	}
}

// query asks the querier itself; rows are as JSON.
func (r *rig) query(item, fields, filter string) (rows []string) {
	r.Helper()
	q := query.Request{What: item, Fields: words(fields)}
	if filter != "" {
		node, err := qlang.ParseText(filter)
		if err != nil {
			r.Fatal(err)
		}
		q.Filter = node
	}
	result, err := r.c.Querier.Query(r.Context(), q)
	if err != nil {
		r.Fatal(err)
	}
	for i := range result.Len() {
		rows = append(rows, string(result.AppendRow(nil, i)))
	}
	return rows
}

// TestViews shows every view there is: it answers, with the command that shows the same; and lists with what they take.
func TestViews(t *testing.T) {
	r := newRig(t)
	id := r.submit(0)
	s := r.openStream(r.signIn("bo", "secret"))
	about := map[string]string{"job": id.String(), "node": "node1.example", "instance": "web1", "object": "web1", "event": "1", "deployment": "1", "server": "d9c5d9f0-0000-4000-8000-000000000000", "group": "default", "network": "lan"}
	r.ends(`OP_NETWORK_ADD {"network_name":"lan","network":"192.0.2.0/28"}`)
	r.ends(`OP_NETWORK_CONNECT {"network_name":"lan","group_name":"default","network_mode":"bridged","network_link":"br0"}`)
	for name, v := range views {
		if name == "instance" || name == "deployment" || name == "deployment.step" {
			continue // there is none, which is an error
		}
		kind, _, _ := strings.Cut(name, ".")
		asks := []string{fmt.Sprintf(`{"view":%q,"id":%q}`, name, about[kind])}
		switch {
		case v.any:
			asks = nil
			for _, t := range things {
				asks = append(asks, fmt.Sprintf(`{"view":%q,"item":%q,"limit":7}`, name, t.Item), fmt.Sprintf(`{"view":%q,"item":%q,"figures":"count"}`, name, t.Item))
			}
		case v.list && v.item == "event":
			asks = append(asks, fmt.Sprintf(`{"view":%q,"filter":"id == 1","sort":"-id","limit":7}`, name))
		case v.list:
			asks = append(asks, fmt.Sprintf(`{"view":%q,"filter":"name != \"x\"","sort":"-name","limit":7}`, name))
			if v.item == "task" || v.item == "deployment" {
				asks[1] = fmt.Sprintf(`{"view":%q,"id":"1","filter":"environment != \"x\"","sort":"-environment","limit":7}`, name)
			}
			if v.item == "job" {
				asks[1] = fmt.Sprintf(`{"view":%q,"filter":"id == 1","sort":"-id","limit":7}`, name)
			}
		}
		for _, a := range asks {
			s.watch(`{"watch":{"x":` + a + `}}`)
			m := s.next()
			if m.W != "x" || m.Error != nil || !m.Reset || !strings.HasPrefix(m.Command, "drover ") {
				t.Errorf("%s: %+v", a, m)
			}
			if _, filter, has := strings.Cut(m.Command, "--filter '"); has {
				filter, _, _ = strings.Cut(filter, "'")
				if _, err := qlang.ParseText(filter); err != nil {
					t.Errorf("%s: the command %q cannot be typed: %v", a, m.Command, err)
				}
			}
			s.watch(`{"watch":{}}`)
		}
	}
	for a, want := range map[string]string{
		`{"view":"none"}`: "there is no view", `{"view":"jobs","filter":"nope == 1"}`: "nope", `{"view":"jobs","filter":"status =="}`: "a value is missing",
		`{"view":"jobs","limit":100000}`: "at most", `{"view":"job","id":"x"}`: "number of a job", `{"view":"job","id":"1","filter":"id == 1"}`: "is no list", `{"view":"job.explain","id":"99"}`: "99", `{"view":"job.around","id":"99"}`: "99", `{"view":"job.around","id":"x"}`: "number of a job", `{"view":"instance","id":"web1"}`: "web1",
		`{"view":"query","item":"moon"}`: "no kind of item", `{"view":"query","item":"job","fields":"id,statsu"}`: "did you mean status?", `{"view":"query","item":"job","by":"nope"}`: "no field",
		`{"view":"query","item":"job","by":"status","figures":"most(id)"}`: "no figure", `{"view":"jobs","item":"node"}`: "of its own", `{"view":"query","item":"job","fields":"` + strings.Repeat("id,", mostColumns) + `id"}`: "columns",
		`{"view":"event","id":"x"}`:      "number of an event",
		`{"view":"deployment","id":"1"}`: "deployment", `{"view":"deployment","id":"x"}`: "number of a deployment", `{"view":"deployment.tasks","id":"x"}`: "number of a deployment", `{"view":"deployment.step","id":"1/0"}`: "deployment",
	} {
		s.watch(`{"watch":{"x":` + a + `}}`)
		if m := s.next(); m.Error == nil || !strings.Contains(m.Error.Message+m.Error.Hint, want) {
			t.Errorf("%s: %+v", a, m.Error)
		}
		s.watch(`{"watch":{}}`)
	}
}

// TestGroupsAndNetworks: of a group its nodes, its instances and the networks that it is connected to, of a network who is on it, as they change.
func TestGroupsAndNetworks(t *testing.T) {
	r := newRig(t)
	s := r.openStream(r.signIn("bo", "secret"))
	shows := func(view, id, want string) {
		t.Helper()
		s.watch(fmt.Sprintf(`{"watch":{"x":{"view":%q,"id":%q}}}`, view, id))
		for got := ""; !strings.Contains(got, want); {
			m := s.next()
			if m.Error != nil {
				t.Fatalf("%s of %s: %v", view, id, m.Error)
			}
			got = string(m.Value) + fmt.Sprint(m.Rows)
		}
		s.watch(`{"watch":{}}`)
	}
	r.ends(`OP_NETWORK_ADD {"network_name":"lan","network":"192.0.2.0/28"}`)
	r.ends(`OP_NETWORK_ADD {"network_name":"other","network":"198.51.100.0/28"}`)
	shows("group.networks", "default", "[]")
	r.ends(`OP_NETWORK_CONNECT {"network_name":"lan","group_name":"default","network_mode":"bridged","network_link":"br0"}`)
	r.ends(`OP_GROUP_ADD {"group_name":"rack2"}`)
	r.ends(`OP_NETWORK_CONNECT {"network_name":"other","group_name":"rack2","network_mode":"openvswitch","network_link":"br1","network_vlan":".7"}`)
	shows("group.networks", "rack2", `[{"name":"other","subnet":"198.51.100.0/28","mode":"openvswitch","link":"br1","vlan":".7","free":14}]`)
	shows("group.networks", "default", `[{"name":"lan","subnet":"192.0.2.0/28","mode":"bridged","link":"br0","free":14}]`)
	r.ends(fmt.Sprintf(newMachine, "web1", `{"network":"lan","ip":"pool"}`))
	shows("group.nodes", "default", "node1.example")
	shows("group.instances", "default", "web1")
	r.ends(fmt.Sprintf(newMachine, "web2", `{"ip":"203.0.113.7"},{"network":"lan","ip":"pool"}`)) // and on no network
	shows("network.instances", "lan", `{"instances":[{"name":"web1","status":"running","node":"node1.example","addresses":["192.0.2.1"]},{"name":"web2","status":"running","node":"node1.example","addresses":["192.0.2.2"]}],"more":0}`)
	shows("network.instances", "other", `{"instances":[],"more":0}`)
	shows("group.networks", "default", `"free":12`)
	if unset := textOf("-"); unset != "" {
		t.Errorf("a part that is not set reads %q", unset)
	}
	r.rule(`{"name":"night","action":"PAUSE","predicates":[["jobid",[">","id",0]]]}`)
	r.queued(`OP_NETWORK_SET_PARAMS {"network_name":"lan","gateway":"192.0.2.2"}`)
	shows("network.jobs", "lan", "NETWORK_SET_PARAMS(lan)")
	shows("group.jobs", "lan", "[]") // it is about something else of that name
}

// TestADeployment: of a stored plan the graph, what would run and why, each task as it is, and no secret.
func TestADeployment(t *testing.T) {
	r := newRig(t)
	const graph = `[{id: pre, type: stage}, {id: motd, type: shell, version: 2.1.0, role: '*', requires: [pre], parameters: {cmd: {yaql_exp: '"echo " + $.password'}}}, {id: last, type: shell, version: 2.1.0, role: '*', requires: [motd], condition: {yaql_exp: 'changed($.color)'}, parameters: {cmd: 'true'}}]`
	by := rollout.By{}
	if _, err := r.c.Rollout.PutGraph(t.Context(), "web", []course.File{{Path: "web.yaml", Text: graph}}, by); err != nil {
		t.Fatal(err)
	}
	const env = "common: {password: correct-horse, color: red}\nnodes: {'1': {uid: '1', roles: [web]}, '2': {uid: '2', roles: [web]}}\nhosts: {'1': node1.example, '2': node1.example}"
	if _, err := r.c.Rollout.PutEnvironment(t.Context(), "prod", course.File{Path: "env.yaml", Text: env}, []string{"web"}, by); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.c.Rollout.Plan(t.Context(), rollout.Wish{Environment: "prod"}, by); err != nil {
		t.Fatal(err)
	}
	session := r.signIn("bo", "secret")
	status, text, _ := r.ask("GET", "/api/deployments/1/plan", session, "")
	var p planned
	if err := json.Unmarshal([]byte(text), &p); err != nil || status != http.StatusOK {
		t.Fatalf("the plan: %d %s", status, text)
	}
	if fmt.Sprint(p.Tasks) != "[motd last pre]" || len(p.Drawing.Lines) != 2 || p.Drawing.Points[1].Layer != 2 || len(p.Groups) < 2 || p.Groups[len(p.Groups)-1].Reasons[0].Why == "" {
		t.Errorf("the plan: %s", text)
	}
	told := text
	s := r.openStream(session)
	for name, want := range map[string]string{"deployment": `"sums":[{"task":"motd","state":"waiting","nodes":2`, "deployment.tasks": "$.color was never there", "deployment.step": `drover deploy explain 1 last`, "deployments": "prod", "environments": "prod"} {
		id := map[string]string{"deployment.step": "1/1"}[name]
		if id == "" && name != "deployments" && name != "environments" {
			id = "1"
		}
		s.watch(fmt.Sprintf(`{"watch":{"x":{"view":%q,"id":%q}}}`, name, id))
		m := s.next()
		got := fmt.Sprint(string(m.Value), m.Rows, m.Error)
		if m.Error != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %+v %s", name, m, m.Value)
		}
		told += got
		s.watch(`{"watch":{}}`)
	}
	if strings.Contains(told, "correct-horse") {
		t.Errorf("a secret is told: %s", told)
	}
	for path, want := range map[string]int{"/api/deployments/9/plan": http.StatusNotFound, "/api/deployments/x/plan": http.StatusBadRequest} {
		if status, text, _ := r.ask("GET", path, session, ""); status != want {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

// shop stores a task graph and an environment of two nodes, in a colour; put changes the latter.
func (r *rig) shop(colour string) {
	r.Helper()
	const graph = `[{id: pre, type: stage}, {id: motd, type: shell, version: 2.1.0, role: '*', requires: [pre], parameters: {cmd: 'true'}}, {id: paint, type: shell, version: 2.1.0, role: [web], requires: [motd], condition: {yaql_exp: 'changed($.color)'}, parameters: {cmd: {yaql_exp: '"echo " + $.password'}}}]`
	if _, err := r.c.Rollout.PutGraph(r.Context(), "web", []course.File{{Path: "web.yaml", Text: graph}}, rollout.By{}); err != nil && !fault.Is(err, fault.Conflict) {
		r.Fatal(err)
	}
	r.putShop(colour)
}

func (r *rig) putShop(colour string) {
	r.Helper()
	env := "common: {password: correct-horse, color: " + colour + "}\nnodes: {'1': {uid: '1', roles: [web]}, '2': {uid: '2', roles: [db]}}\nhosts: {'1': node1.example, '2': node1.example}"
	if _, err := r.c.Rollout.PutEnvironment(r.Context(), "prod", course.File{Path: "env.yaml", Text: env}, []string{"web"}, rollout.By{}); err != nil {
		r.Fatal(err)
	}
}

// answered is what a request is answered that has to succeed.
func answered[T any](r *rig, method, path, session, body string) (out T) {
	r.Helper()
	status, text, _ := r.ask(method, path, session, body)
	if err := json.Unmarshal([]byte(text), &out); err != nil || status != http.StatusOK {
		r.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	return out
}

// TestADeploymentIsBegun: as it was shown, with the reason that was typed, or not at all; and it is stopped, and goes on.
func TestADeploymentIsBegun(t *testing.T) {
	r := newRig(t)
	r.shop("red")
	looks, ada := r.signIn("bo", "secret"), r.signIn("ada", "secret")
	const about = "/api/plan?environment=prod"
	shown := answered[proposed](r, "GET", about, looks, "")
	if shown.Runs != 3 || shown.Headline != "3 of 4 tasks run, on 2 nodes" || len(shown.Groups) != 2 || shown.Plan != "drover deploy plan prod" || shown.Run != "drover deploy run prod" {
		t.Errorf("the plan: %+v", shown)
	}
	if fmt.Sprint(shown.Sums) != "[{motd waiting 2 2 0 0 0 0 0} {paint waiting 1 1 0 0 0 0 0} {pre skipped 1 0 0 0 0 0 0}]" || len(shown.Drawing.Points) != 3 || len(shown.Drawing.Lines) != 2 || shown.Drawing.Points[1].Layer != 2 {
		t.Errorf("its picture: %v %+v", shown.Sums, shown.Drawing)
	}
	if rows := r.query("deployment", "id", ""); len(rows) != 0 {
		t.Errorf("a plan that was looked at is stored: %s", rows)
	}
	some := answered[proposed](r, "GET", about+"&only=motd&only=pre&nodes=1&mode=dry-run&force=yes", looks, "")
	if some.Headline != "1 of 3 tasks run, on 1 node" || some.Run != "drover deploy run prod --task 'motd,pre' --node 1 --force --dry-run" {
		t.Errorf("a part of it: %+v", some)
	}
	begin := func(of proposed, reason string) (int, string) {
		status, text, _ := r.ask("POST", "/api/deployments", ada, fmt.Sprintf(`{"wish":%s,"reason":%q}`, encoded(of.Wish), reason))
		return status, text
	}
	if status, text := begin(shown, " "); status != http.StatusBadRequest || !strings.Contains(text, "say why") {
		t.Errorf("without a reason: %d %s", status, text)
	}
	if status, text, _ := r.ask("POST", "/api/deployments", ada, `{"wish":{"environment":"prod"},"reason":"OPS-1"}`); status != http.StatusBadRequest || !strings.Contains(text, "the plan that was shown") {
		t.Errorf("what nobody has seen: %d %s", status, text)
	}
	r.putShop("blue")
	if status, text := begin(shown, "OPS-1"); status != http.StatusConflict || !strings.Contains(text, "has moved on") {
		t.Errorf("what was shown is no more what it would be: %d %s", status, text)
	}
	if rows := r.query("deployment", "id", ""); len(rows) != 0 {
		t.Errorf("a plan that was refused is stored: %s", rows)
	}
	shown = answered[proposed](r, "GET", about, looks, "")
	r.hold()
	if status, text := begin(shown, "OPS-2: go"); status != http.StatusOK || text != `{"deployment":1}`+"\n" {
		t.Fatalf("it does not begin: %d %s", status, text)
	}
	if status, text := begin(shown, "OPS-2: go"); status != http.StatusConflict {
		t.Errorf("twice: %d %s", status, text)
	}
	// acts are what is offered, on the stream as it changes.
	s := r.openStream(looks)
	s.watch(`{"watch":{"x":{"view":"deployment","id":"1"}}}`)
	offered := func(want string) {
		t.Helper()
		for {
			var d struct{ Acts []offer }
			if err := json.Unmarshal(s.next().Value, &d); err != nil {
				t.Fatal(err)
			}
			names := ""
			for _, a := range d.Acts {
				names += string(a.Do) + ": " + a.Command + " "
			}
			if names == want {
				return
			}
		}
	}
	offered("stop: drover deploy stop 1 ")
	if status, text, _ := r.ask("POST", "/api/deployments/1/stop", ada, `{}`); status != http.StatusBadRequest || !strings.Contains(text, "say why") {
		t.Errorf("a stop without a reason: %d %s", status, text)
	}
	answered[outcome](r, "POST", "/api/deployments/1/stop", ada, `{"reason":"OPS-3: wait"}`)
	offered("resume: drover deploy resume 1 ")
	if status, text, _ := r.ask("POST", "/api/deployments/1/stop", ada, `{"reason":"OPS-3: wait"}`); status != http.StatusConflict || !strings.Contains(text, "not running") {
		t.Errorf("a stop of what is stopped: %d %s", status, text)
	}
	if status, text, _ := r.ask("POST", "/api/deployments/1/burn", ada, `{"reason":"OPS-3"}`); status != http.StatusNotFound {
		t.Errorf("what nobody can: %d %s", status, text)
	}
	answered[outcome](r, "POST", "/api/deployments/1/resume", ada, `{"reason":"OPS-4: on"}`)
	offered("stop: drover deploy stop 1 ")
	answered[outcome](r, "POST", "/api/deployments/1/stop", ada, `{"reason":"OPS-5: enough"}`)
	offered("resume: drover deploy resume 1 ")
	events := r.query("event", "what,who,surface,reason_trail", "")
	for what, why := range map[string]string{"deployment.begin": "OPS-2: go", "deployment.stop": "OPS-3: wait", "deployment.resume": "OPS-4: on"} {
		if !slices.ContainsFunc(events, func(row string) bool {
			return strings.Contains(row, `"`+what+`"`) && strings.Contains(row, `"ada"`) && strings.Contains(row, `"web"`) && strings.Contains(row, `["gnt:user","`+why+`"`) && strings.Contains(row, `"gnt:client:drover-web"`)
		}) {
			t.Errorf("nothing tells of %s because of %s: %s", what, why, events)
		}
	}
	// a plan that is stored is begun as it is, or not.
	if _, _, err := r.c.Rollout.Plan(t.Context(), rollout.Wish{Environment: "prod"}, rollout.By{}); err != nil {
		t.Fatal(err)
	}
	r.putShop("green")
	if status, text, _ := r.ask("POST", "/api/deployments/2/begin", ada, `{"reason":"OPS-6"}`); status != http.StatusConflict || !strings.Contains(text, "has moved on") {
		t.Errorf("a plan of before: %d %s", status, text)
	}
}

// TestExpressions: over the present state and those of deployments, as on a node, with the command that tells the same; what is wrong is told with its place,
// and no secret as it is. Who may only look evaluates nothing: an expression can make of a secret what nobody recognizes.
func TestExpressions(t *testing.T) {
	r := newRig(t)
	r.shop("red")
	ada, looks := r.signIn("ada", "secret"), r.signIn("bo", "secret")
	plan := func() {
		if _, _, err := r.c.Rollout.Plan(t.Context(), rollout.Wish{Environment: "prod"}, rollout.By{}); err != nil {
			t.Fatal(err)
		}
	}
	plan()
	r.putShop("blue")
	plan()
	r.putShop("green")
	for body, want := range map[string]string{
		`{"expression":"$.color"}`:                      `{"value":"green","compared":[],"command":"drover deploy console prod -e '$.color'"}`,
		`{"expression":"$.color","new":1}`:              `{"value":"red","compared":[],"command":"drover deploy console prod --new 1 -e '$.color'"}`,
		`{"expression":"[$.uid, $.roles]","node":"2"}`:  `{"value":["2",["db"]],"compared":[],"command":"drover deploy console prod --node 2 -e '[$.uid, $.roles]'"}`,
		`{"expression":"changed($.color)","old":1}`:     `{"value":true,"compared":[{"function":"changed","expression":"$.color","changed":true}],"command":"drover deploy console prod --old 1 -e 'changed($.color)'"}`,
		`{"expression":"old($.color)","new":1,"old":2}`: `{"value":"blue","compared":[],"command":"drover deploy console prod --new 1 --old 2 -e 'old($.color)'"}`,
		`{"expression":"$.password"}`:                   `"value":"\u003credacted\u003e"`,
		`{"expression":"null"}`:                         `{"value":null,`,
		`{"expression":"'😀ä' +\n  $.color.nope()"}`:     `"line":2,"column":11,"offset":18,"shown":`,
		`{"expression":"1 +"}`:                          `"wrong":{"message":`,
		`{"expression":"int($.color)"}`:                 `"wrong":{"message":`,
	} {
		if status, text, _ := r.ask("POST", "/api/environments/prod/eval", ada, body); status != http.StatusOK || !strings.Contains(text, want) || strings.Contains(text, "correct-horse") {
			t.Errorf("%s: %d %s, want %s", body, status, text, want)
		}
	}
	for body, want := range map[string]int{`{}`: http.StatusBadRequest, `{"expression":"1","node":"9"}`: http.StatusNotFound, `{"expression":"1","new":9}`: http.StatusNotFound, `{"expression":"1","x":1}`: http.StatusBadRequest} {
		if status, text, _ := r.ask("POST", "/api/environments/prod/eval", ada, body); status != want {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	if m := misreadOf(&yaql.Error{Message: "x", Source: "of a function", Offset: 2}, "1 + 2 + 3"); m.Line != 0 || m.Shown != "" {
		t.Errorf("what is wrong elsewhere has a place: %+v", m)
	}
	if status, text, _ := r.ask("POST", "/api/environments/none/eval", ada, `{"expression":"1"}`); status != http.StatusNotFound {
		t.Errorf("of no environment: %d %s", status, text)
	}
	if status, text, _ := r.ask("POST", "/api/environments/prod/eval", looks, `{"expression":"1"}`); status != http.StatusForbidden {
		t.Errorf("by who may only look: %d %s", status, text)
	}
}

// hold keeps all jobs from beginning.
func (r *rig) hold() {
	r.Helper()
	ada := r.signIn("ada", "secret")
	const edit = `"edit":{"do":"put","rule":"","parts":{"action":"PAUSE"}},"when":"jobid: id > 0"`
	f := answered[struct{ Digest string }](r, "POST", "/api/rules/preview", ada, "{"+edit+"}")
	answered[map[string]any](r, "POST", "/api/rules", ada, "{"+edit+`,"reason":"hold","digest":"`+f.Digest+`"}`)
}

// TestTwoPlansAreCompared: what only one of them runs, what both run for other reasons, and the values of before and now, without secrets.
func TestTwoPlansAreCompared(t *testing.T) {
	r := newRig(t)
	looks := r.signIn("bo", "secret")
	r.shop("red")
	plan := func(w rollout.Wish) {
		w.Environment = "prod"
		if _, _, err := r.c.Rollout.Plan(t.Context(), w, rollout.By{}); err != nil {
			t.Fatal(err)
		}
	}
	plan(rollout.Wish{})
	plan(rollout.Wish{})
	r.putShop("blue")
	plan(rollout.Wish{Only: []string{"pre", "motd"}})
	same := answered[comparison](r, "GET", "/api/deployments/1/compare/2", looks, "")
	if len(same.Gone)+len(same.Came)+len(same.Changed)+len(same.States) != 0 || same.Before.Headline != "3 of 4 tasks run, on 2 nodes" {
		t.Errorf("twice the same: %+v", same)
	}
	status, text, _ := r.ask("GET", "/api/deployments/1/compare/3", looks, "")
	var c comparison
	if err := json.Unmarshal([]byte(text), &c); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	if len(c.Gone) != 1 || c.Gone[0].Task != "paint" || len(c.Came)+len(c.Changed) != 0 || len(c.States) != 1 || c.States[0].Path != "$.color" || *c.States[0].Old != `"red"` || *c.States[0].New != `"blue"` {
		t.Errorf("the other way: %s", text)
	}
	if back := answered[comparison](r, "GET", "/api/deployments/3/compare/1", looks, ""); len(back.Came) != 1 || len(back.Gone) != 0 || back.TasksCommand != "drover deploy diff --tasks 3 1" {
		t.Errorf("the other way round: %+v", back)
	}
	if strings.Contains(text, "correct-horse") {
		t.Errorf("a secret is told: %s", text)
	}
	for path, want := range map[string]int{"/api/deployments/1/compare/9": http.StatusNotFound, "/api/deployments/1/compare/x": http.StatusBadRequest} {
		if status, text, _ := r.ask("GET", path, looks, ""); status != want {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

// TestValuesOfFields: those that there are, as filters write them, with what was typed in them; of what has none, or is neither text nor number, nothing.
func TestValuesOfFields(t *testing.T) {
	r := newRig(t)
	looks := r.signIn("bo", "secret")
	r.hold()
	for range 2 {
		r.submit(600)
	}
	if _, err := r.c.Queue.Cancel(t.Context(), r.submit(600), false, queue.By{}); err != nil {
		t.Fatal(err)
	}
	for asked, want := range map[string]string{
		"job?field=status":           `"queued" 2, "canceled" 1, `,
		"job?field=status&typed=CAN": `"canceled" 1, `,
		"job?field=status&typed=e":   `"queued" 2, "canceled" 1, `,
		"job?field=status&typed=x":   "",
		"job?field=id":               `1 1, 2 1, 3 1, `,
		"job?field=id&typed=2":       `2 1, `,
		"job?field=priority":         `0 3, `,
		"node?field=mtotal":          `128G 1, `,
		"node?field=mtotal&typed=13": `128G 1, `, // it is 131072 MiB
		"node?field=mtotal&typed=1g": "",
		"node?field=mtotal&typed=31": "",
		"node?field=offline":         "",
		"job?field=received_ts":      "",
		"node?field=name&typed=ODE1": `"node1.example" 1, `,
		"instance?field=name":        "",
	} {
		got := ""
		for _, v := range answered[[]value](r, "GET", "/api/values/"+asked, looks, "") {
			got += fmt.Sprintf("%s %d, ", v.Text, v.Count)
		}
		if got != want {
			t.Errorf("%s: %s, not %s", asked, got, want)
		}
	}
	if none, err := written(query.KindUnit, "0"); err != nil || none != "0" {
		t.Errorf("no size is written %s: %v", none, err)
	}
	for asked, want := range map[string]string{"moon?field=x": "no kind of item", "job?field=statsu": "did you mean status?", "job": "no field"} {
		if status, text, _ := r.ask("GET", "/api/values/"+asked, looks, ""); status != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", asked, status, text)
		}
	}
	for _, of := range [][2]string{{"job", "status"}, {"job", "id"}, {"node", "mtotal"}} {
		for _, v := range answered[[]value](r, "GET", "/api/values/"+of[0]+"?field="+of[1], looks, "") {
			if got := len(r.query(of[0], of[1], of[1]+" == "+v.Text)); int64(got) != v.Count {
				t.Errorf("%s == %s lets %d through, and %d are told", of[1], v.Text, got, v.Count)
			}
		}
	}
}

// TestWhatIsAroundAJob: what a tab is shown is what the queue says, placed, and changes with it.
func TestWhatIsAroundAJob(t *testing.T) {
	r := newRig(t)
	first := r.submit(600)
	op, err := opcode.FromMap("OP_TEST_DELAY", map[string]any{"duration": 600, "depends": []any{[]any{int64(first), []any{}}}})
	if err != nil {
		t.Fatal(err)
	}
	second, err := r.c.Queue.Submit(t.Context(), queue.Submission{Ops: []*opcode.Opcode{op}})
	if err != nil {
		t.Fatal(err)
	}
	s := r.openStream(r.signIn("bo", "secret"))
	s.watch(fmt.Sprintf(`{"watch":{"x":{"view":"job.around","id":"%d"}}}`, second))
	for {
		m := s.next()
		var shown surroundings
		if err := json.Unmarshal(m.Value, &shown); err != nil {
			t.Fatalf("%s: %v", m.Value, err)
		}
		asked, err := r.c.Queue.Around(t.Context(), second)
		if err != nil {
			t.Fatal(err)
		}
		if len(shown.Points) != 2 || shown.Points[1].Status != job.Running || fmt.Sprint(shown.Around) != fmt.Sprint(asked) {
			continue // it was only about to run
		}
		if shown.Links[0] != (machine.Link{From: 0, To: 1, Kind: machine.LinkDepends}) || shown.Drawing.Points[1].Layer != 1 || len(shown.Drawing.Lines) != 1 {
			t.Errorf("it is told %s", m.Value)
		}
		break
	}
	if _, err := r.c.Queue.Cancel(t.Context(), second, false, queue.By{}); err != nil {
		t.Fatal(err)
	}
	if m := s.next(); !strings.HasPrefix(string(m.Value), `{"points":[],"links":[]`) {
		t.Errorf("of a job that has ended it is told %s", m.Value)
	}
}

// TestAnyQuestion: of every item of the catalogue all fields of its row, in groups, as a file, and how it is carried out; what is wrong is named.
func TestAnyQuestion(t *testing.T) {
	r := newRig(t)
	for range 3 {
		r.submit(600)
	}
	session := r.signIn("bo", "secret")
	status, text, _ := r.ask("GET", "/api/catalogue", session, "")
	var c struct{ Items []thing }
	if err := json.Unmarshal([]byte(text), &c); err != nil || status != http.StatusOK || len(c.Items) != len(things) {
		t.Fatalf("%d %s", status, text)
	}
	for _, item := range items.All.Names() {
		_, err := thingOf(item)
		if other := slices.Contains([]string{"cluster", "os", "extstorage"}, item); (err == nil) == other { // those have commands of their own, not drover query
			t.Errorf("%s: %v", item, err)
		}
	}
	s := r.openStream(session)
	for a, want := range map[string]string{
		`"item":"job","by":"status"`: "drover query job --group-by status --figures count",
		`"item":"job","by":"status","figures":"max(id)","sort":"-max(id)","limit":1`:    "drover query job --group-by status --figures 'max(id)' --sort '-max(id)'",
		`"item":"job","fields":"id,reason","filter":"id > 1","limit":1`:                 "drover query job -o 'id,reason' --sort -id --filter 'id > 1'",
		`"item":"job","fields":"id","filter":"id == 2 and status != \"x\"","sort":"id"`: "drover query job -o id --filter 'id == 2 and status != \"x\"' --sort id",
	} {
		s.watch(`{"watch":{"x":{"view":"query",` + a + `}}}`)
		if m := s.next(); m.Error != nil || m.Command != want || len(m.Rows) == 0 || len(m.Rows) > 2 {
			t.Errorf("%s: %+v", a, m)
		}
		s.watch(`{"watch":{}}`)
	}
	status, text, header := r.ask("GET", "/api/query.csv?item=job&fields=id,status&sort=id&filter=id+%3C+3", session, "")
	if lines := strings.Split(strings.TrimSpace(text), "\n"); status != http.StatusOK || len(lines) != 3 || lines[0] != "id,status" || !strings.HasPrefix(lines[1], "1,") {
		t.Errorf("as a file: %d %s", status, text)
	}
	if header.Get("Content-Disposition") != `attachment; filename="job.csv"` || !strings.HasPrefix(header.Get("Content-Type"), "text/csv") {
		t.Errorf("as a file: %v", header)
	}
	if status, text, _ := r.ask("GET", "/api/explain?item=job&filter=id+%3D%3D+1", session, ""); status != http.StatusOK || !strings.Contains(text, "1 considered") {
		t.Errorf("how it is carried out: %d %s", status, text)
	}
	for _, path := range []string{"/api/query.csv?item=moon", "/api/query.csv?item=job&filter=%28", "/api/query.csv?item=job&fields=nope", "/api/explain?item=job&sort=nope", "/api/explain"} {
		if status, text, _ := r.ask("GET", path, session, ""); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

// TestCellsAsText: values as files have them. What a spreadsheet would take for a formula is a text in it.
func TestCellsAsText(t *testing.T) {
	for _, c := range []struct {
		kind query.Kind
		cell query.Cell
		want string
	}{
		{query.KindText, query.Cell{Value: "web1"}, "web1"},
		{query.KindText, query.Cell{Value: `=HYPERLINK("http://evil.example")`}, `'=HYPERLINK("http://evil.example")`},
		{query.KindText, query.Cell{Value: "@SUM(A1)"}, "'@SUM(A1)"},
		{query.KindText, query.Cell{Value: "-1+1"}, "'-1+1"},
		{query.KindNumber, query.Cell{Value: int64(-10)}, "-10"},
		{query.KindOther, query.Cell{Value: []string{"a", "b"}}, `["a","b"]`},
		{query.KindOther, query.Cell{Value: [2]int64{1, 500_000}}, "1970-01-01T00:00:01.5Z"},
		{query.KindTimestamp, query.Cell{Value: 1.5}, "1970-01-01T00:00:01.5Z"},
		{query.KindTimestamp, query.Cell{Value: nil}, ""},
		{query.KindUnit, query.Cell{Status: query.Unavail}, ""},
		{query.KindUnit, query.Cell{Status: query.NoData}, "(nodata)"},
		{query.KindUnit, query.Cell{Status: query.Offline}, "(offline)"},
	} {
		if got := cellText(c.kind, c.cell); got != c.want {
			t.Errorf("%+v: %q, not %q", c.cell, got, c.want)
		}
	}
}

// TestAJobIsSeen from submission to its end by a tab, which a second one that was away goes on from.
func TestAJobIsSeen(t *testing.T) {
	r := newRig(t)
	session := r.signIn("bo", "secret")
	s := r.openStream(session)
	s.watch(`{"watch":{"x":{"view":"jobs"}}}`)
	first := s.next()
	if !first.Reset || len(first.Rows) != 0 {
		t.Fatalf("at first: %+v", first)
	}
	id := r.submit(0)
	for ended := false; !ended; {
		last := s.next()
		if last.Reset {
			t.Errorf("all over again: %+v", last)
		}
		for _, row := range last.Rows {
			ended = row[0] == id.String() && strings.Contains(fmt.Sprint(row[1]), "ended")
		}
	}
	again := r.openStream(session)
	again.watch(`{"watch":{"x":{"view":"jobs","since":"` + first.Revision + `"}}}`)
	if m := again.next(); m.Reset || len(m.Rows) != 1 {
		t.Errorf("a tab that was away: %+v", m)
	}
	stranger := r.openStream(session)
	stranger.watch(`{"watch":{"x":{"view":"jobs","since":"99999"}}}`)
	if m := stranger.next(); !m.Reset || len(m.Rows) != 1 {
		t.Errorf("a tab that knows an unknown revision: %+v", m)
	}
}

// reader is what a tab makes of messages.
type reader struct {
	order []string
	rows  map[string]string
}

func (r *reader) take(t *rapid.T, text []byte) {
	var m struct {
		Reset bool
		Rows  [][2]json.RawMessage
		Left  []string
		Order []string
	}
	if err := json.Unmarshal(append(append([]byte{'{'}, text...), '}'), &m); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if m.Reset {
		*r = reader{rows: map[string]string{}}
	}
	for _, id := range m.Left {
		delete(r.rows, id)
	}
	r.order = slices.DeleteFunc(r.order, func(id string) bool { return slices.Contains(m.Left, id) })
	for _, row := range m.Rows {
		var id string
		if err := json.Unmarshal(row[0], &id); err != nil {
			t.Fatal(err)
		}
		if _, known := r.rows[id]; !known {
			r.order = append(r.order, id)
		}
		r.rows[id] = string(row[1])
	}
	if m.Order != nil {
		r.order = m.Order
	}
}

// TestATabThatDoesNotRead: whatever messages it reads, and however far behind it was, it has what the view shows; and no more messages are kept than that takes.
func TestATabThatDoesNotRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &feed{tabs: map[*tab]bool{}}
		r := reader{rows: map[string]string{}}
		at := -1
		for revision := range rapid.IntRange(1, 3*mostKept).Draw(t, "steps") {
			ids := rapid.SliceOfNDistinct(rapid.IntRange(0, 5), 0, 6, rapid.ID[int]).Draw(t, "rows")
			u := &live.Update{Revision: store.Revision(revision + 1), Fields: []query.Def{}}
			for _, id := range ids {
				u.Events = append(u.Events, query.Event{ID: strconv.Itoa(id), Row: fmt.Appendf(nil, "[[0,%d]]", rapid.IntRange(0, 1).Draw(t, "value"))})
			}
			f.show(u)
			if len(f.news) > mostKept {
				t.Fatalf("%d messages are kept", len(f.news))
			}
			if rapid.IntRange(0, 9).Draw(t, "reads") > 1 && revision > 0 {
				continue
			}
			var texts [][]byte
			texts, at, _ = f.take(at, 0)
			for _, text := range texts {
				r.take(t, text)
			}
			if !slices.Equal(r.order, f.now.order) {
				t.Fatalf("it has %v, there is %v", r.order, f.now.order)
			}
			for id, row := range f.now.rows {
				if r.rows[id] != string(row) {
					t.Fatalf("row %s is %s, not %s", id, r.rows[id], row)
				}
			}
		}
	})
}

// TestTabsAreBounded: of one session, and in what one asks for.
func TestTabsAreBounded(t *testing.T) {
	r := newRig(t)
	session := r.signIn("bo", "secret")
	for range mostTabs {
		r.openStream(session)
	}
	_, answer, err := websocket.Dial(t.Context(), r.http.URL+"/stream", &websocket.DialOptions{HTTPHeader: http.Header{"Cookie": {r.web.cookie() + "=" + session}, "Origin": {r.http.URL}}}) //nolint:bodyclose // it was read
	if err == nil || answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one tab more: %v", err)
	}
	s := r.openStream(r.signIn("ada", "secret"))
	many := map[string]ask{}
	for i := range mostViews + 1 {
		many[strconv.Itoa(i)] = ask{View: "jobs"}
	}
	s.watch(string(encoded(wish{Watch: many})))
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience())
	defer cancel()
	for err = nil; err == nil; {
		_, _, err = s.conn.Read(ctx)
	}
	if websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("more views than there may be: %v", err)
	}
}

// TestChartsDrawWhatTheirViewsCount: the page draws as many columns, and as wide ones, as the views of the last hours have jobs of.
func TestChartsDrawWhatTheirViewsCount(t *testing.T) {
	text, err := os.ReadFile("../../../web/now/hours.tsx")
	if err != nil {
		t.Fatal(err)
	}
	drawn := regexp.MustCompile(`(?s)const SPAN = (\d+);.*const COLUMNS = (\d+);`).FindSubmatch(text)
	if drawn == nil {
		t.Fatal("the page does not say how many columns it draws")
	}
	seconds, _ := strconv.Atoi(string(drawn[1]))
	columns, _ := strconv.Atoi(string(drawn[2]))
	since, span := fmt.Sprintf(" > -%dh", seconds*columns/3600), fmt.Sprintf("_ts/%dm", seconds/60)
	for _, name := range []string{"now.hours.came", "now.hours.ended", "now.hours.waited"} {
		v := views[name]
		if !strings.HasSuffix(v.filter, since) || !strings.Contains(v.by, span) || !strings.Contains(v.command, "'"+v.filter+"'") || !strings.Contains(v.command, " "+v.by+" ") {
			t.Errorf("%s counts %s by %s, and is told as %s; the page draws %s by %s", name, v.filter, v.by, v.command, since, span)
		}
	}
}

// TestThePageIsOfItsSources fails when a source was changed and the page not built anew (make web).
func TestThePageIsOfItsSources(t *testing.T) {
	const sources = "../../../web"
	text, err := dist.ReadFile("dist/sources.txt")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		listed[name] = sum
	}
	err = filepath.WalkDir(sources, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) == ".md" {
			return err
		}
		rel, err := filepath.Rel(sources, name)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		sum := keyOf(string(text))
		if listed[filepath.ToSlash(rel)] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s is not what the page was made of", rel)
		}
		delete(listed, filepath.ToSlash(rel))
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if len(listed) > 0 {
		t.Errorf("the page was made of what is gone: %v", listed)
	}
}

// TestAViewInErrorIsAskedForAgain: what was not there when a tab asked for it is shown when it is, and the error is told once.
func TestAViewInErrorIsAskedForAgain(t *testing.T) {
	r := newRig(t)
	signed := r.signIn("bo", "secret")
	tabs := []*stream{r.openStream(signed), r.openStream(signed)} // the second one finds the view open, with all that it shows for the time being
	for _, s := range tabs {
		s.watch(`{"watch":{"x":{"view":"job.explain","id":"1"}}}`)
		if m := s.next(); m.Error == nil {
			t.Fatalf("there is no job yet: %+v", m)
		}
	}
	if id := r.submit(600); id != 1 {
		t.Fatalf("it is job %d", id)
	}
	for _, s := range tabs {
		if m := s.next(); m.Error != nil || len(m.Value) == 0 {
			t.Errorf("the job is there: %+v", m)
		}
	}
}

// TestCommandsAreSafeToPaste: what others have named is one word of the command that is shown, also within a filter.
func TestCommandsAreSafeToPaste(t *testing.T) {
	r := newRig(t)
	const name = `x'; touch /tmp/y; # "$(id)"`
	for view, v := range views {
		if !strings.Contains(v.command, "$id") && !strings.Contains(v.command, "$filter") || numbered[v.item] != "" {
			continue
		}
		_, command, err := r.web.sourceOf(ask{View: view, ID: name})
		if err != nil {
			continue // it is no name of such a thing
		}
		out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", "drover() { printf '%s\\n' \"$@\"; }; "+command).CombinedOutput()
		if err != nil || !strings.Contains(strings.ReplaceAll(string(out), `\"`, `"`), name) {
			t.Errorf("%s: %s: %v %s", view, command, err, out)
		}
	}
}
