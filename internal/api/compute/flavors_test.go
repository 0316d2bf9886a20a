package compute_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/identity"
	"github.com/drover-project/drover/internal/server"
)

// admin is the token of an administrator.
func (r *rig) admin() string {
	r.Helper()
	_, token := r.join("root", "yard", identity.Admin)
	return token
}

// names are those of the flavors that a query finds, in their order.
func (r *rig) flavorNames(token, query string) (names []string) {
	r.Helper()
	var body struct{ Flavors []struct{ Name string } }
	r.check(json.Unmarshal([]byte(r.ask(http.MethodGet, nova+"/flavors"+query, "", "X-Auth-Token", token).text), &body))
	for _, f := range body.Flavors {
		names = append(names, f.Name)
	}
	return names
}

// TestFlavorsAreTheOperators: administrators make and remove them, and nobody else does.
func TestFlavorsAreTheOperators(t *testing.T) {
	r := newRig(t)
	root := r.admin()
	const big = `{"flavor":{"name":"big","id":"b1","ram":"4096","vcpus":4,"disk":40,"OS-FLV-EXT-DATA:ephemeral":0,"swap":0,"rxtx_factor":1.0,"os-flavor-access:is_public":true,"description":"for databases"}}`
	for _, c := range [][3]string{{"POST", "/flavors", big}, {"DELETE", "/flavors/1", ""}, {"PUT", "/flavors/1", `{"flavor":{"description":"x"}}`},
		{"POST", "/flavors/1/action", `{"addTenantAccess":{"tenant":"x"}}`}, {"GET", "/flavors/1/os-flavor-access", ""}} {
		a := r.ask(c[0], nova+c[1], c[2])
		if r.explained(c[0]+c[1]+" of a member", a, http.StatusForbidden); !strings.Contains(a.text, "Policy doesn't allow os_compute_api:os-flavor-") {
			t.Errorf("%s %s: %s", c[0], c[1], a.text)
		}
	}
	as := []string{"X-Auth-Token", root}
	made, _ := r.ask(http.MethodPost, nova+"/flavors", big, as...).read(r)["flavor"].(map[string]any)
	for key, want := range map[string]any{"id": "b1", "name": "big", "ram": 4096.0, "vcpus": 4.0, "disk": 40.0, "description": "for databases", "os-flavor-access:is_public": true} {
		if made[key] != want {
			t.Errorf("%s is %v, want %v", key, made[key], want)
		}
	}
	if len(r.noted) != 1 || r.noted[0].What != audit.FlavorAdd || r.noted[0].Who != "root" || r.noted[0].Surface != "compute" || r.noted[0].Name != "big" {
		t.Errorf("the log of events has %+v", r.noted)
	}
	r.explained("the id again", r.ask(http.MethodPost, nova+"/flavors", strings.Replace(big, `"big"`, `"other"`, 1), as...), http.StatusConflict)
	r.explained("the name again", r.ask(http.MethodPost, nova+"/flavors", strings.Replace(big, `"b1"`, `"b2"`, 1), as...), http.StatusConflict)
	for _, bad := range []string{`{}`, `{"flavor":null}`, `{"flavor":{"ram":1,"vcpus":1,"disk":0}}`, `{"flavor":{"name":"x","ram":0,"vcpus":1,"disk":0}}`, `{"flavor":{"name":"x","ram":1,"vcpus":"one","disk":0}}`,
		`{"flavor":{"name":"x","ram":1,"vcpus":1,"disk":-1}}`, `{"flavor":{"name":"x","ram":1,"vcpus":1}}`, `{"flavor":{"name":" x","ram":1,"vcpus":1,"disk":0}}`, `{"flavor":{"name":"x","id":"a/b","ram":1,"vcpus":1,"disk":0}}`,
		`{"flavor":{"name":"x","ram":1,"vcpus":1,"disk":0,"os-flavor-access:is_public":"perhaps"}}`, `{"flavor":{"name":"x","ram":1,"vcpus":1,"disk":0,"size":1}}`, `{"flavor":{"name":"x","ram":4294967296,"vcpus":1,"disk":0}}`} {
		r.explained(bad, r.ask(http.MethodPost, nova+"/flavors", bad, as...), http.StatusBadRequest)
	}
	r.explained("a description too early", r.ask(http.MethodPost, nova+"/flavors", strings.NewReplacer("big", "b3", "b1", "b3").Replace(big), "X-Auth-Token", root, "X-Openstack-Nova-Api-Version", "2.54"), http.StatusBadRequest)
	auto, _ := r.ask(http.MethodPost, nova+"/flavors", `{"flavor":{"name":"auto","id":"auto","ram":1,"vcpus":1,"disk":0}}`, as...).read(r)["flavor"].(map[string]any)
	if id, _ := auto["id"].(string); len(id) != 36 || auto["description"] != nil {
		t.Errorf("one that names no id is %v", auto)
	}

	a := r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"flavorRef": "b1"}))
	id, _ := a.read(r)["server"].(map[string]any)["id"].(string)
	r.settled(id)
	if b := r.cloud.newest().Map("beparams"); fmt.Sprint(b["vcpus"], b["maxmem"]) != "4 4096" {
		t.Errorf("its instance is made with %v", b)
	}
	if a := r.ask(http.MethodDelete, nova+"/flavors/b1", "", as...); a.status != http.StatusAccepted {
		t.Errorf("removing it: %d %s", a.status, a.text)
	}
	r.explained("removing it again", r.ask(http.MethodDelete, nova+"/flavors/b1", "", as...), http.StatusNotFound)
	r.explained("one that is gone", r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"flavorRef": "b1"})), http.StatusBadRequest)
	if a := r.ask(http.MethodGet, nova+"/servers/"+id, ""); !strings.Contains(a.text, `"original_name":"big"`) || !strings.Contains(a.text, `"ram":4096`) {
		t.Errorf("the server lost its size: %s", a.text)
	}
}

// TestPrivateFlavors: whose users do not see one cannot choose it either.
func TestPrivateFlavors(t *testing.T) {
	r := newRig(t)
	root, own := r.admin(), []string{"m1.tiny", "m1.small", "m1.medium", "m1.diskless"}
	as := []string{"X-Auth-Token", root}
	r.ask(http.MethodPost, nova+"/flavors", `{"flavor":{"name":"secret","id":"s","ram":64,"vcpus":1,"disk":0,"os-flavor-access:is_public":"False"}}`, as...)
	all := append(slices.Clone(own), "secret")
	find := func(when string, member, administrator map[string][]string) {
		t.Helper()
		for token, finds := range map[string]map[string][]string{r.token: member, root: administrator} {
			for query, want := range finds {
				if got := r.flavorNames(token, query); !slices.Equal(got, want) {
					t.Errorf("%s, as an administrator: %t, %q finds %q, want %q", when, token == root, query, got, want)
				}
			}
		}
	}
	find("at first", map[string][]string{"": own, "?is_public=None": own, "?is_public=False": nil}, map[string][]string{"": own, "?is_public=None": all, "?is_public=no": {"secret"}})
	r.explained("it is shown", r.ask(http.MethodGet, nova+"/flavors/s", ""), http.StatusNotFound)
	r.explained("it is chosen", r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"flavorRef": "s"})), http.StatusBadRequest)
	action, grant := nova+"/flavors/s/action", `{"addTenantAccess":{"tenant":"`+r.home.ID+`"}}`
	if a := r.ask(http.MethodPost, action, grant, as...); a.status != http.StatusOK || !strings.Contains(a.text, `{"flavor_id":"s","tenant_id":"`+r.home.ID+`"}`) {
		t.Errorf("granting it: %d %s", a.status, a.text)
	}
	find("granted", map[string][]string{"": all, "?is_public=None": all, "?is_public=False": {"secret"}}, map[string][]string{"": own, "?is_public=None": all})
	if a := r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"flavorRef": "s"})); a.status != http.StatusAccepted {
		t.Errorf("choosing it: %d %s", a.status, a.text)
	}
	r.explained("again", r.ask(http.MethodPost, action, grant, as...), http.StatusConflict)
	r.explained("no project", r.ask(http.MethodPost, action, `{"addTenantAccess":{"tenant":"nosuch"}}`, as...), http.StatusBadRequest)
	r.explained("nothing", r.ask(http.MethodPost, action, `{}`, as...), http.StatusBadRequest)
	r.explained("a public one", r.ask(http.MethodPost, nova+"/flavors/1/action", grant, as...), http.StatusConflict)
	r.explained("of a public one", r.ask(http.MethodGet, nova+"/flavors/1/os-flavor-access", "", as...), http.StatusNotFound)
	revoke := strings.Replace(grant, "add", "remove", 1)
	if a := r.ask(http.MethodPost, action, revoke, as...); a.status != http.StatusOK || !strings.Contains(a.text, `"flavor_access":[]`) {
		t.Errorf("revoking it: %d %s", a.status, a.text)
	}
	r.explained("again", r.ask(http.MethodPost, action, revoke, as...), http.StatusNotFound)
	find("revoked", map[string][]string{"": own}, map[string][]string{"?is_public=None": all})
	if a := r.ask(http.MethodGet, nova+"/flavors/s/os-flavor-access", "", as...); a.status != http.StatusOK || a.text != `{"flavor_access":[]}` {
		t.Errorf("%d %s", a.status, a.text)
	}
}

// TestFlavorsByPages: sorted and filtered, each page tells where the next one is.
func TestFlavorsByPages(t *testing.T) {
	r := newRig(t)
	for query, want := range map[string][]string{
		"?sort_key=memory_mb&sort_dir=desc": {"m1.medium", "m1.small", "m1.tiny", "m1.diskless"}, "?minRam=513&minDisk=6": {"m1.medium"},
		"?sort_key=memory_mb&limit=2": {"m1.diskless", "m1.tiny"}, "?sort_key=memory_mb&limit=2&marker=1": {"m1.small", "m1.medium"}, "?limit=0": nil,
	} {
		if got := r.flavorNames(r.token, query); !slices.Equal(got, want) {
			t.Errorf("%s finds %q, want %q", query, got, want)
		}
	}
	if a := r.ask(http.MethodGet, nova+"/flavors?sort_key=memory_mb&limit=2", ""); !strings.Contains(a.text, `marker=1\u0026`) && !strings.Contains(a.text, "marker=1") {
		t.Errorf("it does not say where the next page is: %s", a.text)
	}
	if a := r.ask(http.MethodGet, nova+"/flavors?marker=2&limit=2", ""); strings.Contains(a.text, "flavors_links") {
		t.Errorf("the last page has a next one: %s", a.text)
	}
	r.explained("a marker that is none", r.ask(http.MethodGet, nova+"/flavors?marker=zz", ""), http.StatusBadRequest)
}

// ofFlavors makes, describes or grants a flavor by one field.
func (r *rig) ofFlavors(f *field) {
	if _, err := r.accounts.FindProject("yard"); err != nil {
		r.root = r.admin()
	}
	as := []string{"X-Auth-Token", r.root, "X-Openstack-Nova-Api-Version", f.latest()}
	_ = r.ask(http.MethodDelete, nova+"/flavors/x", "", as...)
	_, key, _ := strings.Cut(f.Field, ".")
	body := map[string]any{"name": "x", "id": "x", "ram": 64, "vcpus": 1, "disk": 0, "os-flavor-access:is_public": false}
	if f.Action == "create" && f.Verdict == "refused" {
		body[key] = f.sample()
		text, err := json.Marshal(map[string]any{"flavor": body})
		r.check(err)
		r.refusedFor(f, r.ask(http.MethodPost, nova+"/flavors", string(text), as...))
		return
	}
	if f.Action == "create" && key == "description" {
		body[key] = "told"
	}
	text, err := json.Marshal(map[string]any{"flavor": body})
	r.check(err)
	r.ask(http.MethodPost, nova+"/flavors", string(text), as...)
	switch f.Action {
	case "update":
		r.ask(http.MethodPut, nova+"/flavors/x", `{"flavor":{"description":"told"}}`, as...)
		r.explained("before it was there", r.ask(http.MethodPut, nova+"/flavors/x", `{"flavor":{"description":"x"}}`, "X-Auth-Token", r.root, "X-Openstack-Nova-Api-Version", before(f.Since)), http.StatusNotFound)
	case "add_tenant_access", "remove_tenant_access":
		r.ask(http.MethodPost, nova+"/flavors/x/action", `{"addTenantAccess":{"tenant":"`+r.home.ID+`"}}`, as...)
	}
	made, err := r.flavors.Find("x")
	if r.check(err); f.Action == "remove_tenant_access" {
		r.ask(http.MethodPost, nova+"/flavors/x/action", `{"removeTenantAccess":{"tenant":"`+r.home.ID+`"}}`, as...)
		if now, err := r.flavors.Find("x"); err != nil || now.For(r.home.ID) {
			r.Errorf("it is %+v: %v", now, err)
		}
	}
	told := key == "description" || f.Action == "update"
	if made.Flavor != (server.Flavor{ID: "x", Name: "x", RAM: 64, VCPUs: 1}) || !made.Private || told != (made.Description == "told") || made.For(r.home.ID) != strings.HasSuffix(f.Action, "access") {
		r.Errorf("it is %+v", made)
	}
}
