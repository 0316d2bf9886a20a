package ganeti

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/server"
)

// stock is a cluster that answers as a stock Ganeti does.
func stock(t *testing.T, answer http.HandlerFunc) *Cluster {
	t.Helper()
	s := httptest.NewTLSServer(answer)
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	c, err := Open(Config{URL: s.URL, User: "drover", Password: "secret", CA: ca, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRequests: what each opcode of servers is asked for by.
func TestRequests(t *testing.T) {
	for _, tc := range []struct {
		id     string
		params map[string]any
		want   string
	}{
		{"OP_TAGS_SET", map[string]any{"kind": "instance", "name": "snf-1", "tags": []any{"cyclades:user:a+b/2Fc*", "x"}},
			"PUT /2/instances/snf-1/tags?reason=why&tag=cyclades%3Auser%3Aa%2Bb%2F2Fc%2A&tag=x "},
		{"OP_TAGS_DEL", map[string]any{"kind": "instance", "name": "snf-1", "tags": []any{"x"}}, "DELETE /2/instances/snf-1/tags?reason=why&tag=x "},
		{"OP_INSTANCE_STARTUP", map[string]any{"instance_name": "snf-1"}, "PUT /2/instances/snf-1/startup?reason=why "},
		{"OP_INSTANCE_SHUTDOWN", map[string]any{"instance_name": "snf-1"}, "PUT /2/instances/snf-1/shutdown?reason=why {}"},
		{"OP_INSTANCE_REBOOT", map[string]any{"instance_name": "snf-1", "reboot_type": "hard"}, "POST /2/instances/snf-1/reboot?reason=why&type=hard "},
		{"OP_INSTANCE_REMOVE", map[string]any{"instance_name": "snf-1", "ignore_failures": true}, "DELETE /2/instances/snf-1?reason=why "},
		{"OP_INSTANCE_SET_PARAMS", map[string]any{"instance_name": "snf-1", "beparams": map[string]any{"always_failover": true}},
			`PUT /2/instances/snf-1/modify?reason=why {"beparams":{"always_failover":true}}`},
	} {
		op, err := opcode.FromMap(tc.id, tc.params)
		if err != nil {
			t.Fatal(err)
		}
		q, instance, err := requestOf(op.WithReason(reason.Trail{{Source: "user", Reason: "why", Time: 1}}))
		if err != nil || instance.Name != "snf-1" {
			t.Errorf("%s: %q %v", tc.id, instance, err)
		}
		body := []byte{}
		if q.body != nil {
			if body, err = json.Marshal(q.body); err != nil {
				t.Fatal(err)
			}
		}
		if got := q.method + " " + q.path + "?" + q.query.Encode() + " " + string(body); got != tc.want {
			t.Errorf("%s:\n got  %s\n want %s", tc.id, got, tc.want)
		}
	}
	if _, _, err := requestOf(&opcode.Opcode{ID: "OP_CLUSTER_VERIFY"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("an opcode that servers do not need: %v", err)
	}
}

// TestReasonsAreASCII: a stock Ganeti whose daemons run in another locale takes no
// job with anything else.
func TestReasonsAreASCII(t *testing.T) {
	op, err := opcode.FromMap("OP_TAGS_SET", map[string]any{"kind": "instance", "name": "snf-1", "tags": []any{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	q, _, err := requestOf(op.WithReason(reason.Trail{{Source: "user", Reason: `add "νέο", '🙂' + b`, Time: 1}}))
	if got, want := q.query.Get("reason"), `add "\u03bd\u03ad\u03bf", '\U0001f642' + b`; err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

// notFound is the answer to what a cluster does not know.
const notFound = `{"code": 404, "message": "Not Found", "explain": "Nothing matches the given URI"}`

// TestVerdictsAreTheClustersOwn: what stands before a cluster may answer anything,
// and says nothing about instances and jobs.
func TestVerdictsAreTheClustersOwn(t *testing.T) {
	for what, tc := range map[string]struct {
		status int
		body   string
		want   fault.Code // of a look; empty for none, with the instance not there
	}{
		"its own verdict":            {404, notFound, ""},
		"a proxy's page":             {404, "<html><body><h1>404 Not Found</h1></body></html>", fault.Unavailable},
		"an empty page":              {404, "", fault.Unavailable},
		"another API's words":        {404, `{"error": {"code": 404, "message": "Not Found"}}`, fault.Unavailable},
		"another status in the text": {404, `{"code": 502, "message": "Bad Gateway", "explain": "x"}`, fault.Unavailable},
		"no explanation":             {404, `{"code": 404, "message": "Not Found"}`, fault.Unavailable},
		"no message":                 {404, `{"code": 404, "message": "", "explain": ""}`, fault.Unavailable},
		"a list":                     {404, `[]`, fault.Unavailable},
		"text that was cut off":      {404, notFound[:40], fault.Unavailable},
		"a page with status 200":     {200, "<html>welcome</html>", fault.Unavailable},
		"no instance at all":         {200, `{}`, fault.Unavailable},
		"another instance":           {200, `{"name": "snf-2", "tags": [], "admin_state": "up"}`, fault.Unavailable},
		"one without a UUID":         {200, `{"name": "snf-1", "tags": [], "admin_state": "up"}`, fault.Unavailable},
		"one with a longer name":     {200, `{"name": "snf-1.example", "tags": [], "admin_state": "up"}`, ""},
	} {
		t.Run(what, func(t *testing.T) {
			c := stock(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body))
			})
			sight, err := c.Look(t.Context(), server.Ref{Name: "snf-1"}, nil)
			if sight.Instance || fault.CodeOf(err) != tc.want && (err != nil || tc.want != "") {
				t.Errorf("a look: %+v, %v", sight, err)
			}
			if tc.status == http.StatusOK {
				return
			}
			op, err := opcode.FromMap("OP_TAGS_SET", map[string]any{"kind": "instance", "name": "snf-1", "tags": []any{"x"}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Submit(t.Context(), "key", op); (tc.want == "") != fault.Is(err, fault.NotFound) {
				t.Errorf("a job: %v", err)
			}
			if sight, err := c.Look(t.Context(), server.Ref{Name: "snf-1"}, []job.ID{7}); (tc.want == "") != (len(sight.Ended) == 1) {
				t.Errorf("the end of a job: %+v, %v", sight, err)
			}
		})
	}
}

// TestOfTwoCreationsTheFirstCounts: a stock Ganeti takes a job twice when the
// answer to the first was lost; then the instance is there all the same.
func TestOfTwoCreationsTheFirstCounts(t *testing.T) {
	creation := func(id int, why, status, result string) string {
		return fmt.Sprintf(`{"id":%d,"ops":[{"OP_ID":"OP_INSTANCE_CREATE","instance_name":"snf-1","reason":[["gnt:library:rlib2:instances","%s",1],["gnt:opcode:instance_create","job=%d;index=0",2]]}],
			"status":"%s","opstatus":["%s"],"opresult":[%s],"start_ts":[10,5],"end_ts":[20,7]}`, id, why, id, status, status, result)
	}
	exists, ours, theirs := `["OpPrereqError",["Instance 'snf-1' is already in the cluster","already_exists"]]`, "alice; create server s1", "create server s2"
	for what, tc := range map[string]struct {
		jobs  map[int]string // beside job 9
		over  bool
		ok    bool
		began job.Time
	}{
		"the first made it":    {map[int]string{5: creation(5, ours, "success", `["node1"]`), 6: creation(6, ours, "error", exists)}, true, true, 10e6 + 5},
		"the first runs still": {map[int]string{5: creation(5, ours, "running", "null")}, false, false, 0},
		"the first failed":     {map[int]string{5: creation(5, ours, "error", `["OpExecError",["no"]]`)}, true, false, 10e6 + 5},
		"somebody else's":      {map[int]string{5: creation(5, theirs, "success", `["node1"]`), 6: creation(6, "", "success", `["node1"]`)}, true, false, 10e6 + 5},
		"nobody says why":      {map[int]string{5: creation(5, "", "success", `["node1"]`), 9: creation(9, "", "error", exists)}, true, false, 10e6 + 5},
		"one that came later":  {map[int]string{12: creation(12, ours, "success", `["node1"]`)}, true, false, 10e6 + 5},
	} {
		t.Run(what, func(t *testing.T) {
			if tc.jobs[9] == "" {
				tc.jobs[9] = creation(9, ours, "error", exists)
			}
			c := stock(t, func(w http.ResponseWriter, r *http.Request) {
				var id int
				if _, err := fmt.Sscanf(r.URL.Path, "/2/jobs/%d", &id); err == nil {
					_, _ = w.Write([]byte(tc.jobs[id]))
				} else if r.URL.Path == "/2/jobs" && r.URL.Query().Get("bulk") == "1" {
					_, _ = w.Write([]byte("[" + strings.Join(slices.Collect(maps.Values(tc.jobs)), ",") + "]"))
				} else {
					_, _ = w.Write([]byte(`{"name":"snf-1","uuid":"u1","ctime":15.25,"admin_state":"up","tags":[]}`))
				}
			})
			sight, err := c.Look(t.Context(), server.Ref{Name: "snf-1"}, []job.ID{9})
			o, over := sight.Ended[9]
			if err != nil || over != tc.over || o.OK != tc.ok || o.Began != tc.began {
				t.Errorf("%+v, %v", sight, err)
			}
			if sight.UUID != "u1" || sight.Made != 15.25e6 {
				t.Errorf("the instance is %+v", sight)
			}
		})
	}
}

// TestStockAnswers: ids as texts, both spellings of a cancelled job, the two
// ways to say that an instance is to run, and refusals.
func TestStockAnswers(t *testing.T) {
	c := stock(t, func(w http.ResponseWriter, r *http.Request) {
		answers := map[string]string{
			"/2/instances/old/tags": `"17"`, "/2/instances/new/tags": `18`,
			"/2/jobs/1": `{"status":"canceled","opstatus":["canceled"],"opresult":[null]}`, "/2/jobs/2": `{"status":"cancelled","opstatus":["cancelled"],"opresult":[null]}`,
			"/2/jobs/3": `{"status":"error","opstatus":["error"],"opresult":[["OpPrereqError",["Tag(s) 'x' not found","unknown_entity"]]]}`,
			"/2/jobs/4": `{"status":"running","opstatus":["running"],"opresult":[null]}`, "/2/jobs/5": `{"status":"success","opstatus":["success"],"opresult":[null]}`,
			"/2/jobs/7":        `{"status":"canceling","opstatus":["canceling"],"opresult":[null]}`,
			"/2/instances/old": `{"name":"old","uuid":"u1","admin_state":true,"tags":["a"]}`, "/2/instances/new": `{"name":"new","uuid":"u2","admin_state":"down","tags":[]}`,
		}
		text, known := answers[r.URL.Path]
		switch user, password, _ := r.BasicAuth(); {
		case user != "drover" || password != "secret":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/2/instances/bad/tags":
			w.WriteHeader(http.StatusBadRequest)
			text = `{"code":400,"message":"Bad Request","explain":"no tags"}`
		case r.URL.Path == "/2/instances/busy/tags":
			w.WriteHeader(http.StatusServiceUnavailable)
		case !known:
			w.WriteHeader(http.StatusNotFound)
			text = notFound
		}
		_, _ = w.Write([]byte(text))
	})
	submit := func(instance string) (job.ID, error) {
		op, err := opcode.FromMap("OP_TAGS_SET", map[string]any{"kind": "instance", "name": instance, "tags": []any{"x"}})
		if err != nil {
			t.Fatal(err)
		}
		return c.Submit(t.Context(), "key", op)
	}
	for instance, want := range map[string]job.ID{"old": 17, "new": 18} {
		if id, err := submit(instance); err != nil || id != want {
			t.Errorf("%s: %d %v", instance, id, err)
		}
	}
	for instance, want := range map[string]fault.Code{"bad": fault.Invalid, "gone": fault.NotFound, "busy": fault.Unavailable} {
		if _, err := submit(instance); !fault.Is(err, want) {
			t.Errorf("%s: %v, want %s", instance, err, want)
		}
	}
	sight, err := c.Look(t.Context(), server.Ref{Name: "old"}, []job.ID{1, 2, 3, 4, 5, 6, 7})
	if err != nil || !sight.Instance || sight.Stopped || len(sight.Tags) != 1 {
		t.Fatalf("%+v %v", sight, err)
	}
	if o := sight.Ended[3]; !o.Missing || o.OK || len(sight.Ended) != 5 || !sight.Ended[5].OK || sight.Ended[1].OK || sight.Ended[2].OK || sight.Ended[6].OK {
		t.Errorf("ended are %+v", sight.Ended)
	}
	if sight, err := c.Look(t.Context(), server.Ref{Name: "new"}, nil); err != nil || !sight.Stopped {
		t.Errorf("%+v %v", sight, err)
	}
	if sight, err := c.Look(t.Context(), server.Ref{Name: "none"}, nil); err != nil || sight.Instance {
		t.Errorf("%+v %v", sight, err)
	}
}

func TestBadClusters(t *testing.T) {
	for _, cfg := range []Config{{URL: "http://c:5080"}, {URL: "https://user:secret@c:5080"}, {URL: "c"}, {URL: "https://c:5080", CA: []byte("none")}} {
		if _, err := Open(cfg); !fault.Is(err, fault.Invalid) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", cfg.URL, err)
		}
	}
	untrusted := stock(t, func(http.ResponseWriter, *http.Request) { t.Error("a cluster is trusted that nobody vouches for") })
	c, err := Open(Config{URL: untrusted.cfg.URL, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Look(t.Context(), server.Ref{Name: "x"}, nil); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a wrong certificate: %v", err)
	}
}

// TestNoRedirectIsFollowed: it would take the password along, also to where nothing is
// encrypted.
func TestNoRedirectIsFollowed(t *testing.T) {
	var leaked atomic.Bool
	plain := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _, with := r.BasicAuth()
		leaked.Store(with)
	}))
	defer plain.Close()
	c := stock(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain.URL+r.URL.Path, http.StatusMovedPermanently)
	})
	if _, err := c.Look(t.Context(), server.Ref{Name: "snf-1"}, nil); !fault.Is(err, fault.Unavailable) || leaked.Load() {
		t.Errorf("a look: %v; the password went along: %v", err, leaked.Load())
	}
}

// TestAnOddJobHoldsUpNothing: a job of which the cluster cannot tell keeps neither other jobs nor the list of instances from
// being looked at. Where nothing is answered there is one question at a time.
func TestAnOddJobHoldsUpNothing(t *testing.T) {
	var asked atomic.Int64
	var jobs atomic.Bool
	c := stock(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch {
		case r.URL.Path == "/2/instances":
			_, _ = w.Write([]byte(`[{"name":"seen"}]`))
		case jobs.Load() && r.URL.Path == "/2/jobs/8":
			_, _ = w.Write([]byte(`{"status":"success"}`))
		default:
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte(`{"code":500,"message":"Internal Server Error","explain":"a bug"}`))
		}
	})
	told := map[string]bool{}
	f := &follower{Cluster: c, changed: func(instance server.Ref) { told[instance.Name] = true }, odd: map[job.ID]bool{}}
	waiting := map[job.ID]server.Ref{}
	for id := range job.ID(10) {
		waiting[id] = server.Ref{Name: "odd"}
	}
	f.step(t.Context(), waiting)
	if f.away || !told["seen"] || asked.Load() != mostOdd+1 {
		t.Errorf("the cluster is away: %v, told of %v, %d questions", f.away, told, asked.Load())
	}
	jobs.Store(true)
	f.step(t.Context(), map[job.ID]server.Ref{7: {Name: "odd"}, 8: {Name: "made"}})
	if f.away || !told["made"] || told["odd"] {
		t.Errorf("the cluster is away: %v, told of %v", f.away, told)
	}
	c.client.Transport = lost{}
	f.step(t.Context(), waiting)
	if !f.away {
		t.Error("a cluster that does not answer is not away")
	}
}

// lost is a way to a cluster on which nothing arrives.
type lost struct{}

func (lost) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("no route") }

// TestSystems: a cluster says which operating systems it has, with their variants, or does not answer in its own words.
func TestSystems(t *testing.T) {
	for body, want := range map[string]string{`["debootstrap+minimal", "noop"]`: "debootstrap+minimal noop", `[]`: "", `{"debootstrap": 1}`: "error", `<html>`: "error"} {
		cluster := stock(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/2/os" {
				t.Errorf("%s is asked for", r.URL.Path)
			}
			_, _ = w.Write([]byte(body))
		})
		names, err := cluster.Systems(t.Context())
		if got := strings.Join(names, " "); err == nil && got != want || err != nil && want != "error" {
			t.Errorf("of %s come %q, %v", body, names, err)
		}
	}
}
