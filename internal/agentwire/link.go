package agentwire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
)

// A link begins with TLS, in which the controller shows a certificate, and the agent one if it has it. Then each side says one line of JSON, the agent
// first: who it is and what it wants, and whether it is welcome. Who wanted a certificate has it in that line, and dials again. From there on the
// connection is HTTP/2, and the agent serves.

// protocol is the version of the link.
const protocol = 1

// Times and sizes of a link.
const (
	// greetTime is how long both have for all before HTTP/2.
	greetTime = 10 * time.Second
	// maxGreeting is the size of a line before that.
	maxGreeting = 32 << 10
	// pingAfter is when a silent connection is asked for a sign of life, and pingWait how long that may take.
	pingAfter = 10 * time.Second
	pingWait  = 5 * time.Second
	// maxStreams is how many calls go over one connection at a time.
	maxStreams = 1000
)

// How much of one body each end takes that nobody has read yet: what else goes that way waits behind it. Screens come to the controller, and whoever types on a serial
// line meanwhile waits for 5 ms where 12.5 MB come through in a second.
const (
	maxToController = 64 << 10
	maxToAgent      = 1 << 20
)

// settings of HTTP/2, with pings from both sides: each has to find out by itself that the other is gone.
func settings(unread int) *http.HTTP2Config {
	return &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingWait, MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerStream: unread}
}

// hello is what an agent says first.
type hello struct {
	Protocol int    `json:"protocol"`
	Node     string `json:"node"`
	// Request asks for a certificate, as DER: with Secret, that of a token, to join, and with the certificate that is shown for the next one.
	Request []byte `json:"request,omitempty"`
	Secret  string `json:"secret,omitempty"`
}

// welcome is the answer.
type welcome struct {
	Refused *failure `json:"refused,omitempty"`
	// Certificate is what was asked for, as PEM.
	Certificate []byte `json:"certificate,omitempty"`
	// Epoch is that of the term in which the controller leads, and Addresses are where controllers are found by now.
	Epoch     int64    `json:"epoch,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
}

// readGreeting reads a line, and nothing behind it.
func readGreeting(conn net.Conn, into any) error {
	var line []byte
	for one := make([]byte, 1); len(line) < maxGreeting; {
		if _, err := conn.Read(one); err != nil {
			return err
		}
		if one[0] == '\n' {
			if err := intake.ReadOpen(line, into); err != nil {
				return fault.New(fault.Invalid, "what it says cannot be read: %w", err)
			}
			return nil
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

// Door decides who comes in. It is the leader's.
type Door interface {
	// Admit refuses who may not serve as a node, by the certificate that it shows.
	Admit(node string, shown *x509.Certificate) error
	// Join makes the certificate of an agent that has the secret of a token, and Renew the next one of who shows a certificate; both for a request, as DER.
	// The certificate is PEM.
	Join(ctx context.Context, node, secret string, request []byte) (certificate []byte, err error)
	Renew(ctx context.Context, node string, shown *x509.Certificate, request []byte) (certificate []byte, err error)
	// Epoch is that of the leader's term, and Addresses are where agents find controllers.
	Epoch() int64
	Addresses() []string
}

// link is the connection of an agent, and what it showed when it came.
type link struct {
	*http.ClientConn
	shown *x509.Certificate
}

// Hub holds the connections of agents, at a controller.
type Hub struct {
	log *slog.Logger

	mu    sync.Mutex
	door  Door // nil while another controller leads
	links map[string]*link
	// opened is when the door was opened, and lost since when a node is away that was there since then.
	opened time.Time
	lost   map[string]time.Time
	news   chan struct{} // closed when a link is there that was not, or one was lost
	// greeting are connections whose other end is not known yet.
	greeting map[net.Conn]struct{}
	greets   sync.WaitGroup
}

// NewHub returns a hub without connections, that is shut.
func NewHub(log *slog.Logger) *Hub {
	return &Hub{log: log, links: map[string]*link{}, lost: map[string]time.Time{}, greeting: map[net.Conn]struct{}{}, news: make(chan struct{})}
}

// Open takes agents in from now on, through a door.
func (h *Hub) Open(d Door) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.door, h.opened = d, time.Now()
	h.tell()
}

// present is the door; nil while the hub is shut.
func (h *Hub) present() Door {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.door
}

// Serve takes connections from a listener until that is closed; its TLS has to ask for certificates. The listener bounds how many there
// are (package gate).
func (h *Hub) Serve(l net.Listener, config *tls.Config) error {
	defer h.greets.Wait()
	defer h.endGreetings()
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		h.mu.Lock()
		h.greeting[conn] = struct{}{}
		h.mu.Unlock()
		h.greets.Go(func() { h.take(tls.Server(conn, config)) })
	}
}

// take makes a link of a connection, or answers who wants a certificate.
func (h *Hub) take(conn *tls.Conn) {
	d, shown, said, err := h.greet(conn)
	h.mu.Lock()
	delete(h.greeting, conn.NetConn())
	h.mu.Unlock()
	switch {
	case fault.Is(err, fault.Unavailable): // agents look for the leader everywhere
		h.log.Debug("an agent was sent on", "from", conn.RemoteAddr(), "error", err)
	case err != nil:
		h.log.Warn("an agent was refused", "from", conn.RemoteAddr(), "error", err)
	}
	if err != nil || said.Request != nil {
		_ = conn.Close()
		return
	}
	// A client of HTTP dials by itself: it is handed what there is.
	transport := &http.Transport{Protocols: new(http.Protocols), HTTP2: settings(maxToController), DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
	transport.Protocols.SetHTTP2(true)
	client, err := transport.NewClientConn(context.Background(), "https", "agent:443")
	if err != nil {
		h.log.Warn("an agent speaks no HTTP/2", "node", said.Node, "error", err)
		_ = conn.Close()
		return
	}
	if in, ok := conn.NetConn().(interface{ Known() }); ok { // it has shown that it belongs here
		in.Known()
	}
	h.add(d, said.Node, &link{client, shown})
	if err := d.Admit(said.Node, shown); err != nil { // its node went, or was given to another, while it came in
		_ = client.Close()
	}
}

// endGreetings closes the connections of those who are not known yet.
func (h *Hub) endGreetings() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for conn := range h.greeting {
		_ = conn.Close() // without a word, for which the other end might have to be waited for
	}
}

// greet hears who dials, and answers.
func (h *Hub) greet(conn *tls.Conn) (d Door, shown *x509.Certificate, said hello, err error) {
	if err := conn.SetDeadline(time.Now().Add(greetTime)); err != nil {
		return nil, nil, said, err
	}
	if err := conn.Handshake(); err != nil { //nolint:noctx // the deadline bounds it
		return nil, nil, said, err
	}
	if err := readGreeting(conn, &said); err != nil {
		if fault.Is(err, fault.Invalid) { // it is there and listens
			_ = writeGreeting(conn, welcome{Refused: failed(err)}) // or it is gone by now
		}
		return nil, nil, said, err
	}
	if all := conn.ConnectionState().PeerCertificates; len(all) > 0 {
		shown = all[0]
	}
	d = h.present()
	answer, refusal := reply(d, shown, &said)
	answer.Refused = failed(refusal)
	if err := writeGreeting(conn, answer); err != nil {
		return nil, nil, said, err
	}
	if refusal != nil {
		return nil, nil, said, refusal
	}
	return d, shown, said, conn.SetDeadline(time.Time{})
}

// reply refuses whoever is not the node that it says it is, and makes the certificate that is asked for.
func reply(d Door, shown *x509.Certificate, said *hello) (answer welcome, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), greetTime)
	defer cancel()
	switch {
	case said.Protocol != protocol:
		return answer, fault.New(fault.Unsupported, "the agent speaks version %d of the protocol, and this controller %d", said.Protocol, protocol).
			WithHint("bring both to the same version")
	case d == nil:
		return answer, fault.New(fault.Unavailable, "this controller does not lead").WithHint("another one does, or will in a moment")
	case said.Request != nil && said.Secret != "":
		answer.Certificate, err = d.Join(ctx, said.Node, said.Secret, said.Request)
	case shown == nil:
		err = fault.New(fault.Denied, "the agent shows no certificate").WithHint("an agent joins first: drover agent join TOKEN")
	case said.Request != nil:
		answer.Certificate, err = d.Renew(ctx, said.Node, shown, said.Request)
	default:
		err = d.Admit(said.Node, shown)
	}
	if err != nil {
		return welcome{}, err
	}
	answer.Epoch, answer.Addresses = d.Epoch(), d.Addresses()
	return answer, nil
}

// add makes a link that of its node, unless the door through which it came was shut. The one before is closed: its agent has dialled again, or is not the newest.
func (h *Hub) add(d Door, node string, l *link) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.door != d {
		_ = l.Close()
		return
	}
	if old := h.links[node]; old != nil {
		go old.Close() //nolint:errcheck // it is not needed any more
	}
	h.links[node] = l
	delete(h.lost, node)
	h.tell()
	h.log.Info("an agent is connected", "node", node)
	l.SetStateHook(func(c *http.ClientConn) {
		if c.Err() != nil {
			go h.drop(node, l) // the hook is not to wait
		}
	})
}

// drop forgets a link that has ended.
func (h *Hub) drop(node string, l *link) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.links[node] == l {
		h.lose(node)
		h.log.Warn("an agent is away", "node", node)
	}
}

// lose notes that a node is away from now on. Who calls it holds mu.
func (h *Hub) lose(node string) {
	delete(h.links, node)
	h.lost[node] = time.Now()
	h.tell()
}

// tell tells who waits for news. Who calls it holds mu.
func (h *Hub) tell() {
	close(h.news)
	h.news = make(chan struct{})
}

// News is closed when an agent comes, or is lost.
func (h *Hub) News() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.news
}

// Away tells since when a node is away: since its agent was lost, or since agents are taken in if it has not come yet. No time is for one that is
// there, and for all while nobody is taken in.
func (h *Hub) Away(node string) (since time.Time, lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch l := h.links[node]; {
	case h.door == nil || l != nil && l.Err() == nil:
		return time.Time{}, false
	case l != nil: // it is about to be noted
		return time.Now(), true
	}
	if since, lost = h.lost[node]; !lost {
		since = h.opened
	}
	return since, lost
}

// Conn waits for the link of a node, until ctx ends.
func (h *Hub) Conn(node string) Conn {
	return func(ctx context.Context) (http.RoundTripper, error) {
		for {
			l, news := h.link(node)
			if l != nil {
				return l, nil
			}
			select {
			case <-news:
			case <-ctx.Done():
				return nil, fault.New(fault.Unavailable, "the agent of node %s is not connected", node)
			}
		}
	}
}

func (h *Hub) link(node string) (*link, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.links[node]
	if l != nil && l.Err() != nil {
		return nil, h.news
	}
	return l, h.news
}

// Keep ends the links of those of whom a function says that they are not to be kept, by the node's name and what the agent showed when it came.
func (h *Hub) Keep(keeps func(node string, shown *x509.Certificate) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for node, l := range h.links {
		if !keeps(node, l.shown) {
			h.lose(node)
			go l.Close() //nolint:errcheck // nobody needs it
			h.log.Warn("the link of an agent is ended: its certificate counts no more", "node", node)
		}
	}
}

// Linked tells whether the agent of a node is connected.
func (h *Hub) Linked(node string) bool {
	l, _ := h.link(node)
	return l != nil
}

// Nodes are those whose agents are connected.
func (h *Hub) Nodes() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.links))
}

// Shut ends all links and takes nobody in; agents dial again, and find another controller or this one.
func (h *Hub) Shut() {
	h.mu.Lock()
	links := h.links
	h.links, h.lost, h.door = map[string]*link{}, map[string]time.Time{}, nil
	h.mu.Unlock()
	for _, l := range links {
		_ = l.Close()
	}
}
