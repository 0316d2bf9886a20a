package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/testkit"
)

// compute is a client of the Compute API.
type compute struct {
	*testing.T
	cluster
	token string
}

func startCompute(t *testing.T, o app.Options) *compute {
	t.Helper()
	o.Compute = "127.0.0.1:0"
	c := computeOf(t, startWith(t, o))
	t.Cleanup(func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// computeOf is a client of a cluster.
func computeOf(t *testing.T, of cluster) *compute {
	t.Helper()
	c := &compute{T: t, cluster: of}
	domain := map[string]any{"id": "default"}
	c.token = c.logIn(map[string]any{
		"identity": map[string]any{"methods": []string{"password"}, "password": map[string]any{
			"user": map[string]any{"name": c.ready.OSUsername, "domain": domain, "password": c.ready.OSPassword}}},
		"scope": map[string]any{"project": map[string]any{"name": c.ready.OSProject, "domain": domain}},
	})
	return c
}

// logIn returns a token for what a login is.
func (c *compute) logIn(auth map[string]any) (token string) {
	c.Helper()
	return c.request(http.MethodPost, c.ready.Identity+"/auth/tokens", map[string]any{"auth": auth}, nil, http.StatusCreated).Get("X-Subject-Token")
}

// request sends a body, if there is one, and reads the answer into a value, if
// that is wanted.
func (c *compute) request(method, url string, body, into any, want int) http.Header {
	c.Helper()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			c.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(c.Context(), method, url, bytes.NewReader(text))
	if err != nil {
		c.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", c.token)
	r.Header.Set("Openstack-Api-Version", "compute 2.52")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		c.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		c.Fatal(err)
	}
	if answer.StatusCode != want {
		c.Fatalf("%s %s: %d %s", method, url, answer.StatusCode, got)
	}
	if into != nil {
		if err := json.Unmarshal(got, into); err != nil {
			c.Fatal(err)
		}
	}
	return answer.Header
}

// create makes a server, and waits until it is there.
func (c *compute) create(tags ...string) (id string) {
	c.Helper()
	return c.createIn("nova", tags...)
}

// createIn makes it on a cluster.
func (c *compute) createIn(zone string, tags ...string) (id string) {
	c.Helper()
	return c.createOf("4", zone, tags...)
}

// createOf makes it of a size.
func (c *compute) createOf(flavor, zone string, tags ...string) (id string) {
	c.Helper()
	var images struct{ Images []struct{ ID string } }
	c.request(http.MethodGet, strings.TrimSuffix(c.ready.Compute, "/compute/v2.1")+"/image/v2/images", nil, &images, http.StatusOK)
	if tags == nil {
		tags = []string{}
	}
	var made struct{ Server struct{ ID string } }
	c.request(http.MethodPost, c.ready.Compute+"/servers", map[string]any{"server": map[string]any{
		"name": "web", "imageRef": images.Images[0].ID, "flavorRef": flavor, "networks": "none", "tags": tags, "availability_zone": zone,
	}}, &made, http.StatusAccepted)
	c.until("server", []string{"status"}, made.Server.ID, func(row []string) bool { return row[0] == "ACTIVE" })
	return made.Server.ID
}

// tagged waits until a tag of a server is as wanted: status, the job that is at
// it, and the rule that holds that.
func (c *compute) tagged(id, tag string, is func(status, job, rule string) bool) {
	c.Helper()
	c.until("server-tag", []string{"status", "job", "held_by", "tag"}, id, func(row []string) bool { return row[3] == tag && is(row[0], row[1], row[2]) })
}

// patience is how long something may take that is to come.
var patience = testkit.Patience()

// until watches what belongs to a server until a row is as it is to be.
func (c *compute) until(what string, fields []string, server string, is func(row []string) bool) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	filter := []any{"=", map[string]string{"server": "id", "server-tag": "server"}[what], server}
	client := c.dial(c.T)
	var news struct {
		Revision int64
		Events   []struct {
			Type, ID string
			Row      [][2]any
		}
	}
	for {
		if err := client.Call(ctx, "Query", []any{what, fields, filter, map[string]any{"watch": news.Revision}}, &news); err != nil {
			c.Fatalf("the %s never is as it is to be: %v; the last news are %+v", what, err, news)
		}
		for _, e := range news.Events {
			row := make([]string, len(e.Row))
			for i, cell := range e.Row {
				if cell[1] != nil {
					row[i] = fmt.Sprint(cell[1])
				}
			}
			if e.Type != "leave" && is(row) {
				return
			}
		}
	}
}

// TestATagReachesItsInstance: a tag that is put over HTTP becomes ACTIVE and is
// on the instance; a filter rule holds its job as any other, and the job says
// who asked, over which interface, by which request.
func TestATagReachesItsInstance(t *testing.T) {
	c := startCompute(t, app.Options{Data: t.TempDir()})
	id := c.create("first")
	c.request(http.MethodPut, c.ready.Compute+"/servers/"+id+"/tags/a_b", nil, nil, http.StatusCreated)
	active := func(status, _, _ string) bool { return status == "ACTIVE" }
	c.tagged(id, "a_b", active)
	var instances struct{ Data json.RawMessage }
	c.call(t, "Query", &instances, "instance", []string{"name", "tags"}, nil)
	if text := instances.Data; string(text) != `[[[0,"snf-1"],[0,["cyclades:user:a*b","cyclades:user:first"]]]]` {
		t.Errorf("the instances are %s", text)
	}

	var rule string
	c.call(t, "ReplaceFilter", &rule, nil, 0, []any{[]any{"opcode", []any{"=", "OP_ID", "OP_TAGS_SET"}}}, "PAUSE", []any{})
	answer := c.request(http.MethodPut, c.ready.Compute+"/servers/"+id+"/tags/held", nil, nil, http.StatusCreated)
	job := ""
	c.tagged(id, "held", func(status, id, held string) bool {
		job = id
		return status == "PENDADD" && held == rule
	})
	var jobs struct{ Data json.RawMessage }
	c.call(t, "Query", &jobs, "job", []string{"reason_trail"}, []any{"=", "id", json.Number(job)})
	trail := jobs.Data
	for _, part := range []string{"gnt:account:compute", c.ready.OSUsername, "gnt:server-tag", answer.Get("X-Compute-Request-Id"), "add 1 tag of server"} {
		if part == "" || !strings.Contains(string(trail), part) {
			t.Errorf("the reason trail lacks %q: %s", part, trail)
		}
	}
	// A user's words are not in it: rules of operators look at reasons.
	if strings.Contains(string(trail), "held") {
		t.Errorf("the reason trail has the tag: %s", trail)
	}
	c.call(t, "DeleteFilter", nil, rule)
	c.tagged(id, "held", active)
}

// TestServersOutliveTheController: what was acknowledged before a stop is on the
// cluster after the next start, and reconciliation finds nothing to do then.
func TestServersOutliveTheController(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var id string
	t.Run("before", func(t *testing.T) {
		c := startCompute(t, app.Options{Data: dir})
		id = c.create()
		c.request(http.MethodPut, c.ready.Compute+"/servers/"+id+"/tags/late", nil, nil, http.StatusCreated)
	})
	c := startCompute(t, app.Options{Data: dir})
	c.tagged(id, "late", func(status, _, _ string) bool { return status == "ACTIVE" })
	var report struct {
		Looked   int
		Drift    bool
		Findings []any
	}
	c.call(t, "ReconcileServers", &report, nil, false)
	if report.Looked != 1 || report.Drift || len(report.Findings) != 0 {
		t.Errorf("the report is %+v", report)
	}
	c.overRAPI(http.MethodGet, "?server="+id, http.StatusOK)
	c.overRAPI(http.MethodPut, "", http.StatusOK)
	c.overRAPI(http.MethodGet, "?server=nosuch", http.StatusNotFound)
	c.overRAPI(http.MethodPut, "?sever="+id, http.StatusBadRequest)
}

// overRAPI reconciles over RAPI.
func (c *compute) overRAPI(method, query string, want int) {
	c.Helper()
	r, err := http.NewRequestWithContext(c.Context(), method, c.ready.RAPI+"/2/servers/reconciliation"+query, http.NoBody)
	if err != nil {
		c.Fatal(err)
	}
	r.SetBasicAuth(c.ready.RAPIUser, c.ready.RAPIPassword)
	answer, err := trusting().Do(r)
	if err != nil {
		c.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != want || want == http.StatusOK && !strings.Contains(string(text), `"looked":1`) {
		c.Errorf("%s %s: %d %s %v", method, query, answer.StatusCode, text, err)
	}
}

// TestComputeOverTLS: all that clients are led to is where they reach it.
func TestComputeOverTLS(t *testing.T) {
	c := startWith(t, app.Options{Data: t.TempDir(), Compute: "127.0.0.1:0", ComputeTLS: true})
	for _, at := range []string{c.ready.Compute, c.ready.Identity} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := trusting().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || !strings.HasPrefix(at, "https://") || !strings.Contains(string(text), `"href":"`+at) ||
			strings.Contains(string(text), "http://") {
			t.Errorf("%s: %d %s %v", at, answer.StatusCode, text, err)
		}
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
}

// TestTokensOfAnotherIdentityService: users log in at another service, and the
// tokens that they get there are taken here; this program has no accounts then.
func TestTokensOfAnotherIdentityService(t *testing.T) {
	far := startCompute(t, app.Options{Data: filepath.Join(t.TempDir(), "far")})
	near := &compute{T: t, token: far.token, cluster: startWith(t, app.Options{Data: filepath.Join(t.TempDir(), "near"), Compute: "127.0.0.1:0", Keystone: far.ready.Identity})}
	t.Cleanup(func() {
		if err := near.stop(); err != nil {
			t.Error(err)
		}
	})
	if near.ready.Identity != far.ready.Identity || near.ready.OSUsername != "" {
		t.Errorf("clients are sent to %s as %s", near.ready.Identity, near.ready.OSUsername)
	}
	id := near.create("mine")
	near.request(http.MethodGet, near.ready.Compute+"/servers/"+id+"/tags/mine", nil, nil, http.StatusNoContent)
	far.request(http.MethodGet, far.ready.Compute+"/servers/"+id, nil, nil, http.StatusNotFound)
	near.token = "wrong"
	answer := near.request(http.MethodGet, near.ready.Compute+"/servers", nil, nil, http.StatusUnauthorized)
	if where := answer.Get("WWW-Authenticate"); !strings.Contains(where, far.ready.Identity) {
		t.Errorf("who is refused is sent to %s", where)
	}
	near.request(http.MethodGet, strings.TrimSuffix(near.ready.Compute, "/compute/v2.1")+"/identity/v3", nil, nil, http.StatusNotFound)
}
