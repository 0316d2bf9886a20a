package agentwire

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/exec/nodetest"
)

// overHTTP reaches an agent over a loopback connection.
func overHTTP(t *testing.T, a *agent.Agent) exec.Node {
	t.Helper()
	h := newHandler(t, a)
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(func() {
		h.Close()
		s.Close()
	})
	return NewClient(a.Node(), over(s, func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
	}), 0)
}

// newHandler is a handler that keeps nothing on disk.
func newHandler(t *testing.T, n Served) *Handler {
	t.Helper()
	h, err := NewHandler(n, "")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// over is the connection to a server, whoever is asked for.
func over(s *httptest.Server, dial func(ctx context.Context, network, address string) (net.Conn, error)) Conn {
	transport := s.Client().Transport.(*http.Transport)
	transport.TLSClientConfig.ServerName, transport.DialContext = "example.com", dial
	return func(context.Context) (http.RoundTripper, error) { return transport, nil }
}

// TestOverHTTP holds both ends to the suite.
func TestOverHTTP(t *testing.T) { nodetest.Run(t, overHTTP) }
