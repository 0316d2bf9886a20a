package agentwire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/backoff"
	"github.com/drover-project/drover/internal/fault"
)

// A link begins with TLS, in which both show certificates. Then each side says one line of JSON, the agent first: who it is, and whether it is
// welcome. From there on the connection is HTTP/2, and the agent serves.

// protocol is the version of the link.
const protocol = 1

// Times and sizes of a link.
const (
	// greetTime is how long both have for all before HTTP/2.
	greetTime = 10 * time.Second
	// maxGreeting is the size of a line before that.
	maxGreeting = 4 << 10
	// pingAfter is when a silent connection is asked for a sign of life, and pingWait how long that may take.
	pingAfter = 10 * time.Second
	pingWait  = 5 * time.Second
	// maxStreams is how many calls go over one connection at a time.
	maxStreams = 1000
)

// pings are from both sides: each has to find out by itself that the other is gone.
func pings() *http.HTTP2Config {
	return &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingWait, MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerStream: 1 << 20}
}

// hello is what an agent says first.
type hello struct {
	Protocol int    `json:"protocol"`
	Node     string `json:"node"`
}

// welcome is the answer.
type welcome struct {
	Refused *failure `json:"refused,omitempty"`
}

// readGreeting reads a line, and nothing behind it.
func readGreeting(conn net.Conn, into any) error {
	var line []byte
	for one := make([]byte, 1); len(line) < maxGreeting; {
		if _, err := conn.Read(one); err != nil {
			return err
		}
		if one[0] == '\n' {
			return json.Unmarshal(line, into)
		}
		line = append(line, one[0])
	}
	return errors.New("what it says has no end")
}

func writeGreeting(conn net.Conn, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = conn.Write(append(text, '\n'))
	return err
}

// Hub holds the connections of agents, at a controller.
type Hub struct {
	// Who tells which node shows a certificate, which TLS has verified; an error refuses it.
	who func(*x509.Certificate) (node string, err error)
	log *slog.Logger

	mu     sync.Mutex
	links  map[string]*http.ClientConn
	news   chan struct{} // closed when a link is there that was not
	closed bool
}

// NewHub returns a hub without connections.
func NewHub(who func(*x509.Certificate) (node string, err error), log *slog.Logger) *Hub {
	return &Hub{who: who, log: log, links: map[string]*http.ClientConn{}, news: make(chan struct{})}
}

// Serve takes connections from a listener whose TLS asks for verified certificates, until that is closed. The listener bounds how many there
// are (package gate).
func (h *Hub) Serve(l net.Listener) error {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go h.take(conn)
	}
}

// take makes a link of a connection.
func (h *Hub) take(conn net.Conn) {
	node, err := h.greet(conn)
	if err != nil {
		h.log.Warn("an agent was refused", "from", conn.RemoteAddr(), "error", err)
		_ = conn.Close()
		return
	}
	// A client of HTTP dials by itself: it is handed what there is.
	transport := &http.Transport{Protocols: new(http.Protocols), HTTP2: pings(), DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
	transport.Protocols.SetHTTP2(true)
	link, err := transport.NewClientConn(context.Background(), "https", "agent:443")
	if err != nil {
		h.log.Warn("an agent speaks no HTTP/2", "node", node, "error", err)
		_ = conn.Close()
		return
	}
	h.add(node, link)
}

// greet hears who dials, and answers.
func (h *Hub) greet(conn net.Conn) (node string, err error) {
	if err := conn.SetDeadline(time.Now().Add(greetTime)); err != nil {
		return "", err
	}
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return "", errors.New("the connection is not TLS")
	}
	if err := secure.Handshake(); err != nil { //nolint:noctx // the deadline bounds it
		return "", err
	}
	var said hello
	if err := readGreeting(conn, &said); err != nil {
		return "", err
	}
	refusal := h.judge(secure.ConnectionState().VerifiedChains, &said)
	if err := writeGreeting(conn, welcome{Refused: failed(refusal)}); err != nil {
		return "", err
	}
	if refusal != nil {
		return "", refusal
	}
	return said.Node, conn.SetDeadline(time.Time{})
}

// judge refuses whoever is not the node that it says it is.
func (h *Hub) judge(chains [][]*x509.Certificate, said *hello) error {
	if len(chains) == 0 {
		return fault.New(fault.Denied, "the agent shows no certificate that was verified")
	}
	node, err := h.who(chains[0][0])
	switch {
	case err != nil:
		return fault.New(fault.Denied, "the certificate of the agent is refused: %w", err)
	case said.Node != node:
		return fault.New(fault.Denied, "the agent says it is node %.300q, and its certificate is that of %s", said.Node, node)
	case said.Protocol != protocol:
		return fault.New(fault.Unsupported, "the agent speaks version %d of the protocol, and this controller %d", said.Protocol, protocol).
			WithHint("bring both to the same version")
	}
	return nil
}

// add makes a link that of its node. The one before is closed: its agent has dialled again, or is not the newest.
func (h *Hub) add(node string, link *http.ClientConn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		_ = link.Close()
		return
	}
	if old := h.links[node]; old != nil {
		go old.Close() //nolint:errcheck // it is not needed any more
	}
	h.links[node] = link
	close(h.news)
	h.news = make(chan struct{})
	h.log.Info("an agent is connected", "node", node)
	link.SetStateHook(func(c *http.ClientConn) {
		if c.Err() != nil {
			go h.drop(node, c) // the hook is not to wait
		}
	})
}

// drop forgets a link that has ended.
func (h *Hub) drop(node string, link *http.ClientConn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.links[node] == link {
		delete(h.links, node)
		h.log.Warn("an agent is away", "node", node)
	}
}

// Conn waits for the link of a node, until ctx ends.
func (h *Hub) Conn(node string) Conn {
	return func(ctx context.Context) (http.RoundTripper, error) {
		for {
			link, news := h.link(node)
			if link != nil {
				return link, nil
			}
			select {
			case <-news:
			case <-ctx.Done():
				return nil, fault.New(fault.Unavailable, "the agent of node %s is not connected", node)
			}
		}
	}
}

func (h *Hub) link(node string) (*http.ClientConn, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	link := h.links[node]
	if link != nil && link.Err() != nil {
		return nil, h.news
	}
	return link, h.news
}

// Close ends all links; agents dial again, and find another controller or this one.
func (h *Hub) Close() {
	h.mu.Lock()
	links := h.links
	h.links, h.closed = map[string]*http.ClientConn{}, true
	h.mu.Unlock()
	for _, link := range links {
		_ = link.Close()
	}
}

// Dialer keeps a link from an agent to a controller.
type Dialer struct {
	// Node is who dials, and Address whom: HOST:PORT.
	Node, Address string
	// TLS has the agent's certificate, and by whom the controller's is signed.
	TLS *tls.Config
	// Handler serves the agent.
	Handler http.Handler
	Log     *slog.Logger
}

// redials are the pauses between tries to reach a controller.
func redials() backoff.Pauses {
	return backoff.Pauses{First: 100 * time.Millisecond, Longest: 10 * time.Second}
}

// Run keeps the link until ctx ends.
func (d *Dialer) Run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		begun := time.Now()
		err := d.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if failures++; time.Since(begun) > redials().Longest { // a link that is ended at once is none: two agents of one node would fight for it
			failures = 1
		}
		pause := redials().After(failures)
		d.Log.Warn("there is no link to the controller", "address", d.Address, "again in", pause, "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// once dials, and serves until the link ends.
func (d *Dialer) once(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	config := d.TLS.Clone()
	config.NextProtos = []string{"h2"}
	conn, err := (&tls.Dialer{Config: config}).DialContext(limit, "tcp", d.Address)
	if err != nil {
		return err
	}
	if err := d.greet(conn); err != nil {
		_ = conn.Close()
		return err
	}
	d.serve(ctx, conn)
	return errors.New("the link was ended")
}

// greet says who the agent is, and hears whether it is welcome.
func (d *Dialer) greet(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(greetTime)); err != nil {
		return err
	}
	if err := writeGreeting(conn, hello{Protocol: protocol, Node: d.Node}); err != nil {
		return err
	}
	var answer welcome
	if err := readGreeting(conn, &answer); err != nil {
		return err // also that TLS refuses the certificate, which a client learns at its first read
	}
	if answer.Refused != nil {
		return answer.Refused.fault()
	}
	return conn.SetDeadline(time.Time{})
}

// serve serves the connection until it ends, or ctx.
func (d *Dialer) serve(ctx context.Context, conn net.Conn) {
	l := &single{conn: conn, over: make(chan struct{})}
	s := &http.Server{
		Handler: d.Handler, Protocols: new(http.Protocols), HTTP2: pings(), ReadHeaderTimeout: greetTime, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(d.Log.Handler(), slog.LevelDebug),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				_ = l.Close()
			}
		},
	}
	s.Protocols.SetHTTP2(true)
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	_ = s.Serve(l) // it ends with the connection
	_ = s.Close()
}

// single is a listener that has one connection.
type single struct {
	conn  net.Conn
	taken sync.Once
	ends  sync.Once
	over  chan struct{}
}

// Accept implements net.Listener.
func (l *single) Accept() (conn net.Conn, err error) {
	l.taken.Do(func() { conn = l.conn })
	if conn != nil {
		return conn, nil
	}
	<-l.over
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (l *single) Close() error {
	l.ends.Do(func() { close(l.over) })
	return nil
}

// Addr implements net.Listener.
func (l *single) Addr() net.Addr { return l.conn.LocalAddr() }
