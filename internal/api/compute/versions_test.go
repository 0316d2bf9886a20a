package compute_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/server"
)

// TestWhatMicroversionsBring: each difference between a microversion from 2.56 on and the one before it.
func TestWhatMicroversionsBring(t *testing.T) {
	r := newRig(t)
	s := r.create("web1", "a")
	failing := r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"flavorRef": "3"}))
	failed, _ := failing.read(r)["server"].(map[string]any)["id"].(string)
	r.until(failed, "fails", func(s *server.Server) bool { return s.Status() == server.Failed })
	if _, err := r.engine.Lock(s.ID, server.Lock{Reason: "mine"}); err != nil {
		t.Fatal(err)
	}
	// has tells whether an answer has a key, and its value.
	has := func(key string, in ...string) func(version string) string {
		return func(version string) string {
			method, body := http.MethodGet, ""
			if len(in) > 3 {
				method, body = http.MethodPut, in[3]
			}
			var at any = r.ask(method, nova+in[0], body, "X-Openstack-Nova-Api-Version", version).read(r)
			for step := range strings.FieldsSeq(in[1]) {
				if list, is := at.([]any); is {
					i, err := strconv.Atoi(step)
					r.check(err)
					at = list[i]
				} else {
					at = at.(map[string]any)[step]
				}
			}
			value, there := at.(map[string]any)[key]
			if len(in) > 2 && in[2] != "" && there {
				return in[2]
			}
			return map[bool]string{true: fmt.Sprint(value), false: "-"}[there]
		}
	}
	status := func(method, path, body string) func(version string) string {
		return func(version string) string {
			return strconv.Itoa(r.ask(method, nova+path, body, "X-Openstack-Nova-Api-Version", version).status)
		}
	}
	one, act := "/servers/"+s.ID, "/servers/"+failed+"/os-instance-actions/"+failing.header.Get("X-Compute-Request-Id")
	const rename = `{"server":{"name":"web1"}}`
	for _, c := range []struct {
		minor         int
		what          string
		of            func(version string) string
		before, since string
	}{
		{57, "limits of files", has("maxPersonality", "/limits", "limits absolute"), "0", "-"},
		{57, "limits of their sizes", has("maxPersonalitySize", "/limits", "limits absolute"), "0", "-"},
		{57, "quotas of files", has("injected_file_path_bytes", "/os-quota-sets/"+r.home.ID, "quota_set"), "0", "-"},
		{58, "when an act changed", has("updated_at", one+"/os-instance-actions", "instanceActions 0", "a time"), "-", "a time"},
		{58, "when one act changed", has("updated_at", act, "instanceAction", "a time"), "-", "a time"},
		{58, "pages of acts", status(http.MethodGet, one+"/os-instance-actions?limit=x", ""), "200", "400"},
		{58, "acts by what nobody knows", status(http.MethodGet, one+"/os-instance-actions?x=y", ""), "200", "400"},
		{61, "extra specs", has("extra_specs", "/flavors/4", "flavor"), "-", "map[]"},
		{61, "extra specs in lists", has("extra_specs", "/flavors/detail", "flavors 0"), "-", "map[]"},
		{62, "hosts of events", has("hostId", act, "instanceAction events 0"), "-", ""},
		{63, "certificates", has("trusted_image_certificates", one, "server"), "-", "<nil>"},
		{63, "certificates in lists", has("trusted_image_certificates", "/servers/detail", "servers 0"), "-", "<nil>"},
		{63, "certificates in changes", has("trusted_image_certificates", one, "server", "", rename), "-", "<nil>"},
		{66, "changes before a time", status(http.MethodGet, "/servers?changes-before=x", ""), "200", "400"},
		{66, "changes between times", status(http.MethodGet, "/servers?changes-since=2002-01-01T00:00:00Z&changes-before=2001-01-01T00:00:00Z", ""), "200", "400"},
		{66, "acts before a time", status(http.MethodGet, one+"/os-instance-actions?changes-before=2001-01-01T00:00:00Z", ""), "400", "200"},
		{71, "groups", has("server_groups", one, "server"), "-", "[]"},
		{71, "groups in lists", has("server_groups", "/servers/detail", "servers 0"), "-", "-"},
		{71, "groups in changes", has("server_groups", one, "server", "", rename), "-", "[]"},
		{73, "why it is locked", has("locked_reason", one, "server"), "-", "mine"},
		{73, "why it is not locked", has("locked_reason", "/servers/detail", "servers 0"), "-", "<nil>"},
		{73, "locked servers", status(http.MethodGet, "/servers?locked=x", ""), "200", "400"},
		{73, "in the order of locks", status(http.MethodGet, "/servers?sort_key=locked", ""), "400", "200"},
		{75, "servers by what nobody knows", status(http.MethodGet, "/servers?x=y", ""), "200", "400"},
		{75, "servers in full by it", status(http.MethodGet, "/servers/detail?x=y", ""), "200", "400"},
		{75, "flavors by it", status(http.MethodGet, "/flavors?x=y", ""), "200", "400"},
		{75, "flavors in full by it", status(http.MethodGet, "/flavors/detail?x=y", ""), "200", "400"},
		{75, "limits by it", status(http.MethodGet, "/limits?x=y", ""), "200", "400"},
		{75, "key pairs by it", status(http.MethodGet, "/os-keypairs?x=y", ""), "200", "400"},
		{75, "quotas by it", status(http.MethodGet, "/os-quota-sets/"+r.home.ID+"?x=y", ""), "200", "400"},
		{75, "swap", has("swap", "/flavors/4", "flavor"), "", "0"},
		{75, "changes in full", has("OS-EXT-STS:vm_state", one, "server", "", rename), "-", "active"},
		{78, "topology", status(http.MethodGet, one+"/topology", ""), "404", "200"},
		{84, "details of events", has("details", act, "instanceAction events 0"), "-", "not enough memory"},
		{90, "the name in the machine", has("OS-EXT-SRV-ATTR:hostname", one, "server"), "-", s.Instance},
		{92, "a key that is made", status(http.MethodPost, "/os-keypairs", `{"keypair":{"name":"made"}}`), "201", "400"},
		{92, "names of keys", status(http.MethodPost, "/os-keypairs", `{"keypair":{"name":"me@home.example","public_key":"`+publicKey+`"}}`), "400", "201"},
		{96, "the zone where it stays", has("pinned_availability_zone", one, "server"), "-", "nova"},
		{96, "that of others", has("pinned_availability_zone", "/servers/detail", "servers 0"), "-", "nova"},
	} {
		if got := c.of(fmt.Sprint("2.", c.minor-1)); got != c.before {
			t.Errorf("%s: before 2.%d it is %q, want %q", c.what, c.minor, got, c.before)
		}
		if got := c.of(fmt.Sprint("2.", c.minor)); got != c.since {
			t.Errorf("%s: in 2.%d it is %q, want %q", c.what, c.minor, got, c.since)
		}
	}
	if a := r.ask(http.MethodGet, nova+one+"/topology", ""); a.text != `{"nodes":[],"pagesize_kb":null}` {
		t.Errorf("the topology is %s", a.text)
	}
	r.explained("topology of no server", r.ask(http.MethodGet, nova+"/servers/nosuch/topology", ""), http.StatusNotFound)
	r.explained("after the newest", r.ask(http.MethodGet, nova+one, "", "X-Openstack-Nova-Api-Version", "2.97"), http.StatusNotAcceptable)
}

// TestLockReasons: from 2.73 on, by whoever locks.
func TestLockReasons(t *testing.T) {
	r := newRig(t)
	s := r.create("web1")
	act := func(body string) answer { return r.ask(http.MethodPost, at(nova, s)+"/action", body) }
	for _, body := range []string{`{"lock":{"locked_reason":""}}`, `{"lock":{"locked_reason":7}}`, `{"lock":{"locked_reason":"` + strings.Repeat("x", 256) + `"}}`, `{"lock":{"reason":"x"}}`} {
		r.explained(body, act(body), http.StatusBadRequest)
	}
	if a := act(`{"lock":{"locked_reason":"mine"}}`); a.status != http.StatusAccepted || r.engine.Servers().Get(s.ID).Lock.Reason != "mine" {
		t.Errorf("%d %s", a.status, a.text)
	}
	r.create("web2")
	for query, want := range map[string]string{"?locked=true": "web1", "?locked=0": "web2", "?locked_by=owner": "web1", "?locked_by=admin": "", "?sort_key=locked&sort_dir=asc": "web2 web1", "?sort_key=locked": "web1 web2"} {
		if got := r.names(query); got != want {
			t.Errorf("%s: %q", query, got)
		}
	}
}

// TestPagesOfInstanceActions: the newest first, behind a marker, and by when they changed.
func TestPagesOfInstanceActions(t *testing.T) {
	r := newRig(t)
	s := r.create("web1")
	for _, body := range []string{`{"os-stop":null}`, `{"os-start":null}`, `{"reboot":{"type":"HARD"}}`} {
		r.ask(http.MethodPost, at(nova, s)+"/action", body)
		r.settled(s.ID)
	}
	var all []string
	pages := 0
	for path := at(nova, s) + "/os-instance-actions?limit=3"; path != ""; pages++ {
		body := r.ask(http.MethodGet, path, "").read(r)
		for _, a := range body["instanceActions"].([]any) {
			all = append(all, fmt.Sprint(a.(map[string]any)["action"]))
		}
		path = ""
		if links, more := body["links"].([]any); more {
			_, rest, _ := strings.Cut(fmt.Sprint(links[0].(map[string]any)["href"]), nova)
			path = nova + rest
		}
	}
	if got := strings.Join(all, " "); got != "reboot start stop create" || pages != 2 {
		t.Errorf("on %d pages there are %s", pages, got)
	}
	for query, want := range map[string]int{"changes-since=2999-01-01T00:00:00Z": 0, "changes-since=2001-01-01T00:00:00Z": 4, "changes-before=2001-01-01T00:00:00Z": 0, "changes-before=2999-01-01T00:00:00Z&limit=2": 2, "limit=0": 0} {
		body := r.ask(http.MethodGet, at(nova, s)+"/os-instance-actions?"+query, "").read(r)
		if got := len(body["instanceActions"].([]any)); got != want {
			t.Errorf("%s: %d", query, got)
		}
	}
	for _, query := range []string{"marker=req-0", "limit=-1", "changes-since=x", "changes-before=x", "changes-since=2002-01-01T00:00:00Z&changes-before=2001-01-01T00:00:00Z"} {
		r.explained(query, r.ask(http.MethodGet, at(nova, s)+"/os-instance-actions?"+query, ""), http.StatusBadRequest)
	}
}
