package compute_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/identity"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/tagsync"
	"github.com/drover-project/drover/internal/testkit"
)

func TestWhoMay(t *testing.T) {
	r := newRig(t)
	s := r.create("web1", "t1")
	_, stranger := r.join("mallory", "elsewhere", identity.Admin)
	_, reader := r.join("rita", "reading", identity.Reader)
	check := func(what, token string, status int, methods ...string) {
		t.Helper()
		for _, method := range methods {
			for _, root := range []string{nova, cyclades} {
				for _, below := range []string{"", "/tags", "/tags/t1"} {
					r.explained(what+" "+method+" "+below, r.ask(method, at(root, s)+below, `{"tags":[]}`, "X-Auth-Token", token), status)
				}
			}
		}
		r.wants(s.ID, "t1")
	}
	all := []string{http.MethodGet, http.MethodPut, http.MethodDelete}
	check("no token", "", http.StatusUnauthorized, all...)
	check("someone else's", stranger, http.StatusNotFound, all...)
	check("a reader's write", reader, http.StatusForbidden, http.MethodPut, http.MethodDelete)
	if a := r.ask(http.MethodGet, nova+"/servers", "", "X-Auth-Token", stranger); a.status != http.StatusOK || len(a.read(r)["servers"].([]any)) != 0 {
		t.Errorf("a stranger lists %d %s", a.status, a.text)
	}
	if a := r.ask(http.MethodGet, nova+"/flavors", "", "X-Auth-Token", reader); a.status != http.StatusOK {
		t.Errorf("a reader reads: %d %s", a.status, a.text)
	}
	for _, all := range []string{"=True", "=1", "=yes", "=On", "=", ""} {
		r.explained("all projects "+all, r.ask(http.MethodGet, nova+"/servers?all_tenants"+all, "", "X-Auth-Token", stranger), http.StatusForbidden)
	}
	r.explained("a wrong token", r.ask(http.MethodGet, nova+"/servers", "", "X-Auth-Token", "gAAAA-wrong"), http.StatusUnauthorized)
	r.clock.Lock()
	r.clock.ahead = identity.TokenLife
	r.clock.Unlock()
	r.explained("an expired token", r.ask(http.MethodGet, nova+"/servers", ""), http.StatusUnauthorized)
	for _, secret := range []string{stranger, reader, r.token, "gAAAA-wrong", "opensesame"} {
		if strings.Contains(r.log.String(), secret) {
			t.Errorf("a token or password is in the log: %s", secret)
		}
	}
}

func TestMicroversions(t *testing.T) {
	r := newRig(t)
	s := r.create("web1", "t1")
	const long, short = "Openstack-Api-Version", "X-Openstack-Nova-Api-Version"
	for _, c := range []struct {
		headers []string
		status  int
		served  string
		tags    int // the status of listing tags
	}{
		{[]string{short, ""}, 200, "2.1", 200}, // some clients name none with tags
		{[]string{short, "2.1"}, 200, "2.1", 404},
		{[]string{short, "2.25"}, 200, "2.25", 404},
		{[]string{short, "2.26"}, 200, "2.26", 200},
		{[]string{short, "", long, "compute 2.26"}, 200, "2.26", 200},
		{[]string{short, "2.1", long, "compute 2.52"}, 200, "2.52", 200},
		{[]string{short, "", long, "identity 3.1, compute 2.52"}, 200, "2.52", 200},
		{[]string{short, "", long, "volume 3.0"}, 200, "2.1", 200},
		{[]string{short, "latest"}, 200, newest, 200},
		{[]string{short, "", long, "compute latest"}, 200, newest, 200},
		{[]string{short, "3.9"}, 406, "2.1", 406},
		{[]string{short, "2.9999"}, 406, "2.1", 406},
		{[]string{short, "2.0"}, 406, "2.1", 406},
		{[]string{short, "", long, "compute 1.1"}, 406, "2.1", 406},
		{[]string{short, "2"}, 400, "2.1", 400},
		{[]string{short, "two.one"}, 400, "2.1", 400},
		{[]string{short, "2.026"}, 400, "2.1", 400},
		{[]string{short, "", long, "compute x"}, 400, "2.1", 400},
	} {
		a := r.ask(http.MethodGet, at(nova, s), "", c.headers...)
		if a.status != c.status || a.header.Get(short) != c.served || a.header.Get(long) != "compute "+c.served || a.header.Get("Vary") == "" {
			t.Errorf("%q: %d %v %s", c.headers, a.status, a.header, a.text)
		}
		if c.status != http.StatusOK {
			r.explained("bad version", a, c.status)
		}
		if a := r.ask(http.MethodGet, at(nova, s)+"/tags", "", c.headers...); a.status != c.tags {
			t.Errorf("%q: tags %d %s", c.headers, a.status, a.text)
		}
		if a := r.ask(http.MethodGet, at(cyclades, s)+"/tags", "", c.headers...); a.status != http.StatusOK || a.header.Get(short) != "" {
			t.Errorf("%q: Cyclades looks at it: %d", c.headers, a.status)
		}
	}
}

func TestVersionDocumentsNeedNoToken(t *testing.T) {
	r := newRig(t)
	for path, want := range map[string]string{
		"/compute": `"version":"` + newest + `"`, "/compute/": `"min_version":"2.1"`, nova: `"version":"` + newest + `"`, nova + "/": `"min_version":"2.1"`,
		cyclades: `"id":"v2.0"`, cyclades + "/": `"id":"v2.0"`, "/image": `"versions"`, "/image/v2": `"versions"`,
	} {
		if a := r.ask(http.MethodGet, path, "", "X-Auth-Token", ""); a.status/100 > 3 || !strings.Contains(a.text, want) {
			t.Errorf("%s: %d %s", path, a.status, a.text)
		}
	}
}

func TestBadServersAreNotMade(t *testing.T) {
	r := newRig(t)
	for what, more := range map[string]map[string]any{
		"no name": {"name": ""}, "a number as name": {"name": 1}, "a long name": {"name": strings.Repeat("x", 256)}, "NUL": {"name": "a\x00"},
		"blanks": {"name": " a"}, "no flavor": {"flavorRef": ""}, "unknown flavor": {"flavorRef": "99"}, "unknown image": {"imageRef": "x"},
		"no image": {"imageRef": nil}, "no networks": {"networks": nil}, "bad networks": {"networks": "some"}, "none": {"min_count": 0}, "half a server": {"max_count": 1.5},
		"too many": {"max_count": 101}, "fewer than asked for": {"min_count": 3, "max_count": 2}, "a name that grows too long": {"min_count": 10, "name": strings.Repeat("x", 253)},
		"a reservation": {"min_count": 2, "return_reservation_id": true},
		"tags":          {"tags": "a"}, "a bad tag": {"tags": []string{"a", "b/c"}}, "a long tag": {"tags": []string{strings.Repeat("日", 13)}},
		"clash":         {"tags": []string{"high-availability", "high-performance"}},
		"51 tags":       {"tags": slices.Repeat([]string{"a"}, 51)},
		"user data":     {"user_data": "IyEvYmluL3No"},
		"a key":         {"key_name": "mine"},
		"personality":   {"personality": []any{map[string]string{"path": "/etc/x", "contents": ""}}},
		"bad metadata":  {"metadata": map[string]any{"a": 1}},
		"long metadata": {"metadata": map[string]any{"a": strings.Repeat("x", 256)}},
		"description":   {"description": strings.Repeat("x", 256)},
	} {
		r.explained(what, r.ask(http.MethodPost, nova+"/servers", r.creationOf(more)), http.StatusBadRequest)
	}
	for what, body := range map[string]string{"nothing": "", "null": "null", "no server": "{}", "a list": "[]", "a server of null": `{"server":null}`} {
		r.explained(what, r.ask(http.MethodPost, nova+"/servers", body), http.StatusBadRequest)
	}
	r.explained("tags below 2.52", r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"tags": []string{"a"}}),
		"X-Openstack-Nova-Api-Version", "2.51"), http.StatusBadRequest)
	r.explained("10 MB", r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"name": strings.Repeat("x", 10<<20)})), http.StatusRequestEntityTooLarge)
	if n := r.engine.Servers().Len(); n != 0 {
		t.Errorf("there are %d servers", n)
	}
}

func TestTheLifeOfAServer(t *testing.T) {
	for _, root := range []string{nova, cyclades} {
		t.Run(root, func(t *testing.T) {
			r := newRig(t)
			s := r.create("web1", "b", "a")
			show := func() map[string]any {
				t.Helper()
				return r.ask(http.MethodGet, at(root, s), "").read(r)["server"].(map[string]any)
			}
			act := func(body string, status int, want string) {
				t.Helper()
				if a := r.ask(http.MethodPost, at(root, s)+"/action", body); a.status != status {
					t.Errorf("%s: %d %s", body, a.status, a.text)
				}
				s = r.settled(s.ID)
				if got := show()["status"]; got != want {
					t.Errorf("after %s it is %v, want %s", body, got, want)
				}
			}
			stopped := map[string]string{nova: "SHUTOFF", cyclades: "STOPPED"}[root]
			body := show()
			if _, number := body["id"].(float64); number != (root == cyclades) || body["name"] != "web1" || !slices.Equal(body["tags"].([]any), []any{"a", "b"}) {
				t.Errorf("it is shown as %v", body)
			}
			act(`{"os-start":null}`, http.StatusConflict, "ACTIVE")
			act(`{"os-stop":null}`, http.StatusAccepted, stopped)
			act(`{"reboot":{"type":"SOFT"}}`, http.StatusConflict, stopped)
			act(`{"os-start":null}`, http.StatusAccepted, "ACTIVE")
			act(`{"reboot":{"type":"HARD"}}`, http.StatusAccepted, "ACTIVE")
			act(`{"reboot":{"type":"GENTLE"}}`, http.StatusBadRequest, "ACTIVE")
			act(`{"reboot":null}`, http.StatusBadRequest, "ACTIVE")
			act(`{"explode":null}`, http.StatusBadRequest, "ACTIVE")
			act(`{"os-stop":null,"os-start":null}`, http.StatusBadRequest, "ACTIVE")
			act(`null`, http.StatusBadRequest, "ACTIVE")
			renamed := map[string]int{nova: http.StatusOK, cyclades: http.StatusNoContent}[root]
			if a := r.ask(http.MethodPut, at(root, s), `{"server":{"name":"web2"}}`); a.status != renamed || show()["name"] != "web2" {
				t.Errorf("renaming: %d %s", a.status, a.text)
			}
			r.explained("a bad name", r.ask(http.MethodPut, at(root, s), `{"server":{"name":""}}`), http.StatusBadRequest)
			if a := r.ask(http.MethodDelete, at(root, s), ""); a.status != http.StatusNoContent {
				t.Errorf("deleting: %d %s", a.status, a.text)
			}
			r.until(s.ID, "goes", func(s *server.Server) bool { return s == nil })
			r.explained("gone", r.ask(http.MethodGet, at(root, s), ""), http.StatusNotFound)
			r.explained("gone", r.ask(http.MethodDelete, at(root, s), ""), http.StatusNotFound)
		})
	}
}

// TestAServerThatCannotBeMade shows why, and can be deleted.
func TestAServerThatCannotBeMade(t *testing.T) {
	r := newRig(t)
	a := r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"flavorRef": "3", "tags": []string{"a"}}))
	id, _ := a.read(r)["server"].(map[string]any)["id"].(string)
	s := r.until(id, "fails", func(s *server.Server) bool { return s.Status() == server.Failed })
	body := r.ask(http.MethodGet, at(nova, s), "").read(r)["server"].(map[string]any)
	if why, _ := body["fault"].(map[string]any); body["status"] != "ERROR" || why["message"] != "not enough memory" {
		t.Errorf("it is shown as %v", body)
	}
	r.explained("a tag", r.ask(http.MethodPut, at(nova, s)+"/tags/b", ""), http.StatusConflict)
	if a := r.ask(http.MethodDelete, at(nova, s), ""); a.status != http.StatusNoContent {
		t.Errorf("deleting it: %d %s", a.status, a.text)
	}
	r.until(id, "goes", func(s *server.Server) bool { return s == nil })
}

// TestSeveralAtOnce: each of them is a server of its own, and all are made or none.
func TestSeveralAtOnce(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		name  string
		ask   map[string]any
		names string
	}{
		{"a", map[string]any{"min_count": 1}, "a"},
		{"b", map[string]any{"min_count": "2", "tags": []string{"t"}}, "b-2 b-1"},
		{"c", map[string]any{"min_count": 2, "max_count": 3}, "c-3 c-2 c-1"},
		{"d", map[string]any{"min_count": nil, "max_count": 2}, "d-2 d-1"},
		{"e", map[string]any{"min_count": 2, "max_count": nil}, "e-2 e-1"},
	} {
		c.ask["name"] = c.name
		a := r.ask(http.MethodPost, nova+"/servers", r.creationOf(c.ask))
		if a.status != http.StatusAccepted {
			t.Fatalf("%v: %d %s", c.ask, a.status, a.text)
		}
		if got := r.names("?name=^" + c.name); got != c.names {
			t.Errorf("%v: there are %s, want %s", c.ask, got, c.names)
		}
		if first, _ := a.read(r)["server"].(map[string]any)["id"].(string); r.settled(first).Name != strings.Fields(c.names)[len(strings.Fields(c.names))-1] {
			t.Errorf("%v: told of %v", c.ask, r.engine.Servers().Get(first))
		}
	}
	ids, instances := map[string]bool{}, map[string]bool{}
	for s := range r.engine.Servers().Of(r.home.ID) {
		s = r.settled(s.ID)
		ids[s.ID], instances[s.Instance] = true, true
		if s.Name[0] == 'b' {
			r.wants(s.ID, "t")
		}
		if s.Status() != server.Active {
			t.Errorf("%s is %s", s.Name, s.Status())
		}
	}
	const all = 10
	if len(ids) != all || len(instances) != all {
		t.Errorf("%d ids and %d instances, want %d of each", len(ids), len(instances), all)
	}
	for _, n := range []int{5, 100} { // as many as there may be
		together := 0
		r.store.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: func(tx store.Tx) bool {
			for _, put := range tx.Put {
				if put.Key.Kind == tagsync.KindServer {
					together++
				}
			}
			return together > 0
		}})
		if a := r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"name": "f", "min_count": n})); a.status != http.StatusServiceUnavailable || r.names("?name=^f") != "" || together != n {
			t.Errorf("while the store fails: %d, %d in one transaction, there are %q", a.status, together, r.names("?name=^f"))
		}
	}
}

// TestAProjectIsKeptUntilItsServerIsThere: nobody removes it between the question
// whether it is there and the moment at which the server counts.
func TestAProjectIsKeptUntilItsServerIsThere(t *testing.T) {
	r := newRig(t)
	gate := make(chan struct{})
	held := r.store.Inject(faultstore.Fault{Do: faultstore.Hold, Gate: gate, When: func(tx store.Tx) bool { return tx.Put[0].Key.Kind == tagsync.KindServer }})
	done := make(chan answer)
	body := r.creationOf(nil)
	go func() { done <- r.ask(http.MethodPost, nova+"/servers", body) }()
	<-held
	if r.kept.Load() != 1 {
		t.Error("the project can be removed while its server is being stored")
	}
	close(gate)
	if a := <-done; a.status != http.StatusAccepted || r.kept.Load() != 0 {
		t.Errorf("%d %s; the project is kept by %d requests", a.status, a.text, r.kept.Load())
	}
	if err := r.accounts.RemoveProject(t.Context(), r.home.ID); !fault.Is(err, fault.Conflict) {
		t.Errorf("a project with a server is removed: %v", err)
	}
	for what, more := range map[string]map[string]any{"a bad server": {"flavorRef": "99"}, "a bad tag": {"tags": []string{"a,b"}}} {
		r.explained(what, r.ask(http.MethodPost, nova+"/servers", r.creationOf(more)), http.StatusBadRequest)
		if r.kept.Load() != 0 {
			t.Errorf("%s keeps its project for ever", what)
		}
	}
}

// TestAProjectIsKeptWhoeverWaitsForItsServer: who asked for it may have left before it is stored.
func TestAProjectIsKeptWhoeverWaitsForItsServer(t *testing.T) {
	r := newRig(t)
	gate := make(chan struct{})
	held := r.store.Inject(faultstore.Fault{Do: faultstore.Hold, Gate: gate, When: func(tx store.Tx) bool { return tx.Put[0].Key.Kind == tagsync.KindServer }})
	given, leave := context.WithCancel(t.Context())
	in := httptest.NewRequestWithContext(given, http.MethodPost, nova+"/servers", strings.NewReader(r.creationOf(nil)))
	in.Header.Set("X-Auth-Token", r.token)
	left := make(chan int)
	go func() {
		out := httptest.NewRecorder()
		r.api.ServeHTTP(out, in)
		left <- out.Code
	}()
	<-held
	leave()
	if status := <-left; status != http.StatusServiceUnavailable || r.kept.Load() != 0 {
		t.Errorf("given up: %d; the project is kept by %d requests", status, r.kept.Load())
	}
	removing, stop := context.WithTimeout(t.Context(), 30*time.Second) // the store is held
	defer stop()
	if err := r.accounts.RemoveProject(removing, r.home.ID); !fault.Is(err, fault.Conflict) {
		t.Errorf("the project is removed while its server is being stored: %v", err)
	}
	close(gate)
	testkit.Until(t, "the server is there", r.shown.Changed, func() bool { return r.engine.Servers().Count(r.home.ID) == 1 }, func() any { return r.engine.Servers().Len() })
	if err := r.accounts.RemoveProject(t.Context(), r.home.ID); !fault.Is(err, fault.Conflict) {
		t.Errorf("a project with a server is removed: %v", err)
	}
}

func TestCatalogues(t *testing.T) {
	r := newRig(t)
	image := r.engine.Images()[0]
	for path, c := range map[string]struct {
		status int
		want   string
	}{
		nova + "/flavors":                       {200, `"name":"m1.tiny"`},
		nova + "/flavors/detail?is_public=None": {200, `"ram":512`},
		nova + "/flavors/1":                     {200, `"vcpus":1`},
		nova + "/flavors/m1.tiny":               {404, "could not be found"},
		cyclades + "/flavors/1":                 {200, `"id":1`},
		nova + "/images":                        {404, "could not be found"}, // since 2.36
		cyclades + "/images":                    {200, image.ID},
		"/image/v2/images":                      {200, image.ID},
		"/image/v2/images?name=noop":            {200, image.ID},
		"/image/v2/images?name=other":           {200, `"images":[]`},
		"/image/v2/images/" + image.ID:          {200, `"name":"noop"`},
		"/image/v2/images/noop":                 {404, "could not be found"},
		nova + "/extensions":                    {200, "extensions"},
		nova + "/nonsense":                      {404, "could not be found"},
	} {
		if a := r.ask(http.MethodGet, path, ""); a.status != c.status || !strings.Contains(a.text, c.want) {
			t.Errorf("%s: %d %s", path, a.status, a.text)
		}
	}
	if a := r.ask(http.MethodGet, nova+"/images", "", "X-Openstack-Nova-Api-Version", "2.35"); a.status != http.StatusOK {
		t.Errorf("images before 2.36: %d %s", a.status, a.text)
	}
}

// TestGuessingIsSlowed: after a few wrong tokens from an address each answer waits.
func TestGuessingIsSlowed(t *testing.T) {
	r := newRig(t)
	begun := time.Now()
	for range 5 {
		r.explained("guessing", r.ask(http.MethodGet, nova+"/servers", "", "X-Auth-Token", "guess"), http.StatusUnauthorized)
	}
	const delays = 300 * time.Millisecond // of the fourth and the fifth
	if took := time.Since(begun); took < delays {
		t.Errorf("five wrong tokens took %v", took)
	}
	if a := r.ask(http.MethodGet, nova+"/servers", ""); a.status != http.StatusOK {
		t.Errorf("a right one: %d", a.status)
	}
}

// TestAProjectOutlivesItsServers: also those whose instances are gone, for nobody
// else could delete them.
func TestAProjectOutlivesItsServers(t *testing.T) {
	r := newRig(t)
	s := r.create("web1")
	refused := func(when string) {
		t.Helper()
		if err := r.accounts.RemoveProject(t.Context(), r.home.ID); !fault.Is(err, fault.Conflict) {
			t.Errorf("%s: %v", when, err)
		}
	}
	refused("while it runs")
	r.cloud.remove(s.Instance)
	r.until(s.ID, "is gone", func(s *server.Server) bool { return s.Deleted != 0 })
	refused("when its instance is gone")
	if a := r.ask(http.MethodDelete, at(nova, s), ""); a.status != http.StatusNoContent {
		t.Fatalf("deleting it: %d %s", a.status, a.text)
	}
	r.until(s.ID, "is deleted", func(s *server.Server) bool { return s == nil })
	r.check(r.accounts.RemoveProject(t.Context(), r.home.ID))
}
