package compute_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// items are so many items of metadata, as JSON.
func items(n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(`"key%d":""`, i)
	}
	return strings.Join(out, ",")
}

func TestMetadata(t *testing.T) {
	r := newRig(t)
	s := r.create("web")
	for _, root := range []string{nova, cyclades} {
		changed := map[string]int{nova: http.StatusOK, cyclades: http.StatusCreated}[root]
		path := at(root, s) + "/metadata"
		for _, c := range []struct {
			method, below, body string
			status              int
			answer              string
		}{
			{"PUT", "", `{"metadata":{"a":"1","b":"2"}}`, changed, `{"metadata":{"a":"1","b":"2"}}`},
			{"POST", "", `{"metadata":{"b":"3","c":"ν"}}`, changed, `{"metadata":{"a":"1","b":"3","c":"ν"}}`},
			{"GET", "", "", http.StatusOK, `{"metadata":{"a":"1","b":"3","c":"ν"}}`},
			{"GET", "/b", "", http.StatusOK, `{"meta":{"b":"3"}}`},
			{"PUT", "/b", `{"meta":{"b":"4"}}`, changed, `{"meta":{"b":"4"}}`},
			{"DELETE", "/a", "", http.StatusNoContent, ""},
			{"PUT", "/b", `{"meta":{"c":"4"}}`, http.StatusBadRequest, ""},
			{"PUT", "/b", `{"meta":{"b":"4","c":"4"}}`, http.StatusBadRequest, ""},
			{"PUT", "/b", `{"meta":{"b":4}}`, http.StatusBadRequest, ""},
			{"POST", "", `{"meta":{"b":"4"}}`, http.StatusBadRequest, ""},
			{"POST", "", `{"metadata":{"":"4"}}`, http.StatusBadRequest, ""},
			{"POST", "", `{"metadata":{"b":"` + strings.Repeat("x", 256) + `"}}`, http.StatusBadRequest, ""},
			{"POST", "", `{"metadata":{"n":null}}`, http.StatusBadRequest, ""},
			{"PUT", "", `{"metadata":{"n":null}}`, http.StatusBadRequest, ""},
			{"PUT", "/b", `{"meta":{"b":null}}`, http.StatusBadRequest, ""},
			{"GET", "/a", "", http.StatusNotFound, ""},
			{"DELETE", "/a", "", http.StatusNotFound, ""},
			{"GET", "", "", http.StatusOK, `{"metadata":{"b":"4","c":"ν"}}`},
		} {
			a := r.ask(c.method, path+c.below, c.body)
			switch {
			case c.status >= http.StatusBadRequest:
				r.explained(c.method+" "+c.below+" "+c.body, a, c.status)
			case a.status != c.status || a.text != c.answer:
				t.Errorf("%s %s %s: %d %s, want %d %s", c.method, path+c.below, c.body, a.status, a.text, c.status, c.answer)
			}
		}
	}
	if got := r.engine.Servers().Get(s.ID).Metadata; len(got) != 2 || got["b"] != "4" {
		t.Errorf("stored is %v", got)
	}
	for root, status := range map[string]int{nova: http.StatusForbidden, cyclades: http.StatusBadRequest} {
		r.explained("129 items in "+root, r.ask("POST", at(root, s)+"/metadata", `{"metadata":{`+items(127)+`}}`), status)
		r.explained("a server with none for a value in "+root, r.ask("POST", root+"/servers", with(r.creationOf(nil), "metadata", `{"n":null}`)), http.StatusBadRequest)
		r.explained("a server with 129 items in "+root, r.ask("POST", root+"/servers", with(r.creationOf(nil), "metadata", `{`+items(129)+`}`)), status)
	}
	_, other := r.join("bob", "lab", "member")
	r.explained("another project's", r.ask("POST", at(nova, s)+"/metadata", `{"metadata":{"b":"5"}}`, "X-Auth-Token", other), http.StatusNotFound)
}

// TestMetadataOverALimitBecomesLess: of more items than a limit has room for that was set later, each can be changed and taken away, and none added.
func TestMetadataOverALimitBecomesLess(t *testing.T) {
	r := newRig(t)
	s := r.create("web")
	path := at(nova, s) + "/metadata"
	r.ask("PUT", path, `{"metadata":{"a":"1","b":"2","c":"3","d":"4"}}`)
	r.limit(`{"metadata_items":2}`)
	for _, c := range []struct {
		method, below, body string
		status              int
	}{
		{"PUT", "/a", `{"meta":{"a":"5"}}`, http.StatusOK},
		{"POST", "", `{"metadata":{"b":"6"}}`, http.StatusOK},
		{"PUT", "/e", `{"meta":{"e":"7"}}`, http.StatusForbidden},
		{"DELETE", "/d", "", http.StatusNoContent},
		{"PUT", "/d", `{"meta":{"d":"8"}}`, http.StatusForbidden},
		{"DELETE", "/c", "", http.StatusNoContent},
		{"DELETE", "/b", "", http.StatusNoContent},
		{"PUT", "/f", `{"meta":{"f":"9"}}`, http.StatusOK},
	} {
		if a := r.ask(c.method, path+c.below, c.body); a.status != c.status {
			t.Errorf("%s %s %s: %d %s, want %d", c.method, c.below, c.body, a.status, a.text, c.status)
		}
	}
	if got := r.engine.Servers().Get(s.ID).Metadata; len(got) != 2 || got["a"] != "5" || got["f"] != "9" {
		t.Errorf("stored is %v", got)
	}
}
