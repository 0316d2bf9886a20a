package app_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// TestThePageAtAStandby: a controller that stands by passes requests, streams and consoles on to the one that leads. When that is another one, the stream ends and
// people sign in again.
func TestThePageAtAStandby(t *testing.T) {
	url := pgserver.Start(t, false).URL("page")
	all := groupWith(t, []string{url, url}, func(o *app.Options) { o.Web = "127.0.0.1:0" })
	defer func() {
		for i, c := range all {
			if err := c.stop(); err != nil {
				t.Errorf("controller %d: %v", i+1, err)
			}
		}
	}()
	second := all[1]
	session := second.signIn(t)
	if status := second.whoAmI(t, session); status != http.StatusOK {
		t.Errorf("signed in at a standby: %d", status)
	}
	conn, _, err := websocket.Dial(t.Context(), second.ready.Web+"/stream", &websocket.DialOptions{HTTPHeader: http.Header{"Cookie": {session}, "Origin": {second.ready.Web}}}) //nolint:bodyclose // it has none
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.CloseNow() }()
	if err := conn.Write(t.Context(), websocket.MessageText, []byte(`{"watch":{"x":{"view":"jobs"}}}`)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience())
	defer cancel()
	for {
		_, text, err := conn.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), `"reset":true`) {
			break
		}
	}
	_, refused, err := websocket.Dial(ctx, second.ready.Web+"/console/serial/web1?token=none", &websocket.DialOptions{Subprotocols: []string{"drover-console"}, HTTPHeader: http.Header{"Cookie": {session}, "Origin": {second.ready.Web}}})
	if err == nil || refused == nil {
		t.Fatalf("a console without a ticket is opened: %v", err)
	}
	if text, err := io.ReadAll(refused.Body); err != nil || refused.StatusCode != http.StatusUnauthorized || !strings.Contains(string(text), "There is no such ticket") {
		t.Errorf("a console without a ticket: %d %q, %v", refused.StatusCode, text, err)
	}
	_ = refused.Body.Close()
	err = nil
	second.call(t, "MasterFailover", new(any))
	for err == nil {
		_, _, err = conn.Read(ctx)
	}
	if ctx.Err() != nil {
		t.Error("the stream goes on, though another one leads")
	}
	second.awaitMasters(t, "c1 standby, c2 leader")
	if status := second.whoAmI(t, session); status != http.StatusUnauthorized {
		t.Errorf("a session of before the take-over: %d", status)
	}
	if status := second.whoAmI(t, second.signIn(t)); status != http.StatusOK {
		t.Errorf("signed in again: %d", status)
	}
}

// signIn returns the cookie of a session.
func (c cluster) signIn(t *testing.T) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.ready.Web+"/session", strings.NewReader(`{"name":"op","password":"secret"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("signing in: %d %s %v", answer.StatusCode, text, err)
	}
	cookie, _, _ := strings.Cut(answer.Header.Get("Set-Cookie"), ";")
	return cookie
}

// whoAmI asks the page who is signed in.
func (c cluster) whoAmI(t *testing.T, session string) (status int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.ready.Web+"/session", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Cookie", session)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}
