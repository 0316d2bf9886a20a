package authority_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/authority"
	"github.com/drover-project/drover/internal/authority/authoritytest"
	"github.com/drover-project/drover/internal/fault"
)

// house is a door with nodes.
type house struct {
	*authoritytest.House
	*testing.T
}

func newHouse(t *testing.T) *house {
	t.Helper()
	return &house{authoritytest.New(t), t}
}

func (h *house) joined(name string) *x509.Certificate {
	h.T.Helper()
	_, c := h.Joined(name)
	return c
}

func (h *house) denied(what string, err error, want string) {
	h.T.Helper()
	if !fault.Is(err, fault.Denied) || !strings.Contains(err.Error(), want) {
		h.T.Errorf("%s: %v, want that it is denied with %q", what, err, want)
	}
}

// TestNobodyIsTakenForAnother shows certificates where they do not belong.
func TestNobodyIsTakenForAnother(t *testing.T) {
	h, foreign := newHouse(t), newHouse(t)
	_, r := h.Request()
	mine := h.joined("node1")
	h.joined("node2")
	h.denied("one node as another", h.Admit("node2", mine), "its certificate is that of node1")
	_, err := h.Renew(t.Context(), "node2", mine, r)
	h.denied("renewing another's", err, "its certificate is that of node1")
	h.denied("a foreign authority", h.Admit("node1", foreign.joined("node1")), "not signed by this cluster")
	controller, err := h.Authority.Controller(h.Clock())
	if err != nil {
		t.Fatal(err)
	}
	h.denied("a controller as an agent", h.Admit("node1", controller.Leaf), "not signed by this cluster")
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(h.Authority.Certificate())
	if _, err := mine.Verify(x509.VerifyOptions{Roots: pool, DNSName: authority.ControllerName}); err == nil {
		t.Error("an agent is taken for a controller")
	}
	if _, err := authority.ReadRequest([]byte("none")); !fault.Is(err, fault.Invalid) {
		t.Errorf("no request: %v", err)
	}
}

// TestTrustByFingerprint has an agent meet controllers of its cluster and of another.
func TestTrustByFingerprint(t *testing.T) {
	h, foreign := newHouse(t), newHouse(t)
	text, err := h.Authority.Text()
	if err != nil {
		t.Fatal(err)
	}
	again, err := authority.Parse(text)
	if err != nil || again.Fingerprint() != h.Authority.Fingerprint() {
		t.Fatalf("the authority is another when it is read: %v", err)
	}
	for _, c := range []struct {
		by   *house
		want bool
	}{{h, true}, {foreign, false}} {
		cert, err := c.by.Authority.Controller(h.Clock())
		if err != nil {
			t.Fatal(err)
		}
		near, far := net.Pipe()
		served := make(chan error, 1)
		go func() {
			server := tls.Server(far, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*cert}})
			served <- server.Handshake()
			_, _ = server.Read(make([]byte, 1))
		}()
		client := tls.Client(near, authority.TrustByFingerprint(again.Fingerprint(), h.Clock))
		if err := client.Handshake(); (err == nil) != c.want {
			t.Errorf("by its own cluster %t: %v", c.want, err)
		}
		_ = near.Close()
		if err := <-served; (err == nil) != c.want {
			t.Errorf("to the controller, by its own cluster %t: %v", c.want, err)
		}
		_ = far.Close()
	}
}
