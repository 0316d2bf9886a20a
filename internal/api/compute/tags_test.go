package compute_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/server"
)

// quoted is a JSON list of so many different tags.
func quoted(count int) string {
	names := make([]string, count)
	for i := range names {
		names[i] = strconv.Quote("n" + strconv.Itoa(i))
	}
	return `{"tags":[` + strings.Join(names, ",") + `]}`
}

func TestBadTagsChangeNothing(t *testing.T) {
	r := newRig(t)
	s := r.create("web1", "t1", "high-availability")
	for what, c := range map[string]struct {
		body   string
		status int
	}{
		"no list":             {`{"tags":"a"}`, 400},
		"null":                {`{"tags":null}`, 400},
		"a null in the list":  {`{"tags":["a",null]}`, 400},
		"a number":            {`{"tags":[1]}`, 400},
		"a list":              {`{"tags":[["a"]]}`, 400},
		"no key":              {`{}`, 400},
		"another key":         {`{"tags":["a"],"x":1}`, 400},
		"a list as body":      {`["a"]`, 400},
		"null as body":        {`null`, 400},
		"no body":             {``, 400},
		"no JSON":             {`{"tags":["a"`, 400},
		"two bodies":          {`{"tags":["a"]}{"tags":["b"]}`, 400},
		"an empty tag":        {`{"tags":["a",""]}`, 400},
		"a comma":             {`{"tags":["a,b"]}`, 400},
		"a slash":             {`{"tags":["a/b"]}`, 400},
		"dots":                {`{"tags":[".."]}`, 400},
		"NUL":                 {`{"tags":["a\u0000"]}`, 400},
		"a control character": {`{"tags":["a\nb"]}`, 400},
		"a raw control":       {"{\"tags\":[\"a\nb\"]}", 400},
		"61 letters":          {`{"tags":["` + strings.Repeat("x", 61) + `"]}`, 400},
		"too long on cluster": {`{"tags":["` + strings.Repeat("γ", 20) + `"]}`, 400},
		"51 tags":             {quoted(51), 400},
		"51 times one tag":    {`{"tags":["a"` + strings.Repeat(`,"a"`, 50) + `]}`, 400},
		"half a letter":       {`{"tags":["\ud83d"]}`, 400},
		"halves turned round": {`{"tags":["\ude42\ud83d"]}`, 400},
		"no UTF-8":            {"{\"tags\":[\"\xff\"]}", 400},
		"both of a group":     {`{"tags":["high-availability","high-performance"]}`, 400},
		"10 MB":               {`{"tags":["` + strings.Repeat("x", 10<<20) + `"]}`, 413},
		"too many values":     {`{"tags":[` + strings.Repeat("1,", 100_000) + `1]}`, 413},
		"deep":                {`{"tags":` + strings.Repeat("[", 4000) + strings.Repeat("]", 4000) + `}`, 400},
	} {
		for _, root := range []string{nova, cyclades} {
			r.explained(what+" "+root, r.ask(http.MethodPut, at(root, s)+"/tags", c.body), c.status)
			r.wants(s.ID, "high-availability", "t1")
		}
	}
	a := r.ask(http.MethodPut, at(nova, s)+"/tags", `{"tags":["a"]}`, "Content-Type", "text/plain")
	r.explained("text", a, http.StatusUnsupportedMediaType)
	a = r.ask(http.MethodPut, at(cyclades, s)+"/tags", `{"tags":["a"]}`, "Content-Type", "text/plain")
	r.explained("text", a, http.StatusBadRequest)
	r.explained("a body with one tag", r.ask(http.MethodPut, at(nova, s)+"/tags/a", `{}`), http.StatusBadRequest)
	r.explained("10 MB with one tag", r.ask(http.MethodPut, at(nova, s)+"/tags/a", strings.Repeat("x", 10<<20)), http.StatusRequestEntityTooLarge)
	a = r.ask(http.MethodPut, at(nova, s)+"/tags/high-performance", "")
	if r.explained("a clash", a, http.StatusConflict); !strings.Contains(a.text, "'high-availability' is on the server already and stays") {
		t.Errorf("a clash: %s", a.text)
	}
	r.wants(s.ID, "high-availability", "t1")
}

func TestTheLimitOfTags(t *testing.T) {
	r := newRig(t)
	s := r.create("web1")
	if a := r.ask(http.MethodPut, at(nova, s)+"/tags", quoted(50)); a.status != http.StatusOK {
		t.Fatalf("50 tags: %d %s", a.status, a.text)
	}
	r.explained("the 51st", r.ask(http.MethodPut, at(nova, s)+"/tags/one-more", ""), http.StatusBadRequest)
	if a := r.ask(http.MethodPut, at(nova, s)+"/tags/n0", ""); a.status != http.StatusNoContent {
		t.Errorf("one that is there: %d %s", a.status, a.text)
	}
	absolute := r.ask(http.MethodGet, cyclades+"/limits", "").read(r)["limits"].(map[string]any)["absolute"].(map[string]any)
	if absolute["maxServerTags"] != 50.0 || absolute["maxServerTagLength"] != 60.0 {
		t.Errorf("the limits are %v", absolute)
	}
}

// strings reads a list of an answer.
func (a answer) strings(r *rig, key string) []string {
	r.Helper()
	list, ok := a.read(r)[key].([]any)
	if !ok {
		r.Fatalf("there is no list %s in %s", key, a.text)
	}
	out := []string{}
	for _, v := range list {
		out = append(out, v.(string))
	}
	return out
}

// TestTagsInBothFlavours goes through all calls about tags.
func TestTagsInBothFlavours(t *testing.T) {
	for _, root := range []string{nova, cyclades} {
		t.Run(root, func(t *testing.T) {
			r := newRig(t)
			s := r.create("web1")
			tags := at(root, s) + "/tags"
			list := func(want ...string) {
				t.Helper()
				a := r.ask(http.MethodGet, tags, "")
				if got := a.strings(r, "tags"); a.status != http.StatusOK || !slices.Equal(got, append([]string{}, want...)) {
					t.Errorf("the tags are %q, want %q", got, want)
				}
				body := a.read(r)
				if _, has := body["statuses"]; has != (root == cyclades) || len(body) > 2 {
					t.Errorf("the body is %s", a.text)
				}
			}
			bare := func(method, below string, status int) answer {
				t.Helper()
				a := r.ask(method, tags+below, "")
				if a.status != status || a.text != "" {
					t.Errorf("%s %s: %d %q, want %d", method, below, a.status, a.text, status)
				}
				return a
			}
			list()
			if a := bare(http.MethodPut, "/a%20b", 201); a.header.Get("Location") != "http://example.com"+at(root, s)+"/tags/a%20b" {
				t.Errorf("it is at %s", a.header.Get("Location"))
			}
			bare(http.MethodPut, "/a%20b", 204)
			if a := bare(http.MethodGet, "/a%20b", 204); a.header.Get("Tag-Status") == "" {
				t.Error("the status of the tag is not told")
			}
			list("a b")
			bare(http.MethodDelete, "/a%20b", 204)
			r.explained("gone", r.ask(http.MethodDelete, tags+"/a%20b", ""), 404)
			r.explained("gone", r.ask(http.MethodGet, tags+"/a%20b", ""), 404)
			a := r.ask(http.MethodPut, tags, `{"tags":["b","a","b","γ"]}`)
			if got := a.strings(r, "tags"); a.status != http.StatusOK || !slices.Equal(got, []string{"a", "b", "γ"}) {
				t.Errorf("replaced: %d %s", a.status, a.text)
			}
			r.settled(s.ID)
			a = r.ask(http.MethodGet, tags, "")
			if root == cyclades && !slices.Equal(a.strings(r, "statuses"), []string{"ACTIVE", "ACTIVE", "ACTIVE"}) {
				t.Errorf("at rest: %s", a.text)
			}
			list("a", "b", "γ")
			bare(http.MethodDelete, "", 204)
			bare(http.MethodDelete, "", 204)
			list()
			r.explained("method", r.ask(http.MethodPost, tags, "{}"), map[string]int{nova: 404, cyclades: 405}[root])
		})
	}
}

// TestTagsOfServersThatAreNotThere: reads go on, writes say what is wrong.
func TestTagsOfServersThatAreNotThere(t *testing.T) {
	r := newRig(t)
	s := r.create("web1", "a")
	r.cloud.remove(s.Instance)
	s = r.until(s.ID, "is deleted", func(s *server.Server) bool { return s.Status() == server.Gone })
	if a := r.ask(http.MethodGet, at(nova, s), ""); a.status != http.StatusOK || !strings.Contains(a.text, `"status":"DELETED"`) {
		t.Errorf("showing it: %d %s", a.status, a.text)
	}
	r.explained("nova", r.ask(http.MethodPut, at(nova, s)+"/tags/b", ""), http.StatusConflict)
	r.explained("cyclades", r.ask(http.MethodPut, at(cyclades, s)+"/tags/b", ""), http.StatusBadRequest)
	if a := r.ask(http.MethodGet, at(nova, s)+"/tags", ""); a.status != http.StatusOK {
		t.Errorf("listing its tags: %d %s", a.status, a.text)
	}
	const unknown = nova + "/servers/9c0f6a1e-0000-4000-8000-000000000000"
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		r.explained("unknown", r.ask(method, unknown+"/tags/b", ""), http.StatusNotFound)
		r.explained("unknown", r.ask(method, cyclades+"/servers/999/tags/b", ""), http.StatusNotFound)
		r.explained("no id", r.ask(method, nova+"/servers/web1/tags/b", ""), http.StatusNotFound)
	}
}
