package compute_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestLists(t *testing.T) {
	r := newRig(t)
	r.create("web1", "a", "b")
	r.create("web2", "b", "c")
	db := r.create("db1")
	names := func(query string, headers ...string) string {
		t.Helper()
		a := r.ask(http.MethodGet, nova+"/servers/detail?"+query, "", headers...)
		if a.status != http.StatusOK {
			t.Errorf("%s: %d %s", query, a.status, a.text)
			return ""
		}
		var out []string
		for _, s := range a.read(r)["servers"].([]any) {
			out = append(out, s.(map[string]any)["name"].(string))
		}
		return strings.Join(out, " ")
	}
	for query, want := range map[string]string{
		"": "db1 web2 web1", "tags=a,b": "web1", "tags=b": "web2 web1", "tags-any=a,c": "web2 web1", "not-tags=a,b": "db1 web2",
		"not-tags-any=b": "db1", "tags=b&not-tags=a": "web2", "tags=x": "", "tags=": "", "tags=a&tags=c": "web2",
		"name=web": "web2 web1", "name=^web1$": "web1", "name=b1": "db1 web1", "status=active": "db1 web2 web1", "status=SHUTOFF": "",
		"status=ACTIVE&status=ERROR": "db1 web2 web1", "status=ERROR&status=ACTIVE": "db1 web2 web1", "status=ERROR&status=BUILD": "", "status=paused": "", "status=SHELVED_OFFLOADED": "",
		"changes-since=2001-01-01": "db1 web2 web1", "changes-since=2999-01-01": "",
		"flavor=4": "db1 web2 web1", "flavor=1": "", "image=x": "", "all_tenants=False": "db1 web2 web1", "all_tenants=no": "db1 web2 web1",
		"limit=1": "db1", "limit=0": "", "changes-since=2001-01-01T00:00:00Z": "db1 web2 web1", "changes-since=2999-01-01T00:00:00": "",
		"marker=" + db.ID: "web2 web1", "tags=b&limit=1": "web2",
	} {
		if got := names(query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	if got := names("unknown=1", "X-Openstack-Nova-Api-Version", "2.74"); got != "db1 web2 web1" {
		t.Errorf("by what nobody knows: %q", got)
	}
	if got := names("tags=a", "X-Openstack-Nova-Api-Version", "2.25"); got != "db1 web2 web1" {
		t.Errorf("before 2.26: %q", got)
	}
	for _, query := range []string{"limit=-1", "limit=x", "marker=x", "name=(", "status=nonsense", "status=ACTIVE&status=nonsense", "changes-since=yesterday", "all_tenants=maybe"} {
		r.explained(query, r.ask(http.MethodGet, nova+"/servers?"+query, ""), http.StatusBadRequest)
	}
	var pages []string
	for path := nova + "/servers?limit=2"; path != ""; {
		body := r.ask(http.MethodGet, path, "").read(r)
		for _, s := range body["servers"].([]any) {
			pages = append(pages, s.(map[string]any)["name"].(string))
		}
		path = ""
		if links, more := body["servers_links"].([]any); more {
			next, err := url.Parse(links[0].(map[string]any)["href"].(string))
			r.check(err)
			path = next.RequestURI()
		}
	}
	if got := strings.Join(pages, " "); got != "db1 web2 web1" {
		t.Errorf("in pages: %s", got)
	}
}

// TestAHardRebootIsSeen: by the status that Nova has for it; Cyclades has one for all.
func TestAHardRebootIsSeen(t *testing.T) {
	r := newRig(t)
	s := r.create("web1")
	r.cloud.hold(true)
	for kind, want := range map[string]string{"SOFT": "REBOOT", "HARD": "HARD_REBOOT"} {
		if a := r.ask(http.MethodPost, at(nova, s)+"/action", `{"reboot":{"type":"`+kind+`"}}`); a.status != http.StatusAccepted {
			t.Fatalf("%s: %d %s", kind, a.status, a.text)
		}
		for root, want := range map[string]string{nova: want, cyclades: "REBOOT"} {
			if got := r.ask(http.MethodGet, at(root, s), "").read(r)["server"].(map[string]any)["status"]; got != want {
				t.Errorf("%s in %s: it is seen as %v, want %s", kind, root, got, want)
			}
		}
		if got := r.names("?status=" + want); got != "web1" {
			t.Errorf("%s: by %s there is %q", kind, want, got)
		}
		r.cloud.hold(false)
		r.settled(s.ID)
		r.cloud.hold(true)
	}
}

// TestNoFilterIsPassedOver: of those that clients know.
func TestNoFilterIsPassedOver(t *testing.T) {
	r := newRig(t)
	s := r.create("web1")
	for query, want := range map[string]int{
		"uuid=" + s.ID: 1, "uuid=x": 0, "user_id=" + s.User: 1, "user_id=x": 0, "project_id=x": 0, "tenant_id=" + s.Project: 1, "description=x": 0, "access_ip_v4=192.0.2.1": 0,
		"deleted=False": 1, "ip=": 1, "host=": 1,
	} {
		if got := r.ask(http.MethodGet, nova+"/servers?"+query, "").read(r)["servers"].([]any); len(got) != want {
			t.Errorf("%s: %v", query, got)
		}
	}
	for _, query := range []string{"deleted=True", "host=node1", "_id=x", "ip=(", "ip6=(", "locked=maybe", "config_drive=x", "created_at=x", "metadata=x", "metadata=[]", "metadata=%7B%22a%22:null%7D"} {
		r.explained(query, r.ask(http.MethodGet, nova+"/servers/detail?"+query, ""), http.StatusBadRequest)
	}
}
