package rapi_test

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
)

// TestAMatchEndsWhenItsClientLeaves: a query of minutes ends with its client, in
// the middle of one match.
func TestAMatchEndsWhenItsClientLeaves(t *testing.T) {
	outcomes := make(chan string, 1)
	r := newRig(t, rigOptions{observe: func(what, outcome string) {
		if strings.HasSuffix(what, "/2/query/job") {
			outcomes <- outcome
		}
	}})
	r.succeed(http.MethodPut, "/2/redistribute-config?reason="+strings.Repeat("ab", 8<<10), nil)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { leave() }})
	body := `{"fields":["id"],"filter":["=~","reason","[ab]*a` + strings.Repeat("[ab]{1000}", 40) + `c"]}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, r.server.URL+"/2/query/job", strings.NewReader(body))
	r.check(err)
	req.Header = header("admin", "secret")
	if resp, err := r.server.Client().Do(req); err == nil {
		r.check(resp.Body.Close())
		t.Fatalf("answered with %d", resp.StatusCode)
	}
	if outcome := <-outcomes; outcome != "503" {
		t.Errorf("the query ended with %s", outcome)
	}
}
