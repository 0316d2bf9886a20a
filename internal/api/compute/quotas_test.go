package compute_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/identity"
	"github.com/drover-project/drover/internal/quota"
)

// asRoot asks as an administrator of another project.
func (r *rig) asRoot(method, path, body string, headers ...string) answer {
	r.Helper()
	if r.root == "" {
		_, r.root = r.join("root", "rootroom", identity.Admin)
	}
	return r.ask(method, path, body, append(headers, "X-Auth-Token", r.root)...)
}

// limit sets limits of the project home.
func (r *rig) limit(limits string) {
	r.Helper()
	if a := r.asRoot(http.MethodPut, nova+"/os-quota-sets/"+r.home.ID, `{"quota_set":`+limits+`}`); a.status != http.StatusOK {
		r.Fatalf("%d %s", a.status, a.text)
	}
}

// set is a set of limits in an answer.
func (a answer) set(r *rig, key string) map[string]any {
	r.Helper()
	set, ok := a.read(r)[key].(map[string]any)
	if a.status != http.StatusOK || !ok {
		r.Fatalf("%d %s", a.status, a.text)
	}
	return set
}

// TestQuotasOfAProject: as Nova shows and changes them, by whom, and what is refused.
func TestQuotasOfAProject(t *testing.T) {
	r := newRig(t)
	r.create("web1")
	own := nova + "/os-quota-sets/" + r.home.ID
	for path, want := range map[string]string{
		own:               `map[cores:-1 id:HOME instances:-1 key_pairs:100 metadata_items:128 ram:-1 server_group_members:10 server_groups:10]`,
		own + "/defaults": `map[cores:-1 id:HOME instances:-1 key_pairs:100 metadata_items:128 ram:-1 server_group_members:10 server_groups:10]`,
	} {
		if got := strings.ReplaceAll(fmt.Sprint(r.ask(http.MethodGet, path+"?user_id=x", "").set(r, "quota_set")), r.home.ID, "HOME"); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
	if old := r.ask(http.MethodGet, own, "", "X-Openstack-Nova-Api-Version", "2.35").set(r, "quota_set"); old["fixed_ips"] != -1.0 || old["security_groups"] != 0.0 {
		t.Errorf("before 2.36: %v", old)
	}
	r.explained("by a member", r.ask(http.MethodPut, own, `{"quota_set":{"cores":4}}`), http.StatusForbidden)
	r.explained("another project's", r.ask(http.MethodGet, nova+"/os-quota-sets/other", ""), http.StatusForbidden)
	set := r.asRoot(http.MethodPut, own, `{"quota_set":{"cores":"4","instances":2,"server_groups":7}}`).set(r, "quota_set")
	if _, shown := set["id"]; shown || set["cores"] != 4.0 || set["instances"] != 2.0 || set["server_groups"] != 7.0 || set["ram"] != -1.0 {
		t.Errorf("it is told as %v", set)
	}
	if e := r.noted[len(r.noted)-1]; e.What != audit.QuotaSet || e.Who != "root" || e.Surface != "compute" || e.Object != r.home.ID {
		t.Errorf("the event is %+v", e)
	}
	detail := r.asRoot(http.MethodGet, own+"/detail", "").set(r, "quota_set")
	if fmt.Sprint(detail["cores"]) != "map[in_use:1 limit:4 reserved:0]" || fmt.Sprint(detail["key_pairs"]) != "map[in_use:0 limit:100 reserved:0]" {
		t.Errorf("in full: %v", detail)
	}
	for what, body := range map[string]string{
		"of what nobody knows": `{"quota_set":{"volumes":1}}`, "no number": `{"quota_set":{"cores":"many"}}`, "too small": `{"quota_set":{"cores":-2}}`,
		"below what is used": `{"quota_set":{"instances":0}}`, "networks": `{"quota_set":{"fixed_ips":1}}`, "force": `{"quota_set":{"cores":0,"force":"perhaps"}}`, "none": `{}`,
	} {
		r.explained(what, r.asRoot(http.MethodPut, own, body), http.StatusBadRequest)
	}
	r.explained("of a user", r.asRoot(http.MethodPut, own+"?user_id=x", `{"quota_set":{"cores":4}}`), http.StatusBadRequest)
	r.explained("of no project", r.asRoot(http.MethodPut, nova+"/os-quota-sets/nosuch", `{"quota_set":{"cores":4}}`), http.StatusBadRequest)
	r.limit(`{"instances":0,"force":true}`)
	r.limit(`{}`)
	for range 2 {
		if a := r.asRoot(http.MethodDelete, own, ""); a.status != http.StatusAccepted {
			t.Errorf("taking it away: %d %s", a.status, a.text)
		}
	}
	if r.quotas.Of(r.home.ID)[quota.Instances] != quota.Unlimited {
		t.Error("it is not gone")
	}
}

// TestQuotasOfNetworks: clients ask for them beside those of servers; there is nothing to set.
func TestQuotasOfNetworks(t *testing.T) {
	r := newRig(t)
	path := "/network/v2.0/quotas/" + r.home.ID
	for _, end := range []string{"", "/default"} {
		if set := r.ask(http.MethodGet, path+end, "").set(r, "quota"); set["network"] != 0.0 || set["port"] != -1.0 {
			t.Errorf("%s: %v", end, set)
		}
	}
	if set := r.ask(http.MethodGet, path+"/details", "").set(r, "quota"); fmt.Sprint(set["port"]) != "map[limit:-1 reserved:0 used:0]" {
		t.Errorf("in full: %v", set)
	}
	for body, status := range map[string]int{`{"quota":{"force":true}}`: http.StatusOK, `{"quota":{"network":3}}`: http.StatusBadRequest, `{"quota":{"nosuch":3}}`: http.StatusBadRequest} {
		if a := r.asRoot(http.MethodPut, path, body); a.status != status {
			t.Errorf("%s: %d %s", body, a.status, a.text)
		}
	}
	for _, method := range []string{http.MethodPut, http.MethodGet} {
		at := path
		if method == http.MethodGet {
			at = "/network/v2.0/quotas/other"
		}
		if a := r.ask(method, at, `{"quota":{}}`); a.status != http.StatusForbidden {
			t.Errorf("%s %s as a member: %d %s", method, at, a.status, a.text)
		}
	}
}

// TestTheDefaultQuota: is that of the class default.
func TestTheDefaultQuota(t *testing.T) {
	r := newRig(t)
	path := nova + "/os-quota-class-sets/default"
	r.explained("by a member", r.ask(http.MethodGet, path, ""), http.StatusForbidden)
	r.explained("another class", r.asRoot(http.MethodGet, nova+"/os-quota-class-sets/gold", ""), http.StatusNotFound)
	r.explained("setting another class", r.asRoot(http.MethodPut, nova+"/os-quota-class-sets/gold", `{"quota_class_set":{"ram":1}}`), http.StatusNotFound)
	if set := r.asRoot(http.MethodPut, path, `{"quota_class_set":{"ram":1000}}`).set(r, "quota_class_set"); set["ram"] != 1000.0 || set["id"] != nil {
		t.Errorf("it is told as %v", set)
	}
	if set := r.asRoot(http.MethodGet, path, "").set(r, "quota_class_set"); set["ram"] != 1000.0 || set["id"] != "default" || set["server_groups"] == nil {
		t.Errorf("it is shown as %v", set)
	}
	if set := r.asRoot(http.MethodGet, path, "", "X-Openstack-Nova-Api-Version", "2.49").set(r, "quota_class_set"); set["server_groups"] != nil || set["fixed_ips"] == nil {
		t.Errorf("before 2.50: %v", set)
	}
	if r.quotas.Of(r.home.ID)[quota.RAM] != 1000 {
		t.Error("it does not hold")
	}
}

// TestTheDefaultIsNoProjects: its limits are neither shown nor set as those of a project, also where nobody knows which projects there are.
func TestTheDefaultIsNoProjects(t *testing.T) {
	r := newRig(t)
	r.anyProject = true
	for method, body := range map[string]string{http.MethodPut: `{"quota_set":{"cores":4}}`, http.MethodGet: "", http.MethodDelete: ""} {
		r.explained(method, r.asRoot(method, nova+"/os-quota-sets/default", body), http.StatusBadRequest)
	}
	if r.quotas.Of(r.home.ID)[quota.Cores] != quota.Unlimited {
		t.Error("the default is set")
	}
	r.asRoot(http.MethodPut, nova+"/os-quota-sets/elsewhere", `{"quota_set":{"cores":4}}`).set(r, "quota_set")
	if r.quotas.Of("elsewhere")[quota.Cores] != 4 || r.quotas.Of(r.home.ID)[quota.Cores] != quota.Unlimited {
		t.Error("a project of which only another service knows has no limits")
	}
}

// TestQuotasAreHeld: what a limit has no room for is 403, in Cyclades' flavour what that has there; as many of several are made as there is room for.
func TestQuotasAreHeld(t *testing.T) {
	r := newRig(t)
	first := r.create("web1")
	r.limit(`{"instances":3,"cores":4,"key_pairs":1,"metadata_items":2}`)
	r.explained("too many at least", r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"min_count": 3})), http.StatusForbidden)
	if a := r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"name": "more", "max_count": 5})); a.status != http.StatusAccepted || r.names("?name=^more") != "more-2 more-1" {
		t.Errorf("as many as there is room for: %d %s, there are %s", a.status, a.text, r.names(""))
	}
	for _, root := range []string{nova, cyclades} {
		a := r.ask(http.MethodPost, root+"/servers", r.creationOf(nil))
		r.explained("one more", a, http.StatusForbidden)
		if !strings.Contains(a.text, "Quota exceeded for instances: Requested 1, but already used 3 of 3 instances") || !strings.Contains(a.text, "web1") {
			t.Errorf("it says %s", a.text)
		}
	}
	s := r.settled(first.ID)
	const items = `{"metadata":{"a":"1","b":"2","c":"3"}}`
	r.explained("metadata", r.ask(http.MethodPost, at(nova, s)+"/metadata", items), http.StatusForbidden)
	r.explained("metadata in Cyclades", r.ask(http.MethodPost, at(cyclades, s)+"/metadata", items), http.StatusBadRequest)
	r.explained("metadata of a new one", r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"metadata": map[string]string{"a": "1", "b": "2", "c": "3"}})), http.StatusForbidden)
	for i, status := range []int{http.StatusCreated, http.StatusForbidden} {
		if a := r.ask(http.MethodPost, nova+"/os-keypairs", fmt.Sprintf(`{"keypair":{"name":"k%d","public_key":"%s"}}`, i, publicKey)); a.status != status {
			t.Errorf("key pair %d: %d %s", i, a.status, a.text)
		}
	}
	limits := r.ask(http.MethodGet, nova+"/limits", "").text
	for _, want := range []string{`"maxTotalInstances":3`, `"maxTotalCores":4`, `"maxTotalRAMSize":-1`, `"maxServerMeta":2`, `"maxTotalKeypairs":1`, `"totalInstancesUsed":3`, `"totalCoresUsed":3`} {
		if !strings.Contains(limits, want) {
			t.Errorf("limits lack %s: %s", want, limits)
		}
	}
}
