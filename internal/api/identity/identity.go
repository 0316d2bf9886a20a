// Package identity is the part of OpenStack's Identity API (Keystone v3) that
// clients need to log in and administrators to keep users: tokens, the
// catalogue, projects, users, roles and application credentials.
//
// Invariants:
//   - Wrong credentials are answered like any others that are wrong, and ever
//     later from one address.
//   - No log and no error holds a password, a secret or a token.
//   - A path is taken as it was sent: nothing in it is cleaned or redirected.
package identity

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/forwarded"
	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/identity"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/rights"
)

// Service is one entry of the catalogue.
type Service struct{ Type, Name, URL string }

// Config is what the API needs.
type Config struct {
	Accounts *identity.Service
	// Catalog tells where the services are, as the client reaches them.
	Catalog func(r *http.Request) []Service
	// Prefix is the path that the API is below, without a slash at its end.
	Prefix string
	Region string
	Now    func() time.Time
	Log    *slog.Logger
}

// API answers the requests.
type API struct {
	cfg   Config
	brake *intake.Brake
}

// New returns the API.
func New(cfg Config) *API { return &API{cfg: cfg, brake: intake.NewBrake()} }

// maxBody is how large a body may be, maxValues how many values it may have.
const (
	maxBody   = 64 << 10
	maxValues = 1000
)

// request is a request on its way.
type request struct {
	*http.Request
	api *API
	// w takes the answer; nil for a request that came otherwise. header is that of the
	// answer.
	w      http.ResponseWriter
	header http.Header
	path   []string // what stands for "{}" in the route
	// session is that of X-Auth-Token; nil without one. account is who asks with it.
	session *identity.Session
	account rights.Account
}

// route is one resource with one method.
type route struct {
	method, path string
	// needs is what is needed of who asks; of none no token is looked at.
	needs rights.Right
	serve func(*request) (status int, answer any, err error)
}

// ServeHTTP answers one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req := &request{Request: r, api: a, w: w, header: w.Header()}
	w.Header().Set("Vary", "X-Auth-Token")
	status, answer, err := a.answer(req)
	if err != nil {
		status, answer = errorBody(err)
		if status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Keystone uri="`+a.base(r)+`/v3"`)
		}
		if status == http.StatusInternalServerError {
			a.cfg.Log.Error("an identity request failed", "method", r.Method, "path", fault.Clip(r.URL.Path, 200), "error", err)
		}
	}
	if r.Method == http.MethodHead {
		w.WriteHeader(status)
		return
	}
	write(w, status, answer)
}

// write sends an answer, of which there may be none.
func write(w http.ResponseWriter, status int, answer any) {
	if answer == nil {
		w.WriteHeader(status)
		return
	}
	text, err := json.Marshal(answer)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // to a client that may be gone
}

// Refuse answers a request that cannot be taken here at all.
func Refuse(w http.ResponseWriter, status int, text string) { write(w, status, refusal(status, text)) }

func refusal(status int, text string) any {
	return object{"error": object{"code": status, "title": http.StatusText(status), "message": text}}
}

func (a *API) base(r *http.Request) string { return forwarded.Base(r) + a.cfg.Prefix }

// answer finds the route and who asks.
func (a *API) answer(r *request) (int, any, error) {
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), a.cfg.Prefix)
	if !ok {
		return 0, nil, errNotFound()
	}
	rt, err := r.find(path)
	if err != nil {
		return 0, nil, err
	}
	if token := r.Header.Get("X-Auth-Token"); token != "" && rt.needs != rights.None {
		session, err := a.cfg.Accounts.Session(token)
		if err != nil {
			a.slow(r)
			return 0, nil, err
		}
		r.session, r.account = session, session.Account()
	}
	switch r.account.May(rt.needs, rights.Of{}) {
	case rights.Allowed:
		return rt.serve(r)
	case rights.Unknown:
		return 0, nil, errDenied()
	}
	return 0, nil, fault.New(fault.WrongState, "You are not authorized to perform the requested action.").At("forbidden")
}

// find finds the route of a path below the prefix, and its variables.
func (r *request) find(path string) (*route, error) {
	var known []string
	for i := range routes {
		rt := &routes[i]
		variables, ok := match(rt.path, path)
		if !ok {
			continue
		}
		known = append(known, rt.method)
		if rt.method == r.Method || r.Method == http.MethodHead && rt.method == http.MethodGet {
			r.path = variables
			return rt, nil
		}
	}
	if known != nil {
		r.header.Set("Allow", strings.Join(known, ", "))
		return nil, fault.New(fault.Unsupported, "The method is not allowed for the requested URL.").At("method")
	}
	return nil, errNotFound()
}

// Operate answers a request about accounts of who owns the machine that the
// controller runs on, and so may administer without a token: of a path below the
// prefix, with a query if it has one. It answers nothing that needs no token.
func (a *API) Operate(ctx context.Context, method, path string, body []byte) (status int, answer any) {
	in, err := http.NewRequestWithContext(ctx, method, "http://controller"+a.cfg.Prefix+path, bytes.NewReader(body))
	if err != nil {
		return errorBody(fault.New(fault.Invalid, "%s %s is no request", fault.Clip(method, 20), fault.Clip(path, 200)))
	}
	r := &request{Request: in, api: a, header: http.Header{}, session: &identity.Session{Methods: []string{"socket"}}, account: rights.Operator()}
	rt, err := r.find(strings.TrimPrefix(in.URL.EscapedPath(), a.cfg.Prefix))
	if err == nil && rt.needs == rights.None {
		err = errNotFound()
	}
	if err == nil {
		status, answer, err = rt.serve(r)
	}
	if err != nil {
		status, answer = errorBody(err)
	}
	if method != http.MethodGet {
		a.cfg.Log.Info("accounts were administered over the controller's socket", "method", method, "path", fault.Clip(path, 200), "status", status)
	}
	return status, answer
}

func errNotFound() error { return fault.New(fault.NotFound, "Not Found") }

func errDenied() error {
	return fault.New(fault.Denied, "The request you have made requires authentication.")
}

// match compares a path with a route's; "{}" stands for one segment.
func match(pattern, path string) (variables []string, ok bool) {
	if path == pattern || path == pattern+"/" && strings.Count(pattern, "/") <= 1 {
		return nil, true
	}
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return nil, false
	}
	for i, part := range want {
		switch {
		case part == "{}" && got[i] != "":
			variables = append(variables, got[i])
		case part != got[i]:
			return nil, false
		}
	}
	return variables, true
}

// slow holds up the answer to wrong credentials.
func (a *API) slow(r *request) {
	gate.SlowDown(r.Request, a.brake, a.cfg.Now(), func(count int, wait time.Duration) {
		a.cfg.Log.Warn("wrong credentials over the Identity API", "from", r.RemoteAddr, "wrong_from_there", count, "answered_after", wait)
	})
}

// statuses are the statuses of the codes of errors; any other is 500.
var statuses = map[fault.Code]int{
	fault.Invalid: http.StatusBadRequest, fault.Denied: http.StatusUnauthorized, fault.NotFound: http.StatusNotFound,
	fault.Exists: http.StatusConflict, fault.Conflict: http.StatusConflict, fault.WrongState: http.StatusForbidden, fault.TooLarge: http.StatusRequestEntityTooLarge,
	fault.Unavailable: http.StatusServiceUnavailable, fault.Unsupported: http.StatusMethodNotAllowed,
}

func errorBody(err error) (int, any) {
	status, known := statuses[fault.CodeOf(err)]
	text := err.Error()
	if !known {
		status, text = http.StatusInternalServerError, "An unexpected error prevented the server from fulfilling your request."
	}
	return status, refusal(status, text)
}

type object = map[string]any

// read reads the body into v. What it asks for is done, or refused here.
func (r *request) read(keys intake.Object, v any) error {
	text, err := io.ReadAll(http.MaxBytesReader(r.w, r.Body, maxBody))
	if err != nil {
		return fault.New(fault.TooLarge, "the body is larger than %d bytes, or cannot be read", maxBody)
	}
	if err := intake.CheckValues(text, maxValues); err != nil {
		return err
	}
	if err := intake.ReadOpen(text, v); err != nil { // which tells no values: they may be secrets
		return err
	}
	return keys.Check(text)
}
