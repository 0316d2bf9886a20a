package compute_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/server"
)

// TestImagesAreFiltered: by what they have, and by nothing else in silence.
func TestImagesAreFiltered(t *testing.T) {
	r := newRig(t)
	images := &r.engine.Catalogue().Images
	*images = []server.Image{{ID: "2", Name: "b"}, {ID: "1", Name: "c"}, {ID: "3", Name: "a"}}
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
		"": "b c a", "name=a": "a", "name=x": "", "id=1": "c", "status=active": "b c a", "status=queued": "", "visibility=public": "b c a", "visibility=private": "", "visibility=all": "b c a",
		"tag=x": "", "owner=x": "", "os_hidden=false": "b c a", "os_hidden=True": "", "protected=True": "", "disk_format=qcow2": "", "container_format=bare": "b c a", "x=": "b c a",
		"sort=name:asc": "a b c", "sort=name": "c b a", "sort_key=name&sort_dir=asc": "a b c", "sort_key=id": "a b c", "sort=status:asc,name:desc": "c b a", "sort_key=created_at&sort_key=id&sort_dir=asc": "c b a",
		"marker=2": "c a", "sort=name:asc&marker=3": "b c", "limit=0": "", "limit=2": "b c", "limit=2&marker=1": "a",
	} {
		if got := list("/image/v2/images?" + query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	for _, query := range []string{"size_min=1", "created_at=gt:2001-01-01T00:00:00Z", "sort=owner", "sort=name:up", "sort_key=nosuch", "marker=nosuch", "limit=-1"} {
		r.explained(query, r.ask(http.MethodGet, "/image/v2/images?"+query, ""), http.StatusBadRequest)
	}
	var pages []string
	for path := "/v2/images?limit=1&sort=name:asc"; path != ""; {
		page := r.ask(http.MethodGet, "/image"+path, "").read(r)
		pages = append(pages, list("/image"+path))
		path, _ = page["next"].(string)
	}
	if got := strings.Join(pages, " "); got != "a b c" {
		t.Errorf("in pages: %s", got)
	}
}
