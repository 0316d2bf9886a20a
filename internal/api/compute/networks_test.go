package compute_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/state"
)

const (
	office = "0b7c7f7e-aaaa-4c8b-9a52-0d1f6c0e5a02" // offered, with a gateway
	lonely = "0b7c7f7e-bbbb-4c8b-9a52-0d1f6c0e5a02" // offered, and no nodes are connected to it
	secret = "0b7c7f7e-cccc-4c8b-9a52-0d1f6c0e5a02" // not offered
)

// wired shows a cluster with networks, an image, and instances beside.
func (r *rig) wired(instances ...*cluster.Instance) {
	r.Helper()
	now := cluster.Empty().With(cluster.Put(&cluster.Image{Meta: cluster.NewMeta(disk, 1e9), Name: "debian13", Format: "qcow2", VirtualSize: 1000}))
	group := &cluster.Group{Meta: cluster.NewMeta("g1", 1), Name: "default", Networks: map[string]cluster.Params{}}
	for id, name := range map[string]string{office: "office", lonely: "lonely", secret: "management"} {
		n, err := cluster.NewNetwork(id, name, "192.0.2.0/28", map[bool]string{true: "192.0.2.1"}[id == office], 1)
		r.check(err)
		if id != secret {
			n.Tags = []string{server.OfferedTag}
		}
		if id == office {
			n.Network6 = "2001:db8::/64"
		}
		if id != lonely {
			group.Networks[id] = cluster.Params{}
		}
		now = now.With(cluster.Put(n))
	}
	now = now.With(cluster.Put(group))
	for _, i := range instances {
		now = now.With(cluster.Put(i))
	}
	r.shown.Committed(&state.Change{Inventory: now})
	r.shown.Publish()
}

// TestServersAreInNetworks: in those that the operator offers, at a free address or the one that was asked for; others are not there.
func TestServersAreInNetworks(t *testing.T) {
	r := newRig(t)
	r.wired()
	for _, c := range []struct{ nets, want string }{
		{`[{"uuid":"` + secret + `"}]`, "Network " + secret + " could not be found."},
		{`[{"uuid":"office"}]`, "Network office could not be found."},
		{`[{"uuid":"` + lonely + `"}]`, "is connected to no nodes"},
		{`[{"uuid":"` + office + `","fixed_ip":"192.0.2.1"}]`, "already in use"},
		{`[{"uuid":"` + office + `","fixed_ip":"198.51.100.1"}]`, "not a valid ip address"},
		{`[{"uuid":"` + office + `","fixed_ip":"192.0.2.300"}]`, "It is no address"},
		{`[{"uuid":"` + office + `","fixed_ip":"192.0.2.5"},{"uuid":"` + office + `","fixed_ip":"192.0.2.5"}]`, "asked for twice"},
		{`[{"uuid":"` + office + `","port":"x"}]`, "networks[0]"},
		{`[{"uuid":"` + office + `","tag":"x"}]`, "networks[0]"},
		{`[{"fixed_ip":"192.0.2.5"}]`, "must have the uuid"},
		{`["` + office + `"]`, "must be an object"},
		{`"` + office + `"`, "a list"},
		{"[" + strings.TrimSuffix(strings.Repeat(`{"uuid":"`+office+`"},`, 17), ",") + "]", "at most 16"},
	} {
		a := r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"networks": json.RawMessage(c.nets)}))
		if r.explained(c.nets, a, http.StatusBadRequest); !strings.Contains(a.text, c.want) {
			t.Errorf("%s: %s", c.nets, a.text)
		}
	}
	far := r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"networks": json.RawMessage(`[{"uuid":"` + office + `"}]`), "availability_zone": "far"}))
	r.explained("another cluster's", far, http.StatusBadRequest)
	two := r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"networks": json.RawMessage(`[{"uuid":"` + office + `","fixed_ip":"192.0.2.5"}]`), "max_count": 2}))
	r.explained("one address for two", two, http.StatusBadRequest)
	if n := r.engine.Servers().Len(); n != 0 {
		t.Fatalf("%d servers were made", n)
	}
	a := r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"networks": json.RawMessage(`[{"uuid":"` + office + `"},{"uuid":"` + office + `","fixed_ip":"192.0.2.5"}]`)}))
	id, _ := a.read(r)["server"].(map[string]any)["id"].(string)
	s := r.settled(id)
	text, err := json.Marshal(r.cloud.newest().Params["nics"])
	r.check(err)
	if want := `[{"ip":"pool","network":"` + office + `"},{"ip":"192.0.2.5","network":"` + office + `"}]`; string(text) != want {
		t.Errorf("the job asks for %s, not %s", text, want)
	}
	r.wired(&cluster.Instance{Meta: cluster.NewMeta(s.UUID, 1), Name: s.Instance, NICs: []cluster.NIC{
		{UUID: "n1", MAC: "aa:00:00:00:00:01", IP: "192.0.2.2", Network: office}, {UUID: "n2", MAC: "aa:00:00:00:00:02", IP: "2001:db8::5", Network: office},
		{UUID: "n3", MAC: "aa:00:00:00:00:03", IP: "10.0.0.1"}, {UUID: "n4", MAC: "aa:00:00:00:00:04"},
	}})
	for path, want := range map[string]string{
		"/servers/" + id:                 `"addresses":{"default":[{"OS-EXT-IPS-MAC:mac_addr":"aa:00:00:00:00:03","OS-EXT-IPS:type":"fixed","addr":"10.0.0.1","version":4}],"office":[{"OS-EXT-IPS-MAC:mac_addr":"aa:00:00:00:00:01","OS-EXT-IPS:type":"fixed","addr":"192.0.2.2","version":4},{"OS-EXT-IPS-MAC:mac_addr":"aa:00:00:00:00:02","OS-EXT-IPS:type":"fixed","addr":"2001:db8::5","version":6}]}`,
		"/servers/" + id + "/ips":        `{"addresses":{"default":[{"addr":"10.0.0.1","version":4}],"office":[{"addr":"192.0.2.2","version":4},{"addr":"2001:db8::5","version":6}]}}`,
		"/servers/" + id + "/ips/office": `{"office":[{"addr":"192.0.2.2","version":4},{"addr":"2001:db8::5","version":6}]}`,
		"/servers/" + id + "/ips/other":  "has no addresses in a network 'other'",
	} {
		if a := r.ask(http.MethodGet, nova+path, ""); !strings.Contains(a.text, want) {
			t.Errorf("%s: %s", path, a.text)
		}
	}
	ports := r.ask(http.MethodGet, "/network/v2.0/ports?device_id="+id, "")
	if !strings.Contains(ports.text, `"id":"n1"`) || strings.Count(ports.text, `"device_id":"`+id+`"`) != 4 {
		t.Errorf("its ports: %s", ports.text)
	}
	if one := r.ask(http.MethodGet, "/network/v2.0/ports?fixed_ips=ip_address=192.0.2.2", ""); strings.Count(one.text, `"id":`) != 1 {
		t.Errorf("the port of an address: %s", one.text)
	}
	_, theirs := r.join("bob", "theirs", "member")
	many := &cluster.Instance{Meta: cluster.NewMeta(s.UUID, 2), Name: s.Instance}
	for i := range 1001 {
		many.NICs = append(many.NICs, cluster.NIC{UUID: fmt.Sprint("n", i), MAC: "aa:00:00:00:00:05"})
	}
	r.wired(many)
	if all := r.ask(http.MethodGet, "/network/v2.0/ports", ""); strings.Count(all.text, `"device_id"`) != len(many.NICs) {
		t.Errorf("%d of %d ports are told", strings.Count(all.text, `"device_id"`), len(many.NICs))
	}
	if none := r.ask(http.MethodGet, "/network/v2.0/ports", "", "X-Auth-Token", theirs); none.text != `{"ports":[]}` {
		t.Errorf("another project sees %s", none.text)
	}
}

// TestNetworksAreListed: those that are offered, with their subnets, by what a query asks; whatever else it asks is refused.
func TestNetworksAreListed(t *testing.T) {
	r := newRig(t)
	r.wired()
	names := func(path, of string) string {
		t.Helper()
		a := r.ask(http.MethodGet, "/network/v2.0/"+path, "")
		if a.status != http.StatusOK {
			return strconv.Itoa(a.status)
		}
		var out []string
		for _, o := range a.read(r)[of].([]any) {
			out = append(out, fmt.Sprint(o.(map[string]any)["name"]))
		}
		return strings.Join(out, " ")
	}
	for path, want := range map[string]string{
		"networks": "office lonely", "networks?name=office": "office", "networks?name=management": "", "networks?id=" + secret: "", "networks?id=" + lonely + "&id=" + office: "office lonely",
		"networks?shared=True": "office lonely", "networks?shared=false": "", "networks?router:external=true": "", "networks?sort_key=name&sort_dir=asc": "lonely office",
		"networks?sort_key=name&limit=1": "lonely", "networks?marker=" + office: "lonely", "networks?limit=0": "office lonely", "networks?nosuch=1": "400", "networks?sort_key=nosuch": "400",
		"networks?marker=nosuch": "400", "subnets?network_id=" + office: "office office", "subnets?ip_version=6": "office", "subnets?cidr=192.0.2.0/28&network_id=" + lonely: "lonely",
		"ports": "",
	} {
		of, _, _ := strings.Cut(path, "?")
		if got := names(path, of); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	for path, want := range map[string]string{
		"networks/" + office:                         `"name":"office"`,
		"networks/" + secret:                         `{"NeutronError":{"detail":"","message":"Network ` + secret + ` could not be found."`,
		"networks?fields=id&fields=name&name=office": `{"networks":[{"id":"` + office + `","name":"office"}]}`,
		"subnets?fields=gateway_ip":                  `{"gateway_ip":"192.0.2.1"}`,
		"floatingips":                                `{"floatingips":[]}`,
		"quotas":                                     "could not be found",
	} {
		if a := r.ask(http.MethodGet, "/network/v2.0/"+path, ""); !strings.Contains(a.text, want) {
			t.Errorf("%s: %d %s", path, a.status, a.text)
		}
	}
	var list struct{ Networks []struct{ Subnets []string } }
	r.check(json.Unmarshal([]byte(r.ask(http.MethodGet, "/network/v2.0/networks?name=office", "").text), &list))
	for _, id := range list.Networks[0].Subnets {
		if a := r.ask(http.MethodGet, "/network/v2.0/subnets/"+id, ""); a.status != http.StatusOK || !strings.Contains(a.text, `"network_id":"`+office+`"`) {
			t.Errorf("the subnet %s: %d %s", id, a.status, a.text)
		}
	}
	if a := r.ask(http.MethodPost, "/network/v2.0/networks", `{"network":{"name":"mine"}}`); a.status != http.StatusNotFound {
		t.Errorf("one is made: %d %s", a.status, a.text)
	}
	if a := r.ask(http.MethodGet, "/network/", ""); !strings.Contains(a.text, "/network/v2.0/") {
		t.Errorf("the versions: %s", a.text)
	}
}
