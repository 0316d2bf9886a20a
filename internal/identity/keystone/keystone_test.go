package keystone_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/identity/keystone"
)

// service is an identity service with one answer.
type service struct {
	*httptest.Server
	asked  atomic.Int64
	answer atomic.Pointer[func(http.ResponseWriter, *http.Request)]
}

func (s *service) says(status int, body string) {
	f := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // a client that is gone fails the test by itself
	}
	s.answer.Store(&f)
}

func start(t *testing.T) *service {
	t.Helper()
	s := &service{}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		if token := r.Header.Get("X-Subject-Token"); r.URL.Path != "/v3/auth/tokens" || token == "" || r.Header.Get("X-Auth-Token") != token {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		(*s.answer.Load())(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// good is the answer about a token of alice's, good until a time, with roles.
func good(until time.Time, roles string) string {
	return `{"token":{"methods":["password"],"issued_at":"2026-05-01T11:00:00.000000Z","expires_at":"` + until.Format("2006-01-02T15:04:05.000000Z") +
		`","audit_ids":["a1"],"user":{"id":"u1","name":"alice","domain":{"id":"default"}},"project":{"id":"p1","name":"home"},"roles":[` + roles + `]}}`
}

const member = `{"id":"r1","name":"member"},{"id":"r2","name":"cook"}`

func TestTokensAreJudgedByTheService(t *testing.T) {
	s := start(t)
	clock := now
	k, err := keystone.Open(keystone.Config{URL: s.URL + "/v3/", Now: func() time.Time { return clock },
		CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})})
	if err != nil {
		t.Fatal(err)
	}
	s.says(http.StatusOK, good(now.Add(time.Hour), member))
	for range 3 { // asked once
		session, err := k.Session(t.Context(), "secret-token")
		if err != nil || session.User.ID != "u1" || session.User.Name != "alice" || session.Project.ID != "p1" || strings.Join(session.Roles, ",") != "member" {
			t.Fatalf("%+v %v", session, err)
		}
	}
	if n := s.asked.Load(); n != 1 {
		t.Errorf("the service is asked %d times", n)
	}
	clock = now.Add(keystone.MaxAge)
	s.says(http.StatusNotFound, `{"error":{}}`)
	if _, err := k.Session(t.Context(), "secret-token"); !fault.Is(err, fault.Denied) {
		t.Errorf("a token that was revoked: %v", err)
	}
	for what, c := range map[string]struct {
		status int
		body   string
		code   fault.Code
	}{
		"over": {200, good(clock, member), fault.Denied}, "without a role that is known": {200, good(clock.Add(time.Hour), `{"name":"cook"}`), fault.Denied},
		"nobody's": {200, `{"token":{}}`, fault.Denied}, "refused": {401, "", fault.Denied}, "forbidden": {403, "", fault.Denied},
		"no JSON": {200, "<html>", fault.Unavailable}, "a failure": {500, "", fault.Unavailable}, "elsewhere": {302, "", fault.Unavailable},
	} {
		s.says(c.status, c.body)
		if _, err := k.Session(t.Context(), "other-token"); !fault.Is(err, c.code) || strings.Contains(err.Error(), "other-token") {
			t.Errorf("%s: %v, want %s", what, err, c.code)
		}
	}
	before := s.asked.Load()
	for _, token := range []string{"", "a b", "a\nb", "ä"} {
		if _, err := k.Session(t.Context(), token); !fault.Is(err, fault.Denied) {
			t.Errorf("%q: %v", token, err)
		}
	}
	if s.asked.Load() != before {
		t.Error("what is no token is sent")
	}
}

// TestASessionEndsWithItsToken: also when the service was asked a moment ago.
func TestASessionEndsWithItsToken(t *testing.T) {
	s := start(t)
	clock := now
	k, err := keystone.Open(keystone.Config{URL: s.URL + "/v3", Now: func() time.Time { return clock },
		CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})})
	if err != nil {
		t.Fatal(err)
	}
	s.says(http.StatusOK, good(now.Add(time.Second), member))
	if _, err := k.Session(t.Context(), "short"); err != nil {
		t.Fatal(err)
	}
	clock = now.Add(time.Second)
	if _, err := k.Session(t.Context(), "short"); !fault.Is(err, fault.Denied) {
		t.Errorf("a token that is over: %v", err)
	}
}

func TestTheServiceIsChecked(t *testing.T) {
	s := start(t)
	s.says(http.StatusOK, good(now.Add(time.Hour), member))
	k, err := keystone.Open(keystone.Config{URL: s.URL + "/v3", Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Session(t.Context(), "secret"); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate that nobody vouches for: %v", err)
	}
	for _, url := range []string{"http://keystone.example/v3", "keystone.example", "https://user:pw@keystone.example/v3", "ftp://127.0.0.1/", "",
		"https://:5000/v3", "https://keystone.example/v3?", "https://keystone.example/v3?x=1", "https://keystone.example/v3#x"} {
		if _, err := keystone.Open(keystone.Config{URL: url}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s is taken: %v", url, err)
		}
	}
	if _, err := keystone.Open(keystone.Config{URL: "http://127.0.0.1:5000/v3", CA: []byte("nothing")}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a file without a certificate: %v", err)
	}
}
