package compute_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/api/compute"
	"github.com/drover-project/drover/internal/identity"
	"github.com/drover-project/drover/internal/server"
)

// acts are the actions of a server as a list of the API has them.
func (r *rig) acts(s *server.Server, headers ...string) []any {
	r.Helper()
	a := r.ask(http.MethodGet, at(nova, s)+"/os-instance-actions", "", headers...)
	if a.status != http.StatusOK {
		r.Fatalf("%d %s", a.status, a.text)
	}
	list, _ := a.read(r)["instanceActions"].([]any)
	return list
}

// TestInstanceActions: what was done to a server, by which request of whom, and how it ended.
func TestInstanceActions(t *testing.T) {
	r := newRig(t)
	s := r.create("web1")
	a := r.ask(http.MethodPost, at(nova, s)+"/action", `{"reboot":{"type":"HARD"}}`)
	id := a.header.Get("X-Compute-Request-Id")
	r.settled(s.ID)
	list := r.acts(s)
	if len(list) != 2 || list[0].(map[string]any)["action"] != "reboot" || list[1].(map[string]any)["action"] != "create" {
		t.Fatalf("there are %v", list)
	}
	first := list[0].(map[string]any)
	if first["request_id"] != id || first["instance_uuid"] != s.ID || first["project_id"] != r.home.ID || first["user_id"] != s.User || first["message"] != nil || len(first["start_time"].(string)) != len("2006-01-02T15:04:05.000000") {
		t.Errorf("the newest is %v", first)
	}
	_, r.root = r.join("root", "rootroom", identity.Admin)
	path := at(nova, s) + "/os-instance-actions/" + id
	for version, want := range map[string]bool{"2.50": false, "2.51": true} {
		one, _ := r.ask(http.MethodGet, path, "", "X-Openstack-Nova-Api-Version", version).read(r)["instanceAction"].(map[string]any)
		events, shown := one["events"].([]any)
		if shown != want || one["request_id"] != id {
			t.Errorf("%s: %v", version, one)
		}
		if !shown {
			continue
		}
		event, _ := events[0].(map[string]any)
		if _, secret := event["traceback"]; secret || event["event"] != "OP_INSTANCE_REBOOT" || event["result"] != "Success" || event["finish_time"] == nil {
			t.Errorf("the event is %v", event)
		}
	}
	r.explained("another request", r.ask(http.MethodGet, at(nova, s)+"/os-instance-actions/req-0", ""), http.StatusNotFound)
	r.explained("another project", r.ask(http.MethodGet, path, "", "X-Auth-Token", r.root), http.StatusNotFound)
	r.explained("no server", r.ask(http.MethodGet, nova+"/servers/nosuch/os-instance-actions", ""), http.StatusNotFound)
	r.explained("in Cyclades", r.ask(http.MethodGet, at(cyclades, s)+"/os-instance-actions", ""), http.StatusBadRequest)
}

// TestInstanceActionsOfDeletedServers: from 2.21 on, for those of the project.
func TestInstanceActionsOfDeletedServers(t *testing.T) {
	r := newRig(t)
	s := r.create("web1")
	a := r.ask(http.MethodDelete, at(nova, s), "")
	r.until(s.ID, "is gone", func(s *server.Server) bool { return s == nil })
	list := r.acts(s, "X-Openstack-Nova-Api-Version", "2.21")
	if len(list) != 2 || list[0].(map[string]any)["action"] != "delete" || list[0].(map[string]any)["request_id"] != a.header.Get("X-Compute-Request-Id") {
		t.Fatalf("there are %v", list)
	}
	r.explained("before 2.21", r.ask(http.MethodGet, at(nova, s)+"/os-instance-actions", "", "X-Openstack-Nova-Api-Version", "2.20"), http.StatusNotFound)
	_, r.root = r.join("root", "rootroom", identity.Admin)
	r.explained("another project", r.ask(http.MethodGet, at(nova, s)+"/os-instance-actions", "", "X-Auth-Token", r.root), http.StatusNotFound)
	r.explained("the server", r.ask(http.MethodGet, at(nova, s), ""), http.StatusNotFound)
}

// TestInstanceActionsThatFailed: say why; to administrators in the event, too.
func TestInstanceActionsThatFailed(t *testing.T) {
	r := newRig(t)
	r.check(r.accounts.SetRole(t.Context(), r.accounts.Users()[0].ID, r.home.ID, identity.Admin, true))
	a := r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"flavorRef": "3"}))
	id, _ := a.read(r)["server"].(map[string]any)["id"].(string)
	s := r.until(id, "fails", func(s *server.Server) bool { return s.Status() == server.Failed })
	one := r.ask(http.MethodGet, at(nova, s)+"/os-instance-actions/"+a.header.Get("X-Compute-Request-Id"), "", "X-Openstack-Nova-Api-Version", "2.1").text
	for _, want := range []string{`"message":"not enough memory"`, `"result":"Error"`, `"traceback":"not enough memory"`} {
		if !strings.Contains(one, want) {
			t.Errorf("%s lacks %s", one, want)
		}
	}
}

// TestInstanceActionsUnderWay: are told, with what their job waits for.
func TestInstanceActionsUnderWay(t *testing.T) {
	r := newRig(t)
	s := r.create("web1")
	r.waits = "a filter rule"
	r.cloud.hold(true)
	a := r.ask(http.MethodPost, at(nova, s)+"/action", `{"os-stop":null}`)
	r.until(s.ID, "has a job", func(s *server.Server) bool { return len(s.Tasks) > 0 && s.Tasks[0].Job != 0 })
	one := r.ask(http.MethodGet, at(nova, s)+"/os-instance-actions/"+a.header.Get("X-Compute-Request-Id"), "").text
	if !strings.Contains(one, `"message":"a filter rule"`) || !strings.Contains(one, `"finish_time":null`) || !strings.Contains(one, `"result":null`) || len(r.acts(s)) != 2 {
		t.Errorf("it is shown as %s", one)
	}
	r.cloud.hold(false)
	r.settled(s.ID)
}

// TestEachActHasItsName: but for the half of another act that nobody asks for.
func TestEachActHasItsName(t *testing.T) {
	for _, do := range append(compute.Tasks(), server.Locking, server.Unlocking) {
		if name := compute.ActName(do); (name == "") != (do == server.Restart) {
			t.Errorf("%s is told as %q", do, name)
		}
	}
}
