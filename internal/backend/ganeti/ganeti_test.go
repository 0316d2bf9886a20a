package ganeti

import (
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
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
		if err != nil || instance != "snf-1" {
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
			"/2/instances/old": `{"name":"old","admin_state":true,"tags":["a"]}`, "/2/instances/new": `{"name":"new","admin_state":"down","tags":[]}`,
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
	sight, err := c.Look(t.Context(), "old", []job.ID{1, 2, 3, 4, 5, 6, 7})
	if err != nil || !sight.Instance || sight.Stopped || len(sight.Tags) != 1 {
		t.Fatalf("%+v %v", sight, err)
	}
	if o := sight.Ended[3]; !o.Missing || o.OK || len(sight.Ended) != 5 || !sight.Ended[5].OK || sight.Ended[1].OK || sight.Ended[2].OK || sight.Ended[6].OK {
		t.Errorf("ended are %+v", sight.Ended)
	}
	if sight, err := c.Look(t.Context(), "new", nil); err != nil || !sight.Stopped {
		t.Errorf("%+v %v", sight, err)
	}
	if sight, err := c.Look(t.Context(), "none", nil); err != nil || sight.Instance {
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
	if _, err := c.Look(t.Context(), "x", nil); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a wrong certificate: %v", err)
	}
}
