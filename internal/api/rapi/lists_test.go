package rapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A long list, which is sent in pieces, is the objects as each is by itself.
func TestBulkListIsItsObjects(t *testing.T) {
	r := newRig(t, rigOptions{})
	var objects []string
	for k := range 80 {
		name := fmt.Sprintf("web%d.gntpeer.example", k)
		r.create(name)
		objects = append(objects, strings.TrimSuffix(r.do(http.MethodGet, "/2/instances/"+name, nil).text, "\n"))
	}
	got := r.do(http.MethodGet, "/2/instances?bulk=1", nil).text
	if want := "[" + strings.Join(objects, ",") + "]\n"; got != want || len(want) < 64<<10 {
		t.Errorf("%d bytes: %.300s\nwant %d: %.300s", len(got), got, len(want), want)
	}
}

// The columns of an answer are those that were asked for, one without a name among them.
func TestFieldsWithoutANameAreColumns(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.create("web1.gntpeer.example")
	for path, want := range map[string]string{
		"/2/query/instance?fields=,%20name": `"data":[[[1,null],[0,"web1.gntpeer.example"]]]`,
		"/2/query/instance?fields=,":        `"data":[[[1,null],[1,null]]]`,
		"/2/query/instance/fields?fields=,": `"fields":[{"name":"","title":"","kind":"unknown"`,
	} {
		if got := r.do(http.MethodGet, path, nil); got.status != http.StatusOK || !strings.Contains(got.text, want) {
			t.Errorf("%s: %d %.300s", path, got.status, got.text)
		}
	}
}
