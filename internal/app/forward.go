package app

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover/internal/api/compute"
	identityapi "github.com/drover-project/drover/internal/api/identity"
	"github.com/drover-project/drover/internal/api/luxi"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/forwarded"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/reason"
)

// Headers between controllers.
const (
	// headerRemote is where a forwarded request came from.
	headerRemote = "Drover-Remote"
	// headerSurface names the surface that a forwarded request came to.
	headerSurface = "Drover-Surface"
	// headerAccount is who sends the requests of a relayed connection, as JSON.
	headerAccount = "Drover-Account"
	// headerNotLeading is in the answer of a controller that does not lead.
	headerNotLeading = "Drover-Not-Leading"
)

const (
	// leaderWait is how long a request waits for somebody to lead.
	leaderWait = 30 * time.Second
	// leaderPause is how long to wait before a leader is looked for again.
	leaderPause = 50 * time.Millisecond
	// followEvery is how often it is looked whether connections lead to the leader.
	followEvery = 500 * time.Millisecond
	// followLooks is how often in a row a connection is seen to lead to another before it is ended: a controller that gave up the lead in order answers what
	// it took meanwhile, or says that it does not lead.
	followLooks = int(changesEnd/followEvery) + 1
	// dialTime bounds one attempt to connect to a leader.
	dialTime = 3 * time.Second
	// maxRepeat is the size up to which the body of a request is kept, to be sent
	// again when its first receiver does not lead any more.
	maxRepeat = 1 << 20
)

// errLeadHere tells that this process leads by now.
var errLeadHere = errors.New("this controller leads")

// leaderClient speaks to whoever leads.
type leaderClient struct {
	g     *group
	http  *http.Transport
	proxy *httputil.ReverseProxy

	mu   sync.Mutex
	open map[*leaderConn]bool
}

// leaderConn is a connection to a controller that led when it was made.
type leaderConn struct {
	net.Conn
	l *leaderClient
	// instance is the life of the controller at the other end.
	instance string
	// astray is how often in a row it was seen to lead to another than the leader.
	astray int
}

// Close ends the connection.
func (c *leaderConn) Close() error {
	c.l.mu.Lock()
	delete(c.l.open, c)
	c.l.mu.Unlock()
	return c.Conn.Close()
}

// followLead ends connections to controllers that lead no more, until ctx ends.
// One that was paused, or cannot be reached, does not do it by itself.
func (l *leaderClient) followLead(ctx context.Context) error {
	return regularly(ctx, followEvery, func() error {
		open := l.connections()
		if len(open) == 0 {
			return nil
		}
		if p, err := l.g.whoLeads(ctx); err == nil {
			l.endAstray(open, p.Instance)
		}
		return nil
	})
}

// endAstray looks once at connections, and ends those that have not led to the leader for long. On those that rest at the first look nothing more is sent.
func (l *leaderClient) endAstray(open []*leaderConn, leader string) {
	for _, c := range open {
		switch c.astray++; {
		case c.instance == leader:
			c.astray = 0
		case c.astray == 1:
			l.http.CloseIdleConnections()
		case c.astray == followLooks:
			_ = c.Close()
		}
	}
}

func (l *leaderClient) connections() []*leaderConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.open))
}

func newLeaderClient(g *group) *leaderClient {
	l := &leaderClient{g: g, open: map[*leaderConn]bool{}}
	const idle = 64
	l.http = &http.Transport{MaxIdleConnsPerHost: idle, IdleConnTimeout: time.Minute,
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return l.dial(ctx) }}
	l.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https", "leader", r.In.Host
			r.Out.URL.RawQuery = r.In.URL.RawQuery // whole: what cannot be read of it the leader refuses
			// Both are ours to say: a client's header Connection may name them, and what it names the proxy has taken out.
			r.Out.Header.Set(headerRemote, r.In.RemoteAddr)
			r.Out.Header.Set(headerSurface, r.In.Header.Get(headerSurface))
			forwarded.Copy(r.Out.Header, r.In.Header)
		},
		Transport: l, FlushInterval: -1, ErrorHandler: l.failed,
	}
	return l
}

// dial connects to the present leader, as soon as there is one that answers.
func (l *leaderClient) dial(ctx context.Context) (net.Conn, error) {
	limit, cancel := context.WithTimeout(ctx, leaderWait)
	defer cancel()
	for {
		if l.g.m.leads() != nil {
			return nil, errLeadHere
		}
		conn, err := l.dialOnce(limit)
		if err == nil {
			return conn, nil
		}
		select {
		case <-limit.Done():
			return nil, fault.New(fault.Unavailable, "no controller leads: %w", err).WithHint("drover cluster masters tells which there are")
		case <-time.After(leaderPause):
		}
	}
}

func (l *leaderClient) dialOnce(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	p, err := l.g.whoLeads(ctx)
	switch {
	case err != nil:
		return nil, err
	case p.Instance == l.g.self.Instance:
		return nil, fault.New(fault.Unavailable, "the term of this controller is over")
	}
	conn, err := l.g.dialTo(ctx, p, dialTime)
	if err != nil {
		return nil, err
	}
	to := &leaderConn{Conn: conn, l: l, instance: p.Instance}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[to] = true
	return to, nil
}

// RoundTrip sends a request to the leader. One that reached a controller which
// leads no more, and did nothing with it, is sent to the next.
func (l *leaderClient) RoundTrip(r *http.Request) (*http.Response, error) {
	body, repeat, err := wholeBody(r)
	if err != nil {
		return nil, err
	}
	l.g.m.figures.stoodBy.WithLabelValues(r.Header.Get(headerSurface), byLeader).Inc()
	limit := time.After(leaderWait)
	for {
		if repeat {
			r.Body = bodyOf(body)
		}
		answer, err := l.http.RoundTrip(r)
		switch _, told := errors.AsType[*fault.Error](err); {
		case err != nil && !told && !errors.Is(err, errLeadHere) && repeat && r.Method == http.MethodGet && r.Context().Err() == nil:
			// It only asks, so it can be asked again.
		case err != nil || answer.Header.Get(headerNotLeading) == "":
			return answer, err
		case !repeat:
			_ = answer.Body.Close() // it is not for the client
			return nil, fault.New(fault.Unavailable, "the controller that led does no longer, and did nothing with the request: ask again")
		default:
			_ = answer.Body.Close() // it is not for the client
		}
		l.http.CloseIdleConnections()
		select {
		case <-r.Context().Done():
			return nil, fault.New(fault.Unavailable, "no controller was certain that it leads: %w", context.Cause(r.Context()))
		case <-limit:
			return nil, fault.New(fault.Unavailable, "no controller is certain that it leads")
		case <-time.After(leaderPause):
		}
	}
}

// wholeBody reads the body of a request that is short enough to be sent again; its length is known then. Of one that is not so short the body stays as it is, but for
// that it can be read on when nobody could be reached to whom to send it.
func wholeBody(r *http.Request) (body []byte, whole bool, err error) {
	if r.ContentLength <= maxRepeat && r.ContentLength != 0 {
		if body, err = io.ReadAll(io.LimitReader(r.Body, maxRepeat+1)); err != nil {
			return nil, false, err
		}
	}
	if len(body) <= maxRepeat && r.ContentLength <= maxRepeat {
		r.ContentLength = int64(len(body))
		return body, true, nil
	}
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), r.Body))
	return nil, false, nil
}

// bodyOf is the body of a request that may be sent once more. One of no bytes is none: else it would be sent as one whose length nobody knows, for which the leader
// keeps as much memory as the longest may take.
func bodyOf(text []byte) io.ReadCloser {
	if len(text) == 0 {
		return http.NoBody
	}
	return io.NopCloser(bytes.NewReader(text))
}

// failed answers a request that could not be forwarded, or that nobody
// answered.
func (l *leaderClient) failed(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, errLeadHere) {
		if c := l.g.m.leads(); c != nil && c.assured(r.Context()) == nil { // nothing was sent: the body is as it came
			if !c.serve(w, r) {
				l.proxy.ServeHTTP(w, r)
			}
			return
		}
	}
	l.http.CloseIdleConnections()
	status, text := http.StatusBadGateway, "the controller that leads was lost before it answered; whether it did what was asked is not known"
	switch {
	case fault.Is(err, fault.Unavailable):
		status, text = http.StatusServiceUnavailable, err.Error()
	case errors.Is(err, errLeadHere):
		status, text = http.StatusServiceUnavailable, "this controller is about to lead: ask again"
	}
	unavailable(w, r, status, text)
}

// unavailable answers a request that no controller carried out, as its surface
// says so.
func unavailable(w http.ResponseWriter, r *http.Request, status int, text string) {
	if r.Header.Get(headerSurface) == surfaceCompute {
		if ofIdentity(r) {
			identityapi.Refuse(w, status, text)
		} else {
			compute.Refuse(w, r, status, text)
		}
		return
	}
	answer, err := json.Marshal(map[string]any{"code": status, "message": http.StatusText(status), "explain": text})
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(answer) // to a client that may be gone
}

// The surfaces whose requests are forwarded.
const (
	surfaceRAPI    = "rapi"
	surfaceCompute = "compute"
	surfaceWeb     = "web"
)

// front answers the requests of RAPI: itself while this process leads, and
// through the leader while another does.
func (g *group) front() http.Handler {
	pages, forward := g.m.pages(), g.forward(surfaceRAPI)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if page := pages[r.URL.Path]; page != nil {
			page.ServeHTTP(w, r)
			return
		}
		forward.ServeHTTP(w, r)
	})
}

// computeFront answers the requests of the Compute API in the same way.
func (g *group) computeFront() http.Handler { return g.forward(surfaceCompute) }

// forward answers the requests of a surface: here while this process leads.
func (g *group) forward(surface string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set(headerSurface, surface)
		c := g.m.leads()
		if c == nil {
			if here := g.reading.Load(); here != nil && surface == surfaceRAPI && r.Method == http.MethodGet {
				here.rapi.ServeHTTP(w, r)
				return
			}
			g.leader.pass(w, r)
			return
		}
		switch err := c.assured(r.Context()); {
		case err == nil && c.serve(w, r):
		case err == nil, c.term.Err() != nil:
			g.leader.pass(w, r)
		default:
			unavailable(w, r, http.StatusServiceUnavailable, err.Error())
		}
	})
}

// pass has the leader answer a request; one about a file as long as that takes.
func (l *leaderClient) pass(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(headerSurface) == surfaceCompute && compute.IsFile(r) {
		var done func()
		w, r, done = compute.AtLeisure(w, r)
		defer done()
	}
	r, done := outliving(r, &l.g.m.stopping)
	defer done()
	l.proxy.ServeHTTP(w, r)
}

// lastAnswers is how long what this controller has of requests when it stops goes on: those that it forwards, for who has the lead after it may only just be taking
// it, and those that others have forwarded to it, which hear that it leads no more.
const lastAnswers = 2 * time.Second

// outliving is a request that does not end at once when its server stops, but has its last moments; it ends when its client is gone, unless that is then. Who
// has it calls done at its end.
func outliving(r *http.Request, stopping *atomic.Bool) (out *http.Request, done func()) {
	ctx, end := context.WithCancelCause(context.WithoutCancel(r.Context()))
	over := context.AfterFunc(r.Context(), func() {
		if stopping.Load() {
			select {
			case <-time.After(lastAnswers):
			case <-ctx.Done():
			}
		}
		end(context.Cause(r.Context()))
	})
	return r.WithContext(ctx), func() {
		over()
		end(nil)
	}
}

// serve answers a request of a surface, which ends with the term at the latest; false if the term takes none any more.
func (c *controller) serve(w http.ResponseWriter, r *http.Request) bool {
	answered, taken := c.owed.takeHTTP(r)
	if !taken {
		return false
	}
	defer answered()
	h := map[string]http.Handler{surfaceRAPI: c.rapi, surfaceCompute: c.compute, surfaceWeb: c.page}[r.Header.Get(headerSurface)]
	if h == nil { // it came to none that lets it in
		unavailable(w, r, http.StatusBadGateway, "the request does not say to which surface it came")
		return true
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(c.term, func() { cancel(context.Cause(c.term)) })()
	h.ServeHTTP(w, r.WithContext(ctx))
	return true
}

// upgrade is the protocol that a connection between controllers is turned into
// to carry LUXI.
const upgrade = "drover-luxi"

// dialLUXI opens a connection for the requests of an account: to the leader, or
// within this process when it leads.
func (l *leaderClient) dialLUXI(ctx context.Context, by reason.Account) (net.Conn, *bufio.Reader, error) {
	limit := time.After(leaderWait)
	for {
		conn, err := l.dial(ctx)
		if errors.Is(err, errLeadHere) {
			c := l.g.m.leads()
			if c == nil {
				continue
			}
			mine, its := net.Pipe()
			go func() {
				c.serveRelayed(its, by)
				_ = its.Close()
			}()
			return mine, bufio.NewReader(mine), nil
		}
		if err != nil {
			return nil, nil, err
		}
		in, ok, err := handshake(conn, by)
		if ok {
			return conn, in, nil
		}
		_ = conn.Close()
		if err != nil && ctx.Err() != nil {
			return nil, nil, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-limit:
			return nil, nil, fault.New(fault.Unavailable, "no controller is certain that it leads").WithHint("drover cluster masters tells which there are")
		case <-time.After(leaderPause):
		}
	}
}

// handshake turns a connection into one for LUXI; ok is false if the other end
// does not lead.
func handshake(conn net.Conn, by reason.Account) (in *bufio.Reader, ok bool, err error) {
	account, err := json.Marshal(by)
	if err != nil {
		return nil, false, err
	}
	if err := conn.SetDeadline(time.Now().Add(dialTime)); err != nil {
		return nil, false, err
	}
	r, err := http.NewRequest(http.MethodPost, "https://leader/peer/luxi", http.NoBody) //nolint:noctx // the connection has a deadline
	if err != nil {
		return nil, false, err
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", upgrade)
	r.Header.Set(headerAccount, string(account))
	if err := r.Write(conn); err != nil {
		return nil, false, err
	}
	in = bufio.NewReader(conn)
	answer, err := http.ReadResponse(in, r)
	if err != nil {
		return nil, false, err
	}
	_ = answer.Body.Close() // there is none
	return in, answer.StatusCode == http.StatusSwitchingProtocols, conn.SetDeadline(time.Time{})
}

// errNotTaken tells that a controller did nothing with a request, and notTaken is how one answers that to another: as an error, for those of before that do not
// know it.
var (
	errNotTaken = errors.New("the request is not taken any more")
	notTaken    = func() []byte {
		frame, err := luxiwire.ErrorFrame(*luxiwire.Generic("this controller no longer leads, and did nothing with the request: ask again"), errNotLeading)
		if err != nil {
			panic(err) // it is always the same
		}
		return append(frame, luxiwire.Terminator)
	}()
)

// serveRelayed answers the requests of a connection that another controller relays, or this one while it leads, until the term ends; then the next one is told
// that it is not taken, for who sends it does not see that nobody reads.
func (c *controller) serveRelayed(conn net.Conn, by reason.Account) {
	frames := luxiwire.NewFrameReader(conn, luxiwire.MaxFrame)
	left, open := c.luxi.ServeConn(c.term, conn, frames, by)
	if !open || conn.SetDeadline(time.Now().Add(leaderWait)) != nil {
		return
	}
	if left == nil {
		if _, err := frames.Next(); err != nil { // whole: who is still sending does not listen
			return
		}
	}
	_, _ = conn.Write(notTaken) // to a controller that may be gone
}

// relayed is a client's connection to this controller, and the one to the leader
// on which its requests go on.
type relayed struct {
	g      *group
	client net.Conn
	by     reason.Account
	to     net.Conn
	in     *bufio.Reader
}

// serve relays requests, frame by frame, until the client goes.
func (r *relayed) serve(ctx context.Context, frames *luxiwire.FrameReader) {
	for {
		if r.client.SetReadDeadline(time.Now().Add(luxiwire.IdleTimeout)) != nil || ctx.Err() != nil {
			return
		}
		frame, err := frames.Next()
		if err != nil || !r.answer(ctx, frame) {
			return
		}
	}
}

// answer has one request answered; false ends the connection.
func (r *relayed) answer(ctx context.Context, frame []byte) bool {
	req, err := luxiwire.ParseRequest(frame)
	switch {
	case err == nil && req.Method == "MasterFailover":
		return r.reply(nil, r.g.failover(ctx))
	case err == nil && req.Method == luxi.QueryHealth: // also while nobody leads
		return r.reply(r.g.m.clusterHealth(ctx), nil)
	case err == nil && req.Method == luxi.MakeBundle:
		return r.reply(r.g.m.bundle(ctx), nil)
	}
	if here := r.g.reading.Load(); here != nil && err == nil {
		if done, open := here.luxi.AnswerStored(ctx, r.client, r.by, req); done {
			return open
		}
	}
	r.g.m.figures.stoodBy.WithLabelValues("luxi", byLeader).Inc()
	again := err == nil && luxi.Asks(req.Method)
	for {
		if r.to == nil {
			if r.to, r.in, err = r.g.leader.dialLUXI(ctx, r.by); err != nil {
				return r.reply(nil, err)
			}
		}
		err := luxiwire.WriteFrame(r.to, frame)
		begun := false
		switch {
		case err == nil:
			begun, err = r.pass()
		case errors.Is(err, net.ErrClosed): // by this controller, so nothing went out
			err = errNotTaken
		}
		switch {
		case err == nil:
			return true
		case begun:
			return false // a part of an answer cannot be taken back
		}
		r.drop()
		if !again && !errors.Is(err, errNotTaken) {
			return r.reply(nil, fault.New(fault.Unavailable, "the controller that leads was lost before it answered; whether it did what was asked is not known"))
		}
	}
}

// pass copies an answer to the client, in pieces; begun tells whether the client
// has got some of it.
func (r *relayed) pass() (begun bool, err error) {
	if err := r.to.SetReadDeadline(time.Now().Add(luxiwire.IdleTimeout)); err != nil {
		return false, err
	}
	for {
		piece, err := r.in.ReadSlice(luxiwire.Terminator)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return begun, err
		}
		if !begun && bytes.Equal(piece, notTaken) {
			return false, errNotTaken
		}
		begun = true
		if e := r.client.SetWriteDeadline(time.Now().Add(luxiwire.SendTimeout)); e != nil {
			return begun, e
		}
		if _, e := r.client.Write(piece); e != nil {
			return begun, e
		}
		if err == nil {
			return begun, nil
		}
	}
}

// reply answers a request from here.
func (r *relayed) reply(result any, err error) bool {
	frame, errFrame := luxiwire.ResultFrame(result)
	if err != nil {
		frame, errFrame = luxiwire.ErrorFrame(*luxiwire.Generic("%s", err.Error()), err)
	}
	return errFrame == nil && luxiwire.WriteFrame(r.client, frame) == nil
}

func (r *relayed) drop() {
	if r.to != nil {
		_ = r.to.Close()
		r.to, r.in = nil, nil
	}
}
