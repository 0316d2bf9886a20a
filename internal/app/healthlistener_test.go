package app_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// TestHealthHasAListenerOfItsOwn: pages for those who watch, without an account and TLS, on the leader and on who stands by; nothing else is
// served there, and what users do is not in its way.
func TestHealthHasAListenerOfItsOwn(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t, false)
	all := groupWith(t, []string{server.URL("watched"), server.URL("watched")}, func(o *app.Options) {
		o.Health, o.RequireAuthentication = "127.0.0.1:0", true
	})
	for i, c := range all {
		url := c.ready.Health
		if !strings.HasPrefix(url, "http://127.0.0.1:") {
			t.Fatalf("the ready file says %q", url)
		}
		for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": `"ready":true`, "/metrics": "drover_leader "} {
			if status, text := watchedPage(t, http.MethodGet, url+path); status != http.StatusOK || !strings.Contains(text, want) {
				t.Errorf("controller %d answers %s with %d, %s", i+1, path, status, text)
			}
		}
		for _, path := range []string{"/", "/version", "/2/jobs", "/2/info", "/metrics/x", "/debug/pprof/"} {
			if status, text := watchedPage(t, http.MethodGet, url+path); status != http.StatusNotFound {
				t.Errorf("controller %d answers %s with %d, %s", i+1, path, status, text)
			}
		}
		if status, _ := watchedPage(t, http.MethodPost, url+"/readyz"); status != http.StatusMethodNotAllowed {
			t.Errorf("controller %d answers a POST with %d", i+1, status)
		}
	}
}

func watchedPage(t *testing.T, method, url string) (status int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Error(err)
	}
	return answer.StatusCode, string(body)
}
