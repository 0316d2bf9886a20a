package agentwire

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/exec/nodetest"
)

// authority signs certificates.
type authority struct {
	*testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{T: t}
	a.key, a.cert = a.sign(nil, "authority")
	return a
}

// sign makes a certificate for a name; the first one is the authority's own.
func (a *authority) sign(by *authority, name string) (*ecdsa.PrivateKey, *x509.Certificate) {
	a.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: by == nil,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		a.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		a.Fatal(err)
	}
	return key, cert
}

// config is the TLS of one side, who trusts those whom the authority signs.
func (a *authority) config(name string) *tls.Config {
	a.Helper()
	key, cert := a.sign(a, name)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}},
		RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, ServerName: "controller", NextProtos: []string{"h2"},
	}
}

// nodeOf is who shows a certificate.
func nodeOf(c *x509.Certificate) (string, error) {
	if c.Subject.CommonName == "revoked" {
		return "", errors.New("it was revoked")
	}
	return c.Subject.CommonName, nil
}

// hub listens on a loopback address.
func (a *authority) hub(log *slog.Logger) (*Hub, net.Listener) {
	a.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", a.config("controller"))
	if err != nil {
		a.Fatal(err)
	}
	h := NewHub(nodeOf, log)
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(l) }()
	a.Cleanup(func() {
		_ = l.Close()
		if err := <-ended; err != nil {
			a.Error(err)
		}
		h.Close()
	})
	return h, l
}

// dial keeps an agent linked until what is returned is called, or the test ends.
func (a *authority) dial(d *Dialer) (stop func()) {
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-ended
	}
	a.Cleanup(stop)
	return stop
}

// overTLS reaches an agent that has dialled.
func overTLS(t *testing.T, a *agent.Agent) exec.Node {
	t.Helper()
	ca := newAuthority(t)
	hub, l := ca.hub(slog.New(slog.DiscardHandler))
	handler := NewHandler(a)
	ca.dial(&Dialer{Node: a.Node(), Address: l.Addr().String(), TLS: ca.config(a.Node()), Handler: handler})
	t.Cleanup(handler.Close)
	return NewClient(a.Node(), hub.Conn(a.Node()), 0)
}

// TestOverTLS holds both ends to the suite, over a link whose both ends show certificates.
func TestOverTLS(t *testing.T) { nodetest.Run(t, overTLS) }

// logged hands over what is logged, for tests that wait for it.
type logged chan string

func (l logged) Write(text []byte) (int, error) {
	select {
	case l <- string(text):
	default:
	}
	return len(text), nil
}

func (l logged) await(t *testing.T, what string) string {
	t.Helper()
	for {
		if line := nodetest.Within(t, l, what); strings.Contains(line, what) {
			return line
		}
	}
}

func newLogged() (logged, *slog.Logger) {
	l := make(logged, 1000)
	return l, slog.New(slog.NewTextHandler(l, nil))
}

// TestOnlyTheNodeItself has others dial: with another's name, another authority, a revoked certificate, none, and another version.
func TestOnlyTheNodeItself(t *testing.T) {
	ca, foreign := newAuthority(t), newAuthority(t)
	hubLog, log := newLogged()
	hub, l := ca.hub(log)
	trusting := foreign.config("node1")
	trusting.RootCAs = ca.config("node1").RootCAs
	none := ca.config("node1")
	none.Certificates = nil
	for _, c := range []struct {
		name   string
		node   string
		config *tls.Config
		want   string
	}{
		{"another's name", "node2", ca.config("node1"), "the agent says it is node"},
		{"another authority", "node1", trusting, "unknown certificate authority"},
		{"a revoked certificate", "revoked", ca.config("revoked"), "it was revoked"},
		{"no certificate", "node1", none, "certificate required"},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines, log := newLogged()
			stop := (&authority{T: t}).dial(&Dialer{Node: c.node, Address: l.Addr().String(), TLS: c.config, Handler: http.NotFoundHandler(), Log: log})
			defer stop()
			if line := lines.await(t, "there is no link"); !strings.Contains(line, c.want) {
				t.Errorf("the agent is told %s", line)
			}
			hubLog.await(t, "an agent was refused")
		})
	}
	for _, node := range []string{"node1", "node2", "revoked"} {
		if link, _ := hub.link(node); link != nil {
			t.Errorf("there is a link of %s", node)
		}
	}
	if err := hub.judge([][]*x509.Certificate{{{Subject: pkix.Name{CommonName: "node1"}}}}, &hello{Protocol: protocol + 1, Node: "node1"}); err == nil {
		t.Error("an agent of another version is welcome")
	}
}

// TestTheNewestConnection has a node dial from a second place: what the first one serves is over.
func TestTheNewestConnection(t *testing.T) {
	ca := newAuthority(t)
	hubLog, log := newLogged()
	hub, l := ca.hub(log)
	names := make(chan string, 10)
	dial := func(name string) (ended chan error) {
		d := &Dialer{Node: "node1", Address: l.Addr().String(), TLS: ca.config("node1"), Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { names <- name })}
		d.Log, ended = slog.New(slog.DiscardHandler), make(chan error, 1)
		go func() { ended <- d.once(t.Context()) }()
		hubLog.await(t, "an agent is connected")
		return ended
	}
	first := dial("first")
	dial("second")
	if err := nodetest.Within(t, first, "the end of the first link"); err == nil {
		t.Error("the first link has no end")
	}
	conn, err := hub.Conn("node1")(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	res, err := post(t.Context(), conn, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if got := nodetest.Within(t, names, "a call"); got != "second" {
		t.Errorf("the call went to the %s", got)
	}
}

// TestALinkThatEndsIsMadeAnew ends the link of an agent whose calls go on.
func TestALinkThatEndsIsMadeAnew(t *testing.T) {
	ca := newAuthority(t)
	hub, l := ca.hub(slog.New(slog.DiscardHandler))
	r := nodetest.New(t, func(t *testing.T, a *agent.Agent) exec.Node {
		handler := NewHandler(a)
		ca.dial(&Dialer{Node: a.Node(), Address: l.Addr().String(), TLS: ca.config(a.Node()), Handler: handler})
		t.Cleanup(handler.Close)
		return NewClient(a.Node(), hub.Conn(a.Node()), 0)
	})
	r.Made(nodetest.One)
	for i := range 5 {
		link, _ := hub.link(r.Node.Node())
		r.FailOnce("reboot", func() { _ = link.Close() })
		r.Must(r.Node.RebootSoft(t.Context(), nodetest.Order(10+i, 1), nodetest.One, nil))
	}
	if n := r.Calls("reboot"); n != 5 {
		t.Errorf("5 orders rebooted %d times", n)
	}
}
