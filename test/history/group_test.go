package history

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// patience is how long something may take that is to come, on a machine that
// has much to do.
var patience = 4 * testkit.Patience()

// group is three controllers over one database, each a process that reaches the
// database over a line of its own.
type group struct {
	testing.TB
	bin, dir string
	db       *pgserver.Server
	url      string
	members  []*member
	// prepared is a revision that has what the group was prepared with: no read that may be old is to be older.
	prepared int64
}

type member struct {
	g    *group
	name string
	line *line // to the database
	peer *line // from the others
	log  *os.File
	dev  *testkit.Dev // nil while it does not run

	// at is the URL of its RAPI; clients read it while it starts anew.
	at atomic.Pointer[string]
}

func newGroup(t testing.TB, bin string) *group {
	t.Helper()
	dir, err := os.MkdirTemp("", "drvh") //nolint:usetesting // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	db := pgserver.Start(t, true)
	g := &group{TB: t, bin: bin, dir: dir, db: db, url: db.URL("drover")}
	if err := os.WriteFile(g.path("users"), []byte("op secret write\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, node := range []string{"node1", "node2"} {
		g.installCountedOS(node)
	}
	for i := range 3 {
		m := &member{g: g, name: fmt.Sprintf("c%d", i+1), line: newLine(t, g.path(fmt.Sprintf("line%d", i+1)), g.url), peer: newPeerLine(t)}
		if m.log, err = os.Create(g.path(m.name + ".log")); err != nil {
			t.Fatal(err)
		}
		g.members = append(g.members, m)
		m.start()
	}
	return g
}

func (g *group) path(name string) string { return filepath.Join(g.dir, name) }

// installCountedOS gives a node an operating system whose creation script notes
// each run in a file.
func (g *group) installCountedOS(node string) {
	g.Helper()
	dir := filepath.Join(g.path("nodes"), node+".drover.example", "os", "counted")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		g.Fatal(err)
	}
	for name, text := range map[string]string{
		"ganeti_api_version": "20\n",
		"create":             "#!/bin/sh\necho \"$INSTANCE_NAME\" >>'" + g.path("installs") + "'\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			g.Fatal(err)
		}
	}
}

// start starts a controller and waits until it takes requests.
func (m *member) start() {
	m.g.Helper()
	data := m.g.path(m.name)
	cmd := exec.CommandContext(m.g.Context(), m.g.bin, "serve", "--name", m.name, "--data", data, "--luxi", data+".sock", "--rapi", "127.0.0.1:0",
		"--peer", "127.0.0.1:0", "--peer-address", m.peer.url, "--store", m.line.url, "--rapi-users", m.g.path("users"), "--node-data", m.g.path("nodes"), "--nodes", "2",
		"--log-level", "info")
	cmd.Stderr = m.log
	m.dev = testkit.Start(m.g, cmd, data)
	m.peer.leadTo(m.dev.Ready.Peer)
	m.at.Store(&m.dev.Ready.RAPI)
}

func (m *member) rapiURL() string { return *m.at.Load() }

func (m *member) socket() string { return m.g.path(m.name) + ".sock" }

func (m *member) signal(s syscall.Signal) { _ = m.dev.Cmd.Process.Signal(s) }

// kill ends a controller as a failure of its machine would, but that its
// connections end.
func (m *member) kill() {
	m.dev.Kill()
	_ = m.dev.Gone()
	m.dev = nil
}

// stop ends a controller in good order.
func (m *member) stop() {
	m.g.Helper()
	m.dev.Terminate()
	if err := m.dev.Gone(); err != nil {
		m.g.Errorf("%s did not end in good order: %v", m.name, err)
	}
	m.dev = nil
}

// told is the end of what a controller wrote into its log.
func (m *member) told() string {
	text, err := os.ReadFile(m.log.Name())
	if err != nil {
		return err.Error()
	}
	const enough = 4 << 10
	return string(text[max(0, len(text)-enough):])
}

// ask sends one request over a connection of its own.
func (m *member) ask(ctx context.Context, result any, method string, args ...any) error {
	return (&asker{member: m}).ask(ctx, result, method, args...)
}

// asker asks a controller, and notes the newest revision that it is told: what it did
// and read shows in all that is as new.
type asker struct {
	*member

	revision int64
	// header is that of what it reads over RAPI.
	header http.Header
}

// ask sends one request of LUXI over a connection of its own.
func (a *asker) ask(ctx context.Context, result any, method string, args ...any) error {
	client, err := luxiwire.Dial(ctx, a.socket())
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // the other end may be dead
	err = client.Call(ctx, method, args, result)
	a.revision = max(a.revision, client.Revision())
	return err
}

// get reads a resource of RAPI, and put changes one.
func (a *asker) get(ctx context.Context, path string, result any) error {
	return a.rapi(ctx, http.MethodGet, path, a.header, result)
}

func (a *asker) put(ctx context.Context, path string, result any) error {
	return a.rapi(ctx, http.MethodPut, path, nil, result)
}

func (a *asker) rapi(ctx context.Context, method, path string, header http.Header, result any) error {
	r, err := http.NewRequestWithContext(ctx, method, a.rapiURL()+path, http.NoBody)
	if err != nil {
		return err
	}
	if header != nil {
		r.Header = header
	}
	r.SetBasicAuth("op", "secret")
	answer, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return fault.New(fault.Unavailable, "RAPI: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // it was read
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= http.StatusInternalServerError {
		return fault.New(fault.Unavailable, "RAPI: %s: %s, %w", answer.Status, text, err)
	}
	if answer.StatusCode != http.StatusOK {
		return fault.New(fault.Invalid, "RAPI: %s %s: %s: %s", method, path, answer.Status, text)
	}
	if told := answer.Header.Get("Drover-Revision"); told != "" {
		n, err := strconv.ParseInt(told, 10, 64)
		if err != nil {
			return err
		}
		a.revision = max(a.revision, n)
	}
	return json.Unmarshal(text, result)
}

// leader returns the controller that leads, and the others, once there is one.
func (g *group) leader() (leads *member, others []*member) {
	g.Helper()
	g.until("somebody leads", func() bool {
		var rows []struct{ Name, Role string }
		ctx, cancel := context.WithTimeout(g.Context(), 5*time.Second)
		defer cancel()
		if g.members[0].ask(ctx, &rows, "QueryMasters") != nil {
			return false
		}
		leads, others = nil, nil
		for _, row := range rows {
			for _, m := range g.members {
				switch {
				case m.name != row.Name:
				case row.Role == "leader":
					leads = m
				default:
					others = append(others, m)
				}
			}
		}
		return leads != nil && len(others) == len(g.members)-1
	})
	return leads, others
}

// until waits until something holds.
func (g *group) until(what string, holds func() bool) {
	g.Helper()
	again, limit := time.NewTicker(10*time.Millisecond), time.After(patience)
	defer again.Stop()
	for !holds() {
		for _, m := range g.members {
			if m.dev != nil && m.dev.Ended() {
				g.Fatalf("%s ended by itself, while it was awaited that %s:\n%s", m.name, what, m.told())
			}
		}
		select {
		case <-again.C:
		case <-limit:
			g.Fatalf("it never came to it that %s", what)
		}
	}
}

// answers waits until a controller answers a question whose answer comes from
// a leader, and returns how long that took.
func (m *member) answers() time.Duration {
	m.g.Helper()
	begun := time.Now()
	m.g.until(m.name+" answers", func() bool {
		ctx, cancel := context.WithTimeout(m.g.Context(), time.Minute)
		defer cancel()
		return m.ask(ctx, new(any), "QueryClusterInfo") == nil
	})
	return time.Since(begun)
}

var leadLine = regexp.MustCompile(`msg="this controller leads" name=(\w+) epoch=(\d+)`)

// checkTerms reads from the logs who led, and that no term was that of two.
func (g *group) checkTerms() (held map[string]string) {
	g.Helper()
	held = map[string]string{}
	for _, m := range g.members {
		text, err := os.ReadFile(m.log.Name())
		if err != nil {
			g.Fatal(err)
		}
		for _, found := range leadLine.FindAllStringSubmatch(string(text), -1) {
			if other, twice := held[found[2]]; twice {
				g.Errorf("%s and %s led under epoch %s", other, found[1], found[2])
			}
			held[found[2]] = found[1]
		}
		if strings.Contains(string(text), "panic") {
			g.Errorf("%s panicked:\n%s", m.name, text)
		}
	}
	return held
}

// installs counts how often the creation script ran for each instance.
func (g *group) installs() map[string]int {
	g.Helper()
	count := map[string]int{}
	text, err := os.ReadFile(g.path("installs"))
	if err != nil && !os.IsNotExist(err) {
		g.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(text)) {
		count[name]++
	}
	return count
}

// answersOfStandbys counts what was answered over LUXI by controllers that stood by,
// as their present lives tell: there nobody takes an answer that may be old.
func (g *group) answersOfStandbys() (sum int) {
	g.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	for _, m := range g.members {
		r, err := http.NewRequestWithContext(g.Context(), http.MethodGet, m.rapiURL()+"/metrics", http.NoBody)
		if err != nil {
			g.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			g.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if err = errors.Join(err, answer.Body.Close()); err != nil {
			g.Fatal(err)
		}
		var n int
		_, line, told := strings.Cut(string(text), "\ndrover_standby_requests_total{answered_by=\"standby\",api=\"luxi\"} ")
		if _, err := fmt.Sscan(line, &n); told && err != nil {
			g.Fatal(err)
		}
		sum += n
	}
	return sum
}
