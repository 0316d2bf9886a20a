package luxi

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/inventory"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/controller"
)

// patience is how long a test waits for what must come. It only ends tests that
// would hang: a machine may be under load, or stand still for half a minute.
var patience = testkit.Patience()

// rig is a whole cluster of one fake node, with a server in front.
type rig struct {
	testing.TB
	queue  *queue.Queue
	keeper *inventory.Keeper
	server *Server
	path   string
}

func newRig(t testing.TB) *rig {
	t.Helper()
	return newRigOn(t, "")
}

// newRigOn is newRig on the store that a URL names.
func newRigOn(t testing.TB, url string) *rig {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	c := controller.New(t, controller.Options{URL: url, Log: log, Cluster: "cluster.gntpeer.example", Nodes: []string{"node1.gntpeer.example"},
		Names: exec.Names{Resolve: anyName, Answers: func(context.Context, string) bool { return false }}})
	server := New(Deps{Queue: c.Queue, Log: log, Querier: c.Querier, Keyboards: console.NewKeyboards(time.Now, c.Queue.Record)})
	return &rig{TB: t, queue: c.Queue, keeper: c.Keeper, server: server, path: listen(t, server)}
}

// listen serves on a socket until the test ends, and returns its path.
func listen(t testing.TB, s *Server) string {
	t.Helper()
	return listenAt(t, s, gate.LUXI)
}

// listenAt is listen with other limits of connections.
func listenAt(t testing.TB, s *Server, limits gate.Surface) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "luxi")
	listener := socketAt(t, path, limits)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return path
}

// socketAt opens a socket for LUXI.
func socketAt(t testing.TB, path string, limits gate.Surface) *gate.Listener {
	t.Helper()
	l, err := gate.New(limits, gate.Files(), slog.New(slog.DiscardHandler)).ListenUnix(path, 0o600, gate.SameGroup)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (r *rig) client() *luxiwire.Client {
	r.Helper()
	c, err := luxiwire.Dial(r.Context(), r.path)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = c.Close() })
	return c
}

// call sends a request that must succeed.
func (r *rig) call(method string, result any, args ...any) {
	r.Helper()
	if err := r.client().Call(r.Context(), method, args, result); err != nil {
		r.Fatalf("%s %v: %v", method, args, err)
	}
}

// op is an opcode that waits for some seconds.
func delay(seconds float64, more ...any) map[string]any {
	op := map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": seconds, "no_locks": true, "reason": []any{}}
	for i := 0; i < len(more); i += 2 {
		op[fmt.Sprint(more[i])] = more[i+1]
	}
	return op
}

func (r *rig) submit(ops ...any) job.ID {
	r.Helper()
	var id job.ID
	r.call("SubmitJob", &id, ops)
	return id
}

// end waits until a job is final and returns its status.
func (r *rig) end(id job.ID) string {
	r.Helper()
	j, err := r.queue.Wait(r.Context(), id, (*job.Job).Final)
	if err != nil {
		r.Fatal(err)
	}
	return string(j.Status())
}

// conn is a bare connection, for what no client would send.
type conn struct {
	testing.TB
	net.Conn
	frames *luxiwire.FrameReader
}

func (r *rig) dial() *conn { return dialRaw(r.TB, r.path) }

func dialRaw(t testing.TB, path string) *conn {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &conn{TB: t, Conn: c, frames: luxiwire.NewFrameReader(c, luxiwire.MaxFrame)}
}

func (c *conn) send(text string) {
	c.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		c.Fatal(err)
	}
}

type response struct {
	Success bool
	Result  any
	Fault   *luxiwire.Fault
}

// receive reads an answer; ok is false when the connection was closed instead.
func (c *conn) receive() (r response, ok bool) {
	c.Helper()
	frame, err := c.frames.Next()
	if err != nil {
		return r, false
	}
	if err := json.Unmarshal(frame, &r); err != nil {
		c.Fatalf("%s: %v", frame, err)
	}
	return r, true
}

func (c *conn) ask(text string) response {
	c.Helper()
	c.send(text + "\x03")
	r, ok := c.receive()
	if !ok {
		c.Fatalf("no answer to %.200s", text)
	}
	return r
}

// anyName knows every host.
func anyName(_ context.Context, name string) (full, address string, err error) {
	return name, "192.0.2.1", nil
}
