package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/health"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/controller"
)

// people are the accounts of a test, by name: password and words.
type people struct {
	mu  sync.Mutex
	all map[string][2]string
}

func (p *people) set(name, password, words string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all[name] = [2]string{password, words}; password == "" {
		delete(p.all, name)
	}
}

func (p *people) Verify(name, password string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	is, ok := p.all[name]
	return ok && is[0] == password
}

func (p *people) Account(name string) (rights.Account, string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	is, ok := p.all[name]
	return rights.Listed(strings.Split(is[1], ",")), "stamp of " + is[0], ok
}

// clock is the time of a test.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

type rig struct {
	*testing.T
	c      *controller.Controller
	web    *Server
	http   *httptest.Server
	people *people
	clock  *clock
	// seats are the consoles, as the page reaches them.
	seats *seats
}

// seats are consoles that let in whoever has the last ticket, if that is still good.
type seats struct {
	last console.Grant
	lost error
}

func (s *seats) Issue(_ context.Context, g console.Grant) (string, error) {
	s.last = g
	return "/console/" + string(g.Kind) + "/" + g.Of + "?token=x", s.lost
}

func (s *seats) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.last.Still == nil {
		w.WriteHeader(http.StatusNotFound)
	} else if err := s.last.Still(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
	}
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigOn(t, controller.Options{})
}

// newRigOn is newRig on a controller that differs from the usual one.
func newRigOn(t *testing.T, o controller.Options) *rig {
	t.Helper()
	r := &rig{T: t, c: controller.New(t, o), people: &people{all: map[string][2]string{}}, clock: &clock{now: time.Now()}, seats: &seats{}}
	r.people.set("ada", "secret", "read,write")
	r.people.set("bo", "secret", "read")
	r.people.set("cy", "secret", "")
	r.web = New(Config{Queue: r.c.Queue, Querier: r.c.Querier, Rollout: r.c.Rollout, Accounts: r.people, Now: r.clock.Now, Log: slog.New(slog.DiscardHandler), beat: 50 * time.Millisecond, Consoles: r.seats,
		Health: func(context.Context) health.Report {
			return health.Report{Well: true, Lines: []health.Line{{State: health.OK, Part: "store", What: "works"}}}
		}})
	r.http = httptest.NewServer(r.web)
	t.Cleanup(func() {
		r.http.CloseClientConnections()
		r.http.Close()
		r.web.Close()
	})
	return r
}

// ask sends a request with a session and further headers, and returns the status and what was answered.
func (r *rig) ask(method, path, session, body string, headers ...string) (int, string, http.Header) {
	r.Helper()
	q, err := http.NewRequestWithContext(r.Context(), method, r.http.URL+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	if body != "" {
		q.Header.Set("Content-Type", "application/json")
	}
	if session != "" {
		q.Header.Set("Cookie", r.web.cookie()+"="+session)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			q.Host = headers[i+1]
		}
		q.Header.Set(headers[i], headers[i+1])
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		r.Fatal(err)
	}
	return a.StatusCode, string(text), a.Header
}

// signIn returns a session of an account.
func (r *rig) signIn(name, password string) string {
	r.Helper()
	status, text, header := r.ask("POST", "/session", "", fmt.Sprintf(`{"name":%q,"password":%q}`, name, password))
	if status != http.StatusOK {
		r.Fatalf("%s cannot sign in: %d %s", name, status, text)
	}
	return sessionIn(header)
}

func sessionIn(header http.Header) string {
	_, rest, _ := strings.Cut(header.Get("Set-Cookie"), "=")
	secret, _, _ := strings.Cut(rest, ";")
	return secret
}

// submit makes a job that waits for so long, and returns its id.
func (r *rig) submit(seconds float64) job.ID {
	r.Helper()
	op, err := opcode.FromMap("OP_TEST_DELAY", map[string]any{"duration": seconds})
	if err != nil {
		r.Fatal(err)
	}
	id, err := r.c.Queue.Submit(r.Context(), queue.Submission{Ops: []*opcode.Opcode{op}})
	if err != nil {
		r.Fatal(err)
	}
	return id
}

// stream is the client's end of a tab.
type stream struct {
	*rig
	conn *websocket.Conn
}

// openStream connects a tab.
func (r *rig) openStream(session string) *stream {
	r.Helper()
	conn, _, err := websocket.Dial(r.Context(), r.http.URL+"/stream", &websocket.DialOptions{HTTPHeader: http.Header{"Cookie": {r.web.cookie() + "=" + session}, "Origin": {r.http.URL}}}) //nolint:bodyclose // it has none
	if err != nil {
		r.Fatalf("%v", err)
	}
	conn.SetReadLimit(-1)
	r.Cleanup(func() { _ = conn.CloseNow() })
	return &stream{r, conn}
}

// watch says what the tab shows, as JSON.
func (s *stream) watch(text string) {
	s.Helper()
	if err := s.conn.Write(s.Context(), websocket.MessageText, []byte(text)); err != nil {
		s.Fatal(err)
	}
}

// told is a message to a tab.
type told struct {
	W        string          `json:"w"`
	Beat     string          `json:"beat"`
	Reset    bool            `json:"reset"`
	Revision string          `json:"revision"`
	Command  string          `json:"command"`
	Rows     [][2]any        `json:"rows"`
	Left     []string        `json:"left"`
	Order    []string        `json:"order"`
	Value    json.RawMessage `json:"value"`
	Error    *problem        `json:"error"`
}

// next is the next message that is no heartbeat.
func (s *stream) next() told {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), testkit.Patience())
	defer cancel()
	for {
		_, text, err := s.conn.Read(ctx)
		if err != nil {
			s.Fatal(err)
		}
		var m told
		d := json.NewDecoder(bytes.NewReader(text))
		if err := d.Decode(&m); err != nil {
			s.Fatalf("%s: %v", text, err)
		}
		if m.Beat == "" {
			return m
		}
	}
}
