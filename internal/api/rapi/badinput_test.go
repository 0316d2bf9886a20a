package rapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

func TestBadQueriesAreRefusedAndDisturbNobody(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.create("web1.gntpeer.example")
	var all sync.WaitGroup
	for _, tc := range []struct {
		path, filter string
		status       int
		text         string
	}{
		{"/2/query/instanc", `null`, 400, "(did you mean 'instance'?)"},
		{"", `["foo","a"]`, 400, "Unknown filter operand 'foo', at qfilter[0]"},
		{"", `["&",["and",null]]`, 400, `Unknown filter operand 'and', at qfilter[1][0] (did you mean "&"?)`},
		{"", `[]`, 400, "expected array [string, args]"},
		{"", `"name"`, 400, "expected array [string, args]"},
		{"", `["|",["==","name"]]`, 400, `expected [fieldname, value] but got ["name"], at qfilter[1]`},
		{"", `["!",null,null]`, 400, "expected [filter]"},
		{"", `["==","admin_up",true]`, 400, "expecting string or integer, got true, at qfilter[2]"},
		{"", `["<","ctime",1.5]`, 400, "fractional value: 3 % 2, at qfilter[2]"},
		{"", `["=~","name","("]`, 400, `missing )"), at qfilter[2]`},
		{"", `["==","nmae","x"]`, 400, "Can't find field named 'nmae' (did you mean 'name'?)"},
		{"", `["==","name",5]`, 400, "Invalid types in comparison"},
		{"", `["?","name"]`, 400, "in boolean context"},
		{"", `["==","name","nosuch"]`, 404, "Instance name nosuch not found"},
		{"", strings.Repeat(`["!",`, 100) + "null" + strings.Repeat("]", 100), 400, "nested deeper than 100"},
		{"", strings.Repeat(`["!",`, 40_000) + "null" + strings.Repeat("]", 40_000), 400, "nested deeper than 100"},
		{"", `["==","name","` + strings.Repeat("x", 10<<20) + `"]`, 413, "larger than 10485760 bytes"},
		{"", `["|"` + strings.Repeat(`,["=~","name","a{1000}"]`, 20_000) + `]`, 413, "expressions of the filter are too large"},
		{"", `["|"` + strings.Repeat(`,["==","os","noo"]`, 20_000) + `]`, 200, ""},
		{"", `["|"` + strings.Repeat(`,["==","os","noo"]`, 400_000) + `]`, 413, "more than 100000 values"},
		{"?sort=nmae", `null`, 400, "(did you mean 'name'?)"},
		{"?limit=-1", `null`, 400, "'limit'"},
		{"?after=x", `null`, 400, "token"},
		{"?figures=median(x)", `null`, 400, "median(x)"},
		{"?filter=name", `null`, 400, "The parameter 'filter' means nothing here"},
		{"?nosuch=1", `null`, 400, "The parameter 'nosuch' means nothing here"},
		{"", `null,"limit":3`, 400, "The body has the key 'limit', which means nothing here"},
	} {
		all.Go(func() {
			path := tc.path
			if !strings.HasPrefix(path, "/") {
				path = "/2/query/instance" + path
			}
			a := r.do(http.MethodPut, path, `{"fields":["name"],"qfilter":`+tc.filter+`}`)
			text := ""
			if a.status != http.StatusOK {
				text = strings.NewReplacer("&#x27;", "'", "&quot;", `"`, "&amp;", "&").Replace(a.message(t))
			}
			if a.status != tc.status || !strings.Contains(text, tc.text) || len(text) > 10_000 {
				t.Errorf("%s %.60s: %d %.300s", path, tc.filter, a.status, text)
			}
		})
	}
	// Meanwhile others are served, and jobs go on.
	for i := range 3 {
		r.succeed(http.MethodPut, fmt.Sprintf("/2/tags?tag=t%d", i), nil)
		if a := r.do(http.MethodGet, "/2/query/node?fields=name", nil); a.status != http.StatusOK {
			t.Errorf("a query beside it: %d %s", a.status, a.text)
		}
	}
	all.Wait()
}

func TestBadTextFilterOfAWatchNamesThePlace(t *testing.T) {
	r := newRig(t, rigOptions{})
	for filter, want := range map[string]string{
		"name === x":                         "(at char 5), (line:1, col:6)",
		strings.Repeat("(", 200):             "nested too deep",
		strings.Repeat("not ", 200) + "name": "nested too deep",
		"nmae == 1":                          "nmae",
	} {
		a := r.do(http.MethodGet, "/2/query/instance/watch?fields=name&filter="+url.QueryEscape(filter), nil)
		if a.status < 400 || a.status >= 500 || !strings.Contains(a.message(t), want) {
			t.Errorf("%.40s: %d %s", filter, a.status, a.text)
		}
	}
}

// The clients in use send a whole body before they read.
func TestOverlongBodyIsAnsweredToThoseWhoSendItAll(t *testing.T) {
	r := newRig(t, rigOptions{})
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.server.URL, "http://"))
	r.check(err)
	defer func() { r.check(conn.Close()) }()
	const size = 12 << 20
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, r.server.URL+"/2/query/instance", io.LimitReader(zeros{}, size))
	r.check(err)
	req.ContentLength = size
	req.Header = header("admin", "secret")
	r.check(req.Write(conn))
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	r.check(err)
	defer func() { r.check(resp.Body.Close()) }()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("got %s", resp.Status)
	}
}

// zeros is a body without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// What a request says is heeded or refused.
func TestNothingIsTakenWithoutEffect(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.create("web1.gntpeer.example")
	r.create("db1.gntpeer.example")
	for _, tc := range []struct {
		method, path, body string
		status             int
		text               string
	}{
		{"GET", "/2/query/instance?fields=name&filter=" + url.QueryEscape(`name == "db1"`), "", 200, `"data":[[[0,"db1.gntpeer.example"]]]`},
		{"GET", "/2/query/instance?fields=name&qfilter=" + url.QueryEscape(`["==","name","db1"]`), "", 200, `"data":[[[0,"db1.gntpeer.example"]]]`},
		{"GET", "/2/query/instance?fields=name&filter=" + url.QueryEscape(`name == db1`), "", 400, "texts stand in quotes"},
		{"GET", "/2/query/instance?fields=name&fliter=x", "", 400, "The parameter 'fliter' means nothing here"},
		{"GET", "/2/query/instance?figures=count", "", 200, `"data":[[[0,2]]]`},
		{"PUT", "/2/query/instance?group_by=pnode", `{"qfilter":null}`, 200, `"data":`},
		{"PUT", "/2/instances/db1.gntpeer.example/startup", `{"x":1}`, 400, "The body has the key 'x', which means nothing here; it may have: depends, reason"},
		{"GET", "/2/query/instance?fields=name&filter=" + url.QueryEscape(`["==","name","db1"]`), "", 200, `"data":[[[0,"db1.gntpeer.example"]]]`},
		{"GET", "/2/query/job/watch?fields=id&x=1", "", 400, "The parameter 'x' means nothing here; there are: fields, filter"},
		{"GET", "/2/jobs/1/explain?x=1", "", 400, "The parameter 'x' means nothing here; there is none"},
		{"PATCH", "/2/filters/lab?x=1", `{"priority":1}`, 400, "The parameter 'x' means nothing here"},
		{"DELETE", "/2/environments/lab?dry-run=1", "", 400, "The parameter 'dry-run' means nothing here"},
	} {
		var body any
		if tc.body != "" {
			body = tc.body
		}
		a := r.do(tc.method, tc.path, body)
		if a.status != tc.status || !strings.Contains(strings.ReplaceAll(a.text, "&#x27;", "'"), tc.text) {
			t.Errorf("%s %s: %d %.300s", tc.method, tc.path, a.status, a.text)
		}
	}
}

// A body must be one wherever a change is asked for, also where nothing comes of it.
func TestBodiesOfDeletions(t *testing.T) {
	r := newRig(t, rigOptions{})
	for _, tc := range []struct {
		body, kind string
		job, rule  int
	}{
		{"", "", 200, 404},
		{"{}", "application/json", 200, 404},
		{"[7]", "application/json", 200, 404}, // means nothing, there as here
		{"{", "application/json", 400, 400},
		{"{}", "text/plain", 415, 415},
		{"{}", "", 415, 415},
	} {
		for path, want := range map[string]int{"/2/jobs/77777": tc.job, "/2/filters/11111111-1111-4111-8111-111111111111": tc.rule} {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodDelete, path, strings.NewReader(tc.body))
			req.Header = header("admin", "secret")
			if req.Header.Set("Content-Type", tc.kind); tc.kind == "" {
				req.Header.Del("Content-Type")
			}
			w := httptest.NewRecorder()
			r.rapi.ServeHTTP(w, req)
			if w.Code != want {
				t.Errorf("DELETE %s, %q as %q: %d %s, want %d", path, tc.body, tc.kind, w.Code, w.Body, want)
			}
		}
	}
}

// dry-run=1 changes nothing, whatever the resource.
func TestDryRunChangesNothing(t *testing.T) {
	r := newRig(t, rigOptions{})
	const uuid = "11111111-1111-4111-8111-111111111111"
	if a := r.do("PUT", "/2/filters/"+uuid, `{"priority":1,"action":"PAUSE","predicates":[]}`); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.text)
	}
	held := strings.TrimSpace(r.do("PUT", "/2/tags?tag=a", nil).text)
	for _, tc := range []struct{ method, path, body, want string }{
		{"DELETE", "/2/filters/" + uuid + "?dry-run=1", "", `"effect":"release"`},
		{"PUT", "/2/filters/" + uuid + "?dry-run=1", `{"priority":1,"action":"CONTINUE","predicates":[]}`, `"effect":"release"`},
		{"DELETE", "/2/jobs/" + held + "?dry-run=1", "", `[true,"Job ` + held + ` would be cancelled"]`},
		{"DELETE", "/2/jobs/4711?dry-run=1", "", `[false,"Job 4711 not found in queue"]`},
	} {
		var body any
		if tc.body != "" {
			body = tc.body
		}
		if a := r.do(tc.method, tc.path, body); a.status != 200 || !strings.Contains(a.text, tc.want) {
			t.Errorf("%s %s: %d %s", tc.method, tc.path, a.status, a.text)
		}
	}
	if a := r.do("DELETE", "/2/filters/22222222-2222-4222-8222-222222222222?dry-run=1", nil); a.status != 404 {
		t.Errorf("%d %s", a.status, a.text)
	}
	if a := r.do("GET", "/2/jobs/"+held, nil); !strings.Contains(a.text, `"status":"queued"`) {
		t.Errorf("the job is %s", a.text)
	}
	if a := r.do("DELETE", "/2/filters/"+uuid, nil); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.text)
	}
	j := r.succeed("PUT", "/2/redistribute-config?dry-run=1", nil)
	if !j.Ops[0].Input.DryRun {
		t.Error("a resource that the reference gives no dry run did the thing")
	}
}
