package compute_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
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
		"": "noop a b c", "name=a": "a", "name=x": "", "id=1": "c", "status=active": "noop a b c", "status=queued": "", "visibility=public": "noop a b c", "visibility=private": "",
		"visibility=all": "noop a b c", "tag=x": "", "owner=x": "", "os_hidden=false": "noop a b c", "os_hidden=True": "", "protected=True": "", "disk_format=qcow2": "b",
		"disk_format=raw": "noop a c", "size_min=20": "b c", "size_max=20": "noop a c", "container_format=bare": "noop a b c", "x=": "noop a b c", "sort=name:asc": "a b c noop", "sort=name": "noop c b a",
		"sort_key=name&sort_dir=asc": "a b c noop", "sort_key=id": "noop a b c", "sort=status:asc,name:desc": "noop c b a", "sort=size:asc": "noop a c b",
		"sort_key=created_at&sort_key=id&sort_dir=asc": "noop b a c", "sort=updated_at:desc": "c a b noop", "sort=disk_format:asc,name:asc": "b a c noop",
		"marker=2": "c", "sort=name:asc&marker=3": "b c noop", "limit=0": "", "limit=2": "noop a", "limit=2&marker=3": "b c",
	} {
		if got := list("/image/v2/images?" + query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	for _, query := range []string{"size_min=x", "created_at=gt:2001-01-01T00:00:00Z", "sort=owner", "sort=name:up", "sort_key=nosuch", "marker=nosuch", "limit=-1"} {
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
	now := cluster.Empty()
	for _, i := range all {
		now = now.With(cluster.Put(i))
	}
	r.shown.Committed(&state.Change{Inventory: now})
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
