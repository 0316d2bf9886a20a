package remoteconsole

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/testkit"
)

// rig is a server with a machine whose serial line and screen say what they are told.
type rig struct {
	*testing.T
	*Consoles
	url string

	mu     sync.Mutex
	ahead  time.Duration
	at     server.Server
	still  error // whether whoever asked for a ticket may still act, and how often that was asked
	asks   int
	lost   error
	events []string
	counts []Outcome
	line   console.Line
	// screen is what is shown in place of one that says what it is told.
	screen io.ReadWriteCloser
}

// echo is a guest that says what it is told.
type echo struct{ *console.Line }

func newRig(t *testing.T, change func(*Config)) *rig {
	t.Helper()
	r := &rig{T: t, at: server.Server{ID: "s1", UUID: "u1", Instance: "snf-1", Project: "home"}}
	r.line.Attach(echo{&r.line})
	record := func(_ context.Context, e audit.Event) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.lost == nil {
			r.events = append(r.events, fmt.Sprint(e.What, " ", e.Name, " ", e.Who, " ", string(e.After)))
		}
		return r.lost
	}
	cfg := Config{
		Thing: "server", Find: OfServers(func(id string) *server.Server {
			r.mu.Lock()
			defer r.mu.Unlock()
			if at := r.at; at.ID == id {
				return &at
			}
			if id == "s2" { // another one of the project, which its users may reach as well
				return &server.Server{ID: "s2", UUID: "u2", Instance: "snf-2", Project: "home"}
			}
			return nil
		}),
		Instances: r, Keyboards: console.NewKeyboards(r.now, record), Record: record, Now: r.now,
		Count: func(o Outcome) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.counts = append(r.counts, o)
		},
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	if change != nil {
		change(&cfg)
	}
	r.Consoles = New(cfg)
	s := httptest.NewServer(r.Consoles)
	t.Cleanup(s.Close)
	r.url = s.URL
	return r
}

func (r *rig) now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Add(r.ahead)
}

// set changes what the rig is under its lock.
func (r *rig) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func (r *rig) ReadConsole(ctx context.Context, instance string, at uint64, wait time.Duration) (console.Piece, error) {
	if instance != "u1" {
		return console.Piece{}, fault.New(fault.NotFound, "there is no %s", instance)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return r.line.Read(ctx, at), nil
}

func (r *rig) TypeConsole(_ context.Context, _ string, keys []byte) error { return r.line.Type(keys) }

func (r *rig) OpenScreen(ctx context.Context, _ string) (io.ReadWriteCloser, error) {
	if r.screen != nil {
		return r.screen, nil
	}
	ours, theirs := net.Pipe()
	context.AfterFunc(ctx, func() { _ = ours.Close() })
	go func() {
		defer func() { _ = theirs.Close() }()
		if _, err := io.WriteString(theirs, "RFB 003.008\n"); err == nil {
			_, _ = io.Copy(theirs, theirs)
		}
	}()
	return ours, nil
}

// asked tells whether alice may act.
func (r *rig) asked(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asks++
	return r.still
}

func (r *rig) timesAsked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asks
}

// issue makes a ticket of alice's.
func (r *rig) issue(kind console.Kind) string {
	r.Helper()
	path, err := r.Issue(r.Context(), console.Grant{Kind: kind, Of: "s1", User: "a", Project: "home", By: audit.By{Account: reason.Account{Surface: "compute", Name: "alice"}}, Still: r.asked})
	if err != nil {
		r.Fatal(err)
	}
	return path
}

// dial opens a console as a client does that wants bytes.
func (r *rig) dial(path string) (c *client, status int, err error) {
	return r.dialAs(path, "binary", "base64")
}

func (r *rig) dialAs(path string, subprotocols ...string) (c *client, status int, err error) {
	conn, answer, err := websocket.Dial(r.Context(), "ws"+strings.TrimPrefix(r.url, "http")+path, &websocket.DialOptions{
		Subprotocols: subprotocols, HTTPHeader: http.Header{"Origin": {"https://elsewhere.example"}},
	})
	if err == nil {
		r.Cleanup(func() { _ = conn.CloseNow() })
	}
	if answer != nil {
		status = answer.StatusCode
		if answer.Body != nil {
			_ = answer.Body.Close()
		}
	}
	return &client{T: r.T, Conn: conn}, status, err
}

func (r *rig) opens(path string) *client {
	r.Helper()
	c, _, err := r.dial(path)
	if err != nil {
		r.Fatal(err)
	}
	return c
}

// refused opens what is refused.
func (r *rig) refused(path string, status int) {
	r.Helper()
	if _, is, err := r.dial(path); err == nil || is != status {
		r.Errorf("%s: %d, %v; want %d", path, is, err, status)
	}
}

// client is somebody who looks.
type client struct {
	*testing.T
	*websocket.Conn
	seen string
}

// await waits until the console has said something.
func (c *client) await(want string) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), testkit.Patience())
	defer cancel()
	for !strings.Contains(c.seen, want) {
		kind, text, err := c.Read(ctx)
		if err != nil || kind != websocket.MessageBinary {
			c.Fatalf("it has not said %q but %q: %v, %v", want, c.seen, kind, err)
		}
		c.seen += string(text)
	}
	_, c.seen, _ = strings.Cut(c.seen, want)
}

// ends waits until the connection is ended, and returns why.
func (c *client) ends() (status websocket.StatusCode, why string) {
	ctx, cancel := context.WithTimeout(c.Context(), testkit.Patience())
	defer cancel()
	for {
		if _, _, err := c.Read(ctx); err != nil {
			e, _ := errors.AsType[websocket.CloseError](err)
			return e.Code, e.Reason
		}
	}
}

func (c *client) key(keys string) {
	c.Helper()
	if err := c.Write(c.Context(), websocket.MessageBinary, []byte(keys)); err != nil {
		c.Fatal(err)
	}
}

// ending is the screen of a machine that takes no keys any more, and then ends.
type ending struct {
	typed chan struct{}
	once  sync.Once
}

func (e *ending) Read([]byte) (int, error) {
	<-e.typed
	return 0, io.EOF
}

func (e *ending) Write([]byte) (int, error) {
	defer e.once.Do(func() { close(e.typed) })
	return 0, io.ErrClosedPipe
}

func (e *ending) Close() error { return nil }

// TestKeysForAMachineThatHasEnded: who types as it ends is told of that, and of nothing else.
func TestKeysForAMachineThatHasEnded(t *testing.T) {
	r := newRig(t, nil)
	r.screen = &ending{typed: make(chan struct{})}
	screen := r.opens(r.issue(console.VNC))
	screen.key("x")
	if status, why := screen.ends(); status != websocket.StatusNormalClosure || why != "the machine has ended" {
		t.Errorf("it ends with %v, %s", status, why)
	}
}

// TestConsoles has somebody look at both consoles of a server and use them.
func TestConsoles(t *testing.T) {
	r := newRig(t, nil)
	_, _ = r.line.Write([]byte("login: "))
	line := r.opens(r.issue(console.Serial))
	if line.Subprotocol() != "binary" {
		t.Errorf("the subprotocol is %q", line.Subprotocol())
	}
	line.await("login: ")
	line.key("root\n")
	line.await("root\n")
	if err := line.Write(t.Context(), websocket.MessageText, bytes.Repeat([]byte("x"), 10_000)); err != nil { // terminals of browsers send text, and much is pasted
		t.Error(err)
	}
	line.await(strings.Repeat("x", 10_000))
	screen := r.opens(r.issue(console.VNC))
	screen.await("RFB 003.008\n")
	screen.key("RFB 003.008\n")
	screen.await("RFB 003.008\n")
	if err := screen.Write(t.Context(), websocket.MessageText, []byte("x")); err != nil {
		t.Error(err)
	}
	if status, why := screen.ends(); status != websocket.StatusPolicyViolation || !strings.Contains(why, "binary") {
		t.Errorf("text to a screen: %v %q", status, why)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if want := []string{`console.open snf-1 alice {"console":"serial","server":"s1","ticket":"opened"}`, "console.type snf-1 alice ",
		`console.open snf-1 alice {"console":"novnc","server":"s1","ticket":"opened"}`}; !slices.Equal(r.events, want) {
		t.Errorf("told is %q", r.events)
	}
}

// TestTickets: one opens one console, once, and for a time; what is refused is told and counted.
func TestTickets(t *testing.T) {
	r := newRig(t, nil)
	path := r.issue(console.Serial)
	_, text, _ := strings.Cut(path, "?token=")
	for hash, one := range r.tickets.byHash {
		if strings.Contains(fmt.Sprintf("%s %+v", hash, one), text) {
			t.Error("the ticket is kept as it is")
		}
	}
	plain, err := http.Get(r.url + path)
	if err != nil || plain.StatusCode != http.StatusUpgradeRequired {
		t.Fatal(plain, err)
	}
	_ = plain.Body.Close()
	r.opens(path) // still
	r.refused(path, http.StatusUnauthorized)
	other := r.issue(console.Serial)
	r.refused(strings.Replace(other, "serial", "novnc", 1), http.StatusUnauthorized)
	r.refused(other, http.StatusUnauthorized) // who tried it elsewhere has lost it
	r.refused("/console/serial/s2?"+strings.SplitN(r.issue(console.Serial), "?", 2)[1], http.StatusUnauthorized)
	late := r.issue(console.Serial)
	r.set(func() { r.ahead = TicketTime })
	r.refused(late, http.StatusUnauthorized)
	r.refused("/console/serial/s1?token=x", http.StatusUnauthorized)
	r.refused("/console/serial/s1", http.StatusUnauthorized)
	for _, path := range []string{"/console/serial/", "/console/other/s1", "/console/"} {
		r.refused(path, http.StatusNotFound)
	}
	r.set(func() {
		if want := []Outcome{Opened, Used, Foreign, Used, Foreign, Expired, Unknown, Unknown}; !slices.Equal(r.counts, want) {
			t.Errorf("counted is %v", r.counts)
		}
		refusals := slices.DeleteFunc(slices.Clone(r.events), func(e string) bool { return !strings.HasPrefix(e, "console.refuse") })
		if len(refusals) != 5 || !strings.Contains(refusals[0], `"ticket":"used"`) {
			t.Errorf("told is %q", r.events)
		}
		r.ahead += rememberedFor + time.Second
	})
	r.issue(console.VNC)
	if len(r.tickets.byHash) != 1 {
		t.Errorf("%d tickets are kept", len(r.tickets.byHash))
	}
}

// TestWhoMayNoLonger: a ticket is no right, nor is a console that is open.
func TestWhoMayNoLonger(t *testing.T) {
	for what, change := range map[string]func(*rig){
		"the user":     func(r *rig) { r.still = fault.New(fault.Denied, "they may not") },
		"the project":  func(r *rig) { r.at.Project = "lab" },
		"the server":   func(r *rig) { r.at.Deleted = 1 },
		"all of it":    func(r *rig) { r.at.ID = "s9" },
		"the instance": func(r *rig) { r.at.UUID = "" },
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.every = time.Millisecond })
			path := r.issue(console.VNC)
			open := r.opens(r.issue(console.Serial))
			r.set(func() { change(r) })
			r.refused(path, http.StatusUnauthorized)
			if status, why := open.ends(); status != websocket.StatusPolicyViolation || why == "" {
				t.Errorf("who looks goes on, or ends with %v %q", status, why)
			}
		})
	}
}

// TestNobodyToAsk: where nobody can tell who may act, whoever could goes on.
func TestNobodyToAsk(t *testing.T) {
	r := newRig(t, func(c *Config) { c.every = time.Millisecond })
	r.still = fault.New(fault.Unavailable, "the identity service cannot be reached")
	c := r.opens(r.issue(console.Serial))
	for begun := r.timesAsked(); r.timesAsked() < begun+3; { // who reads answers that it is there, too
		c.key("still here")
		c.await("still here")
	}
}

// TestNothingUntold: where it cannot be told that a console is opened, it is not.
func TestNothingUntold(t *testing.T) {
	r := newRig(t, nil)
	path := r.issue(console.VNC)
	r.set(func() { r.lost = errors.New("the store is away") })
	r.refused(path, http.StatusServiceUnavailable)
}

// TestLimits: of messages, silence, connections and tickets.
func TestLimits(t *testing.T) {
	r := newRig(t, func(c *Config) { c.every = time.Millisecond })
	var all []*client
	for range mostOpen {
		all = append(all, r.opens(r.issue(console.Serial)))
	}
	r.refused(r.issue(console.Serial), http.StatusTooManyRequests)
	r.set(func() { // and nobody is told that one more was opened
		if last := r.events[len(r.events)-1]; len(r.events) != mostOpen+1 || !strings.HasPrefix(last, "console.refuse") || !strings.Contains(last, `"ticket":"crowded"`) || r.counts[mostOpen] != Crowded {
			t.Errorf("told is %q, counted %v", last, r.counts)
		}
	})
	if err := all[0].Write(t.Context(), websocket.MessageBinary, make([]byte, maxMessage+1)); err != nil {
		t.Error(err)
	}
	if status, _ := all[0].ends(); status != websocket.StatusMessageTooBig {
		t.Errorf("a message that is too long: %v", status)
	}
	reading := make(chan string, 1)
	go func() {
		_, why := all[1].ends()
		reading <- why
	}()
	r.set(func() { r.ahead = idleTime + time.Second })
	if why := <-reading; !strings.Contains(why, "nothing came or went") {
		t.Errorf("who is silent: %q", why)
	}
	var err error
	for range mostOfUser {
		if _, err = r.Issue(t.Context(), console.Grant{Kind: console.Serial, Of: "s1", User: "b", Project: "home"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err = r.Issue(t.Context(), console.Grant{Kind: console.Serial, Of: "s1", User: "b", Project: "home"}); !fault.Is(err, fault.Busy) {
		t.Errorf("too many tickets: %v", err)
	}
}

// TestOneTypes has two sit before one serial line.
func TestOneTypes(t *testing.T) {
	r := newRig(t, nil)
	first := r.opens(r.issue(console.Serial))
	first.key("a")
	first.await("a")
	second := r.opens(r.issue(console.Serial))
	second.await("alice types since")
	second.key("b")
	second.await("one does at a time")
	third := r.opens(r.issue(console.Serial) + "&take-over=true")
	first.await("alice has taken the keyboard over, and you look")
	third.key("c")
	third.await("c")
	first.await("c")
	_ = third.CloseNow()
	first.await("has left the keyboard: you may type")
	first.key("d")
	second.await("d")
}

// TestNoConsole: of what there is none no ticket is made.
func TestNoConsole(t *testing.T) {
	r := newRig(t, nil)
	for what, change := range map[string]func(){"no server": func() { r.at.ID = "" }, "no instance": func() { r.at.ID, r.at.UUID = "s1", "" }, "another cluster": func() { r.at.UUID, r.at.Backend = "u1", "far" }, "no line": func() { r.at.UUID, r.at.Backend = "u2", "" }} {
		r.set(change)
		if path, err := r.Issue(t.Context(), console.Grant{Kind: console.Serial, Of: "s1"}); err == nil {
			t.Errorf("%s: %s", what, path)
		}
		r.set(func() { r.at = server.Server{ID: "s1", UUID: "u1", Project: "home"} })
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+r.issue(console.Serial), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}, "Sec-Websocket-Protocol": {"base64"}}
	answer, err := http.DefaultClient.Do(request)
	if err != nil || answer.StatusCode != http.StatusBadRequest {
		t.Errorf("another subprotocol: %+v, %v", answer, err)
	} else {
		_ = answer.Body.Close()
	}
}
