package compute_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/state"
)

// showing shows servers of alice's project that no cluster knows.
func (r *rig) showing(servers ...*server.Server) {
	for _, s := range servers {
		s.ID, s.Instance, s.Project, s.Built = fmt.Sprintf("server-%d", s.Number), fmt.Sprintf("snf-%d", s.Number), r.home.ID, 1
	}
	r.shown.Committed(&state.Change{Servers: servers})
	r.shown.Publish()
}

// pages follows the pages of a list, and returns the ids in their order. Between two
// pages something happens.
func (r *rig) pages(path string, between func(page []string)) []string {
	r.Helper()
	var all []string
	for path != "" {
		body := r.ask(http.MethodGet, path, "").read(r)
		var page []string
		for _, s := range body["servers"].([]any) {
			page = append(page, s.(map[string]any)["id"].(string))
		}
		all, path = append(all, page...), ""
		if links, more := body["servers_links"].([]any); more {
			next, err := url.Parse(links[0].(map[string]any)["href"].(string))
			r.check(err)
			path = next.RequestURI()
			between(page)
		}
	}
	return all
}

// TestAListHasAnEnd: however many servers a request asks for, an answer has a thousand,
// and tells where the rest is.
func TestAListHasAnEnd(t *testing.T) {
	r := newRig(t)
	const all, page = 1001, 1000
	servers := make([]*server.Server, all)
	for i := range servers {
		servers[i] = &server.Server{Number: int64(i + 1), Name: "web"}
	}
	r.showing(servers...)
	for _, query := range []string{"", "?limit=100000", "?limit=1001", "?limit=1000"} {
		var lengths []int
		ids := r.pages(nova+"/servers"+query, func(p []string) { lengths = append(lengths, len(p)) })
		if !slices.Equal(lengths, []int{page}) || len(ids) != all || ids[all-1] != "server-1" {
			t.Errorf("%s: the first pages have %d, and there are %d", query, lengths, len(ids))
		}
	}
}

// TestTheLastPageHasNoNext: also where more servers come behind it that were not asked for.
func TestTheLastPageHasNoNext(t *testing.T) {
	r := newRig(t)
	var servers []*server.Server
	for i := range 6 {
		servers = append(servers, &server.Server{Number: int64(i + 1), Name: map[bool]string{true: "web", false: "db"}[i >= 3]}) // the newest come first
	}
	r.showing(servers...)
	for query, want := range map[string]int{"?name=web&limit=3": 0, "?name=web&limit=2": 1, "?name=db&limit=3": 0, "?limit=6": 0, "?limit=5": 1} {
		pages := 0
		r.pages(nova+"/servers"+query, func([]string) { pages++ })
		if pages != want {
			t.Errorf("%s: %d pages have a next one, not %d", query, pages, want)
		}
	}
}

// TestAMarkerIsAPlace: a list goes on behind it also when the server there is not of
// those any more that were asked for.
func TestAMarkerIsAPlace(t *testing.T) {
	r := newRig(t)
	var servers []*server.Server
	for i := range 10 {
		servers = append(servers, &server.Server{Number: int64(i + 101), Name: "web"}) // far from those that are made
	}
	r.showing(servers...)
	ids := r.pages(nova+"/servers?name=web&limit=3", func(page []string) {
		last := *r.engine.Servers().Get(page[len(page)-1])
		last.Name = "db"
		r.showing(&last)
	})
	if len(ids) != 10 || ids[9] != "server-101" {
		t.Errorf("listed are %v", ids)
	}
	_, other := r.join("bob", "lab", "member")
	theirs := r.ask(http.MethodPost, nova+"/servers", r.creationOf(nil), "X-Auth-Token", other).read(r)["server"].(map[string]any)["id"].(string)
	r.explained("a marker of another project", r.ask(http.MethodGet, nova+"/servers?marker="+theirs, ""), http.StatusBadRequest)
}

// TestChangesSinceAMoment are also those at that moment: who asks by the time that was
// shown misses nothing.
func TestChangesSinceAMoment(t *testing.T) {
	r := newRig(t)
	moment := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	at := func(after time.Duration) job.Time { return job.At(moment.Add(after)) }
	r.showing(&server.Server{Number: 1, Name: "before", Updated: at(-time.Microsecond)}, &server.Server{Number: 2, Name: "then", Updated: at(0)},
		&server.Server{Number: 3, Name: "half", Updated: at(time.Second / 2)})
	for _, c := range []struct{ since, names string }{
		{"2026-05-01T10:00:00Z", "half then"}, {"2026-05-01T09:59:59Z", "half then before"}, {"2026-05-01T12:00:00%2B02:00", "half then"}, {"2026-05-01T10:00:00", "half then"},
		{"2026-05-01T10:00:00.5Z", "half"}, {"2026-05-01T10:00:01Z", ""},
	} {
		if got := r.names("?changes-since=" + c.since); got != c.names {
			t.Errorf("since %s: %q, want %q", c.since, got, c.names)
		}
	}
	shown := r.ask(http.MethodGet, nova+"/servers/server-3", "").read(r)["server"].(map[string]any)["updated"].(string)
	if !strings.Contains(r.names("?changes-since="+shown), "half") {
		t.Errorf("what was changed at %s did not change since then", shown)
	}
}

// TestEqualServersKeepTheirPlaces: a list that is sorted by what many have in common
// shows each once, page by page, while others come and go.
func TestEqualServersKeepTheirPlaces(t *testing.T) {
	r := newRig(t)
	const all = 60
	var servers []*server.Server
	want := map[string]bool{}
	for i := range all {
		s := &server.Server{Number: int64(i + 1), Name: fmt.Sprint("web", i*7%3)}
		servers = append(servers, s)
		want[fmt.Sprintf("server-%d", s.Number)] = true
	}
	r.showing(servers...)
	for _, dir := range []string{"asc", "desc"} {
		number := int64(all)
		ids := r.pages(nova+"/servers?limit=7&sort_key=display_name&sort_dir="+dir, func(page []string) {
			number++
			r.showing(&server.Server{Number: number, Name: "web1"}) // one that comes
			gone := page[:len(page)-1]                              // they were shown; the last one is where the next page begins
			r.shown.Committed(&state.Change{ServersRemoved: []string{gone[0]}})
			r.shown.Publish()
			delete(want, gone[0])
		})
		seen := map[string]int{}
		for _, id := range ids {
			seen[id]++
		}
		for id := range want {
			if seen[id] != 1 {
				t.Errorf("%s: %s is shown %d times", dir, id, seen[id])
			}
		}
	}
	var last *server.Server
	for _, id := range r.pages(nova+"/servers?sort_key=display_name&sort_dir=asc", func([]string) {}) {
		s := r.engine.Servers().Get(id)
		if last != nil && (last.Name > s.Name || last.Name == s.Name && last.Number > s.Number) {
			t.Errorf("%s, number %d, stands behind %s, number %d", s.Name, s.Number, last.Name, last.Number)
		}
		last = s
	}
}
