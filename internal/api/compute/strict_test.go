package compute_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// keys are those of an object in an answer, in order.
func keys(v any) []string {
	o, _ := v.(map[string]any)
	return slices.Sorted(maps.Keys(o))
}

// TestAnswersHaveTheKeysThatStrictClientsTake: no fewer, and no others.
func TestAnswersHaveTheKeysThatStrictClientsTake(t *testing.T) {
	r := newRig(t)
	s := r.create("web1")
	const version = "X-Openstack-Nova-Api-Version"
	changed := r.ask(http.MethodPut, at(nova, s), `{"server":{"name":"web2"}}`, version, "2.1").read(r)["server"]
	if got := strings.Join(keys(changed), " "); got != "OS-DCF:diskConfig accessIPv4 accessIPv6 addresses created flavor hostId id image links metadata name progress status tenant_id updated user_id" {
		t.Errorf("a change is answered with %s", got)
	}
	for minor, locked := range map[string]any{"2.8": nil, "2.9": false, "2.52": false} {
		shown := r.ask(http.MethodGet, at(nova, s), "", version, minor).read(r)["server"].(map[string]any)["locked"]
		changed := r.ask(http.MethodPut, at(nova, s), `{"server":{"name":"web2"}}`, version, minor).read(r)["server"].(map[string]any)["locked"]
		if shown != locked || changed != locked {
			t.Errorf("in %s it is shown as locked: %v, and when it is changed: %v", minor, shown, changed)
		}
	}
	images := r.ask(http.MethodGet, nova+"/images", "", version, "2.35").read(r)["images"].([]any)
	if got := strings.Join(keys(images[0]), " "); got != "id links name" {
		t.Errorf("images in brief: %s", got)
	}
	images = r.ask(http.MethodGet, nova+"/images/detail", "", version, "2.35").read(r)["images"].([]any)
	if !slices.Contains(keys(images[0]), "minDisk") {
		t.Errorf("images in full: %v", images)
	}
	_, other := r.join("bob", "lab", "member")
	if made := r.ask(http.MethodPost, nova+"/servers", r.creationOf(nil), "X-Auth-Token", other); made.status != http.StatusAccepted { // which is no business of alice's
		t.Errorf("a server of another project: %d %s", made.status, made.text)
	}
	const always = "maxPersonality maxPersonalitySize maxServerGroupMembers maxServerGroups maxServerMeta maxTotalCores maxTotalInstances maxTotalKeypairs maxTotalRAMSize" +
		" totalCoresUsed totalInstancesUsed totalRAMUsed totalServerGroupsUsed"
	for minor, more := range map[string]string{"2.1": "maxImageMeta maxSecurityGroupRules maxSecurityGroups maxTotalFloatingIps totalFloatingIpsUsed totalSecurityGroupsUsed", "2.36": "maxImageMeta", "2.39": ""} {
		limits := r.ask(http.MethodGet, nova+"/limits", "", version, minor).read(r)["limits"].(map[string]any)["absolute"].(map[string]any)
		want := slices.Sorted(slices.Values(strings.Fields(always + " " + more)))
		if !slices.Equal(keys(limits), want) || limits["totalInstancesUsed"] != 1.0 || limits["totalRAMUsed"] != 128.0 {
			t.Errorf("limits of %s: %v", minor, limits)
		}
	}
}

// TestFlavorsAreFiltered: by size, and in pages.
func TestFlavorsAreFiltered(t *testing.T) {
	r := newRig(t)
	for query, want := range map[string]string{
		"": "1 2 3 4", "limit=2": "1 2", "limit=2&marker=2": "3 4", "limit=0": "", "marker=4": "", "minRam=513": "2 3", "minRam=0": "1 2 3 4", "minDisk=1": "1 2 3", "minRam=513&limit=1": "2",
	} {
		body := r.ask(http.MethodGet, nova+"/flavors?"+query, "").read(r)
		var got []string
		for _, f := range body["flavors"].([]any) {
			got = append(got, f.(map[string]any)["id"].(string))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
		if _, more := body["flavors_links"]; more != (query == "limit=2" || query == "minRam=513&limit=1") {
			t.Errorf("%s: a link to a next page: %v", query, more)
		}
	}
	for id, status := range map[string]int{"1": http.StatusOK, "nope": http.StatusNotFound} {
		if a := r.ask(http.MethodGet, nova+"/flavors/"+id+"/os-extra_specs", ""); a.status != status {
			t.Errorf("the extra specs of %s: %d %s", id, a.status, a.text)
		}
	}
	for _, query := range []string{"limit=-1", "limit=x", "marker=x", "minRam=x", "minDisk=x"} {
		r.explained(query, r.ask(http.MethodGet, nova+"/flavors/detail?"+query, ""), http.StatusBadRequest)
	}
}

// TestZonesAreListed: the clusters that a server can be on, and each server tells
// on which it is.
func TestZonesAreListed(t *testing.T) {
	r := newRig(t)
	zones := r.ask(http.MethodGet, nova+"/os-availability-zone", "").read(r)["availabilityZoneInfo"].([]any)
	for i, name := range []string{"nova", "far"} {
		zone := zones[i].(map[string]any)
		if got := strings.Join(keys(zone), " "); got != "hosts zoneName zoneState" || zone["zoneName"] != name || zone["zoneState"].(map[string]any)["available"] != true {
			t.Errorf("zone %s: %v", name, zone)
		}
		made := r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"availability_zone": name})).read(r)["server"].(map[string]any)["id"].(string)
		if got := r.ask(http.MethodGet, nova+"/servers/"+made, "").read(r)["server"].(map[string]any)["OS-EXT-AZ:availability_zone"]; got != name {
			t.Errorf("a server in %s is shown in %v", name, got)
		}
	}
	if len(zones) != 2 {
		t.Errorf("there are %v", zones)
	}
	r.explained("their hosts", r.ask(http.MethodGet, nova+"/os-availability-zone/detail", ""), http.StatusForbidden)
}

// TestAddressesAreAskedFor as strict clients do.
func TestAddressesAreAskedFor(t *testing.T) {
	r := newRig(t)
	path := at(nova, r.create("web1")) + "/ips"
	if a := r.ask(http.MethodGet, path, ""); a.status != http.StatusOK || a.text != `{"addresses":{}}` {
		t.Errorf("%d %s", a.status, a.text)
	}
	r.explained("of a network", r.ask(http.MethodGet, path+"/private", ""), http.StatusNotFound)
	_, other := r.join("bob", "lab", "member")
	r.explained("another project's", r.ask(http.MethodGet, path, "", "X-Auth-Token", other), http.StatusNotFound)
}

// TestProgressIsToldWhileThereIsSome: and not of a server that is stopped.
func TestProgressIsToldWhileThereIsSome(t *testing.T) {
	r := newRig(t)
	s := r.create("web1")
	progress := func(root string) bool {
		_, told := r.ask(http.MethodGet, at(root, s), "").read(r)["server"].(map[string]any)["progress"]
		return told
	}
	if !progress(nova) || !progress(cyclades) {
		t.Error("a running server tells none")
	}
	r.ask(http.MethodPost, at(nova, s)+"/action", `{"os-stop":null}`)
	if r.settled(s.ID); progress(nova) || !progress(cyclades) {
		t.Error("a stopped server tells one in Nova's words, or none in those of Cyclades")
	}
}

// TestCycladesOwnAnswers: 304 when nothing changed, and 401 in its form.
func TestCycladesOwnAnswers(t *testing.T) {
	r := newRig(t)
	r.create("web1")
	if a := r.ask(http.MethodGet, cyclades+"/servers?changes-since=2999-01-01T00:00:00Z", ""); a.status != http.StatusNotModified || a.text != "" {
		t.Errorf("no news: %d %s", a.status, a.text)
	}
	if a := r.ask(http.MethodGet, cyclades+"/servers?changes-since=2001-01-01T00:00:00Z", ""); a.status != http.StatusOK {
		t.Errorf("news: %d %s", a.status, a.text)
	}
	a := r.ask(http.MethodGet, cyclades+"/servers", "", "X-Auth-Token", "")
	if r.explained("no token", a, http.StatusUnauthorized); len(keys(a.read(r)["unauthorized"])) != 3 {
		t.Errorf("no token: %s", a.text)
	}
}
