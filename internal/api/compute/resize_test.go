package compute_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/server"
)

// sized asks for another size of a server.
func (r *rig) sized(s *server.Server, body string) answer {
	r.Helper()
	return r.ask(http.MethodPost, at(nova, s)+"/action", body)
}

// seenAs is what a client sees of a server's size: status, vm_state, task_state, power_state and flavor.
func (r *rig) seenAs(s *server.Server) string {
	r.Helper()
	v, _ := r.ask(http.MethodGet, at(nova, s), "", "X-Openstack-Nova-Api-Version", "2.46").read(r)["server"].(map[string]any)
	flavor, _ := v["flavor"].(map[string]any)
	task, _ := v["OS-EXT-STS:task_state"].(string)
	vm, _ := v["OS-EXT-STS:vm_state"].(string)
	power := map[any]string{1.0: "on", 4.0: "off"}[v["OS-EXT-STS:power_state"]]
	status, _ := v["status"].(string)
	id, _ := flavor["id"].(string)
	return strings.Join(strings.Fields(strings.Join([]string{status, vm, task, power, id}, " ")), " ")
}

// TestServersAreResized: with the answers that Nova gives; its cluster is asked for the memory, the processors and, when that was confirmed, the disk.
func TestServersAreResized(t *testing.T) {
	r := newRig(t)
	made := r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"flavorRef": "1"})).read(r)["server"].(map[string]any)["id"].(string)
	s := r.settled(made)
	_, jobs := r.cloud.since(0)
	is := func(want, asked string) {
		t.Helper()
		if got := r.seenAs(s); got != want {
			t.Errorf("it is seen as %s, want %s", got, want)
		}
		var got string
		if got, jobs = r.cloud.since(jobs, "beparams", "reboot_type", "disk", "amount", "absolute"); got != asked {
			t.Errorf("its cluster is asked for %s, want %s", got, asked)
		}
	}
	const restart = ", OP_INSTANCE_REBOOT reboot_type=full"
	for what, status := range map[string]int{`{"resize":{"flavorRef":"99"}}`: 400, `{"resize":{"flavorRef":""}}`: 400, `{"resize":{}}`: 400, `{"resize":null}`: 400, `{"resize":{"flavorRef":2}}`: 400,
		`{"resize":{"flavorRef":"1"}}`: 400, `{"resize":{"flavorRef":"4"}}`: 400, `{"resize":{"flavorRef":"2","OS-DCF:diskConfig":"x"}}`: 400, `{"resize":{"flavorRef":"2","networks":"auto"}}`: 400,
		`{"confirmResize":null}`: 409, `{"revertResize":null}`: 409, `{"confirmResize":{"a":1}}`: 400} {
		r.explained(what, r.sized(s, what), status)
	}
	r.explained("in Cyclades", r.ask(http.MethodPost, at(cyclades, s)+"/action", `{"resize":{"flavorRef":"2"}}`), http.StatusBadRequest)
	is("ACTIVE active on 1", "")
	if a := r.sized(s, `{"resize":{"flavorRef":"2","OS-DCF:diskConfig":"AUTO"}}`); a.status != http.StatusAccepted || a.text != "" {
		t.Fatalf("%d %s", a.status, a.text)
	}
	if s = r.settled(s.ID); s.Told.Disk != "AUTO" {
		t.Errorf("of the disk it is told %q", s.Told.Disk)
	}
	is("VERIFY_RESIZE resized on 2", "OP_INSTANCE_SET_PARAMS beparams=map[maxmem:1024 minmem:1024 vcpus:1]"+restart)
	r.explained("a stop in between", r.sized(s, `{"os-stop":null}`), http.StatusConflict)
	if a := r.sized(s, `{"revertResize":null}`); a.status != http.StatusAccepted {
		t.Fatalf("%d %s", a.status, a.text)
	}
	r.settled(s.ID)
	is("ACTIVE active on 1", "OP_INSTANCE_SET_PARAMS beparams=map[maxmem:512 minmem:512 vcpus:1]"+restart)
	r.sized(s, `{"os-stop":null}`)
	r.settled(s.ID)
	r.sized(s, `{"resize":{"flavorRef":"2"}}`)
	r.settled(s.ID)
	for query, want := range map[string]string{"?power_state=4": "web1", "?power_state=1": ""} { // as it is shown
		if got := r.names(query); got != want {
			t.Errorf("by %s there is %q", query, got)
		}
	}
	is("VERIFY_RESIZE resized off 2", "OP_INSTANCE_SHUTDOWN, OP_INSTANCE_SET_PARAMS beparams=map[maxmem:1024 minmem:1024 vcpus:1]")
	if a := r.sized(s, `{"confirmResize":null}`); a.status != http.StatusNoContent || a.text != "" {
		t.Fatalf("%d %s", a.status, a.text)
	}
	r.settled(s.ID)
	is("SHUTOFF stopped off 2", "OP_INSTANCE_GROW_DISK disk=0 amount=5120 absolute=true")
	var done []string
	for _, a := range r.acts(s) {
		name, _ := a.(map[string]any)["action"].(string)
		done = append(done, name)
	}
	if got := strings.Join(done, " "); got != "confirmResize resize stop revertResize resize create" {
		t.Errorf("what was done is %s", got)
	}
}

// TestWhoResizes: nobody who only reads, nobody a server that is locked, nobody to a size that is not for him, or for which the project has no room.
func TestWhoResizes(t *testing.T) {
	r := newRig(t)
	r.root = r.admin()
	for _, body := range []string{`{"flavor":{"id":"d2","name":"d2","ram":256,"vcpus":2,"disk":0}}`, `{"flavor":{"id":"p","name":"p","ram":256,"vcpus":1,"disk":0,"os-flavor-access:is_public":false}}`} {
		if a := r.asRoot(http.MethodPost, nova+"/flavors", body); a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.text)
		}
	}
	s := r.create("web1")
	r.explained("another's size", r.sized(s, `{"resize":{"flavorRef":"p"}}`), http.StatusBadRequest)
	r.asRoot(http.MethodPut, nova+"/os-quota-sets/"+r.home.ID, `{"quota_set":{"cores":1}}`)
	if a := r.sized(s, `{"resize":{"flavorRef":"d2"}}`); a.status != http.StatusForbidden || !strings.Contains(a.text, "Quota exceeded for cores: Requested 1, but already used 1 of 1 cores") {
		t.Errorf("without room: %d %s", a.status, a.text)
	}
	r.asRoot(http.MethodPut, nova+"/os-quota-sets/"+r.home.ID, `{"quota_set":{"cores":2}}`)
	r.sized(s, `{"lock":null}`)
	r.explained("locked", r.sized(s, `{"resize":{"flavorRef":"d2"}}`), http.StatusConflict)
	r.sized(s, `{"unlock":null}`)
	if a := r.sized(s, `{"resize":{"flavorRef":"d2"}}`); a.status != http.StatusAccepted {
		t.Fatalf("%d %s", a.status, a.text)
	}
	r.settled(s.ID)
	r.sized(s, `{"lock":null}`)
	for _, body := range []string{`{"confirmResize":null}`, `{"revertResize":null}`} {
		r.explained("locked, "+body, r.sized(s, body), http.StatusConflict)
	}
	r.sized(s, `{"unlock":null}`)
	r.explained("another server, for which there is no room", r.ask(http.MethodPost, nova+"/servers", r.creationOf(nil)), http.StatusForbidden)
	if a := r.sized(s, `{"confirmResize":null}`); a.status != http.StatusNoContent || r.seenAs(s) != "ACTIVE active on d2" {
		t.Errorf("%d %s, it is seen as %s", a.status, a.text, r.seenAs(s))
	}
}
