// Package rapi is the remote API: the HTTP interface that Ganeti's remote
// clients speak, on TLS with basic authentication.
//
// One table (resources*.go) lists every path with its methods; most are data:
// which opcode a request becomes and where its parameters come from. What the
// reference and its documentation say differently, and which of them is
// followed here, is told in docs/compat/rapi.md.
//
// Invariants:
//   - Who may do something is decided before the request's body is read.
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
	"iter"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/queue"
)

// Config is what a server is made of. All fields but RequireAuthentication are
// needed.
type Config struct {
	Queue   *queue.Queue
	Querier *live.Querier
	Users   *UsersFile
	// RequireAuthentication refuses requests without an account even where
	// reading needs no right.
	RequireAuthentication bool
	Now                   func() time.Time
	Log                   *slog.Logger
}

// Server answers the requests of the remote API.
type Server struct {
	config Config
	routes router
}

// New returns a server.
func New(c Config) *Server {
	return &Server{config: c, routes: newRouter(resources)}
}

// The limits of a connection. A request may wait for ten seconds for a job to
// change, and large lists take time to send.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = 60 * time.Second
	writeTimeout  = 120 * time.Second
	idleTimeout   = 180 * time.Second
	stopTimeout   = 5 * time.Second
)

// Serve answers on the listener, with TLS, until the context ends; requests
// that are then under way get a few seconds to finish.
func (s *Server) Serve(ctx context.Context, l net.Listener, cert tls.Certificate) error {
	server := &http.Server{
		Handler:           s,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}},
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          slog.NewLogLogger(s.config.Log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		stopped <- server.Shutdown(limited)
	})
	err := server.ServeTLS(l, "", "")
	if stop() { // the listener failed by itself
		return err
	}
	return <-stopped
}

// ServeHTTP answers one request. A fault of ours is answered too, and does not
// stop others.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			s.config.Log.Error("a RAPI request panicked", "panic", p, "stack", string(debug.Stack()))
			s.writeError(w, r, failure(http.StatusInternalServerError, "internal error: %v", p))
		}
	}()
	answer, err := s.answer(w.Header(), r)
	if err == nil {
		err = s.write(w, answer)
	}
	if err != nil {
		s.writeError(w, r, asHTTP(err))
	}
}

// answer finds out what a request wants, whether its sender may have it, and
// does it.
func (s *Server) answer(header http.Header, r *http.Request) (any, error) {
	account, err := s.authenticate(r)
	if err != nil {
		return nil, err
	}
	methods, variables := s.routes.find(r.URL.EscapedPath())
	if methods == nil {
		return nil, failure(http.StatusNotFound, "Not Found")
	}
	h, ok := methods[r.Method]
	if !ok {
		return nil, failure(http.StatusNotImplemented, "Method %s is unsupported for path %s", r.Method, r.URL.EscapedPath())
	}
	if err := authorize(account, h.access); err != nil {
		return nil, err
	}
	req := &request{Request: r, Config: &s.config, variables: variables, answerHeader: header}
	if err := req.readQuery(); err != nil {
		return nil, err
	}
	if err := req.readBody(); err != nil {
		return nil, err
	}
	return h.serve(req)
}

// authenticate returns the account of the request, nil for an anonymous one.
// Credentials that were sent must be right, even where none are needed.
func (s *Server) authenticate(r *http.Request) (*user, error) {
	if r.Header.Get("Authorization") == "" {
		if s.config.RequireAuthentication {
			return nil, unauthorized()
		}
		return nil, nil
	}
	users, err := s.config.Users.Current()
	if err != nil {
		s.config.Log.Warn("the users file cannot be read, the accounts stay as they were", "error", err)
	}
	name, password, ok := r.BasicAuth()
	if !ok {
		return nil, unauthorized()
	}
	if found := users.find(name, password); found != nil {
		return found, nil
	}
	return nil, unauthorized()
}

func unauthorized() error { return failure(http.StatusUnauthorized, "Unauthorized") }

func authorize(account *user, needed access) error {
	switch {
	case needed == open:
		return nil
	case account == nil:
		return unauthorized()
	case account.may("write"), needed == reading && account.may("read"):
		return nil
	}
	return failure(http.StatusForbidden, "Forbidden")
}

// chunked is an answer that writes itself in pieces, for large lists.
type chunked interface{ Chunks() iter.Seq[[]byte] }

// stream sends an answer that goes on for as long as the client stays.
func (s *Server) stream(w http.ResponseWriter, e eventStream) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	control := http.NewResponseController(w)
	err := control.SetWriteDeadline(time.Time{})
	for piece := range e.Chunks() {
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
