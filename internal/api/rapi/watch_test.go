package rapi_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/api/rapi"
)

// follower reads a stream of server-sent events.
type follower struct {
	*testing.T
	lines *bufio.Scanner
	// last is the newest event id.
	last string
}

func (r *rig) follow(t *testing.T, path, last string) (*follower, func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.server.URL+path, nil)
	r.check(err)
	req.SetBasicAuth("admin", "secret")
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := r.server.Client().Do(req)
	r.check(err)
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		body, _ := io.ReadAll(resp.Body)
		t.Fatalf("%d %s %s", resp.StatusCode, kind, body)
	}
	t.Cleanup(func() { _ = resp.Body.Close() }) // an error says that it was cut off
	return &follower{t, bufio.NewScanner(resp.Body), last}, cancel
}

// next returns the next event: its type and data.
func (f *follower) next() string {
	f.Helper()
	var event, data string
	for f.lines.Scan() {
		line := f.lines.Text()
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "event":
			event = value
		case "id":
			f.last = value
		case "data":
			data = value
		case "":
			if event != "" {
				return event + " " + data
			}
		}
	}
	f.Fatalf("the stream ended: %v", f.lines.Err())
	return ""
}

// until reads events until one contains a text.
func (f *follower) until(text string) string {
	f.Helper()
	for {
		if e := f.next(); strings.Contains(e, text) {
			return e
		}
	}
}

func TestWatchFollowsChangesAndResumes(t *testing.T) {
	r := newRig(t, rigOptions{})
	const path = "/2/query/instance/watch?fields=name,tags,status"
	f, stop := r.follow(t, path, "")
	if e := f.next(); !strings.HasPrefix(e, `reset {"fields":[{"name":"name"`) {
		t.Errorf("first: %s", e)
	}
	r.create("web1.gntpeer.example")
	if e := f.until("running"); !strings.Contains(e, `[0,"web1.gntpeer.example"],[0,[]],[0,"running"]`) {
		t.Errorf("created: %s", e)
	}
	r.succeed(http.MethodPut, web1+"/tags?tag=a", nil)
	if e := f.until(`["a"]`); !strings.HasPrefix(e, "change ") {
		t.Errorf("tagged: %s", e)
	}
	last := f.last
	stop()

	// What happened meanwhile, and nothing else, comes after the last event.
	r.succeed(http.MethodPut, web1+"/tags?tag=b", nil)
	f, stop = r.follow(t, "/2/query/instance/watch?fields=name,tags", last)
	if e := f.next(); !strings.HasPrefix(e, "change ") || !strings.Contains(e, `["a","b"]`) {
		t.Errorf("resumed: %s", e)
	}
	r.succeed(http.MethodDelete, web1, nil)
	f.until("leave ")
	stop()

	// A filter decides what enters and leaves.
	f, stop = r.follow(t, `/2/query/job/watch?fields=id,status&filter=status+%3D%3D+"success"+and+id+%3E+4`, "")
	defer stop()
	if e := f.next(); !strings.HasPrefix(e, "reset ") {
		t.Errorf("jobs: %s", e)
	}
	r.create("web2.gntpeer.example")
	if e := f.next(); !strings.HasPrefix(e, "enter ") || !strings.Contains(e, `[0,"success"]`) {
		t.Errorf("a job that succeeded: %s", e)
	}
}

// A stream ends with the right to read it, before anything more is told.
func TestWatchEndsWithItsAccount(t *testing.T) {
	for _, users := range []string{
		"", // the account is gone
		"admin {HA1}" + rapi.HA1("admin", "other") + " write\n",
		"admin {HA1}" + rapi.HA1("admin", "secret") + "\n", // it has lost its rights
	} {
		r := newRig(t, rigOptions{})
		f, stop := r.follow(t, "/2/query/job/watch?fields=id", "")
		f.until("reset ")
		r.check(os.WriteFile(filepath.Join(r.dir, "users"), []byte("other secret write\n"+users), 0o600))
		if a := r.send(http.MethodPut, "/2/redistribute-config", nil, header("other", "secret")); a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.text)
		}
		if e := f.next(); !strings.HasPrefix(e, `error {"code":"denied"`) {
			t.Errorf("with %q the stream goes on: %s", users, e)
		}
		f.lines.Scan() // the blank line behind an event
		if f.lines.Scan() {
			t.Errorf("with %q more comes: %q", users, f.lines.Text())
		}
		stop()
	}
}

func TestWatchRefusesBadRequests(t *testing.T) {
	r := newRig(t, rigOptions{})
	for path, want := range map[string]string{
		"/2/query/instance/watch":                                "query argument",
		"/2/query/instance/watch?fields=name&filter=name+%3D%3D": "parse",
		"/2/query/instance/watch?fields=name&qfilter=[]":         "Cannot deserialise filter",
		"/2/query/instance/watch?fields=name&since=x":            "since",
		"/2/query/nosuch/watch?fields=name":                      "nosuch",
		"/2/query/instance?fields=name&limit=x":                  "limit",
		"/2/query/instance?fields=name&fresh=x":                  "fresh",
		"/2/query/instance?fields=name&figures=median(x)":        "median(x)",
	} {
		if a := r.do(http.MethodGet, path, nil); a.status != http.StatusBadRequest || !strings.Contains(a.message(t), want) {
			t.Errorf("%s: %d %s", path, a.status, a.text)
		}
	}
}

func TestQueryPagesAndGroups(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.create("web1.gntpeer.example")
	r.create("web2.gntpeer.example")
	var page struct {
		Data [][][2]any
		Next string
	}
	r.do(http.MethodGet, "/2/query/instance?fields=name&sort=-name&limit=1", nil).decode(t, &page)
	if len(page.Data) != 1 || page.Data[0][0][1] != "web2.gntpeer.example" || page.Next == "" {
		t.Fatalf("first page %+v", page)
	}
	next := page.Next
	page.Next = ""
	r.do(http.MethodGet, "/2/query/instance?fields=name&sort=-name&limit=1&after="+next, nil).decode(t, &page)
	if page.Data[0][0][1] != "web1.gntpeer.example" || page.Next != "" {
		t.Errorf("second page %+v", page)
	}
	a := r.do(http.MethodGet, "/2/query/instance?fields=name&fresh=1&group_by=pnode&figures=count,sum(oper_ram)", nil)
	if !strings.Contains(a.text, `"data":[[[0,"node1.gntpeer.example"],[0,2],[0,256]]]`) {
		t.Errorf("groups: %s", a.text)
	}
}
