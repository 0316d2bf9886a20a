package app_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/testkit"
)

// TestTrustedProxiesTellWhoAsks at RAPI and the page as at the Compute API: wrong passwords are counted for the client of a proxy, and others' words count nothing.
func TestTrustedProxiesTellWhoAsks(t *testing.T) {
	for whose, from := range map[string]string{"127.0.0.1/32": "198.51.100.7:", "127.0.0.2/32": "127.0.0.1:"} {
		t.Run(whose, func(t *testing.T) {
			t.Parallel()
			told := make(tellTale, 100)
			c := startWith(t, app.Options{Data: t.TempDir(), Web: "127.0.0.1:0", RequireAuthentication: true, TrustedProxies: []netip.Prefix{netip.MustParsePrefix(whose)}, Log: slog.New(told)})
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
			for where, ask := range map[string]struct{ method, url, body string }{
				"wrong credentials over RAPI":   {http.MethodGet, c.ready.RAPI + "/2/info", ""},
				"wrong credentials at the page": {http.MethodPost, c.ready.Web + "/session", `{"name":"nobody","password":"guessed"}`},
			} {
				r, err := http.NewRequestWithContext(t.Context(), ask.method, ask.url, strings.NewReader(ask.body))
				if err != nil {
					t.Fatal(err)
				}
				r.SetBasicAuth("nobody", "guessed")
				r.Header.Set("X-Forwarded-For", "198.51.100.7")
				r.Header.Set("Content-Type", "application/json")
				resp, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				_, err = io.Copy(io.Discard, resp.Body)
				if err = errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode/100 != 4 {
					t.Errorf("%s: %s, %v", where, resp.Status, err)
				}
				if got := told.await(t, where); !strings.HasPrefix(got, from) {
					t.Errorf("%s: they come from %q, not %s", where, got, from)
				}
			}
		})
	}
}

// tellTale hands on where each line of the log says that something comes from.
type tellTale chan slog.Record

func (h tellTale) Enabled(context.Context, slog.Level) bool { return true }
func (h tellTale) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h tellTale) WithGroup(string) slog.Handler            { return h }

func (h tellTale) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "wrong credentials") {
		h <- r
	}
	return nil
}

// await returns where what a message tells of comes from.
func (h tellTale) await(t *testing.T, message string) (from string) {
	t.Helper()
	select {
	case r := <-h:
		if r.Message != message {
			t.Fatalf("it is told: %s", r.Message)
		}
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "from" {
				from = a.Value.String()
			}
			return true
		})
	case <-time.After(testkit.Patience()):
		t.Fatalf("nothing is told of %s", message)
	}
	return from
}
