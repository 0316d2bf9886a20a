package compute_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/tagsync"
)

// TestChangesAtOnceAreMadeUponEachOther sends a change of a server while another one is being stored: both are in what it is afterwards.
func TestChangesAtOnceAreMadeUponEachOther(t *testing.T) {
	r := newRig(t)
	s := r.create("web")
	ofServer := func(tx store.Tx) bool {
		return slices.ContainsFunc(tx.Put, func(p store.Put) bool { return p.Key.Kind == tagsync.KindServer })
	}
	for _, c := range []struct{ what, method, below, first, second, shows string }{
		{"addresses", "PUT", "", `{"server":{"accessIPv4":"192.0.2.1"}}`, `{"server":{"accessIPv6":"2001:db8::1"}}`, "192.0.2.1 2001:db8::1"},
		{"texts", "PUT", "", `{"server":{"description":"mine"}}`, `{"server":{"name":"web2"}}`, "web2 mine"},
		{"names", "PUT", "", `{"server":{"name":"web3"}}`, `{"server":{"description":"yours"}}`, "web3 yours"},
		{"metadata", "POST", "/metadata", `{"metadata":{"a":"1"}}`, `{"metadata":{"b":"2"}}`, "1 2"},
		{"tags", "PUT", "/tags/", "x", "y", "x y"},
	} {
		gate, stored := make(chan struct{}), make(chan struct{}, 8)
		held := r.store.Inject(faultstore.Fault{Do: faultstore.Hold, Gate: gate, When: ofServer})
		answers := make(chan answer, 2)
		send := func(what string) {
			if c.what == "tags" {
				answers <- r.ask(c.method, at(nova, s)+c.below+what, "")
				return
			}
			answers <- r.ask(c.method, at(nova, s)+c.below, what)
		}
		go send(c.first)
		<-held
		r.store.Inject(faultstore.Fault{When: func(tx store.Tx) bool {
			if ofServer(tx) {
				select {
				case stored <- struct{}{}:
				default:
				}
			}
			return false
		}})
		go send(c.second)
		<-stored
		close(gate)
		for range 2 {
			if a := <-answers; a.status >= http.StatusBadRequest {
				t.Errorf("%s: %d %s", c.what, a.status, a.text)
			}
		}
		now := r.settled(s.ID)
		texts := now.Name + " " + now.Description
		shows := map[string]string{"addresses": now.Told.IPv4 + " " + now.Told.IPv6, "metadata": now.Metadata["a"] + " " + now.Metadata["b"], "texts": texts, "names": texts}
		if got := shows[c.what]; c.what != "tags" && got != c.shows {
			t.Errorf("%s: got %q, want %q", c.what, got, c.shows)
		}
	}
	r.wants(s.ID, "x", "y")
}
