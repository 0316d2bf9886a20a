// Package remoteconsole shows the consoles of machines to clients that speak WebSocket (RFC 6455): the serial line and the screen, their bytes in
// binary messages, as noVNC, websockify and nova's serial proxy have it. Our own page is told in text messages beside them who types (notes.go).
//
// Who may act on a server gets a ticket over the Compute API, as part of a URL, and who may on an instance over the page; whoever shows it is let in.
//
// Invariants:
//   - A ticket opens the one console that it was made for, once and within TicketTime, while who asked for it may act on the machine (TestTickets,
//     TestWhoMayNoLonger); so it is of a console that is open. Only its hash is kept.
//   - That a console was opened, and that a ticket was refused, is told by an event; no byte moves before that is durable (TestNothingUntold).
//   - Messages, silence and connections of one user are bounded (TestLimits).
//   - On a serial line one types, whatever way each came (TestOneTypes).
//   - A page is never sent more than it can show, and told how much was left out (TestAPageThatIsSlow).
package remoteconsole

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
)

// Prefix is the path below which consoles are.
const Prefix = "/console/"

// Instances reaches the consoles of instances, by their UUIDs; live.Querier does.
type Instances interface {
	ReadConsole(ctx context.Context, instance string, at uint64, wait time.Duration) (console.Piece, error)
	TypeConsole(ctx context.Context, instance string, keys []byte) error
	OpenScreen(ctx context.Context, instance string) (io.ReadWriteCloser, error)
}

// Config is what consoles need.
type Config struct {
	// Thing is what the consoles are of, in a word that events have: a server, an instance.
	Thing string
	// Find is the machine of one with an id; see OfServers and OfInstances. With an error, which says why it has no console here, it is as much as is known.
	Find      func(id string) (Machine, error)
	Instances Instances
	Keyboards *console.Keyboards
	// Record makes an event durable.
	Record func(context.Context, audit.Event) error
	// Count counts outcomes of tickets.
	Count func(Outcome)
	Now   func() time.Time
	Log   *slog.Logger

	// idle and every are idleTime and lookEvery.
	idle, every time.Duration
}

// Consoles are those of all machines. They are safe for concurrent use.
type Consoles struct {
	cfg     Config
	tickets *tickets

	mu   sync.Mutex
	open map[string]int // by user
}

// Limits of a connection.
const (
	// mostOpen is how many connections one user has at a time.
	mostOpen = 16
	// maxMessage is how long a message of a client may be: what is pasted.
	maxMessage = 1 << 20
	// idleTime is how long nothing may come or go before a connection is ended, and lookEvery the pause between two looks at that, at whether the
	// client is still there, and whether its user still may look.
	idleTime  = time.Hour
	lookEvery = 30 * time.Second
	// sendTime is how long a client may take for a message, or to answer that it is there.
	sendTime = 30 * time.Second
	// mayTime is how long it may take to find out whether somebody still may look.
	mayTime = 10 * time.Second
)

// New returns consoles without tickets.
func New(cfg Config) *Consoles {
	if cfg.idle == 0 {
		cfg.idle = idleTime
	}
	if cfg.every == 0 {
		cfg.every = lookEvery
	}
	return &Consoles{cfg: cfg, tickets: newTickets(cfg.Now), open: map[string]int{}}
}

// Issue makes a ticket for a console that can be had at the moment, and returns the path with it where a WebSocket finds that. Unsupported for
// a machine that has no such console.
func (c *Consoles) Issue(ctx context.Context, g console.Grant) (path string, err error) {
	m, err := c.cfg.Find(g.Of)
	if err != nil {
		return "", err
	}
	if err := c.tryOut(ctx, g.Kind, m.UUID); err != nil {
		return "", err
	}
	text, err := c.tickets.issue(g)
	if err != nil {
		return "", err
	}
	return Prefix + string(g.Kind) + "/" + url.PathEscape(g.Of) + "?token=" + text, nil
}

// tryOut looks whether there is such a console.
func (c *Consoles) tryOut(ctx context.Context, kind console.Kind, uuid string) error {
	if kind == console.Serial {
		_, err := c.cfg.Instances.ReadConsole(ctx, uuid, 0, 0)
		return err
	}
	screen, err := c.cfg.Instances.OpenScreen(ctx, uuid)
	if err != nil {
		return err
	}
	_ = screen.Close()
	return nil
}

// subprotocol is what clients of consoles call messages that are bytes.
const subprotocol = "binary"

// ServeHTTP takes a WebSocket, and serves it until either end ends it.
func (c *Consoles) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind, id, ok := consoleOf(r.URL)
	switch {
	case !ok:
		http.Error(w, "There is no such console.", http.StatusNotFound)
		return
	case !strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		w.Header().Set("Upgrade", "websocket")
		http.Error(w, "This is the console of a machine, for clients that speak WebSocket.\nThe address is good for one connection, and still is.", http.StatusUpgradeRequired)
		return
	case !takesBytes(r.Header.Values("Sec-WebSocket-Protocol")):
		http.Error(w, "A console has the subprotocol binary.", http.StatusBadRequest)
		return
	}
	s, status, err := c.admit(r, kind, id)
	if err != nil {
		http.Error(w, err.Error(), status)
		return
	}
	defer c.leave(s.grant.User)
	// A page of another origin may connect: it has the ticket, and the browser adds nothing that would let it in.
	s.conn, err = websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{withNotes, subprotocol}, InsecureSkipVerify: true})
	if err != nil {
		return // it was answered
	}
	s.conn.SetReadLimit(maxMessage)
	s.notes = s.conn.Subprotocol() == withNotes
	s.serve(r.Context(), r.URL.Query().Get("take-over") == "true")
}

// consoleOf reads whose console a path is.
func consoleOf(u *url.URL) (kind console.Kind, id string, ok bool) {
	rest, _ := strings.CutPrefix(u.EscapedPath(), Prefix)
	first, id, _ := strings.Cut(rest, "/")
	kind = console.Kind(first)
	id, err := url.PathUnescape(id)
	return kind, id, err == nil && id != "" && (kind == console.Serial || kind == console.VNC)
}

// takesBytes tells whether a client takes a subprotocol of bytes, or says nothing of any.
func takesBytes(offers []string) bool {
	for _, line := range offers {
		if slices.ContainsFunc(strings.Split(line, ","), func(one string) bool {
			one = strings.TrimSpace(one)
			return strings.EqualFold(one, subprotocol) || strings.EqualFold(one, withNotes)
		}) {
			return true
		}
	}
	return len(offers) == 0
}

// admit takes a ticket, and tells of it.
func (c *Consoles) admit(r *http.Request, kind console.Kind, id string) (s *session, status int, err error) {
	g, outcome := c.tickets.redeem(r.URL.Query().Get("token"), kind, id)
	at, gone := c.cfg.Find(id)
	if outcome == Opened && c.may(r.Context(), g, at, gone) != nil {
		outcome = Foreign
	}
	if outcome == Opened && !c.enter(g.User) {
		outcome = Crowded
	}
	defer func() {
		if outcome == Opened && err != nil {
			c.leave(g.User)
		}
	}()
	c.cfg.Count(outcome)
	by := g.By
	by.Account.From = from(r)
	if outcome == Unknown {
		c.cfg.Log.Warn("a console was asked for with no ticket that is known", "from", by.Account.From)
		return nil, http.StatusUnauthorized, fault.New(fault.Denied, "There is no such ticket: it is over, or was made before another controller led.")
	}
	verb := audit.ConsoleOpen
	if outcome != Opened {
		verb = audit.ConsoleRefuse
	}
	if err := c.cfg.Record(r.Context(), c.event(verb, at, id, kind, outcome, by)); err != nil {
		return nil, http.StatusServiceUnavailable, err
	}
	switch outcome {
	case Opened:
	case Crowded:
		return nil, http.StatusTooManyRequests, fault.New(fault.Busy, "There are already %d consoles of this user, as many as there may be.", mostOpen)
	default:
		return nil, http.StatusUnauthorized, fault.New(fault.Denied, "The ticket is refused: %s.", outcome)
	}
	return &session{consoles: c, grant: g, machine: at, by: by, shown: make(chan uint64, 1)}, 0, nil
}

// event tells of a ticket that was shown.
func (c *Consoles) event(verb audit.Verb, at Machine, id string, kind console.Kind, outcome Outcome, by audit.By) audit.Event {
	id = fault.Clip(id, 100)
	e := audit.New(verb, id, by)
	if at.UUID != "" {
		e.Object, e.Name = at.UUID, at.Name
	}
	after, err := json.Marshal(map[string]string{"console": string(kind), c.cfg.Thing: id, "ticket": string(outcome)})
	if err != nil { // texts only
		panic(err)
	}
	e.After = after
	return e
}

// may refuses who may not act on a machine any more, or on one that is gone. Where nobody can tell who may, it is as it was: at most two minutes
// ago they might, or they look already.
func (c *Consoles) may(ctx context.Context, g console.Grant, at Machine, gone error) error {
	if gone != nil || at.Project != g.Project {
		return fault.New(fault.Denied, "the %s is not there any more", c.cfg.Thing)
	}
	ctx, cancel := context.WithTimeout(ctx, mayTime)
	defer cancel()
	if err := g.Still(ctx); fault.Is(err, fault.Denied) {
		return fault.New(fault.Denied, "who the console was opened for is signed in no more, or may not act on the %s", c.cfg.Thing)
	}
	return nil
}

// from is where a request came from.
func from(r *http.Request) string {
	if origin := intake.Origin(r.RemoteAddr); origin.IsValid() {
		return origin.Addr().String()
	}
	return r.RemoteAddr
}

func (c *Consoles) enter(user string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[user] >= mostOpen {
		return false
	}
	c.open[user]++
	return true
}

func (c *Consoles) leave(user string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[user]--; c.open[user] == 0 {
		delete(c.open, user)
	}
}
