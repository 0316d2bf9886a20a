package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/app"
)

// line is a way to an address that can be cut.
type line struct {
	*testing.T
	to       string
	listener net.Listener

	// thin has each connection carry no more than some kilobytes a second.
	thin atomic.Bool

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func newLine(t *testing.T, to string) *line {
	t.Helper()
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{T: t, to: to, listener: listener}
	var carrying sync.WaitGroup
	carrying.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			carrying.Go(func() { l.carry(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		l.set(true)
		carrying.Wait()
	})
	return l
}

func (l *line) carry(in net.Conn) {
	network := "tcp"
	if filepath.IsAbs(l.to) {
		network = "unix"
	}
	out, err := net.Dial(network, l.to)
	if err != nil {
		_ = in.Close()
		return
	}
	l.mu.Lock()
	l.conns = append(l.conns, in, out)
	cut := l.cut
	l.mu.Unlock()
	if cut {
		l.set(true)
	}
	var both sync.WaitGroup
	for _, ends := range [][2]net.Conn{{in, out}, {out, in}} {
		both.Go(func() {
			_, _ = io.Copy(ends[0], paced{ends[1], &l.thin}) // until one of them ends
			_, _ = ends[0].Close(), ends[1].Close()
		})
	}
	both.Wait()
}

// paced is what comes in over a connection, at the pace of its line.
type paced struct {
	from io.Reader
	thin *atomic.Bool
}

func (p paced) Read(into []byte) (int, error) {
	if p.thin.Load() {
		<-time.After(50 * time.Millisecond) // it is the line that takes its time
		into = into[:min(256, len(into))]
	}
	return p.from.Read(into)
}

// set cuts the line, or mends it.
func (l *line) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	if !cut {
		return
	}
	for _, c := range l.conns {
		_ = c.Close() // it may be closed already
	}
	l.conns = nil
}

// TestTwoClusters: servers on two clusters at once. When one goes away, the
// tags of the other's servers are not delayed, and its own are neither lost nor
// refused: they are there when it comes back.
func TestTwoClusters(t *testing.T) {
	far := startWith(t, app.Options{Data: filepath.Join(t.TempDir(), "far")})
	farData := filepath.Dir(far.ready.LUXI)
	t.Cleanup(func() {
		if err := far.stop(); err != nil {
			t.Error(err)
		}
	})
	way := newLine(t, strings.TrimPrefix(far.ready.RAPI, "https://"))
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	table := fmt.Sprintf("[[cluster]]\nname = 'far'\nurl = 'https://%s'\nuser = %q\npassword-file = %q\nca = %q\npoll = '20ms'\n", way.listener.Addr(),
		far.ready.RAPIUser, write("password", far.ready.RAPIPassword+"\n"), filepath.Join(farData, "rapi", "rapi.pem"))
	c := startCompute(t, app.Options{Data: filepath.Join(dir, "near"), ServerClusters: write("clusters.toml", table)})
	here, there := c.create(), c.createIn("far", "first")
	active := func(status, _, _ string) bool { return status == "ACTIVE" }
	put := func(id, tag string) {
		t.Helper()
		c.request(http.MethodPut, c.ready.Compute+"/servers/"+id+"/tags/"+tag, nil, nil, http.StatusCreated)
	}
	put(there, "a_b")
	c.tagged(there, "a_b", active)
	var instances struct{ Data json.RawMessage }
	far.call(t, "Query", &instances, "instance", []string{"name", "tags"}, nil)
	if got := string(instances.Data); got != `[[[0,"snf-2"],[0,["cyclades:user:a*b","cyclades:user:first","drover:server:`+there+`"]]]]` {
		t.Errorf("on the far cluster are %s", got)
	}

	way.set(true)
	put(there, "late")
	put(here, "now")
	c.tagged(here, "now", active)
	c.tagged(there, "late", func(status, _, _ string) bool { return status == "PENDADD" })
	var report struct {
		Drift    bool
		Findings []struct{ Server, Unreachable string }
	}
	c.call(t, "ReconcileServers", &report, nil, false)
	c.farIs(t, 1, "well 1", "away 1")
	if !report.Drift || len(report.Findings) != 1 || report.Findings[0].Server != there || report.Findings[0].Unreachable == "" {
		t.Errorf("with the far cluster away: %+v", report)
	}
	way.set(false)
	c.tagged(there, "late", active)
	c.farIs(t, 0, "well 2", "away 0")
	// What an administrator does there is taken in, too.
	var id int
	far.call(t, "SubmitJob", &id, []any{map[string]any{"OP_ID": "OP_INSTANCE_REMOVE", "instance_name": "snf-2", "ignore_failures": true, "reason": []any{}}})
	var done any
	far.call(t, "WaitForJobChange", &done, id, []string{"end_ts"}, []any{nil}, 0, 30)
	c.call(t, "ReconcileServers", &report, there, true)
	c.until("server", []string{"status"}, there, func(row []string) bool { return row[0] == "DELETED" })
}

// farIs holds what the controller tells of its further cluster, in its list, its notes and its figures, to whether that is away.
func (c *compute) farIs(t *testing.T, away int, figures ...string) {
	t.Helper()
	var clusters []struct {
		Name, Away, Why string
		Servers         int
	}
	c.call(t, "QueryServerClusters", &clusters)
	if len(clusters) != 2 || clusters[1].Name != "far" || clusters[1].Servers != 1 || (clusters[1].Away != "") != (away == 1) || (clusters[1].Why != "") != (away == 1) {
		t.Errorf("with %d away the clusters are %+v", away, clusters)
	}
	_, h := c.health(t)
	noted := 0
	for _, note := range h.Notes {
		if note.Part == "cluster" && !note.Since.IsZero() && strings.HasPrefix(note.Text, "clusters of servers that do not answer: 1 of 2 ") {
			noted++
		}
	}
	if !h.Ready || noted != away {
		t.Errorf("with %d away the health is %+v", away, h)
	}
	_, page := c.page(t, "/metrics")
	for _, figure := range figures {
		state, n, _ := strings.Cut(figure, " ")
		if want := fmt.Sprintf("drover_server_clusters{state=%q} %s\n", state, n); !strings.Contains(page, want) {
			t.Errorf("with %d away there is no figure %s", away, want)
		}
	}
}
