package app

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestWhatHasNoBodyIsForwardedWithoutOne: its length is known, and so is that of any other that may be sent again.
func TestWhatHasNoBodyIsForwardedWithoutOne(t *testing.T) {
	lengths := make(chan int64, 1)
	leader := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { lengths <- r.ContentLength }))
	defer leader.Close()
	for _, text := range []string{"", "{}", strings.Repeat("x", 1000)} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, leader.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength, r.Body = int64(len(text)), bodyOf([]byte(text))
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if got := <-lengths; got != int64(len(text)) {
			t.Errorf("a body of %d bytes arrives as one of %d", len(text), got)
		}
	}
}
