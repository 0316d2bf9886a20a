package rapi_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/drover-project/drover/internal/state"
)

// Who changed something is told a revision, and with it reads what it wrote, from
// whichever state comes to hold it.
func TestReadingOnesOwnWrites(t *testing.T) {
	r := newRig(t, rigOptions{})
	changed := r.do(http.MethodPost, "/2/filters", map[string]any{"priority": 0, "predicates": []any{}, "action": "ACCEPT", "reason": []any{}})
	revision, err := strconv.ParseInt(changed.header.Get("Drover-Revision"), 10, 64)
	if err != nil || revision <= 0 || revision > r.shown.Load().Revision {
		t.Fatalf("%d %s, revision %q, %v", changed.status, changed.text, changed.header.Get("Drover-Revision"), err)
	}
	at := func(revision string) answer {
		h := header("admin", "secret")
		h.Set("Drover-Revision", revision)
		return r.send(http.MethodGet, "/2/filters", nil, h)
	}
	if got := at(strconv.FormatInt(revision, 10)); got.status != http.StatusOK {
		t.Errorf("at its revision: %d %s", got.status, got.text)
	}
	for _, bad := range []string{"-1", "x", "9999999999999999999999"} {
		if got := at(bad); got.status != http.StatusBadRequest {
			t.Errorf("at %s: %d %s", bad, got.status, got.text)
		}
	}
	// A revision that is not there yet is waited for.
	later := r.shown.Load().Revision + 3
	answered := make(chan answer)
	go func() { answered <- at(strconv.FormatInt(later, 10)) }()
	for n := r.shown.Load().Revision + 1; n <= later; n++ {
		select {
		case got := <-answered:
			t.Fatalf("answered at %d of %d: %d %s", n, later, got.status, got.text)
		default:
		}
		r.shown.Committed(&state.Change{Revision: n})
		r.shown.Publish()
	}
	if got := <-answered; got.status != http.StatusOK {
		t.Errorf("once it is there: %d %s", got.status, got.text)
	}
}
