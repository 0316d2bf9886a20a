package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/queue"
)

// addInstance makes an instance, and returns its UUID.
func (r *rig) addInstance(name string) string {
	r.Helper()
	op, err := opcode.FromMap("OP_INSTANCE_CREATE", map[string]any{"instance_name": name, "mode": "create", "disk_template": "diskless", "disks": []any{}, "nics": []any{}, "os_type": "noop",
		"pnode": "node1.example", "name_check": false, "ip_check": false, "start": false})
	if err != nil {
		r.Fatal(err)
	}
	id, err := r.c.Queue.Submit(r.Context(), queue.Submission{Ops: []*opcode.Opcode{op}})
	if err != nil {
		r.Fatal(err)
	}
	if j, err := r.c.Queue.Wait(r.Context(), id, (*job.Job).Final); err != nil || j.Status() != job.Success {
		r.Fatal(j, err)
	}
	inst, err := r.c.Picture.Load().Inventory.FindInstance(name)
	if err != nil {
		r.Fatal(err)
	}
	return inst.UUID
}

// TestConsoles: a ticket says who asked for it and why, is of a console that there is, and opens it for the session that asked, on this page, and for as long as that may
// change something.
func TestConsoles(t *testing.T) {
	r := newRig(t)
	uuid := r.addInstance("web1.example")
	ada := r.signIn("ada", "secret")
	for body, want := range map[string]int{
		`{"console":"serial","reason":""}`: http.StatusBadRequest, `{"console":"spice","reason":"OPS-1"}`: http.StatusBadRequest, `{"reason":"OPS-1"}`: http.StatusBadRequest,
	} {
		if status, text, _ := r.ask("POST", "/api/instances/web1.example/console", ada, body); status != want {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	if status, text, _ := r.ask("POST", "/api/instances/web9.example/console", ada, `{"console":"serial","reason":"OPS-1"}`); status != http.StatusNotFound {
		t.Errorf("of no instance: %d %s", status, text)
	}
	if r.seats.last.Of != "" {
		t.Errorf("a ticket was made: %+v", r.seats.last)
	}
	if status, _, _ := r.ask("POST", "/api/instances/web1.example/console", r.signIn("bo", "secret"), `{"console":"serial","reason":"OPS-1"}`); status != http.StatusForbidden {
		t.Errorf("who may look alone: %d", status)
	}
	ask := func() (path string) {
		status, text, _ := r.ask("POST", "/api/instances/web1.example/console", ada, `{"console":"novnc","reason":"OPS-1: it hangs"}`)
		if status != http.StatusOK || !strings.Contains(text, `"path":"/console/novnc/`+uuid+`?token=x"`) {
			t.Fatalf("a ticket: %d %s", status, text)
		}
		return "/console/novnc/" + uuid + "?token=x"
	}
	path := ask()
	g := r.seats.last
	if g.Kind != console.VNC || g.User != "ada" || g.By.Account.String() != "ada (127.0.0.1) over web" || !strings.Contains(fmt.Sprint(g.By.Trail), "OPS-1: it hangs") || !strings.Contains(fmt.Sprint(g.By.Trail), "drover-web") {
		t.Errorf("the ticket is of %+v", g)
	}
	for who, c := range map[string]struct {
		session string
		headers []string
		want    int
	}{
		"who asked": {ada, nil, http.StatusOK}, "another session of theirs": {r.signIn("ada", "secret"), nil, http.StatusUnauthorized}, "nobody": {"", nil, http.StatusUnauthorized},
		"who may look alone":       {r.signIn("bo", "secret"), nil, http.StatusForbidden},
		"a page of another site":   {ada, []string{"Origin", "https://evil.example"}, http.StatusForbidden},
		"a page of another origin": {ada, []string{"Sec-Fetch-Site", "same-site"}, http.StatusForbidden},
		"this page":                {ada, []string{"Origin", r.http.URL}, http.StatusOK},
	} {
		if status, text, _ := r.ask("GET", path, c.session, "", c.headers...); status != c.want {
			t.Errorf("%s: %d %s", who, status, text)
		}
	}
	for what, change := range map[string]func(){
		"may change nothing any more": func() { r.people.set("ada", "secret", "read") },
		"has another password":        func() { r.people.set("ada", "other", "read,write") },
		"has signed out":              func() { r.ask("DELETE", "/session", ada, "") },
	} {
		r.people.set("ada", "secret", "read,write")
		ada = r.signIn("ada", "secret")
		ask()
		change()
		if err := r.web.stillSits(context.WithValue(t.Context(), sits{}, keyOf(ada)), keyOf(ada)); !fault.Is(err, fault.Denied) {
			t.Errorf("who sits there and %s: %v", what, err)
		}
	}
}
