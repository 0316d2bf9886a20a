package agentwire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/authority"
	"github.com/drover-project/drover/internal/authority/authoritytest"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/exec/nodetest"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/testkit"
)

// house is a door with nodes.
type house struct {
	*authoritytest.House
	t testing.TB
}

func newHouse(t testing.TB) *house {
	t.Helper()
	return &house{authoritytest.New(t), t}
}

// config is the TLS of an agent that joins as a node.
func (h *house) config(name string) *tls.Config {
	h.t.Helper()
	return h.Config(h.Joined(name))
}

// hub listens on a loopback address.
func (h *house) hub(log *slog.Logger) (*Hub, net.Listener) {
	h.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		h.t.Fatal(err)
	}
	hub := NewHub(log)
	hub.Open(h)
	ended := make(chan error, 1)
	go func() { ended <- hub.Serve(l, h.Server()) }()
	h.t.Cleanup(func() {
		_ = l.Close()
		if err := <-ended; err != nil {
			h.t.Error(err)
		}
		hub.Shut()
	})
	return hub, l
}

// dialer is one of a node, by what it shows.
func dialer(node string, l net.Listener, config *tls.Config, handler http.Handler) *Dialer {
	return &Dialer{
		Node: node, Addresses: func() []string { return []string{l.Addr().String()} }, TLS: func() (*tls.Config, error) { return config, nil },
		Handler: handler, Log: slog.New(slog.DiscardHandler),
	}
}

// dial keeps an agent linked until what is returned is called, or the test ends.
func dial(t testing.TB, d *Dialer) (stop func()) {
	t.Helper()
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
	t.Cleanup(stop)
	return stop
}

// overTLS reaches an agent that has dialled.
func overTLS(t *testing.T, a *agent.Agent) exec.Node {
	t.Helper()
	ca := newHouse(t)
	hub, l := ca.hub(slog.New(slog.DiscardHandler))
	handler := newHandler(t, a)
	dial(t, dialer(a.Node(), l, ca.config(a.Node()), handler))
	t.Cleanup(handler.Close)
	return NewClient(a.Node(), hub.Conn(a.Node()), 0)
}

// TestOverTLS holds both ends to the suite, over a link whose both ends show certificates.
func TestOverTLS(t *testing.T) { nodetest.Run(t, overTLS) }

// TestLittleIsOnItsWay hears as an agent how much of one answer a controller takes that nobody has read: what else comes over the connection waits behind it, and
// a way of 12.5 MB/s has carried it in 5 ms.
func TestLittleIsOnItsWay(t *testing.T) {
	ca := newHouse(t)
	_, l := ca.hub(slog.New(slog.DiscardHandler))
	conn, _, err := greeted(t.Context(), l.Addr().String(), ca.config("node1"), hello{Protocol: protocol, Node: "node1"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // it was heard
	if err := conn.SetReadDeadline(time.Now().Add(testkit.Patience())); err != nil {
		t.Fatal(err)
	}
	// RFC 9113, 3.4 and 6.5: the preface, and a frame of settings, of six bytes each.
	const preface, settingsFrame, initialWindow, most = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 4, 4, 64 << 10
	head := make([]byte, len(preface)+9)
	if _, err := io.ReadFull(conn, head); err != nil || !strings.HasPrefix(string(head), preface) {
		t.Fatalf("%q, %v", head, err)
	}
	head = head[len(preface):]
	body := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
	if _, err := io.ReadFull(conn, body); err != nil || head[3] != settingsFrame {
		t.Fatalf("%v, %v", head, err)
	}
	for one := range slices.Chunk(body, 6) {
		if binary.BigEndian.Uint16(one) != initialWindow {
			continue
		}
		if got := binary.BigEndian.Uint32(one[2:]); got > most {
			t.Errorf("a controller takes %d bytes that nobody has read", got)
		}
		return
	}
	t.Errorf("a controller does not say how much it takes: %v", body)
}

// TestWhoIsAway asks a hub since when nodes are away.
func TestWhoIsAway(t *testing.T) {
	ca := newHouse(t)
	hub, l := ca.hub(slog.New(slog.DiscardHandler))
	opened, lost := hub.Away("node1")
	if opened.IsZero() || lost {
		t.Errorf("one that has not come is away since %v, lost %v", opened, lost)
	}
	stop := dial(t, dialer("node1", l, ca.config("node1"), http.NotFoundHandler()))
	news := hub.News()
	for ; !hub.Linked("node1"); news = hub.News() {
		<-news
	}
	if since, lost := hub.Away("node1"); !since.IsZero() || lost {
		t.Errorf("one that is there is away since %v, lost %v", since, lost)
	}
	stop()
	<-news
	if since, lost := hub.Away("node1"); !since.After(opened) || !lost {
		t.Errorf("one that went is away since %v, lost %v", since, lost)
	}
	hub.Shut()
	if since, lost := hub.Away("node1"); !since.IsZero() || lost {
		t.Errorf("a hub that is shut says of a node that it is away since %v, lost %v", since, lost)
	}
}

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

// TestOnlyTheNodeItself has others dial: with another's name, another authority, a revoked certificate, none, and of a node that was removed.
func TestOnlyTheNodeItself(t *testing.T) {
	ca, foreign := newHouse(t), newHouse(t)
	hubLog, log := newLogged()
	hub, l := ca.hub(log)
	revoked := ca.config("node3")
	ca.config("node3") // another joins
	gone := ca.config("node4")
	ca.Put("node4", nil)
	trusting, none := foreign.config("node1"), ca.config("node5")
	trusting.RootCAs, none.Certificates = none.RootCAs, nil
	for _, c := range []struct {
		name   string
		node   string
		config *tls.Config
		want   string
	}{
		{"another's name", "node2", ca.config("node1"), "the agent says it is node"},
		{"another authority", "node1", trusting, "was not signed by this cluster"},
		{"a revoked certificate", "node3", revoked, "was revoked"},
		{"a node that was removed", "node4", gone, "is not in the cluster"},
		{"no certificate", "node5", none, "shows no certificate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := dialer(c.node, l, c.config, http.NotFoundHandler())
			lines, log := newLogged()
			d.Log = log
			defer dial(t, d)()
			if line := lines.await(t, "there is no link"); !strings.Contains(line, c.want) {
				t.Errorf("the agent is told %s", line)
			}
			hubLog.await(t, "an agent was refused")
		})
	}
	for _, node := range []string{"node1", "node2", "node3", "node4", "node5"} {
		if hub.Linked(node) {
			t.Errorf("there is a link of %s", node)
		}
	}
	if _, err := reply(ca, nil, &hello{Protocol: protocol + 1, Node: "node1"}); !fault.Is(err, fault.Unsupported) {
		t.Errorf("an agent of another version: %v", err)
	}
}

// TestJoiningOverTheWire has an agent join with a token, serve, and renew, and others try the same with less.
func TestJoiningOverTheWire(t *testing.T) {
	ca := newHouse(t)
	hubLog, log := newLogged()
	hub, l := ca.hub(log)
	at, secret := []string{"127.0.0.1:1", l.Addr().String()}, ca.Secret("node1") // nobody is at the first address
	trust := authority.TrustByFingerprint(ca.Authority.Fingerprint(), time.Now)
	key, request := ca.Request()
	for what, try := range map[string]func() (Papers, error){
		"another secret": func() (Papers, error) { return Join(t.Context(), at, trust, "node1", "guessed", request) },
		"no certificate": func() (Papers, error) { return Renew(t.Context(), at, trust, "node1", request) },
	} {
		if p, err := try(); !fault.Is(err, fault.Denied) || p.Certificate != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := Join(t.Context(), at, authority.TrustByFingerprint(newHouse(t).Authority.Fingerprint(), time.Now), "node1", secret, request); err == nil {
		t.Error("an agent trusts a controller of another cluster, and tells it the secret")
	}
	papers, err := Join(t.Context(), at, trust, "node1", secret, request)
	if err != nil {
		t.Fatal(err)
	}
	if len(papers.Addresses) != 1 || papers.Addresses[0] != authoritytest.Place || authority.Among(papers.Shown.PeerCertificates, ca.Authority.Fingerprint()) == nil {
		t.Errorf("addresses %v", papers.Addresses)
	}
	with := func(text []byte) *tls.Config { return ca.Config(key, ca.Parsed(text, nil)) }
	next, err := Renew(t.Context(), at, with(papers.Certificate), "node1", request)
	if err != nil {
		t.Fatal(err)
	}
	d := dialer("node1", l, with(next.Certificate), http.NotFoundHandler())
	follows := make(chan int64, 10)
	d.Follow = func(_ context.Context, epoch int64) error { follows <- epoch; return nil }
	moved := make(chan []string, 10)
	d.Moved = func(a []string) { moved <- a }
	dial(t, d)
	hubLog.await(t, "an agent is connected")
	if epoch := nodetest.Within(t, follows, "the epoch"); epoch != authoritytest.Epoch {
		t.Errorf("the agent is to follow epoch %d", epoch)
	}
	if a := nodetest.Within(t, moved, "the addresses"); len(a) != 1 || a[0] != authoritytest.Place {
		t.Errorf("it is told %v", a)
	}
	// Another agent joins: what this one showed counts no more.
	for range 2 {
		hub.Keep(func(node string, shown *x509.Certificate) bool { return ca.Admit(node, shown) == nil })
		if link, _ := hub.link("node1"); link == nil {
			t.Error("a link was ended whose certificate counts")
		}
	}
	ca.Joined("node1")
	hub.Keep(func(node string, shown *x509.Certificate) bool { return ca.Admit(node, shown) == nil })
	hubLog.await(t, "the link of an agent is ended")
}

// TestWhoDoesNotLeadTakesNobodyIn shuts a hub: its links end, and who dials is told so until it is open again.
func TestWhoDoesNotLeadTakesNobodyIn(t *testing.T) {
	ca := newHouse(t)
	hubLog, log := newLogged()
	hub, l := ca.hub(log)
	d := dialer("node1", l, ca.config("node1"), http.NotFoundHandler())
	lines, agentLog := newLogged()
	d.Log = agentLog
	dial(t, d)
	hubLog.await(t, "an agent is connected")
	hub.Shut()
	if line := lines.await(t, "does not lead"); line == "" || hub.Linked("node1") {
		t.Error("a hub that is shut has a link")
	}
	hub.Open(ca)
	hubLog.await(t, "an agent is connected")
}

// hooked is a door at which something happens when the first agent was admitted, before it is let in.
type hooked struct {
	Door
	once    sync.Once
	happens func()
}

func (d *hooked) Admit(node string, shown *x509.Certificate) error {
	err := d.Door.Admit(node, shown)
	d.once.Do(d.happens)
	return err
}

// TestWhatChangesOnTheWayIn shuts the hub, and removes the node, in the moment between an agent's admission and its link.
func TestWhatChangesOnTheWayIn(t *testing.T) {
	for what, want := range map[string]string{"the hub is shut": "does not lead", "the node is removed": "is not in the cluster"} {
		t.Run(what, func(t *testing.T) {
			ca := newHouse(t)
			hub, l := ca.hub(slog.New(slog.DiscardHandler))
			happens := hub.Shut
			if what == "the node is removed" {
				happens = func() { ca.Put("node1", nil) }
			}
			hub.Open(&hooked{Door: ca, happens: happens})
			d := dialer("node1", l, ca.config("node1"), http.NotFoundHandler())
			lines, log := newLogged()
			d.Log = log
			dial(t, d)
			lines.await(t, want) // its link was ended: it has dialled again
			if hub.Linked("node1") {
				t.Error("it is linked")
			}
		})
	}
}

// TestAnAgentRefusesAnOldLeader follows a newer one already.
func TestAnAgentRefusesAnOldLeader(t *testing.T) {
	ca := newHouse(t)
	_, l := ca.hub(slog.New(slog.DiscardHandler))
	d := dialer("node1", l, ca.config("node1"), http.NotFoundHandler())
	d.Follow = func(context.Context, int64) error { return errors.New("another has followed") }
	d.Linked = func(bool) { t.Error("it serves an old leader") }
	if err := d.once(t.Context(), l.Addr().String()); err == nil || !strings.Contains(err.Error(), "another has followed") {
		t.Errorf("%v", err)
	}
}

// TestTheNewestConnection has a node dial from a second place: what the first one serves is over.
func TestTheNewestConnection(t *testing.T) {
	ca := newHouse(t)
	hubLog, log := newLogged()
	hub, l := ca.hub(log)
	names := make(chan string, 10)
	config := ca.config("node1")
	dial := func(name string) (ended chan error) {
		d := dialer("node1", l, config, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { names <- name }))
		ended = make(chan error, 1)
		go func() { ended <- d.once(t.Context(), l.Addr().String()) }()
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
	ca := newHouse(t)
	hub, l := ca.hub(slog.New(slog.DiscardHandler))
	r := nodetest.New(t, func(t *testing.T, a *agent.Agent) exec.Node {
		handler := newHandler(t, a)
		dial(t, dialer(a.Node(), l, ca.config(a.Node()), handler))
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
