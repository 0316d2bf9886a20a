package app

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/api/luxi"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/reason"
)

// servePeers answers other controllers until ctx ends: what their clients ask
// of the leader, how this one is, and whether it makes room for another.
func (g *group) servePeers(ctx context.Context, l net.Listener) error {
	mux := g.peerRequests(ctx)
	server := gate.Peers.Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(headerRemote) == "" {
			mux.ServeHTTP(w, r)
			return
		}
		g.takeForwarded(w, r)
	}), g.m.log)
	base, end := context.WithCancel(context.WithoutCancel(ctx)) // with that of the server's end connections would break in the midst of their handshakes
	defer end()
	server.BaseContext = func(net.Listener) context.Context { return base }
	server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		return g.tlsFrom(ctx, hello.Conn), nil
	}}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		// What others have sent already they are told that nobody here leads, and send it to another: a connection that breaks would leave them in doubt.
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAnswers)
		defer cancel()
		if server.Shutdown(limited) != nil {
			_ = server.Close()
		}
	})
	serve := func() error { return server.ServeTLS(l, "", "") }
	if g.m.ground != nil {
		serve = func() error { return server.Serve(l) }
	}
	err := serve()
	if stop() { // the listener failed by itself
		return err
	}
	if <-stopped; errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

// peerRequests are the requests that controllers send each other.
func (g *group) peerRequests(ctx context.Context) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /peer/status", g.tellStatus)
	mux.HandleFunc("GET "+healthPath, g.tellPeerHealth)
	mux.HandleFunc("GET "+bundlePath, g.tellBundle)
	mux.HandleFunc("POST /peer/resign", g.resign)
	mux.HandleFunc("GET "+keysPath, g.tellKeys)
	mux.HandleFunc("POST "+leasePath, g.grantLease)
	mux.HandleFunc("POST /peer/luxi", func(w http.ResponseWriter, r *http.Request) { g.takeLUXI(ctx, w, r) })
	return mux
}

// readPeer reads what another controller says, of at most so many bytes. A program that is newer may say more than is known here.
func readPeer(from io.Reader, most int64, into any) error {
	text, err := io.ReadAll(io.LimitReader(from, most+1))
	switch {
	case err != nil:
		return err
	case int64(len(text)) > most: // what is cut off could be read as if it were all
		return fault.New(fault.TooLarge, "it has more than %d bytes", most)
	}
	return intake.ReadOpen(text, into)
}

// takeForwarded answers what a client asked another controller. Whatever its
// path is, it is for the surface that the client asked: nothing of it is cleaned,
// and none is one of the requests that controllers send each other.
func (g *group) takeForwarded(w http.ResponseWriter, r *http.Request) {
	c := g.m.leads()
	if c == nil || c.assured(r.Context()) != nil {
		notLeading(w)
		return
	}
	r.RemoteAddr = r.Header.Get(headerRemote)
	r.Header.Del(headerRemote)
	if !c.serve(w, r) {
		notLeading(w)
	}
}

// tlsFrom is how to take the connection of another controller, and of nobody else.
func (g *group) tlsFrom(ctx context.Context, conn net.Conn) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAnyClientCert, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return g.cert.Current(), nil },
		VerifyConnection: func(state tls.ConnectionState) error {
			// Who comes in the last moments is let in, too: it has sent already what it wants, and hears that nobody leads here.
			limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialTime)
			defer cancel()
			if err := g.roster.known(limit, fingerprint(state.PeerCertificates[0].Raw)); err != nil {
				g.hold(ctx, conn)
				return err
			}
			if in, ok := conn.(*gate.Conn); ok {
				in.Known()
			}
			return nil
		},
	}
}

// hold keeps a stranger waiting, the longer the more often strangers came from where
// it is. It has a place that is another's as soon as one is needed.
func (g *group) hold(ctx context.Context, conn net.Conn) {
	_, wait := g.strangers.Wrong(intake.Origin(conn.RemoteAddr().String()), time.Now())
	select {
	case <-ctx.Done():
	case <-time.After(min(wait, dialTime)):
	}
}

func notLeading(w http.ResponseWriter) {
	w.Header().Set(headerNotLeading, "1")
	w.Header().Set("Connection", "close") // nobody sends more on it, in the moment in which this controller may end
	w.WriteHeader(http.StatusServiceUnavailable)
}

func (g *group) tellStatus(w http.ResponseWriter, r *http.Request) {
	st := peerStatus{Instance: g.self.Instance, Role: roleStandby}
	if c := g.m.leads(); c != nil {
		st.Role, st.Revision, st.Others = roleLeader, c.picture.Load().Revision, g.roster.others(g.self.Instance)
	} else if here := g.reading.Load(); here != nil {
		st.Revision = here.picture.Load().Revision
	} else if revision, err := g.m.store.Revision(r.Context()); err == nil {
		st.Revision = int64(revision)
	}
	if unfit := g.unfit.Load(); unfit != nil {
		st.Unfit = unfit.Text
	} else if g.staying.Err() != nil {
		st.Unfit = "it is leaving"
	} else if drained := g.drained.Load(); drained != nil {
		st.Unfit, st.Drained = "it is "+drained.String(), true
	}
	if err := json.NewEncoder(w).Encode(st); err != nil {
		g.m.log.Debug("another controller did not wait for the answer", "error", err)
	}
}

// resign ends the term of this controller in favour of the one that asks, and
// answers when it is over.
func (g *group) resign(w http.ResponseWriter, r *http.Request) {
	peers, err := g.peers(r.Context())
	i := slices.IndexFunc(peers, func(p peerRecord) bool { return p.Instance == r.URL.Query().Get("to") })
	if err != nil || i < 0 {
		http.Error(w, "there is no such controller", http.StatusNotFound)
		return
	}
	asked := resignation{successor: peers[i].holder(), over: make(chan struct{})}
	select {
	case g.resigning <- asked:
	case <-time.After(dialTime): // nobody's term goes on here
		notLeading(w)
		return
	}
	select {
	case <-asked.over:
		_, _ = w.Write([]byte("{}\n")) // to a controller that may be gone
	case <-r.Context().Done():
	}
}

// takeLUXI serves a connection that another controller relays.
func (g *group) takeLUXI(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	var by reason.Account
	c, err := g.m.leads(), intake.ReadOpen([]byte(r.Header.Get(headerAccount)), &by)
	switch {
	case r.Header.Get("Upgrade") != upgrade:
		w.WriteHeader(http.StatusBadRequest)
		return
	case err != nil:
		http.Error(w, "the header "+headerAccount+" cannot be read: "+err.Error(), http.StatusBadRequest)
		return
	case c == nil:
		notLeading(w)
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		g.m.log.Error("a connection of another controller could not be taken", "error", err)
		return
	}
	defer func() { _ = conn.Close() }() // nothing is left to be said
	if buffered.Reader.Buffered() > 0 {
		return // nothing may be sent before the answer
	}
	_, err = conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + upgrade + "\r\n\r\n"))
	if err == nil && ctx.Err() == nil {
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
		c.serveRelayed(conn, by)
	}
}

// serveLUXI answers on the control socket until ctx ends: itself while this
// process leads, and through the leader while another does.
func (g *group) serveLUXI(ctx context.Context, l *gate.Listener) error {
	return luxi.Accept(ctx, l, func(conn net.Conn) { g.answerLUXI(ctx, conn, luxi.Peer(conn)) })
}

// answerLUXI answers a client on its connection.
func (g *group) answerLUXI(ctx context.Context, conn net.Conn, by reason.Account) {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	frames := luxiwire.NewFrameReader(conn, luxiwire.MaxFrame)
	r := &relayed{g: g, client: conn, by: by}
	defer r.drop()
	if c := g.m.leads(); c != nil {
		left, open := c.luxi.ServeConn(c.term, conn, frames, by)
		if !open || left != nil && !r.answer(ctx, left) {
			return
		}
	}
	r.serve(ctx, frames)
}

// resignation asks a term to end for another controller's.
type resignation struct {
	successor string // as the holder of the lease
	over      chan struct{}
}
