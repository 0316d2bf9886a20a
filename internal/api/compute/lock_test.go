package compute_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/identity"
	"github.com/drover-project/drover/internal/server"
)

// TestLockedServers: nothing is done to one for its users, and everything when it is unlocked.
func TestLockedServers(t *testing.T) {
	r := newRig(t)
	s := r.create("web1", "a")
	act := func(body string) answer { return r.ask(http.MethodPost, at(nova, s)+"/action", body) }
	for range 2 {
		if a := act(`{"lock":null}`); a.status != http.StatusAccepted || a.text != "" {
			t.Fatalf("locking: %d %s", a.status, a.text)
		}
	}
	for version, want := range map[string]any{"2.8": nil, "2.9": true, newest: true} {
		if got := r.ask(http.MethodGet, at(nova, s), "", "X-Openstack-Nova-Api-Version", version).read(r)["server"].(map[string]any)["locked"]; got != want {
			t.Errorf("in %s it is shown as locked: %v", version, got)
		}
	}
	for _, root := range []string{nova, cyclades} {
		for what, a := range map[string]answer{
			"stop": r.ask(http.MethodPost, at(root, s)+"/action", `{"os-stop":null}`), "reboot": r.ask(http.MethodPost, at(root, s)+"/action", `{"reboot":{"type":"HARD"}}`),
			"forced deletion": r.ask(http.MethodPost, at(root, s)+"/action", `{"forceDelete":null}`), "deletion": r.ask(http.MethodDelete, at(root, s), ""),
			"metadata": r.ask(http.MethodPost, at(root, s)+"/metadata", `{"metadata":{"a":"b"}}`), "an item": r.ask(http.MethodPut, at(root, s)+"/metadata/a", `{"meta":{"a":"b"}}`),
		} {
			if r.explained(what, a, http.StatusConflict); !strings.Contains(a.text, "Instance "+s.ID+" is locked") {
				t.Errorf("%s: %s", what, a.text)
			}
		}
	}
	if a := r.ask(http.MethodPut, at(nova, s), `{"server":{"name":"web2"}}`); a.status != http.StatusOK { // as in Nova
		t.Errorf("renaming: %d %s", a.status, a.text)
	}
	if a := r.ask(http.MethodPut, at(nova, s)+"/tags/b", ""); a.status != http.StatusCreated {
		t.Errorf("a tag: %d %s", a.status, a.text)
	}
	r.settled(s.ID)
	for range 2 {
		if a := act(`{"unlock":null}`); a.status != http.StatusAccepted {
			t.Fatalf("unlocking: %d %s", a.status, a.text)
		}
	}
	if a := act(`{"os-stop":null}`); a.status != http.StatusAccepted {
		t.Errorf("stopping: %d %s", a.status, a.text)
	}
	r.settled(s.ID)
	var done []string
	for _, a := range r.acts(s) {
		name, _ := a.(map[string]any)["action"].(string)
		done = append(done, name)
	}
	if got := strings.Join(done, " "); got != "stop unlock lock create" {
		t.Errorf("what was done is %s", got)
	}
	for _, body := range []string{`{"lock":{"a":"b"}}`, `{"lock":"x"}`, `{"unlock":{"a":"b"}}`, `{"lock":{"locked_reason":"before 2.73"}}`} {
		r.explained(body, r.ask(http.MethodPost, at(nova, s)+"/action", body, "X-Openstack-Nova-Api-Version", "2.55"), http.StatusBadRequest)
	}
}

// TestWhoUnlocks: what an administrator locked a member does not unlock; an administrator is held up by no lock. Who only reads
// locks nothing, and servers of other projects are not there.
func TestWhoUnlocks(t *testing.T) {
	r := newRig(t)
	s := r.create("web1")
	as := func(role string) string {
		u, err := r.accounts.AddUser(t.Context(), identity.UserEdit{Name: new(role), Password: new("opensesame")})
		r.check(err)
		r.check(r.accounts.SetRole(t.Context(), u.ID, r.home.ID, role, true))
		_, token, err := r.accounts.Log(t.Context(), identity.Login{User: role, Password: "opensesame"})
		r.check(err)
		return token
	}
	root, reader := as(identity.Admin), as(identity.Reader)
	_, stranger := r.join("bob", "lab", identity.Admin)
	act := func(token, body string) answer {
		return r.ask(http.MethodPost, at(nova, s)+"/action", body, "X-Auth-Token", token)
	}
	for _, body := range []string{`{"lock":null}`, `{"unlock":null}`} {
		r.explained(body+" by a reader", act(reader, body), http.StatusForbidden)
		r.explained(body+" from elsewhere", act(stranger, body), http.StatusNotFound)
	}
	if a := act(root, `{"lock":null}`); a.status != http.StatusAccepted {
		t.Fatalf("%d %s", a.status, a.text)
	}
	if a := act(r.token, `{"unlock":null}`); a.status != http.StatusForbidden || !strings.Contains(a.text, "unlock_override") {
		t.Errorf("a member unlocks: %d %s", a.status, a.text)
	}
	if a := act(r.token, `{"lock":null}`); a.status != http.StatusAccepted || !r.engine.Servers().Get(s.ID).Lock.Operator {
		t.Errorf("a member locks: %d %s", a.status, a.text)
	}
	r.explained("stopping", act(r.token, `{"os-stop":null}`), http.StatusConflict)
	if a := act(root, `{"os-stop":null}`); a.status != http.StatusAccepted {
		t.Errorf("an administrator stops it: %d %s", a.status, a.text)
	}
	r.settled(s.ID)
	if a := act(root, `{"unlock":null}`); a.status != http.StatusAccepted || r.engine.Servers().Get(s.ID).Lock != nil {
		t.Errorf("an administrator unlocks: %d %s", a.status, a.text)
	}
	if _, err := r.engine.Lock(s.ID, server.Lock{}); err != nil {
		t.Error(err)
	}
	if a := act(r.token, `{"unlock":null}`); a.status != http.StatusAccepted {
		t.Errorf("a member unlocks what a user locked: %d %s", a.status, a.text)
	}
}
