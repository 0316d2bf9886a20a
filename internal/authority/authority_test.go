package authority_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"

	"github.com/drover-project/drover/internal/authority"
	"github.com/drover-project/drover/internal/authority/authoritytest"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

// TestNobodyIsTakenForAnother shows certificates where they do not belong.
func TestNobodyIsTakenForAnother(t *testing.T) {
	h, foreign := authoritytest.New(t), authoritytest.New(t)
	_, r := h.Request()
	_, mine := h.Joined("node1")
	h.Joined("node2")
	h.Denied("one node as another", h.Admit("node2", mine), "its certificate is that of node1")
	_, err := h.Renew(t.Context(), "node2", mine, r)
	h.Denied("renewing another's", err, "its certificate is that of node1")
	_, theirs := foreign.Joined("node1")
	h.Denied("a foreign authority", h.Admit("node1", theirs), "not signed by this cluster")
	controller, err := h.Authority.Controller(h.Clock())
	if err != nil {
		t.Fatal(err)
	}
	h.Denied("a controller as an agent", h.Admit("node1", controller.Leaf), "not signed by this cluster")
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(h.Authority.Certificate())
	if _, err := mine.Verify(x509.VerifyOptions{Roots: pool, DNSName: authority.ControllerName}); err == nil {
		t.Error("an agent is taken for a controller")
	}
	if _, err := authority.ReadRequest([]byte("none")); !fault.Is(err, fault.Invalid) {
		t.Errorf("no request: %v", err)
	}
}

// TestARequestIsOfWhoHasItsKey: who wants a certificate for a key has to have it. Another's request with a signature that is not by its key, as who saw
// the key alone could make it, is refused, and the token is not used up by it.
func TestARequestIsOfWhoHasItsKey(t *testing.T) {
	h := authoritytest.New(t)
	secret := h.Secret("node1")
	_, theirs := h.Request()
	_, mine := h.Request()
	theirs[len(theirs)-1] ^= 1 // within the signature, which is behind all that is signed
	if _, err := h.Join(t.Context(), "node1", secret, theirs); !fault.Is(err, fault.Invalid) {
		t.Errorf("a request with a wrong signature: %v", err)
	}
	if err := h.Admit("node1", h.Parsed(h.Join(t.Context(), "node1", secret, mine))); err != nil {
		t.Error(err)
	}
}

// TestNoCertificateIsHandedOutBeforeItCounts: what a node is to keep is decided, and the store does not say that it does. Whoever asked
// gets no certificate, which would count only if the store has it after all.
func TestNoCertificateIsHandedOutBeforeItCounts(t *testing.T) {
	h := authoritytest.New(t)
	_, r := h.Request()
	_, mine := h.Joined("node1")
	secret := h.Secret("node2")
	h.Update = func(_ context.Context, name string, decide func(*cluster.Node) (*cluster.NodeAgent, error)) error {
		if _, err := decide(h.Named(name)); err != nil {
			return err
		}
		return fault.New(fault.Unavailable, "the store does not answer")
	}
	if text, err := h.Renew(t.Context(), "node1", mine, r); text != nil || !fault.Is(err, fault.Unavailable) {
		t.Errorf("who renews is told %q, %v", text, err)
	}
	if text, err := h.Join(t.Context(), "node2", secret, r); text != nil || !fault.Is(err, fault.Unavailable) {
		t.Errorf("who joins is told %q, %v", text, err)
	}
}

// TestTrustByFingerprint has an agent meet controllers of its cluster and of another.
func TestTrustByFingerprint(t *testing.T) {
	h, foreign := authoritytest.New(t), authoritytest.New(t)
	text, err := h.Authority.Text()
	if err != nil {
		t.Fatal(err)
	}
	again, err := authority.Parse(text)
	if err != nil || again.Fingerprint() != h.Authority.Fingerprint() {
		t.Fatalf("the authority is another when it is read: %v", err)
	}
	for _, c := range []struct {
		by   *authoritytest.House
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
