package agentwire

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/exec/nodetest"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/hypervisor/fake"
)

// overHTTP reaches an agent over a loopback connection.
func overHTTP(t *testing.T, a *agent.Agent) exec.Node {
	t.Helper()
	return clientOf(t, newHandler(t, a), a.Node())
}

// clientOf reaches a handler over a loopback connection.
func clientOf(t *testing.T, h *Handler, node string) *Client {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(func() {
		h.Close()
		s.Close()
	})
	return NewClient(node, over(s, func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
	}), 0)
}

// newHandler is a handler that keeps nothing on disk.
func newHandler(t testing.TB, n Served) *Handler {
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

// talking is a driver whose one instance talks.
type talking struct {
	hypervisor.Driver
	line console.Line
}

func (d *talking) Console(of hypervisor.Thing) (*console.Line, error) {
	if of.Name == "mute" {
		return d.Driver.Console(of)
	}
	return &d.line, nil
}

// echo is a guest that says what it is told.
type echo struct{ *console.Line }

// TestConsole has somebody sit before an instance of a node that is elsewhere.
func TestConsole(t *testing.T) {
	dir := t.TempDir()
	pretended, err := fake.Open(fake.Config{Dir: filepath.Join(dir, "fake")})
	if err != nil {
		t.Fatal(err)
	}
	d := &talking{Driver: pretended}
	a, err := agent.New(agent.Config{Node: "node1", Dir: dir, Driver: d})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	n := overHTTP(t, a).(*Client)
	of := hypervisor.Thing{UUID: "u", Name: "one"}
	_, _ = d.line.Write([]byte("login: "))
	p, err := n.ReadConsole(t.Context(), of, 0, time.Hour)
	if err != nil || string(p.Text) != "login: " || p.Next != 7 {
		t.Fatalf("%+v, %v", p, err)
	}
	if p, err = n.ReadConsole(t.Context(), of, p.Next, 0); err != nil || len(p.Text) != 0 || p.Next != 7 {
		t.Errorf("nobody waits: %+v, %v", p, err)
	}
	if err := n.TypeConsole(t.Context(), of, []byte("root\n")); !fault.Is(err, fault.WrongState) {
		t.Errorf("nobody is there: %v", err)
	}
	d.line.Attach(echo{&d.line})
	if err := n.TypeConsole(t.Context(), of, []byte("root\n")); err != nil {
		t.Error(err)
	}
	if p, err = n.ReadConsole(t.Context(), of, p.Next, time.Hour); err != nil || string(p.Text) != "root\n" {
		t.Errorf("%+v, %v", p, err)
	}
	if err := n.TypeConsole(t.Context(), of, make([]byte, agent.MaxKeys+1)); !fault.Is(err, fault.TooLarge) {
		t.Errorf("too much at once: %v", err)
	}
	if _, err := n.ReadConsole(t.Context(), hypervisor.Thing{UUID: "u", Name: "mute"}, 0, 0); !fault.Is(err, fault.Unsupported) {
		t.Errorf("one that is pretended: %v", err)
	}
}

// old is the connection of an agent of before, that knows no images.
type old struct{}

func (old) RoundTrip(r *http.Request) (*http.Response, error) {
	body := `{"code":"not_found","message":"there is no call \"` + r.URL.Path + `\"","hint":"the controller may be newer than the agent"}`
	return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// TestAnAgentOfBefore says what is wrong with it.
func TestAnAgentOfBefore(t *testing.T) {
	c := NewClient("node1", func(context.Context) (http.RoundTripper, error) { return old{}, nil }, 0)
	_, fetch := c.FetchImage(t.Context(), nodetest.Order(1, 1), agent.Image{Name: "one"}, func(string) {})
	install := c.InstallImage(t.Context(), nodetest.Order(1, 1), nodetest.Spec(nodetest.One), agent.Image{Name: "one"}, nil, func(string) {})
	if _, err := c.Exports(t.Context()); !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "knows nothing of exports of instances") {
		t.Error(err)
	}
	if _, err := c.HalfExports(t.Context()); !fault.Is(err, fault.Unsupported) {
		t.Error(err)
	}
	_, read := c.ReadImage(t.Context(), "x", 0)
	_, keep := c.KeepImage(t.Context(), nodetest.Order(1, 1), agent.Image{Name: "one"}, agent.Piece{}, func(string) {})
	for _, err := range []error{fetch, install, read, keep} {
		if !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "the agent of node node1 is older than this controller, and knows nothing of images") {
			t.Error(err)
		}
	}
}
