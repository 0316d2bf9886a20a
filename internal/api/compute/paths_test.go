package compute_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// TestPathsReachNothingElse sends what URLs and their cleaning make dangerous.
// One of these deletes the server where paths are cleaned.
func TestPathsReachNothingElse(t *testing.T) {
	r := newRig(t)
	s := r.create("web1", "t1")
	other := r.create("web2", "t2")
	const none = 0 // no such resource: 404, which Cyclades says as 400
	for _, c := range []struct {
		below            string
		put, get, delete int
	}{
		{"/tags/..", 400, 404, 404},
		{"/tags/.", 400, 404, 404},
		{"/tags/%2E%2E", 400, 404, 404},
		{"/tags/%2e", 400, 404, 404},
		{"/tags/%2e%2E", 400, 404, 404},
		{"/tags/a%2Fb", 400, 404, 404},
		{"/tags/%2F", 400, 404, 404},
		{"/tags/..%2F", 400, 404, 404},
		{"/tags/%2E%2E%2F..", 400, 404, 404},
		{"/tags/%00", 400, 404, 404},
		{"/tags/t1%00", 400, 404, 404},
		{"/tags/t1%0A", 400, 404, 404},
		{"/tags/%FF", 400, 400, 400},
		{"/tags/%C0%AE%C0%AE", 400, 400, 400},
		{"/tags/a,b", 400, 404, 404},
		{"/tags/a%2Cb", 400, 404, 404},
		{"/tags/a/b", none, none, none},
		{"/tags/x/..", none, none, none},
		{"/tags/t1/..", none, none, none},
		{"/tags/t1/", none, none, none},
		{"/tags/t1//", none, none, none},
		{"/tags/", none, none, none},
		{"/tags//", none, none, none},
		{"/tags//t1", none, none, none},
		{"/tags%2Ft1", none, none, none},
		{"%2Ftags%2Ft1", 404, 404, 404},
		{"/./tags/t1", none, none, none},
		{"/tags/../tags/t1", none, none, none},
		{"/../" + s.ID, none, none, none},
		{"/%2E%2E/" + s.ID, none, none, none},
		{"/tags;x/t1", none, none, none},
		{"/tags.json", none, none, none},
		{"/tags.json/t1", none, none, none},
		{"/", none, none, none},
		{"//", none, none, none},
		{"/..", none, none, none},
		{"/.", none, none, none},
		{".json", 404, 404, 404},
		{".xml", 404, 404, 404},
		{"%2F", 404, 404, 404},
		{"%20", 404, 404, 404},
		{"%00", 404, 404, 404},
	} {
		for method, want := range map[string]int{http.MethodPut: c.put, http.MethodGet: c.get, http.MethodDelete: c.delete} {
			for _, root := range []string{nova, cyclades} {
				status, body := want, ""
				if want == none {
					status = map[string]int{nova: 404, cyclades: 400}[root]
				}
				if method == http.MethodPut && want != none && len(c.below) < 6 {
					body = `{"server":{"name":"x"}}`
				}
				a := r.ask(method, at(root, s)+c.below, body)
				r.explained(method+" "+root+c.below, a, status)
				if location := a.header.Get("Location"); location != "" {
					t.Errorf("%s %s%s leads to %s", method, root, c.below, location)
				}
				r.wants(s.ID, "t1")
				r.wants(other.ID, "t2")
			}
		}
	}
}

// TestAServerHasOneNumber: no other way to write it, and a path may name the token's project before it, and no other.
func TestAServerHasOneNumber(t *testing.T) {
	r := newRig(t)
	s := r.create("web1")
	number := strconv.FormatInt(s.Number, 10)
	for id, want := range map[string]int{number: 200, "0" + number: 404, "+" + number: 404, "-" + number: 404, number + ".0": 404, "0x" + number: 404, "%20" + number: 404} {
		if a := r.ask(http.MethodGet, cyclades+"/servers/"+id, ""); a.status != want {
			t.Errorf("%s: %d %s", id, a.status, a.text)
		}
	}
	other, _ := r.join("bob", "lab", "member")
	for project, want := range map[string]int{r.home.ID: 200, other.ID: 404, strings.Repeat("0", len(r.home.ID)): 404} {
		if a := r.ask(http.MethodGet, nova+"/"+project+"/servers/"+s.ID, ""); a.status != want {
			t.Errorf("below project %s: %d %s", project, a.status, a.text)
		}
	}
}

// TestEndingsBelongToTheName: ".json" at the end of a tag is a part of it.
func TestEndingsBelongToTheName(t *testing.T) {
	r := newRig(t)
	s := r.create("web1", "t1")
	for _, root := range []string{nova, cyclades} {
		for _, name := range []string{"t1.json", "t1.xml", "node-json", "...", "a..b", "a;b", "a=b", "a::b", "100%25", "x%3Fy", "h%23h", "p%2520q", "a+b", "%CE%BD"} {
			path := at(root, s) + "/tags/" + name
			for i, c := range []struct {
				method string
				status int
			}{
				{http.MethodGet, 404}, {http.MethodDelete, 404}, {http.MethodPut, 201}, {http.MethodPut, 204},
				{http.MethodGet, 204}, {http.MethodDelete, 204}, {http.MethodDelete, 404},
			} {
				if a := r.ask(c.method, path, ""); a.status != c.status {
					t.Errorf("step %d: %s %s: %d %s", i, c.method, path, a.status, a.text)
				}
			}
			r.wants(s.ID, "t1")
		}
	}
}
