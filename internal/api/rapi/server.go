// Package rapi is the remote API: the HTTP interface that Ganeti's remote
// clients speak, on TLS with basic authentication.
//
// One table (resources*.go) lists every path with its methods; most are data:
// which opcode a request becomes and where its parameters come from. What the
// reference and its documentation say differently, and which of them is
// followed here, is told in docs/compat/rapi.md.
//
// Invariants:
//   - Who may do something is decided before the request's body is read, and
//     only the body of a resource that has a use for one is.
//   - What is taken in is bounded: docs/limits.md has every limit.
//   - Every answer is JSON; every answer other than 200 is an object with the
//     keys code, message and explain.
//   - Every job gets a reason entry that names the resource. Entries from
//     outside with a reserved source are refused.
package rapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/requestid"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/rollout"
	"github.com/drover-project/drover/internal/tagsync"
)

// Config is what a server is made of. The fields up to Users, Now and Log are
// needed.
type Config struct {
	Queue   *queue.Queue
	Querier *live.Querier
	// Rollout keeps environments, task graphs and deployments; nil where nobody does.
	Rollout *rollout.Engine
	// Servers keeps the servers of the Compute API; nil where there are none.
	Servers *tagsync.Engine
	// Format tells the format of the store; nil for the newest.
	Format func() int
	Users  *UsersFile
	// RequireAuthentication refuses requests without an account even where
	// reading needs no right.
	RequireAuthentication bool
	Now                   func() time.Time
	Log                   *slog.Logger
	// Beside are pages that are no part of the remote API, by path: health and
	// figures. They are open to everybody.
	Beside map[string]http.Handler
	// Leader answers what only the controller that leads can; nil where this one
	// does. With it Queue, Rollout and Servers are not needed.
	Leader http.Handler
	// Current reports whether a state that is not older than a revision, and was read
	// before the call, is what Leader shows. It is needed with Leader.
	Current func(revision int64) bool
	// Observe is told of each request that was answered: its context, method and
	// path, the status, and how long it took. Nil when nobody wants to know.
	Observe func(ctx context.Context, what, outcome string, took time.Duration)
	// NewID gives an id to each request that brings none in its header
	// X-Request-ID. Its context carries it (requestid), and the answer's header
	// tells it. Nil for no ids.
	NewID func() string
}

// Server answers the requests of the remote API.
type Server struct {
	config Config
	routes router
	brake  *intake.Brake
	// bodies is the memory that bodies being read or worked on may take.
	bodies *intake.Budget
	// eventTime is how long one event may take to be sent; tests take a shorter
	// one.
	eventTime time.Duration
}

// New returns a server.
func New(c Config) *Server {
	return &Server{config: c, routes: newRouter(resources), brake: intake.NewBrake(), bodies: intake.NewBudget(maxBodies), eventTime: eventTimeout}
}

const (
	// stopTimeout is how long requests under way at a stop may take.
	stopTimeout = 5 * time.Second
	// eventTimeout is how long one event may take to be sent.
	eventTimeout = 30 * time.Second
)

// tlsConfig takes TLS 1.3, and of 1.2 what has forward secrecy and
// authenticated encryption.
func tlsConfig(cert *CertificateFile) *tls.Config {
	return &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return cert.Current(), nil }, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		CipherSuites: []uint16{
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		}}
}

// Serve answers on the listener, with TLS, until the context ends; requests
// that are then under way get a few seconds to finish.
func (s *Server) Serve(ctx context.Context, l *gate.Listener, cert *CertificateFile) error {
	return ServeHandler(ctx, gate.RAPI, l, cert, s, s.config.Log)
}

// ServeHandler is Serve for a handler of any surface, with the limits of that one.
// Without a certificate it answers in plain text.
func ServeHandler(ctx context.Context, of gate.Surface, l *gate.Listener, cert *CertificateFile, h http.Handler, log *slog.Logger) error {
	server := of.Server(h, log)
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	if cert != nil {
		server.TLSConfig = tlsConfig(cert)
	}
	l.Refuse(gate.RefusalHTTP(server.TLSConfig, "application/json", noPlace))
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		stopped <- server.Shutdown(limited)
	})
	var err error
	if cert == nil {
		err = server.Serve(l)
	} else {
		err = server.ServeTLS(l, "", "")
	}
	if stop() { // the listener failed by itself
		return err
	}
	return <-stopped
}

// noPlace is what a client is told that is not let in.
func noPlace(why string) []byte {
	body, err := encode(failure(http.StatusServiceUnavailable, "%s", why).body())
	if err != nil {
		return nil
	}
	return body
}

// Unavailable refuses all requests, and says why.
func Unavailable(why string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write(noPlace(why)) // the client may be gone
	})
}

// ServeHTTP answers one request. A fault of ours is answered too, and does not
// stop others; when a part of an answer has been sent, its connection is
// closed, so that nobody takes the part for the whole.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := &response{ResponseWriter: w, status: http.StatusOK}
	r = s.identified(w, r)
	forwarded := false
	if s.config.Observe != nil {
		begun := time.Now()
		defer func() {
			if forwarded {
				return
			}
			s.config.Observe(r.Context(), r.Method+" "+fault.Clip(r.URL.Path, 200), strconv.Itoa(out.status), time.Since(begun))
		}()
	}
	if page := s.config.Beside[r.URL.Path]; page != nil && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		page.ServeHTTP(out, r)
		return
	}
	defer func() {
		p := recover()
		switch {
		case p == nil:
			return
		case forwarded:
			panic(p) // a part of the leader's answer was sent: nothing can follow on it
		}
		s.config.Log.Error("a RAPI request panicked", "panic", p, "stack", string(debug.Stack()))
		if out.begun {
			panic(http.ErrAbortHandler)
		}
		s.writeError(out, r, failure(http.StatusInternalServerError, "internal error: %v", p))
	}()
	req := &request{Request: r, Config: &s.config, answerHeader: w.Header()}
	defer func() { s.bodies.Give(req.charged) }()
	answer, err := s.answerHere(req)
	if errors.Is(err, live.ErrLed) && s.config.Leader != nil {
		forwarded = true
		for _, name := range []string{requestIDHeader, revisionHeader} {
			w.Header().Del(name) // the leader says so itself
		}
		s.config.Leader.ServeHTTP(w, r)
		return
	}
	if err == nil {
		err = s.write(out, answer)
	}
	if err != nil {
		s.writeError(out, r, asHTTP(err))
	}
}

// requestIDHeader names the id of a request, in it and in its answer.
const requestIDHeader = "X-Request-ID"

// identified returns the request with an id in its context.
func (s *Server) identified(w http.ResponseWriter, r *http.Request) *http.Request {
	if s.config.NewID == nil {
		return r
	}
	id := r.Header.Get(requestIDHeader)
	if !requestid.Valid(id) {
		id = s.config.NewID()
	}
	w.Header().Set(requestIDHeader, id)
	return r.WithContext(requestid.With(r.Context(), id))
}

// response knows whether a part of it has been sent, and its status.
type response struct {
	http.ResponseWriter
	begun  bool
	status int
}

// WriteHeader sends the status.
func (w *response) WriteHeader(status int) {
	w.begun, w.status = true, status
	w.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body.
func (w *response) Write(piece []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(piece)
}

// Unwrap is for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// answerHere is answer, or live.ErrLed where that would not be the leader's answer and
// the client does not take another.
func (s *Server) answerHere(req *request) (any, error) {
	if s.config.Leader == nil || stale(req.Request) {
		return s.answer(req)
	}
	known := s.config.Querier.Picture.Load().Revision
	if wanted, err := req.notOlder(); err == nil && wanted > known || !s.config.Current(known) {
		return nil, live.ErrLed
	}
	answer, err := s.answer(req)
	if !s.config.Current(known) { // whatever was read was not older than known, and is now looked at
		return nil, live.ErrLed
	}
	return answer, err
}

// answer finds out what a request wants, whether its sender may have it, and
// does it.
func (s *Server) answer(req *request) (any, error) {
	path := req.URL.EscapedPath()
	methods, variables := s.routes.find(path)
	if s.config.Leader != nil && !methods[req.Method].stored {
		return nil, live.ErrLed
	}
	account, err := s.authenticate(req.Request)
	if err != nil {
		return nil, err
	}
	if methods == nil {
		return nil, failure(http.StatusNotFound, "Not Found")
	}
	h, ok := methods[req.Method]
	if !ok {
		return nil, failure(http.StatusNotImplemented, "Method %s is unsupported for path %s", req.Method, req.URL.RequestURI())
	}
	if err := authorize(account, h.needs); err != nil {
		return nil, err
	}
	req.variables = variables
	req.by = reason.Account{Surface: "rapi", Name: "anonymous", From: req.RemoteAddr}
	if host, _, err := net.SplitHostPort(req.RemoteAddr); err == nil {
		req.by.From = host
	}
	if req.account = account; account != nil {
		req.by.Name = account.name
	}
	if err := req.readQuery(); err != nil {
		return nil, err
	}
	if _, given := req.query[meantUUID]; given && !h.meant {
		return nil, badRequest("The parameter '%s' means nothing here", meantUUID)
	}
	if h.body > 0 {
		if err := req.readBody(h.body, s.bodies); err != nil {
			return nil, err
		}
	}
	if err := req.reach(); err != nil {
		return nil, err
	}
	if stale(req.Request) {
		req.answerHeader.Set(revisionHeader, strconv.FormatInt(s.config.Querier.Picture.Load().Revision, 10))
	}
	answer, err := h.serve(req)
	if e, ok := answer.(eventStream); ok && err == nil {
		e.entitled = func() error {
			account, err := s.account(req.Request)
			if err != nil {
				return err
			}
			return authorize(account, h.needs)
		}
		answer = e
	}
	if err == nil && req.Method != http.MethodGet {
		req.answerHeader.Set(revisionHeader, strconv.FormatInt(s.config.Querier.Picture.Load().Revision, 10))
	}
	return answer, err
}

// revisionHeader names a revision: in the answer of a change, one that shows
// what was changed; in a request, the oldest that it is to be answered from.
const revisionHeader = "Drover-Revision"

// staleHeader is in a request whose client takes an answer of whichever
// controller it asks, also if that follows the one that leads. The answer tells
// the revision that it is not older than.
const staleHeader = "Drover-Stale"

// stale reports whether a controller that does not lead may answer a request.
func stale(r *http.Request) bool {
	_, takes := r.Header[staleHeader]
	return takes && r.Method == http.MethodGet
}

// notOlder is the revision that the client wants the answer not to be older than.
func (r *request) notOlder() (int64, error) {
	text := r.Header.Get(revisionHeader)
	if text == "" {
		return 0, nil
	}
	revision, err := strconv.ParseInt(text, 10, 64)
	if err != nil || revision < 0 {
		return 0, badRequest("Invalid value for the header " + revisionHeader)
	}
	return revision, nil
}

// reach waits until the state is as new as the client wants it.
func (r *request) reach() error {
	revision, err := r.notOlder()
	if err != nil || revision == 0 {
		return err
	}
	return r.Querier.Reach(r.Context(), revision)
}

// authenticate returns the account of the request, nil for an anonymous one.
// Credentials that were sent must be right, even where none are needed.
func (s *Server) authenticate(r *http.Request) (*user, error) {
	account, err := s.account(r)
	if err != nil && r.Header.Get("Authorization") != "" {
		name, _, _ := r.BasicAuth()
		s.slowDown(r, name)
	}
	return account, err
}

// account is authenticate as of this moment, without what slows down those who
// guess.
func (s *Server) account(r *http.Request) (*user, error) {
	if r.Header.Get("Authorization") == "" {
		if s.config.RequireAuthentication {
			return nil, unauthorized()
		}
		return nil, nil
	}
	if name, password, ok := r.BasicAuth(); ok {
		if found := s.config.Users.Current().find(name, password); found != nil {
			return found, nil
		}
	}
	return nil, unauthorized()
}

// slowDown waits as long as the answer to wrong credentials has to.
func (s *Server) slowDown(r *http.Request, name string) {
	gate.SlowDown(r, s.brake, s.config.Now(), func(count int, wait time.Duration) {
		s.config.Log.Warn("wrong credentials over RAPI", "from", r.RemoteAddr, "user", fault.Clip(name, 100), "wrong_from_there", count, "answered_after", wait)
	})
}

func unauthorized() error { return failure(http.StatusUnauthorized, "Unauthorized") }

// authorize says in RAPI's words whether an account may do something.
func authorize(account *user, needs rights.Right) error {
	switch account.rights().May(needs, rights.Of{}) {
	case rights.Allowed:
		return nil
	case rights.Unknown:
		return unauthorized()
	}
	return failure(http.StatusForbidden, "Forbidden")
}

// chunked is an answer that writes itself in pieces, for large lists.
type chunked interface{ Chunks() iter.Seq[[]byte] }

// stream sends an answer that goes on for as long as the client stays, and may
// have it: its account is looked up before each piece.
func (s *Server) stream(w http.ResponseWriter, e eventStream) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	control := http.NewResponseController(w)
	for piece := range e.Chunks() {
		lost := e.entitled()
		if lost != nil {
			piece = failed(fault.New(fault.Denied, "the account may no longer read this: %w", lost))
		}
		err := control.SetWriteDeadline(time.Now().Add(s.eventTime))
		if err == nil {
			_, err = w.Write(piece)
		}
		if err == nil {
			err = control.Flush()
		}
		if err != nil {
			s.config.Log.Debug("a RAPI client went away", "error", err)
			return
		}
		if lost != nil {
			return
		}
	}
}

// write sends an answer. It returns an error only while nothing has been sent.
func (s *Server) write(w http.ResponseWriter, answer any) error {
	if e, ok := answer.(eventStream); ok {
		s.stream(w, e)
		return nil
	}
	if c, ok := answer.(chunked); ok {
		w.Header().Set("Content-Type", "application/json")
		for piece := range s.config.Querier.Paced(c.Chunks()) {
			if _, err := w.Write(piece); err != nil {
				s.config.Log.Debug("a RAPI client went away", "error", err)
				return nil
			}
		}
		answer = json.RawMessage(nil)
	}
	raw, isRaw := answer.(json.RawMessage)
	if !isRaw {
		var err error
		if raw, err = encode(answer); err != nil {
			return err
		}
	} else {
		raw = append(raw, '\n')
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(raw); err != nil {
		s.config.Log.Debug("a RAPI client went away", "error", err)
	}
	return nil
}

// encode writes JSON and a line end, with "<" and "&" as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

func (s *Server) writeError(w http.ResponseWriter, r *http.Request, e *httpError) {
	if e.status >= http.StatusInternalServerError && e.status != http.StatusNotImplemented && e.status != http.StatusServiceUnavailable {
		s.config.Log.Error("a RAPI request failed", "method", r.Method, "path", r.URL.Path, "error", e.message)
	}
	raw, err := encode(e.body())
	if err != nil {
		raw = []byte(`{"code":` + strconv.Itoa(e.status) + "}\n")
	}
	w.Header().Set("Content-Type", "application/json")
	if e.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="`+Realm+`"`)
	}
	w.WriteHeader(e.status)
	if _, err := w.Write(raw); err != nil {
		s.config.Log.Debug("a RAPI client went away", "error", err)
	}
}
