// Package compute is the Compute API of OpenStack, in two flavours of one
// service: /compute/v2.1 in Nova's words and /compute/v2.0 in those of Cyclades;
// and as much of the Image and Network APIs as clients ask for before they make a server.
//
// It translates: what a request means is decided by tagsync and below.
//
// Invariants:
//   - A path is matched as it was sent, segment by segment, before anything in it
//     is decoded. Nothing is cleaned, cut off or redirected: a segment ".." is a
//     name like any other, and no path reaches another resource than it names.
//   - What is not the project's is not there: 404.
//   - Every answer carries the request's id, which goes into the reason trail of
//     every job that follows from it.
package compute

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/flavor"
	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/identity"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/keypair"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/tagsync"
	"github.com/drover-project/drover/internal/upload"
)

// Config is what the API needs.
type Config struct {
	// Session tells what a token stands for. fault.Denied when it is not good.
	Session func(ctx context.Context, token string) (*identity.Session, error)
	// Keep keeps a project from being removed until release is called.
	Keep   func(project string) (release func(), err error)
	Engine *tagsync.Engine
	// Uploads are the images that users bring; nil where none are taken.
	Uploads *upload.Service
	// Flavors are the sizes that servers may have, and Keys the key pairs of users.
	Flavors *flavor.Service
	Keys    *keypair.Service
	// Quotas are how much projects may have, and HasProject tells whether there is one of an id; where nobody knows, there is.
	Quotas     *quota.Service
	HasProject func(id string) bool
	// Identity is where clients get tokens; empty for beside this API.
	Identity string
	// Console makes a ticket for a console, and returns the path that has it; see remoteconsole.Consoles.
	Console func(ctx context.Context, of console.Grant) (path string, err error)
	// Printed is what an instance of Drover's own cluster, known by its UUID, printed on its serial line last. Unsupported where it has none.
	Printed func(ctx context.Context, instance string) ([]byte, error)
	// Waits says what a job of Drover's own cluster waits for, in a sentence; empty
	// for nothing.
	Waits func(ctx context.Context, id job.ID) string
	Now   func() time.Time
	Log   *slog.Logger
}

// API answers the requests.
type API struct {
	cfg    Config
	brake  *intake.Brake
	bodies *intake.Budget
}

// Limits of what is taken in.
const (
	maxBody   = 256 << 10
	maxBodies = 16 << 20
	maxValues = 5000
)

// New returns the API.
func New(cfg Config) *API {
	return &API{cfg: cfg, brake: intake.NewBrake(), bodies: intake.NewBudget(maxBodies)}
}

// identity is where the client of a request gets tokens.
func (c *Config) identity(r *request) string {
	if c.Identity != "" {
		return c.Identity
	}
	return r.base() + "/identity/v3"
}

// flavour is whose contract a request is under.
type flavour uint8

const (
	nova flavour = iota
	cyclades
	glance
	neutron
)

// roots are the paths of the flavours.
var roots = map[string]flavour{"/compute/v2.1": nova, "/compute/v2.0": cyclades, "/image/v2": glance, "/network/v2.0": neutron}

// request is a request on its way.
type request struct {
	*http.Request
	api     *API
	w       http.ResponseWriter
	id      string
	flavour flavour
	// minor is the second number of the microversion; said: the client named one.
	minor   int
	said    bool
	session *identity.Session
	account rights.Account // who asks with the session
	path    []string       // decoded variables of the route
}

// result is an answer without an error.
type result struct {
	status int
	body   any
}

// sent is the status of a result that has been sent already.
const sent = 0

type object = map[string]any

// ServeHTTP answers one request. A fault of ours is answered too.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req := &request{Request: r, api: a, w: w, id: "req-" + newUUID(), minor: minMinor}
	h := w.Header()
	h.Set("X-Compute-Request-Id", req.id)
	h.Set("X-Openstack-Request-Id", req.id)
	defer func() {
		if p := recover(); p != nil {
			a.cfg.Log.Error("a Compute request panicked", "panic", p, "stack", string(debug.Stack()))
			req.write(result{http.StatusInternalServerError, req.errorBody(http.StatusInternalServerError, "Unexpected API Error.")})
		}
	}()
	out, err := req.answer()
	if err != nil {
		out = req.failed(err)
	}
	req.write(out)
}

// Refuse answers a request that cannot be taken here at all, in the words of its
// flavour.
func Refuse(w http.ResponseWriter, r *http.Request, status int, text string) {
	req := &request{Request: r, w: w}
	req.flavour, _, _ = flavourOf(r.URL.EscapedPath())
	req.write(result{status, req.errorBody(status, text)})
}

// flavourOf finds whose contract a path is under, and what follows the root of
// that.
func flavourOf(path string) (f flavour, rest string, ok bool) {
	for root, f := range roots {
		if rest, ok := strings.CutPrefix(path, root+"/"); ok {
			return f, rest, true
		}
	}
	return nova, "", false
}

// newUUID returns a random UUID.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// answer finds the route, the version and who asks, and serves.
func (r *request) answer() (result, error) {
	path := r.URL.EscapedPath()
	if out, ok := r.documents(path); ok {
		return out, nil
	}
	of, rest, ok := flavourOf(path)
	if !ok {
		return result{}, errNoRoute
	}
	r.flavour = of
	if err := r.readVersion(); err != nil {
		return result{}, err
	}
	session, err := r.api.cfg.Session(r.Context(), r.Header.Get("X-Auth-Token"))
	if err != nil {
		if fault.Is(err, fault.Denied) {
			r.slow()
		}
		return result{}, err
	}
	if r.session, r.account = session, session.Account(); session.Project == nil {
		return result{}, fault.New(fault.Denied, "The token is for no project.")
	}
	segments := strings.Split(rest, "/")
	if segments[0] == session.Project.ID {
		segments = segments[1:] // as catalogues once had it
	}
	rt, err := r.find(segments)
	if err != nil {
		return result{}, err
	}
	if r.account.May(rt.needs, rights.Of{}) != rights.Allowed {
		return result{}, rt.forbidden()
	}
	if err := r.checkQuery(rt); err != nil {
		return result{}, err
	}
	return rt.serve(r)
}

// find looks a path up in the table, and decodes its variables.
func (r *request) find(segments []string) (*route, error) {
	known := false
	for i := range routes {
		rt := &routes[i]
		if !rt.matches(r.flavour, segments) {
			continue
		}
		known = true
		if rt.method != r.Method {
			continue
		}
		for k, part := range rt.path {
			if part != "{}" {
				continue
			}
			text, err := url.PathUnescape(segments[k])
			if err != nil || !utf8.ValidString(text) {
				return nil, fault.New(fault.Invalid, "The path is no UTF-8.")
			}
			r.path = append(r.path, text)
		}
		return rt, nil
	}
	if known && r.flavour == cyclades {
		return nil, errMethod
	}
	return nil, errNoRoute
}

// refused is an error with a status of its own, where its code says too little.
type refused struct {
	error
	status int
}

var (
	errNoRoute   = refused{fault.New(fault.NotFound, "The resource could not be found."), http.StatusNotFound}
	errMethod    = refused{fault.New(fault.Invalid, "Method not allowed"), http.StatusMethodNotAllowed}
	errMedia     = refused{fault.New(fault.Invalid, "Unsupported Content-Type"), http.StatusUnsupportedMediaType}
	errForbidden = refused{fault.New(fault.Denied, "Policy doesn't allow this to be done with the roles of the token."), http.StatusForbidden}
)

// slow holds up the answer to a wrong token, so that they cannot be tried out.
func (r *request) slow() {
	if r.Header.Get("X-Auth-Token") == "" {
		return
	}
	gate.SlowDown(r.Request, r.api.brake, r.api.cfg.Now(), func(count int, wait time.Duration) {
		r.api.cfg.Log.Warn("wrong tokens over the Compute API", "from", r.RemoteAddr, "wrong_from_there", count, "answered_after", wait)
	})
}

// asked tells who asks, for what follows from it.
func (r *request) asked() servertag.Asked {
	from, _, _ := strings.Cut(r.RemoteAddr, ":")
	if origin := intake.Origin(r.RemoteAddr); origin.IsValid() {
		from = origin.Addr().String()
	}
	return servertag.Asked{User: r.session.User.Name, Front: "compute", Request: r.id, From: from, Time: r.api.cfg.Engine.Now()}
}

// read reads the body into v. It has to be text, not too much of anything, and ask
// for nothing that is not done.
func (r *request) read(keys intake.Object, v any) error {
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != "" && kind != "application/json" && kind != "application/vnd.openstack.compute+json" {
		return errMedia
	}
	text, err := r.body()
	if err != nil {
		return err
	}
	if err := intake.CheckValues(text, maxValues); err != nil {
		return err
	}
	if err := intake.ReadOpen(text, v); err != nil {
		return malformed(err)
	}
	if keys == nil {
		return nil
	}
	return keys.Check(text)
}

// malformed says in the API's words why a body is not what a request needs.
func malformed(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return fault.New(fault.Invalid, "Malformed request body")
	}
	told := fault.New(f.Code, "Malformed request body: %s", f.Message).At(f.Field)
	if f.Hint != "" {
		told = told.WithHint("%s", f.Hint)
	}
	return told
}

// body reads the whole body.
func (r *request) body() ([]byte, error) {
	if err := r.api.bodies.Take(maxBody); err != nil {
		return nil, err
	}
	defer r.api.bodies.Give(maxBody)
	text, err := io.ReadAll(http.MaxBytesReader(r.w, r.Body, maxBody))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return nil, fault.New(fault.TooLarge, "The body is larger than %d bytes", maxBody)
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "Malformed request body")
	}
	return text, nil
}

// the server of the path: one of the session's project.
func (r *request) server() (*server.Server, error) {
	id := r.path[0]
	servers := r.api.cfg.Engine.Servers()
	s := servers.Get(id)
	if r.flavour == cyclades {
		s = nil
		if n, err := strconv.ParseInt(id, 10, 64); err == nil && strconv.FormatInt(n, 10) == id {
			s = servers.Numbered(n)
		}
	}
	if s == nil || r.account.May(rights.Look, rights.Of{Project: s.Project}) != rights.Allowed {
		return nil, fault.New(fault.NotFound, "Instance %s could not be found.", fault.Clip(id, 100))
	}
	return s, nil
}

// statuses are the statuses of the codes of errors; any other is 500.
var statuses = map[fault.Code]int{
	fault.Invalid: http.StatusBadRequest, fault.BadTag: http.StatusBadRequest, fault.Mistyped: http.StatusBadRequest,
	fault.NotFound: http.StatusNotFound, fault.Conflict: http.StatusConflict, fault.WrongState: http.StatusConflict,
	fault.Denied: http.StatusUnauthorized, fault.TooLarge: http.StatusRequestEntityTooLarge, fault.Busy: http.StatusServiceUnavailable,
	fault.Unavailable: http.StatusServiceUnavailable,
}

func (r *request) failed(err error) result {
	status, known := statuses[fault.CodeOf(err)]
	text := err.Error()
	if own, ok := errors.AsType[refused](err); ok {
		status, known = own.status, true
		if r.flavour == cyclades {
			status, text = r.asCyclades(own)
		}
	}
	switch {
	case !known && r.Context().Err() != nil && errors.Is(err, context.Canceled): // nobody waits for the answer: nothing is wrong here
		status, text = http.StatusServiceUnavailable, "The request was given up by its client. What it asked for may be done."
	case !known:
		r.api.cfg.Log.Error("a Compute request failed", "method", r.Method, "path", fault.Clip(r.URL.Path, 200), "error", err)
		status, text = http.StatusInternalServerError, "Unexpected API Error."
	case status == http.StatusUnauthorized:
		r.w.Header().Set("WWW-Authenticate", `Keystone uri="`+r.api.cfg.identity(r)+`"`)
		if r.flavour == cyclades {
			return result{status, r.errorBody(status, text)}
		}
		return result{status, object{"error": object{"code": status, "title": "Unauthorized", "message": text}}}
	}
	return result{status, r.errorBody(status, text)}
}

// asCyclades says in Cyclades' way what Nova has other statuses for.
func (r *request) asCyclades(err refused) (status int, text string) {
	switch err {
	case errNoRoute:
		return http.StatusBadRequest, "API endpoint not found"
	case errMedia:
		return http.StatusBadRequest, err.Error()
	case errMethod:
		r.w.Header().Set("Allow", "GET,PUT,DELETE")
	}
	return err.status, err.Error()
}

// faultNames are the keys of error bodies, by status, of Nova and of Cyclades.
var faultNames = map[int][2]string{
	400: {"badRequest", "badRequest"}, 401: {"unauthorized", "unauthorized"}, 403: {"forbidden", "forbidden"}, 404: {"itemNotFound", "itemNotFound"},
	405: {"badMethod", "notAllowed"}, 406: {"computeFault", "computeFault"}, 409: {"conflictingRequest", "conflict"}, 413: {"overLimit", "overLimit"},
	415: {"badMediaType", "badMediaType"}, 501: {"notImplemented", "notImplemented"}, 503: {"serviceUnavailable", "serviceUnavailable"},
}

func (r *request) errorBody(status int, text string) object {
	names, known := faultNames[status]
	if !known {
		names = [2]string{"computeFault", "internalServerError"}
	}
	if r.flavour == cyclades {
		return object{names[1]: object{"code": status, "message": text, "details": ""}}
	}
	if r.flavour == neutron {
		return object{"NeutronError": object{"type": names[0], "message": text, "detail": ""}}
	}
	return object{names[0]: object{"code": status, "message": text}}
}

// write sends an answer.
func (r *request) write(out result) {
	if out.status == sent {
		return
	}
	if out.body == nil {
		r.w.Header().Set("Content-Length", "0")
		if out.status == http.StatusNoContent {
			r.w.Header().Del("Content-Length")
		}
		r.w.WriteHeader(out.status)
		return
	}
	text, err := json.Marshal(out.body)
	if err != nil {
		r.w.WriteHeader(http.StatusInternalServerError)
		return
	}
	r.w.Header().Set("Content-Type", "application/json")
	r.w.WriteHeader(out.status)
	_, _ = r.w.Write(text) // to a client that may be gone
}
