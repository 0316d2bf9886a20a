// Package authoritytest is a door for tests, with nodes behind it that are in memory, and a clock that stands where it is put.
package authoritytest

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/authority"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/joining"
)

// House is a door with nodes. It is safe for concurrent use.
type House struct {
	t testing.TB
	*authority.Door

	mu    sync.Mutex
	nodes map[string]*cluster.Node
	later atomic.Int64 // a time.Duration
}

// Epoch and Place are what the door tells agents.
const (
	Epoch = 7
	Place = "192.0.2.7:1"
)

// New returns a house without nodes.
func New(t testing.TB) *House {
	t.Helper()
	h := &House{t: t, nodes: map[string]*cluster.Node{}}
	ca, err := authority.New(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	h.Door = &authority.Door{Authority: ca, Now: h.Clock, Term: Epoch, Places: func() []string { return []string{Place} }, Node: h.Named, Update: h.update}
	return h
}

// Clock is the time, which Later puts on.
func (h *House) Clock() time.Time {
	return time.Now().Add(time.Duration(h.later.Load()))
}

// Later puts the clock on.
func (h *House) Later(by time.Duration) {
	h.later.Add(int64(by))
}

// Named is the node of a name; nil if there is none.
func (h *House) Named(name string) *cluster.Node {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.nodes[name]
}

// Put puts a node in place of the one of a name; nil removes it.
func (h *House) Put(name string, n *cluster.Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.nodes[name] = n; n == nil {
		delete(h.nodes, name)
	}
}

func (h *House) update(_ context.Context, name string, decide func(*cluster.Node) (*cluster.NodeAgent, error)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	of, err := decide(h.nodes[name])
	if err == nil {
		n := h.nodes[name].Clone()
		n.Agent = of
		h.nodes[name] = n
	}
	return err
}

// Secret gives a node a token, and returns its secret. The node is made if it is not there.
func (h *House) Secret(name string) string {
	n := h.Named(name)
	if n == nil {
		n = cluster.NewNode("uuid of "+name, name, "192.0.2.1", "g", 1)
	}
	if n = n.Clone(); n.Agent == nil {
		n.Agent = &cluster.NodeAgent{}
	}
	secret := rand.Text()
	n.Agent.Token = &cluster.JoinToken{Hash: joining.HashOf(secret), Until: h.Clock().Add(joining.TokenTime).Unix()}
	h.Put(name, n)
	return secret
}

// Request makes a key, and the request for its certificate.
func (h *House) Request() (*ecdsa.PrivateKey, []byte) {
	h.t.Helper()
	key, request, err := authority.NewRequest()
	if err != nil {
		h.t.Fatal(err)
	}
	return key, request
}

// Parsed is a certificate, as PEM, of which an error was none.
func (h *House) Parsed(text []byte, err error) *x509.Certificate {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// Joined joins as a node.
func (h *House) Joined(name string) (*ecdsa.PrivateKey, *x509.Certificate) {
	h.t.Helper()
	key, r := h.Request()
	return key, h.Parsed(h.Join(context.Background(), name, h.Secret(name), r))
}

// Config is the TLS of an agent that shows a certificate.
func (h *House) Config(key *ecdsa.PrivateKey, c *x509.Certificate) *tls.Config {
	h.t.Helper()
	config, err := authority.Trust(h.Authority.Certificate(), &tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: key})
	if err != nil {
		h.t.Fatal(err)
	}
	return config
}

// Server is the TLS of the controller.
func (h *House) Server() *tls.Config {
	h.t.Helper()
	own, err := h.Authority.Controller(h.Clock())
	if err != nil {
		h.t.Fatal(err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*own}, ClientAuth: tls.RequestClientCert, NextProtos: []string{"h2"}}
}

// Denied fails the test unless an error says that something is denied, in these words.
func (h *House) Denied(what string, err error, want string) {
	h.t.Helper()
	if !fault.Is(err, fault.Denied) || !strings.Contains(err.Error(), want) {
		h.t.Errorf("%s: %v, want that it is denied with %q", what, err, want)
	}
}
