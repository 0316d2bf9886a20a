// Package web serves the page: what people look at in a browser to see what the cluster does and why it waits.
//
// It decides nothing. What a screen shows are views (views.go): queries, explanations and reports that the command line has, too. A
// tab has one WebSocket, on which it says which views it shows (tab.go); what is new in a view is encoded once for all tabs
// (feed.go). Everything else is a row of the table of requests (requests.go).
//
// Invariants:
//   - Nobody sees or does anything without a session, but the page itself and signing in (TestEachRequestNeedsItsRight). A session has the rights that its
//     account has at that moment, and ends with it, with its password, or when its time is over (TestSessionsEnd); so does what is open.
//   - A request that another site's page makes is refused, and so is one under a name that is not ours (TestOtherSites). No page but ours runs
//     in ours, and ours in no other (TestHeaders).
//   - Of what lets somebody in, a session or a link, only hashes are kept; a link signs in once (TestLinks).
//   - What is done here carries the account, "drover-web" and the reason that was typed; without one nothing is done (TestWhatIsDoneSaysWhy).
//   - A deployment is begun as it was shown, or not at all (TestADeploymentIsBegun).
//   - What is done to a thing is done to the one that was shown, once, and what destroys it not without its name (TestOperations).
//   - A console is opened with a ticket, once, by the session that asked for it, and ends with that (TestConsoles).
//   - A tab that does not read, or asks for too much, holds up nobody else and no memory: it gets the newest state when it reads again (TestATabThatDoesNotRead).
package web

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/health"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/requestid"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/rollout"
)

// Accounts are who may sign in. They are asked anew at each request.
type Accounts interface {
	// Verify reports whether the password is that of the account.
	Verify(name, password string) bool
	// Account is what an account may do, and a text that changes with its password; ok is false if there is none.
	Account(name string) (may rights.Account, stamp string, ok bool)
}

// Config is what the page is served from. All but URL, Observe and NewID is needed.
type Config struct {
	Queue    *queue.Queue
	Querier  *live.Querier
	Rollout  *rollout.Engine
	Accounts Accounts
	// Health says how the cluster is.
	Health func(context.Context) health.Report
	// Consoles are those of instances.
	Consoles Consoles
	// URL is the address that people use, where that is not the listener's: behind a proxy. Nil for none.
	URL *url.URL
	// Certificate is the one that is shown, whose names are ours; nil where it is plain HTTP, on loopback.
	Certificate func() *x509.Certificate
	Now         func() time.Time
	Log         *slog.Logger
	// Observe is told of each request that was answered but of streams and consoles: its context, method and path, the status, and how long it took.
	Observe func(ctx context.Context, what, outcome string, took time.Duration)
	// NewID gives an id to each request.
	NewID func() string

	// beat is heartbeat; tests are in a hurry.
	beat time.Duration
}

// Server serves the page.
type Server struct {
	cfg      Config
	mux      *http.ServeMux
	sessions *sessions
	brake    *intake.Brake
	cross    *http.CrossOriginProtection
	hub      *hub
	tabs     tabs
	shell    *shell
}

// New returns a server without sessions.
func New(cfg Config) *Server {
	if cfg.beat == 0 {
		cfg.beat = heartbeat
	}
	s := &Server{cfg: cfg, mux: http.NewServeMux(), sessions: newSessions(cfg.Now), brake: intake.NewBrake(), tabs: tabs{open: map[key]int{}}, cross: http.NewCrossOriginProtection(), shell: loadShell()}
	s.hub = newHub(s)
	if cfg.URL != nil {
		if err := s.cross.AddTrustedOrigin(cfg.URL.Scheme + "://" + cfg.URL.Host); err != nil {
			cfg.Log.Error("the page's public address is no origin of requests", "url", cfg.URL.String(), "error", err)
		}
	}
	for _, r := range requests {
		s.mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, q *http.Request) { s.carryOut(r, w, q) })
	}
	s.mux.Handle("GET /", s.shell)
	return s
}

// Close ends what follows the cluster for tabs.
func (s *Server) Close() { s.hub.close() }

// Link makes a code that signs in once, as who reaches the controller's socket under a name: such a one may do everything. It is the part of an
// address that browsers send to nobody.
func (s *Server) Link(name string) string { return "#code=" + s.sessions.code(name) }

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := &answer{ResponseWriter: w, status: http.StatusOK}
	if s.cfg.NewID != nil {
		r = r.WithContext(requestid.With(r.Context(), s.cfg.NewID()))
	}
	begun := time.Now()
	defer func() {
		p := recover()
		if p == http.ErrAbortHandler { //nolint:errorlint // it is never wrapped
			panic(p) // the client is gone
		}
		if p != nil {
			s.cfg.Log.Error("a request of the page panicked", "panic", p, "stack", string(debug.Stack()))
			if out.begun {
				panic(http.ErrAbortHandler)
			}
			refuse(out, fault.New(fault.Internal, "internal error: %v", p))
		}
		if s.cfg.Observe != nil && !lasts(r) {
			s.cfg.Observe(r.Context(), r.Method+" "+fault.Clip(r.URL.Path, 200), strconv.Itoa(out.status), time.Since(begun))
		}
	}()
	s.secure(out.Header())
	if !s.ours(r.Host) {
		refuse(out, misdirected(r.Host))
		return
	}
	if err := s.cross.Check(r); err != nil {
		refuse(out, fault.New(fault.Denied, "the request comes from a page of another site"))
		return
	}
	s.mux.ServeHTTP(out, r)
}

// lasts tells whether a request is for as long as somebody looks.
func lasts(r *http.Request) bool {
	return r.URL.Path == streamPath || strings.HasPrefix(r.URL.Path, consoles)
}

// policy lets the page load what it came with and nothing else: no script or style within the page, no text that becomes a script.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// secure sets the headers that keep the page to itself.
func (s *Server) secure(h http.Header) {
	for name, value := range map[string]string{
		"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "X-Frame-Options": "DENY",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
	} {
		h.Set(name, value)
	}
	if s.cfg.URL != nil && s.cfg.URL.Scheme == "https" { // the name of a certificate that people trust
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// ours reports whether requests to a host are for this page. A name that somebody else has made to lead here is not: what a browser keeps under it,
// others can read. An address cannot be made to.
func (s *Server) ours(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.Trim(name, "[]")
	switch {
	case net.ParseIP(name) != nil, strings.EqualFold(name, "localhost"):
		return true
	case s.cfg.URL != nil && strings.EqualFold(name, s.cfg.URL.Hostname()):
		return true
	}
	return s.cfg.Certificate != nil && s.cfg.Certificate().VerifyHostname(name) == nil
}

func misdirected(host string) error {
	return fault.New(fault.Denied, "this page is not known under the name %q", fault.Clip(host, 100)).WithHint("the setting web-url says under which name people reach it")
}

// answer knows the status of what was answered.
type answer struct {
	http.ResponseWriter
	begun  bool
	status int
}

// WriteHeader sends the status.
func (w *answer) WriteHeader(status int) {
	w.begun, w.status = true, status
	w.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body.
func (w *answer) Write(piece []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(piece)
}

// Unwrap is for http.ResponseController.
func (w *answer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// statuses maps codes of faults to statuses; a code that is not here is 500.
var statuses = map[fault.Code]int{
	fault.Invalid: http.StatusBadRequest, fault.Mistyped: http.StatusBadRequest, fault.Ambiguous: http.StatusBadRequest,
	fault.NotFound: http.StatusNotFound, fault.Exists: http.StatusConflict, fault.WrongState: http.StatusConflict, fault.Conflict: http.StatusConflict,
	fault.Denied: http.StatusForbidden, fault.TooLarge: http.StatusRequestEntityTooLarge, fault.Unsupported: http.StatusNotImplemented,
	fault.Busy: http.StatusServiceUnavailable, fault.Full: http.StatusServiceUnavailable, fault.Drained: http.StatusServiceUnavailable,
	fault.Fenced: http.StatusServiceUnavailable, fault.Unavailable: http.StatusServiceUnavailable, fault.Canceled: http.StatusServiceUnavailable,
}

// problem is how an error reads.
type problem struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
	Hint    string     `json:"hint,omitempty"`
	Field   string     `json:"field,omitempty"`
}

func problemOf(err error) problem {
	p := problem{Code: fault.CodeOf(err), Message: fault.Clip(err.Error(), fault.MaxText)}
	if f, ok := faultOf(err); ok {
		p.Message, p.Hint, p.Field = f.Message, f.Hint, f.Field
	}
	return p
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if s, ok := statuses[fault.CodeOf(err)]; ok {
		status = s
	}
	if err == errUnknown { //nolint:errorlint // it is never wrapped
		status = http.StatusUnauthorized
	}
	tell(w, status, map[string]any{"error": problemOf(err)})
}

// tell answers with JSON.
func tell(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","message":"the answer cannot be written"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // the client may be gone
}
