package compute_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/store/faultstore"
)

// names lists the servers that a query asks for, in its order.
func (r *rig) names(query string) string {
	r.Helper()
	a := r.ask("GET", nova+"/servers"+query, "")
	if a.status != http.StatusOK {
		r.Fatalf("%s: %d %s", query, a.status, a.text)
	}
	var names []string
	list, _ := a.read(r)["servers"].([]any)
	for _, s := range list {
		name, _ := s.(map[string]any)["name"].(string)
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func TestListsAreSorted(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"b", "c", "a"} {
		r.create(name)
	}
	r.ask("POST", nova+"/servers", r.creationOf(map[string]any{"name": "c", "flavorRef": "1"}))
	for query, want := range map[string]string{
		"": "c a c b", "?sort_dir=asc": "b c a c", "?sort_key=display_name": "c c b a", "?sort_key=display_name&sort_dir=asc": "a b c c",
		"?sort_key=display_name&sort_dir=asc&limit=2": "a b", "?sort_key=instance_type_id&sort_key=display_name&sort_dir=asc": "c a b c",
		"?sort_key=instance_type_id&sort_dir=asc&sort_key=display_name&sort_dir=desc": "c c b a", "?sort_key=created_at": "c a c b",
	} {
		if got := r.names(query); got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
	for _, query := range []string{"?sort_key=nosuch", "?sort_key=uuid&sort_dir=up", "?sort_key=uuid&sort_dir=asc&sort_dir=asc"} {
		r.explained(query, r.ask("GET", nova+"/servers"+query, ""), http.StatusBadRequest)
	}
	// Page by page in the same order.
	page := r.ask("GET", nova+"/servers?sort_key=display_name&sort_dir=asc&limit=3", "").read(r)
	links, _ := page["servers_links"].([]any)
	href, _ := links[0].(map[string]any)["href"].(string)
	_, query, _ := strings.Cut(href, "?")
	if got := r.names("?" + query); got != "c" {
		t.Errorf("the second page is %s", got)
	}
}

// TestReadingAsksNothingOfTheStore: whatever users read, they read in memory, also
// while the store cannot be read.
func TestReadingAsksNothingOfTheStore(t *testing.T) {
	r := newRig(t)
	for i := range 20 {
		r.create(fmt.Sprint("web", i), "all", strconv.Itoa(i))
	}
	defer r.store.FailReads(faultstore.ReadFault{})()
	for _, root := range []string{nova, cyclades} {
		for _, path := range []string{"/servers", "/servers/detail", "/servers/detail?tags=all&sort_key=display_name", "/flavors/detail"} {
			if a := r.ask("GET", root+path, ""); a.status != http.StatusOK {
				t.Errorf("%s: %d %s", path, a.status, a.text)
			}
		}
	}
	if got := len(strings.Fields(r.names("?tags=all"))); got != 20 {
		t.Errorf("%d servers are listed", got)
	}
	if _, err := r.store.Revision(r.Context()); err == nil {
		t.Error("the store can be read: this shows nothing")
	}
}
