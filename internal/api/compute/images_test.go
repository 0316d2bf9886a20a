package compute_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/identity"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/state"
)

// TestImagesAreFiltered: by what they have, and by nothing else in silence.
func TestImagesAreFiltered(t *testing.T) {
	r := newRig(t)
	r.images(&cluster.Image{Meta: cluster.NewMeta("1", 3e9), Name: "c", Format: "raw", Size: 20}, &cluster.Image{Meta: cluster.NewMeta("2", 1e9), Name: "b", Format: "qcow2", Size: 30},
		&cluster.Image{Meta: cluster.NewMeta("3", 2e9), Name: "a", Format: "raw", Size: 10})
	list := func(path string) string {
		t.Helper()
		a := r.ask(http.MethodGet, path, "")
		if a.status != http.StatusOK {
			t.Errorf("%s: %d %s", path, a.status, a.text)
			return ""
		}
		var names []string
		for _, m := range a.read(r)["images"].([]any) {
			names = append(names, m.(map[string]any)["name"].(string))
		}
		return strings.Join(names, " ")
	}
	for query, want := range map[string]string{
		"": "noop a b c", "name=a": "a", "name=x": "", "id=1": "c", "id=in:1,3": "a c", "name=in:b,x": "b", `name=in:"b","c"`: "b c", "status=in:queued,saving": "", "status=active": "noop a b c", "status=queued": "", "visibility=public": "noop a b c", "visibility=private": "",
		"visibility=all": "noop a b c", "tag=x": "", "owner=x": "", "os_hidden=false": "noop a b c", "os_hidden=True": "", "protected=True": "", "disk_format=qcow2": "b",
		"disk_format=raw": "noop a c", "size_min=20": "b c", "size=20": "c", "size_max=20": "noop a c", "container_format=bare": "noop a b c", "x=": "noop a b c", "sort=name:asc": "a b c noop", "sort=name": "noop c b a",
		"sort_key=name&sort_dir=asc": "a b c noop", "sort_key=id": "noop a b c", "sort=status:asc,name:desc": "noop c b a", "sort=size:asc": "noop a c b",
		"sort_key=created_at&sort_key=id&sort_dir=asc": "noop b a c", "sort=updated_at:desc": "c a b noop", "sort=disk_format:asc,name:asc": "b a c noop",
		"marker=2": "c", "sort=name:asc&marker=3": "b c noop", "limit=0": "", "limit=2": "noop a", "limit=2&marker=3": "b c",
	} {
		if got := list("/image/v2/images?" + query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	for _, query := range []string{"size_min=x", "size=x", `name=in:"b`, "created_at=gt:2001-01-01T00:00:00Z", "sort=owner", "sort=name:up", "sort_key=nosuch", "marker=nosuch", "limit=-1"} {
		r.explained(query, r.ask(http.MethodGet, "/image/v2/images?"+query, ""), http.StatusBadRequest)
	}
	var pages []string
	for path := "/v2/images?limit=1&sort=name:asc"; path != ""; {
		page := r.ask(http.MethodGet, "/image"+path, "").read(r)
		pages = append(pages, list("/image"+path))
		path, _ = page["next"].(string)
	}
	if got := strings.Join(pages, " "); got != "a b c noop" {
		t.Errorf("in pages: %s", got)
	}
}

// images shows images of Drover's own cluster.
func (r *rig) images(all ...*cluster.Image) {
	var changes []cluster.Change
	for _, i := range all {
		changes = append(changes, cluster.Put(i))
	}
	r.inventory(changes...)
}

// inventory shows one of Drover's own cluster, of which this is all.
func (r *rig) inventory(changes ...cluster.Change) {
	r.shown.Committed(&state.Change{Inventory: cluster.Empty().With(changes...)})
	r.shown.Publish()
}

// TestServersAreMadeOfTheClustersImages: with an image that the operator added a server is made whose disk has room for it, on the cluster that
// has it; what is shown of it is what the inventory says.
func TestServersAreMadeOfTheClustersImages(t *testing.T) {
	r := newRig(t)
	const id, sum = "5b7c7f7e-1111-4c8b-9a52-0d1f6c0e5a02", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	r.images(&cluster.Image{Meta: cluster.NewMeta(id, 1764230400e9), Name: "debian13", Format: "qcow2", Size: 300 << 20, VirtualSize: 3000, SHA256: sum})
	shown := r.ask(http.MethodGet, "/image/v2/images/"+id, "")
	for _, want := range []string{`"name":"debian13"`, `"disk_format":"qcow2"`, `"min_disk":3`, `"size":314572800`, `"virtual_size":3145728000`, `"os_hash_value":"` + sum + `"`, `"created_at":"2025-11-27T08:00:00Z"`} {
		if !strings.Contains(shown.text, want) {
			t.Errorf("%s is not in %s", want, shown.text)
		}
	}
	if old := r.ask(http.MethodGet, nova+"/images/"+id, "", "X-Openstack-Nova-Api-Version", "2.35"); !strings.Contains(old.text, `"minDisk":3`) || !strings.Contains(old.text, `"created":"2025-11-27T08:00:00Z"`) {
		t.Errorf("as the Compute API once showed it: %s", old.text)
	}
	for _, c := range []struct{ flavor, zone, want string }{
		{"1", "nova", "Flavor's disk is too small for requested image. Flavor disk is 1073741824 bytes, image is 3145728000 bytes."},
		{"4", "nova", "Flavor's disk is too small"}, {"2", "far", "not available in the availability zone far"},
	} {
		a := r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"imageRef": id, "flavorRef": c.flavor, "availability_zone": c.zone}))
		if r.explained(c.want, a, http.StatusBadRequest); !strings.Contains(a.text, c.want) {
			t.Errorf("flavor %s, zone %s: %s", c.flavor, c.zone, a.text)
		}
	}
	if n := r.engine.Servers().Len(); n != 0 {
		t.Fatalf("%d servers were made", n)
	}
	a := r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"imageRef": id, "flavorRef": "2"}))
	made, _ := a.read(r)["server"].(map[string]any)["id"].(string)
	if s := r.settled(made); s == nil || s.Status() != server.Active {
		t.Fatalf("the server is %+v", s)
	}
	if asked := r.cloud.newest(); asked.Str("os_type") != "image+debian13" {
		t.Errorf("the job asks for %s", asked.Str("os_type"))
	}
	r.images() // the image is removed: its servers stay what they are
	if a := r.ask(http.MethodGet, nova+"/servers/"+made, ""); !strings.Contains(a.text, `"image":{"id":"`+id) {
		t.Errorf("its image is gone, and the server shows %s", a.text)
	}
}

// old are the headers of the Compute API as it still had images.
var old = []string{"X-Openstack-Nova-Api-Version", "2.35"}

// TestImagesOverTheComputeAPI: lists, pages, properties and deletion as older tools know them, and no longer where the API has given them up.
func TestImagesOverTheComputeAPI(t *testing.T) {
	r := newRig(t)
	r.images(&cluster.Image{Meta: cluster.NewMeta("1", 3e9), Name: "c", Format: "raw", Size: 20})
	id := r.told(`{"name":"mine","disk_format":"raw","container_format":"bare","min_ram":64,"instance_uuid":"s1","image_type":"snapshot"}`)
	queued := r.told(`{"name":"queued"}`)
	at := nova + "/images/" + id
	r.status(http.StatusNoContent, http.MethodPut, glance+"/"+id+"/file", "content", r.token, file...)
	list := func(query string) string {
		t.Helper()
		var names []string
		for _, m := range r.status(http.StatusOK, http.MethodGet, nova+"/images/detail?"+query, "", r.token, old...).read(r)["images"].([]any) {
			m := m.(map[string]any)
			names = append(names, m["name"].(string)+" "+m["status"].(string))
		}
		return strings.Join(names, ", ")
	}
	const all = "noop ACTIVE, c ACTIVE, mine ACTIVE, queued SAVING"
	for query, want := range map[string]string{
		"": all, "name=mine": "mine ACTIVE", "status=saving": "queued SAVING", "minRam=64": "mine ACTIVE", "minDisk=1": "", "server=s1": "mine ACTIVE", "server=http://x/servers/s1": "mine ACTIVE",
		"type=snapshot": "mine ACTIVE", "property-image_type=snapshot": "mine ACTIVE", "changes-since=2999-01-01": "", "changes-since=1970-01-01&name=c": "c ACTIVE", "limit=1": "noop ACTIVE", "limit=0": "",
		"marker=" + id: "queued SAVING", "x=": all,
	} {
		if got := list(query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	for _, query := range []string{"x=1", "limit=x", "marker=nosuch", "minRam=x", "minRam=x&name=nosuch", "changes-since=yesterday", "name=nosuch&changes-since=yesterday"} {
		r.explained(query, r.ask(http.MethodGet, nova+"/images?"+query, "", old...), http.StatusBadRequest)
	}
	next := r.status(http.StatusOK, http.MethodGet, nova+"/images?limit=2", "", r.token, old...)
	if !strings.Contains(next.text, nova+"/images?limit=2\\u0026marker=1") && !strings.Contains(next.text, nova+"/images?limit=2&marker=1") {
		t.Errorf("the next page is told as %s", next.text)
	}
	items := func(want string) {
		t.Helper()
		if a := r.status(http.StatusOK, http.MethodGet, at+"/metadata", "", r.token, old...); strings.TrimSpace(a.text) != want {
			t.Errorf("properties are %s, want %s", a.text, want)
		}
	}
	items(`{"metadata":{"image_type":"snapshot","instance_uuid":"s1"}}`)
	r.status(http.StatusOK, http.MethodPut, at+"/metadata", `{"metadata":{"a":"1"}}`, r.token, old...)
	r.status(http.StatusOK, http.MethodPost, at+"/metadata", `{"metadata":{"b":"2"}}`, r.token, old...)
	r.status(http.StatusOK, http.MethodPut, at+"/metadata/c", `{"meta":{"c":"3"}}`, r.token, old...)
	items(`{"metadata":{"a":"1","b":"2","c":"3"}}`)
	if a := r.status(http.StatusOK, http.MethodGet, at+"/metadata/c", "", r.token, old...); strings.TrimSpace(a.text) != `{"meta":{"c":"3"}}` {
		t.Error(a.text)
	}
	r.status(http.StatusNoContent, http.MethodDelete, at+"/metadata/a", "", r.token, old...)
	r.status(http.StatusNotFound, http.MethodDelete, at+"/metadata/a", "", r.token, old...)
	r.status(http.StatusNotFound, http.MethodGet, at+"/metadata/a", "", r.token, old...)
	r.status(http.StatusBadRequest, http.MethodPut, at+"/metadata/c", `{"meta":{"d":"3"}}`, r.token, old...)
	for _, key := range []string{"name", "size", "id", "hw_disk_bus"} { // the Image API's own, and what would do something
		r.status(http.StatusForbidden, http.MethodPost, at+"/metadata", `{"metadata":{"`+key+`":"2"}}`, r.token, old...)
	}
	r.status(http.StatusForbidden, http.MethodPost, nova+"/images/1/metadata", `{"metadata":{"b":"2"}}`, r.token, old...) // the operator's
	items(`{"metadata":{"b":"2","c":"3"}}`)
	newer := []string{"X-Openstack-Nova-Api-Version", "2.39"}
	for _, asked := range [][2]string{{http.MethodGet, ""}, {http.MethodDelete, ""}, {http.MethodGet, "/metadata"}, {http.MethodDelete, "/metadata/b"}, {http.MethodGet, "/metadata/b"}} {
		r.status(http.StatusNotFound, asked[0], at+asked[1], "", r.token, newer...)
	}
	_, bob := r.join("bob", "lab", identity.Member)
	r.status(http.StatusNotFound, http.MethodDelete, at, "", bob, old...)
	r.status(http.StatusNotFound, http.MethodGet, at+"/metadata", "", bob, old...)
	r.status(http.StatusForbidden, http.MethodDelete, nova+"/images/1", "", r.token, old...)
	r.status(http.StatusNoContent, http.MethodDelete, at, "", r.token, old...)
	r.status(http.StatusNotFound, http.MethodDelete, at, "", r.token, old...)
	r.status(http.StatusOK, http.MethodGet, nova+"/images/"+queued, "", r.token, old...)
}
