package app

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
)

// forwardsTo is what forwards requests to one server, as if that led.
func forwardsTo(t *testing.T, answer http.HandlerFunc) *leaderClient {
	t.Helper()
	leader := httptest.NewServer(answer)
	t.Cleanup(leader.Close)
	l := newLeaderClient(&group{m: &member{figures: newFigures()}})
	l.http.DialTLSContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", leader.Listener.Addr().String())
	}
	t.Cleanup(l.http.CloseIdleConnections)
	return l
}

func (l *leaderClient) sends(t *testing.T, body io.Reader, length int64) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://leader/", body)
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = length
	answer, err := l.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

// TestBodiesAreForwardedWhole: the leader learns how long those are that may be sent again; and those that may not have their bodies.
func TestBodiesAreForwardedWhole(t *testing.T) {
	l := forwardsTo(t, func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		_, _ = fmt.Fprint(w, len(text), r.ContentLength, err)
	})
	for _, c := range []struct {
		size, told int
		want       string
	}{
		{0, 0, "0 0 <nil>"}, {2, 2, "2 2 <nil>"}, {1000, -1, "1000 1000 <nil>"}, {maxRepeat, -1, fmt.Sprint(maxRepeat, maxRepeat, nil)},
		{maxRepeat + 1, -1, fmt.Sprint(maxRepeat+1, -1, nil)}, {maxRepeat + 1, maxRepeat + 1, fmt.Sprint(maxRepeat+1, maxRepeat+1, nil)},
	} {
		var body io.Reader = strings.NewReader(strings.Repeat("x", c.size))
		if c.size == 0 {
			body = http.NoBody
		}
		if got, err := l.sends(t, struct{ io.Reader }{body}, int64(c.told)); err != nil || got != c.want {
			t.Errorf("of %d bytes, said to be %d: %q, %v, want %q", c.size, c.told, got, err, c.want)
		}
	}
}

// TestWhatIsNotTakenIsSentAgain, to whoever leads then; what is too long for that is refused in words, for nothing was done.
func TestWhatIsNotTakenIsSentAgain(t *testing.T) {
	asked := 0
	l := forwardsTo(t, func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked%3 != 0 {
			notLeading(w)
			return
		}
		text, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprint(w, len(text))
	})
	if got, err := l.sends(t, struct{ io.Reader }{strings.NewReader("abc")}, -1); err != nil || got != "3" || asked != 3 {
		t.Errorf("after %d times: %q, %v", asked, got, err)
	}
	_, err := l.sends(t, strings.NewReader(strings.Repeat("x", maxRepeat+1)), maxRepeat+1)
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "did nothing with the request") || asked != 4 {
		t.Errorf("what is too long comes to %v, sent %d times", err, asked-3)
	}
}
