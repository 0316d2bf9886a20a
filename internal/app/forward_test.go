package app

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestRefusalsAreInTheWordsOfTheSurface: what no controller carries out is
// refused as the clients of each surface read it.
func TestRefusalsAreInTheWordsOfTheSurface(t *testing.T) {
	for _, c := range []struct{ surface, path, want string }{
		{surfaceRAPI, "/2/info", `{"code":503,"explain":"nobody leads","message":"Service Unavailable"}`},
		{surfaceCompute, "/compute/v2.1/servers", `{"serviceUnavailable":{"code":503,"message":"nobody leads"}}`},
		{surfaceCompute, "/compute/v2.0/servers", `{"serviceUnavailable":{"code":503,"details":"","message":"nobody leads"}}`},
		{surfaceCompute, "/identity/v3/auth/tokens", `{"error":{"code":503,"message":"nobody leads","title":"Service Unavailable"}}`},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, http.NoBody)
		r.Header.Set(headerSurface, c.surface)
		out := httptest.NewRecorder()
		unavailable(out, r, http.StatusServiceUnavailable, "nobody leads")
		if got := strings.TrimSpace(out.Body.String()); out.Code != http.StatusServiceUnavailable || got != c.want {
			t.Errorf("%s: %d %s, want %s", c.path, out.Code, got, c.want)
		}
	}
}
