package agentwire

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/exec/nodetest"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// wire is what lies between a client and an agent, and can be cut.
type wire struct {
	*testing.T

	mu      sync.Mutex
	handler *Handler
	open    []net.Conn
	dialled int
	down    bool
	short   bool // connections live for some kilobytes only
	server  *httptest.Server
	journal string // where agents note calls
}

// reach returns a node behind a wire.
func (w *wire) reach(t *testing.T, a *agent.Agent) exec.Node {
	t.Helper()
	w.T = t
	w.serve(a)
	w.server = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		h := w.handler
		w.mu.Unlock()
		h.ServeHTTP(rw, r)
	}))
	w.server.EnableHTTP2 = true
	w.server.StartTLS()
	t.Cleanup(func() {
		w.handler.Close()
		w.cut()
		w.server.Close()
	})
	return NewClient(a.Node(), over(w.server, w.dial), 0)
}

// serve has an agent begin anew.
func (w *wire) serve(a *agent.Agent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h, err := NewHandler(a, w.journal)
	if err != nil {
		w.Fatal(err)
	}
	w.handler = h
}

func (w *wire) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return nil, errors.New("the wire is cut")
	}
	c, err := new(net.Dialer).DialContext(ctx, network, w.server.Listener.Addr().String())
	if err != nil {
		return nil, err
	}
	w.open, w.dialled = append(w.open, c), w.dialled+1
	if w.short {
		return &shortLived{Conn: c, left: 4000 + rand.IntN(4000)}, nil
	}
	return c, nil
}

// shortLived is a connection that ends when so many bytes have been read from it.
type shortLived struct {
	net.Conn

	left int
}

func (c *shortLived) Read(p []byte) (int, error) {
	if c.left <= 0 {
		_ = c.Close()
		return 0, errors.New("the wire is cut")
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// cut ends all connections there are.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.open {
		_ = c.Close()
	}
	w.open = nil
}

// lies has the wire be down, or up again.
func (w *wire) lies(down bool) {
	w.mu.Lock()
	w.down = down
	w.mu.Unlock()
	if down {
		w.cut()
	}
}

// TestHistoriesOfCuts cuts the wire amidst answers, again and again. Each order is carried out once.
func TestHistoriesOfCuts(t *testing.T) {
	w := &wire{short: true}
	r := nodetest.New(t, w.reach)
	r.Made(nodetest.One)
	const orders = 300
	out := make(chan error, orders)
	for i := range orders {
		go func() { out <- r.Node.RebootSoft(t.Context(), nodetest.Order(10+i, 1), nodetest.One, nil) }()
	}
	for range orders {
		if err := nodetest.Within(t, out, "the end of an order"); err != nil {
			t.Error(err)
		}
	}
	if n := r.Calls("reboot"); n != orders {
		t.Errorf("%d orders rebooted %d times", orders, n)
	}
	if w.dialled < 5 {
		t.Errorf("the wire was cut %d times only", w.dialled-1)
	}
}

// installing is an installation whose script waits at a pipe, and tells of each time that it begins.
func installing(ctx context.Context, r *nodetest.Rig) (begun, on *nodetest.Pipe, count string, result chan error) {
	begun, on, count = r.Pipe(), r.Pipe(), r.TempDir()+"/count"
	r.OS("slow", fmt.Sprintf("echo x >> %s\nexec 3> %s\necho begun >&3\nread x < %s\n", count, begun.Path, on.Path))
	result = make(chan error, 1)
	go func() {
		result <- r.Node.Install(ctx, nodetest.Order(1, 1), nodetest.Spec(nodetest.One), "slow", nil, func(string) {})
	}()
	begun.Begun()
	return begun, on, count, result
}

// TestACutIsJoined cuts the wire beneath a script that runs: it goes on, and its end is told over the next one.
func TestACutIsJoined(t *testing.T) {
	w := &wire{}
	r := nodetest.New(t, w.reach)
	_, on, count, result := installing(t.Context(), r)
	w.lies(true)
	w.lies(false)
	r.Must(os.WriteFile(on.Path, []byte("on\n"), 0o600))
	r.Must(nodetest.Within(t, result, "the end of a script"))
	if text, err := os.ReadFile(count); err != nil || string(text) != "x\n" {
		t.Errorf("the script began: %q, %v", text, err)
	}
}

// TestALostConnectionEndsNothing leaves the wire cut until the script has ended by itself; and then has somebody end one while it is cut.
func TestALostConnectionEndsNothing(t *testing.T) {
	w := &wire{}
	r := nodetest.New(t, w.reach)
	begun, on, _, result := installing(t.Context(), r)
	w.lies(true)
	r.Must(os.WriteFile(on.Path, []byte("on\n"), 0o600))
	begun.Gone()
	w.lies(false)
	r.Must(nodetest.Within(t, result, "the answer of a script that ended meanwhile"))

	ctx, end := context.WithCancelCause(t.Context())
	begun, _, _, result = installing(ctx, nodetest.New(t, w.reach))
	w.lies(true)
	end(fault.New(fault.Canceled, "nobody needs it"))
	w.lies(false)
	r.Want(fault.Canceled, nodetest.Within(t, result, "the answer of a script that was ended"))
	begun.Gone()
}

// overtaken is a connection on which the first call waits until its end was answered: that may overtake it.
type overtaken struct {
	http.RoundTripper

	ended chan struct{} // closed when an end was answered
	once  sync.Once
	calls chan struct{} // a token for each call that is on its way
}

func (o *overtaken) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path != pathCancel {
		o.calls <- struct{}{}
		<-o.ended
		return o.RoundTripper.RoundTrip(r)
	}
	defer o.once.Do(func() { close(o.ended) })
	return o.RoundTripper.RoundTrip(r)
}

// TestTheEndOfACallMayOvertakeIt ends a call of which the agent has not heard yet.
func TestTheEndOfACallMayOvertakeIt(t *testing.T) {
	w := &wire{}
	r := nodetest.New(t, w.reach)
	conn, err := r.Node.(*Client).conn(t.Context())
	r.Must(err)
	o := &overtaken{RoundTripper: conn, ended: make(chan struct{}), calls: make(chan struct{}, 1)}
	client := NewClient(r.Node.Node(), func(context.Context) (http.RoundTripper, error) { return o, nil }, 0)
	ctx, end := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- client.Delay(ctx, time.Hour) }()
	<-o.calls
	end()
	begun := time.Now()
	if err := nodetest.Within(t, result, "the end of the call"); err == nil || time.Since(begun) >= ending {
		t.Errorf("the call ended after %v: %v", time.Since(begun), err)
	}
}

// TestLinesAreToldOnce cuts the wire beneath a task that talks.
func TestLinesAreToldOnce(t *testing.T) {
	w := &wire{}
	r := nodetest.New(t, w.reach)
	const many = 2000
	var got []string
	task := agent.Task{Deployment: 1, Step: 1, Attempt: 1, Type: "shell", Parameters: fmt.Appendf(nil, `{"cwd": "/", "cmd": "i=0; while [ $i -lt %d ]; do echo $i; i=$((i+1)); done"}`, many)}
	r.Must(r.Node.RunTask(t.Context(), nodetest.Order(1, 1), task, func(line string) {
		if got = append(got, line); len(got)%400 == 1 {
			w.cut()
		}
	}))
	want := make([]string, many)
	for i := range want {
		want[i] = strconv.Itoa(i)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d lines came of %d", len(got), many)
	}
}

// TestAnotherAgentDoesNothingTwice has the agent begin anew while the answer of an order is on its way. What establishes a state is carried out
// again; of a reboot nobody knows.
func TestAnotherAgentDoesNothingTwice(t *testing.T) {
	w := &wire{}
	r := nodetest.New(t, w.reach)
	r.Made(nodetest.One)
	restarts := func() { // when an order has been carried out, and before that is told
		w.lies(true)
		w.serve(r.Agent)
		w.lies(false)
	}
	for _, c := range []struct {
		what string
		want fault.Code
		do   func() error
	}{
		{"reboot", fault.Unavailable, func() error { return r.Node.RebootSoft(t.Context(), nodetest.Order(2, 1), nodetest.One, nil) }},
		{"stop", "", func() error {
			return r.Node.Stop(t.Context(), nodetest.Order(3, 1), nodetest.One, hypervisor.Stop{Force: true}, nil)
		}},
	} {
		r.FailOnce(c.what, restarts)
		if err := c.do(); fault.CodeOf(err) != c.want {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	if n := r.Calls("reboot"); n != 1 {
		t.Errorf("it was rebooted %d times", n)
	}
}

// awaitEnds waits for the ends of the calls that a handler carries out.
func (h *Handler) awaitEnds() {
	h.calls.mu.Lock()
	all := slices.Collect(maps.Values(h.calls.byID))
	h.calls.mu.Unlock()
	for _, x := range all {
		for frames, more := x.since(0); len(frames) == 0 || frames[len(frames)-1].End == nil; frames, more = x.since(0) {
			<-more
		}
	}
}

// TestTheNextAgentKnowsWhatWasDone loses the answer of a reboot, and the agent with it: behind the end of the order, in its midst, and before it came.
func TestTheNextAgentKnowsWhatWasDone(t *testing.T) {
	w := &wire{journal: t.TempDir()}
	r := nodetest.New(t, w.reach)
	r.Made(nodetest.One)
	reboot := func(n int) error { return r.Node.RebootSoft(t.Context(), nodetest.Order(n, 1), nodetest.One, nil) }
	r.Must(reboot(2)) // the controller knows the agent now
	ended := make(chan struct{})
	r.FailOnce("reboot", func() {
		w.lies(true)
		first := w.handler
		go func() { // the agent ends when it has noted the end, which nobody is told
			defer close(ended)
			first.awaitEnds()
			w.serve(r.Agent)
			w.lies(false)
		}()
	})
	r.Must(reboot(3))
	<-ended
	elsewhere := t.TempDir()
	r.FailOnce("reboot", func() { // it ends in the midst: what it would still write is nobody's
		w.lies(true)
		w.handler.calls.journal.dir = elsewhere
		w.serve(r.Agent)
		w.lies(false)
	})
	if err := reboot(4); !fault.Is(err, fault.Unavailable) {
		t.Errorf("an order in whose midst the agent ended: %v", err)
	}
	if n := r.Calls("reboot"); n != 3 {
		t.Errorf("3 orders rebooted %d times", n)
	}
	// It never came: another agent carries it out.
	a := &asking{client: r.Node.(*Client), name: "reboot-soft", lasts: true, log: quiet, why: t.Context(), r: request{
		Node: r.Node.Node(), ID: newID(), Repeat: true, Agent: newID(), Args: []byte(fmt.Sprintf(`{"order":{"epoch":1,"job":5},"thing":{"uuid":%q,"name":%q},"stop":{}}`, nodetest.One.UUID, nodetest.One.Name)),
	}}
	if _, err := a.until(t.Context()); err != nil {
		t.Errorf("an order that never came: %v", err)
	}
	if n := r.Calls("reboot"); n != 4 {
		t.Errorf("4 orders rebooted %d times", n)
	}
}

// TestWhatCannotBeNotedIsNotBegun: a call that may not be done twice is in the journal before it begins. Where that cannot be written it is refused, for an
// agent that was started again would do it once more.
func TestWhatCannotBeNotedIsNotBegun(t *testing.T) {
	w := &wire{journal: filepath.Join(t.TempDir(), "calls")}
	r := nodetest.New(t, w.reach)
	r.Made(nodetest.One)
	r.Must(os.Remove(w.journal))
	if err := r.Node.RebootSoft(t.Context(), nodetest.Order(2, 1), nodetest.One, nil); !fault.Is(err, fault.Environment) {
		t.Errorf("a reboot that cannot be noted: %v", err)
	}
	if n := r.Calls("reboot"); n != 0 {
		t.Errorf("it was rebooted %d times", n)
	}
	r.Must(os.Mkdir(w.journal, 0o700))
	r.Must(r.Node.RebootSoft(t.Context(), nodetest.Order(2, 1), nodetest.One, nil))
}

// TestTheJournalForgetsWhatWasAnswered: a node that is rebooted often keeps no more of it than what a controller may still ask for.
func TestTheJournalForgetsWhatWasAnswered(t *testing.T) {
	w := &wire{journal: t.TempDir()}
	r := nodetest.New(t, w.reach)
	r.Made(nodetest.One)
	for n := 2; n < 12; n++ {
		r.Must(r.Node.RebootSoft(t.Context(), nodetest.Order(n, 1), nodetest.One, nil))
	}
	left, err := os.ReadDir(w.journal)
	if err != nil || len(left) != 1 {
		t.Errorf("of calls that were answered %d are kept, %v", len(left), err)
	}
}

// TestNamesAreRememberedForLong: a copy that comes late is known for one as long as it may come, however many calls are made meanwhile, and the memory does
// not grow for ever.
func TestNamesAreRememberedForLong(t *testing.T) {
	var n names
	for i := range 4 * keptNames {
		if n.add(strconv.Itoa(i)); i >= keptNames && !n.has(strconv.Itoa(i-keptNames+1)) {
			t.Fatalf("of %d calls that of %d before is forgotten", i+1, keptNames-1)
		}
	}
	if n.has("0") || len(n.newer)+len(n.older) > 2*keptNames {
		t.Errorf("%d names are remembered", len(n.newer)+len(n.older))
	}
}

// TestNobodyWaitsForever asks a node that does not come back.
func TestNobodyWaitsForever(t *testing.T) {
	never := func(ctx context.Context) (http.RoundTripper, error) {
		<-ctx.Done()
		return nil, errors.New("it never came")
	}
	c := NewClient("node1", never, 20*time.Millisecond)
	if most := c.Away(); most != 20*time.Millisecond {
		t.Errorf("an order would wait for %s", most)
	}
	if err := c.Stop(t.Context(), nodetest.Order(1, 1), nodetest.One, hypervisor.Stop{}, nil); !fault.Is(err, fault.Environment) {
		t.Errorf("an order for a node that is away: %v", err)
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	if err := NewClient("node1", never, time.Hour).Stop(ctx, nodetest.Order(1, 1), nodetest.One, hypervisor.Stop{}, nil); !fault.Is(err, fault.Canceled) {
		t.Errorf("an order that was given up: %v", err)
	}
	w := &wire{}
	r := nodetest.New(t, w.reach)
	if most := r.Node.Away(); most != 0 {
		t.Errorf("an order would wait %s for a node that is there", most)
	}
	w.lies(true)
	r.Node.(*Client).away = 50 * time.Millisecond
	if err := r.Node.Stop(t.Context(), nodetest.Order(1, 1), nodetest.One, hypervisor.Stop{}, nil); !fault.Is(err, fault.Unavailable) {
		t.Errorf("an order that may have arrived: %v", err)
	}
}
