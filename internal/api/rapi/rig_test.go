package rapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/inventory"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/testkit/controller"
)

const usersText = `# accounts of the tests
admin {HA1}%s write
reader read read
`

// rig is a server on a real queue, store and fake node.
type rig struct {
	testing.TB
	queue  *queue.Queue
	keeper *inventory.Keeper
	shown  *picture.Picture
	rapi   *rapi.Server
	server *httptest.Server
	dir    string
}

type rigOptions struct {
	openReading bool
	// observe is told of each request and its status.
	observe func(what, outcome string)
	// newID gives ids to requests that bring none; nil for no ids.
	newID func() string
	// format is that of the store; 0 for the newest.
	format int
	// store is the URL of the store; empty for an embedded one.
	store string
}

func newRig(t testing.TB, options rigOptions) *rig {
	t.Helper()
	r := &rig{TB: t, dir: t.TempDir()}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	c := controller.New(t, controller.Options{Dir: r.dir, URL: options.store, Log: log, Memory: 24105,
		Cluster: "cluster.gntpeer.example", Nodes: []string{"node1.gntpeer.example"}})
	r.queue, r.keeper, r.shown = c.Queue, c.Keeper, c.Picture
	usersPath := filepath.Join(r.dir, "users")
	r.check(os.WriteFile(usersPath, fmt.Appendf(nil, usersText, rapi.HA1("admin", "secret")), 0o600))
	users := rapi.OpenUsers(usersPath, log)
	var observe func(context.Context, string, string, time.Duration)
	if options.observe != nil {
		observe = func(_ context.Context, what, outcome string, _ time.Duration) { options.observe(what, outcome) }
	}
	var present func() int
	if options.format != 0 {
		present = func() int { return options.format }
	}
	r.rapi = rapi.New(rapi.Config{
		Format:  present,
		Observe: observe,
		NewID:   options.newID,
		Queue:   r.queue, Users: users, RequireAuthentication: !options.openReading, Now: time.Now, Log: log,
		Querier: c.Querier, Rollout: c.Rollout,
	})
	r.server = httptest.NewServer(r.rapi)
	t.Cleanup(r.server.Close)
	return r
}

func (r *rig) check(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// answer is an answer of the server.
type answer struct {
	status int
	header http.Header
	text   string
}

// decode reads the answer's body.
func (a answer) decode(t testing.TB, into any) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(a.text))
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		t.Fatalf("answer %q: %v", a.text, err)
	}
}

func (a answer) message(t testing.TB) string {
	t.Helper()
	var body struct{ Message string }
	a.decode(t, &body)
	return body.Message
}

// send sends a request. A body that is no string is sent as JSON.
func (r *rig) send(method, path string, body any, header http.Header) answer {
	r.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		r.check(err)
		reader = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(r.Context(), method, r.server.URL+path, reader)
	r.check(err)
	maps.Copy(req.Header, header)
	resp, err := r.server.Client().Do(req)
	r.check(err)
	text, err := io.ReadAll(resp.Body)
	r.check(errors.Join(err, resp.Body.Close()))
	return answer{resp.StatusCode, resp.Header, string(text)}
}

// do sends a request as the administrator.
func (r *rig) do(method, path string, body any) answer {
	r.Helper()
	return r.send(method, path, body, header("admin", "secret"))
}

func header(name, password string) http.Header {
	req := &http.Request{Header: http.Header{"Content-Type": {"application/json"}}}
	if name != "" {
		req.SetBasicAuth(name, password)
	}
	return req.Header
}

// job sends a request that makes a job and returns the job when it has ended.
func (r *rig) job(method, path string, body any) *job.Job {
	r.Helper()
	a := r.do(method, path, body)
	if a.status != http.StatusOK {
		r.Fatalf("%s %s: %d %s", method, path, a.status, a.text)
	}
	var id job.ID
	a.decode(r, &id)
	j, err := r.queue.Wait(r.Context(), id, (*job.Job).Final)
	r.check(err)
	return j
}

// succeed is job for one that must succeed.
func (r *rig) succeed(method, path string, body any) *job.Job {
	r.Helper()
	j := r.job(method, path, body)
	if j.Status() != job.Success {
		r.Fatalf("%s %s: job %d ended as %s: %s", method, path, j.ID, j.Status(), j.Ops[len(j.Ops)-1].Result)
	}
	return j
}

// create makes a running diskless instance.
func (r *rig) create(name string) {
	r.Helper()
	r.succeed(http.MethodPost, "/2/instances", map[string]any{"__version__": 1, "mode": "create", "name": name, "disk_template": "diskless",
		"disks": []any{}, "nics": []any{map[string]any{}}, "beparams": map[string]any{"maxmem": 128, "minmem": 128, "vcpus": 1}, "os": "noop", "pnode": "node1.gntpeer.example", "ip_check": false, "name_check": false})
}
