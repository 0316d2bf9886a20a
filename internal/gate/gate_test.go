package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/testkit"
)

// patience is how long a test waits for what must come.
var patience = testkit.Patience()

// plenty is more files than any surface asks for.
const plenty = 1 << 20

// open listens behind a gate, lets everybody in that may come, and hands them out.
func open(t *testing.T, s Surface) (l *Listener, in <-chan net.Conn) {
	t.Helper()
	return openRefusing(t, s, func(conn net.Conn, why string) {
		_, _ = io.WriteString(conn, why)
		_ = conn.Close()
	})
}

// openRefusing is open with a way of its own to tell who is not let in.
func openRefusing(t *testing.T, s Surface, refuse func(net.Conn, string)) (l *Listener, in <-chan net.Conn) {
	t.Helper()
	l, err := New(s, plenty, slog.New(slog.DiscardHandler)).Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Refuse(refuse)
	let := make(chan net.Conn, 100)
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			let <- conn
		}
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		accepting.Wait()
	})
	return l, let
}

// dial connects from one of this machine's own addresses.
func dial(t *testing.T, from string, l *Listener) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// said is all that a connection says until its end.
func said(t *testing.T, conn net.Conn) string {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatal(err)
	}
	return string(text)
}

func TestConnectionsAreLimitedPerAddressAndInAll(t *testing.T) {
	l, in := open(t, Surface{Most: 4, Share: parts})
	var first net.Conn
	for i, tc := range []struct{ from, refused string }{
		{"127.0.0.1", ""}, {"127.0.0.1", ""}, {"127.0.0.1", "already 2 connections from this address"}, // half of all is for one address
		{"127.0.0.2", ""}, {"127.0.0.3", ""}, {"127.0.0.4", "already 4 connections,"},
	} {
		conn := dial(t, tc.from, l)
		if tc.refused != "" {
			if got := said(t, conn); !strings.Contains(got, tc.refused) {
				t.Errorf("connection %d, from %s, is told %q", i, tc.from, got)
			}
			continue
		}
		if got := <-in; first == nil {
			first = got
		}
	}
	for range 2 { // the second time it has no place to give back
		_ = first.Close()
	}
	_ = dial(t, "127.0.0.4", l)
	<-in
	if got := said(t, dial(t, "127.0.0.5", l)); !strings.Contains(got, "already 4 connections,") {
		t.Errorf("a connection that was closed twice gave back two places: %q", got)
	}
}

func TestListenersShareTheirPlaces(t *testing.T) {
	g := New(Surface{Most: 1, Share: parts}, plenty, slog.New(slog.DiscardHandler))
	var clients []net.Conn
	let := make(chan error, 2)
	for range 2 {
		l, err := g.Listen(t.Context(), "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, dial(t, "127.0.0.1", l))
		go func() {
			_, err := l.Accept()
			let <- err
		}()
		if len(clients) == 1 {
			if err := <-let; err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() { _ = l.Close() })
	}
	if got := said(t, clients[1]); got != "" {
		t.Errorf("the second is told %q", got)
	}
}

// TestStrangersMakeRoom fills all places with connections that say nothing: who belongs
// here comes in all the same, and is not the one that has to go.
func TestStrangersMakeRoom(t *testing.T) {
	l, in := open(t, Surface{Most: 10, Share: parts, Strangers: 3})
	var silent []net.Conn
	for range 4 {
		silent = append(silent, dial(t, "127.0.0.1", l))
		(<-in).(*Conn).Known()
	}
	for range 3 {
		silent = append(silent, dial(t, "127.0.0.1", l))
		<-in
	}
	for i, oldest := range silent[4:6] {
		_ = dial(t, "127.0.0.1", l)
		(<-in).(*Conn).Known()
		if got := said(t, oldest); got != "" {
			t.Errorf("stranger %d is told %q", i, got)
		}
		_ = dial(t, "127.0.0.1", l)
		<-in
	}
	for i, conn := range silent[:4] {
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("known connection %d: %v", i, err)
		}
	}
}

// TestStrangersMakeRoomWhereThereIsNone: who comes when all places are taken has that of a stranger, and who has shown that it belongs here keeps its own.
func TestStrangersMakeRoomWhereThereIsNone(t *testing.T) {
	g := New(Surface{Most: 5, Share: parts, Strangers: 2}, plenty, slog.New(slog.DiscardHandler))
	enter := func() (in, ended *Conn, why string) {
		here, there := net.Pipe()
		t.Cleanup(func() { _, _ = here.Close(), there.Close() })
		return g.enter(here)
	}
	var all []*Conn
	for i := range 5 {
		in, ended, why := enter()
		if ended != nil || why != "" {
			t.Fatalf("number %d: %q, and another was ended: %t", i, why, ended != nil)
		}
		if all = append(all, in); i < 3 {
			in.Known()
		}
	}
	if in, ended, why := enter(); in == nil || ended != all[3] {
		t.Errorf("beside three that belong here and two strangers nobody comes in: %q", why)
	}
	for i, c := range all {
		if c.in != (i != 3) {
			t.Errorf("number %d has its place: %t", i, c.in)
		}
	}
}

// TestAThousandAgentsComeAtOnce: none of them is ended for the sake of another before it could show who it is.
func TestAThousandAgentsComeAtOnce(t *testing.T) {
	g := New(Agents, plenty, slog.New(slog.DiscardHandler))
	var all []*Conn
	for range 1000 {
		here, there := net.Pipe()
		t.Cleanup(func() { _, _ = here.Close(), there.Close() })
		in, _, why := g.enter(here)
		if why != "" {
			t.Fatal(why)
		}
		all = append(all, in)
	}
	for i, c := range all {
		if !c.in {
			t.Fatalf("the one that came as number %d was ended", i)
		}
	}
}

// failing is a listener that fails as often as it is told.
type failing struct {
	net.Listener
	fail  []error
	tries int
}

func (s *failing) Addr() net.Addr { return &net.TCPAddr{} }
func (s *failing) Close() error   { return nil }

func (s *failing) Accept() (net.Conn, error) {
	s.tries++
	if s.tries <= len(s.fail) && s.fail[s.tries-1] != nil {
		return nil, s.fail[s.tries-1]
	}
	mine, _ := net.Pipe()
	return mine, nil
}

func TestWhatPassesEndsNoListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emfile := &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
		s := &failing{fail: []error{emfile, emfile, syscall.ENFILE, syscall.ECONNABORTED, syscall.ENOMEM}}
		begun := time.Now()
		l := New(RAPI, plenty, slog.New(slog.DiscardHandler)).guard(s)
		if _, err := l.Accept(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != 155*time.Millisecond { // 5 + 10 + 20 + 40 + 80
			t.Errorf("it waited %v", took)
		}
		// One that is closed while it waits ends.
		for range 1000 {
			s.fail = append(s.fail, syscall.EMFILE)
		}
		s.tries = 0
		ended := make(chan error, 1)
		go func() { _, err := l.Accept(); ended <- err }()
		time.Sleep(time.Minute)
		synctest.Wait() // its tries are its own until it waits
		if s.tries < 40 || s.tries > 80 {
			t.Errorf("it tried %d times in a minute", s.tries)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	if _, err := New(RAPI, plenty, nil).guard(&failing{fail: []error{syscall.EINVAL}}).Accept(); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a listener that is broken: %v", err)
	}
}

// TestAsManyAreToldAsAreRefused: only how many are told at a time is bounded.
func TestAsManyAreToldAsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, told := New(RAPI, plenty, slog.New(slog.DiscardHandler)).guard(&failing{}), 0
		l.Refuse(func(conn net.Conn, _ string) {
			told++
			_ = conn.Close()
		})
		for range 2 * maxTold {
			here, there := net.Pipe()
			l.turnAway(here, "for a test")
			synctest.Wait() // until it has been told
			_ = there.Close()
		}
		if told != 2*maxTold {
			t.Errorf("%d of %d were told", told, 2*maxTold)
		}
	})
}

func TestRefusalsInPlainText(t *testing.T) {
	l, in := openRefusing(t, Surface{Most: 1, Share: parts}, RefusalHTTP(nil, "text/x", func(why string) []byte { return []byte(why) }))
	_ = dial(t, "127.0.0.1", l)
	<-in
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != http.StatusServiceUnavailable ||
		resp.Header.Get("Content-Type") != "text/x" || !strings.Contains(string(text), "already 1 connections,") {
		t.Errorf("%s %q, %v", resp.Status, text, err)
	}
}

func TestSocket(t *testing.T) {
	g, dir := New(LUXI, plenty, slog.New(slog.DiscardHandler)), t.TempDir()
	path := filepath.Join(dir, "s")
	first, err := g.ListenUnix(path, 0o600, SameGroup)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := g.ListenUnix(path, 0o600, SameGroup); !fault.Is(err, fault.Exists) {
		t.Errorf("a socket in use: %v", err)
	}
	if got := first.Addr().String(); got != path {
		t.Errorf("it listens at %s", got)
	}
	// A dead process leaves its socket behind.
	if err := first.Listener.(*socket).UnixListener.Close(); err != nil {
		t.Fatal(err)
	}
	group := os.Getgid()
	if os.Getuid() == 0 {
		group = 7 // root may give it to any
	}
	second, err := g.ListenUnix(path, 0o660, group)
	if err != nil {
		t.Fatal(err)
	}
	if info, err = os.Lstat(path); err != nil || info.Mode() != os.ModeSocket|0o660 || int(info.Sys().(*syscall.Stat_t).Gid) != group {
		t.Errorf("mode %v, group of %+v, %v", info.Mode(), info.Sys(), err)
	}
	for range 2 {
		if err := second.Close(); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil { // the second Close leaves what is another's
			t.Fatal(err)
		}
	}
	if _, err := g.ListenUnix(path, 0o600, SameGroup); !fault.Is(err, fault.Exists) {
		t.Errorf("a file in the way: %v", err)
	}
	if _, err := g.ListenUnix(filepath.Join(dir, strings.Repeat("x", 120)), 0o600, SameGroup); !fault.Is(err, fault.Invalid) {
		t.Errorf("a long path: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestSurfacesLeaveFilesForTheRest(t *testing.T) {
	for _, files := range []int{64, 1024, 4096, 65536} {
		sum := 0
		for _, s := range Surfaces() {
			n := s.places(files)
			if n < 1 || n > s.Most {
				t.Errorf("%s has %d places of %d files", s.Name, n, files)
			}
			sum += n
		}
		if sum > files*13/16 {
			t.Errorf("all surfaces together have %d of %d files", sum, files)
		}
	}
}

// TestPageShowsTheSurfaces holds docs/limits.md to the table.
func TestPageShowsTheSurfaces(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testkit.Root(t), "docs", "limits.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Surfaces() {
		if row := s.row(); !strings.Contains(string(page), row) {
			t.Errorf("docs/limits.md has no such line:\n%s", row)
		}
	}
}

// row is a surface as docs/limits.md shows it.
func (s Surface) row() string {
	from := "half of these"
	if s.Local || s.Strangers > 0 {
		from = "all of these"
	}
	if s.Strangers > 0 {
		from += fmt.Sprintf("; %d that have not shown who they are, one more ends the oldest", s.Strangers)
	}
	var times []string
	for _, of := range []struct {
		name string
		time time.Duration
	}{{"header", s.Header}, {"body", s.Body}, {"answer", s.Answer}, {"idle", s.Idle}} {
		if of.time > 0 {
			times = append(times, fmt.Sprintf("%s %g s", of.name, of.time.Seconds()))
		}
	}
	return fmt.Sprintf("| %s | %d, at most %d/%d of the files | %s | %s | %s |\n", s.Name, s.Most, s.Share, parts, from, strings.Join(times, ", "), s.Beyond)
}

func TestListenSaysWhatIsWrong(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := New(RAPI, plenty, nil).Listen(ctx, "127.0.0.1:x"); !fault.Is(err, fault.Environment) {
		t.Error(err)
	}
}

// TestWhoIsNotLetInIsTold: once when it begins and once a minute while it lasts, with how many they were; it is over when nobody was refused for a minute.
func TestWhoIsNotLetInIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		all := NewGates(plenty, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})))
		begun := time.Now()
		s := &failing{fail: slices.Repeat([]error{syscall.EMFILE}, 10)}
		l := all.Of(RAPI).guard(s)
		l.Refuse(func(conn net.Conn, _ string) { _ = conn.Close() })
		if all.Of(RAPI) != l.gate || all.Of(LUXI) == l.gate {
			t.Error("a surface has not one gate")
		}
		told := func(refused int64, lines ...string) {
			t.Helper()
			if got := strings.Join(lines, "\n"); strings.TrimSpace(log.String()) != got {
				t.Errorf("the log has\n%swant\n%s", log.String(), got)
			}
			log.Reset()
			if a := all.Accounts()[0]; a.Refused != refused {
				t.Errorf("%d were refused, want %d", a.Refused, refused)
			}
		}
		if _, err := l.Accept(); err != nil {
			t.Fatal(err)
		}
		told(0, `level=WARN msg="clients could not be accepted; it is tried again" surface=rapi at=:0 error="too many open files"`)
		if a := all.Accounts()[0]; a.Crowded != nil || a.Starved == nil || a.Starved.Why != "too many open files" || !a.Starved.Since.Equal(begun) || a.Open != 1 || a.Places != 2048 {
			t.Errorf("%+v, starved %+v", a, a.Starved)
		}
		l.gate.total = 1
		refuse := func() {
			s.tries, s.fail = 0, []error{nil, syscall.EINVAL} // one client, and then no more
			_, _ = l.Accept()
		}
		const line = `level=WARN msg="clients are turned away" surface=rapi at=:0 reason="there are already 1 connections, as many as there may be" from=pipe clients=%d limit=1 limit_per_address=1024`
		since := time.Now()
		for range 90 {
			refuse()
			time.Sleep(time.Second)
		}
		told(90, fmt.Sprintf(line, 1), fmt.Sprintf(line, 60))
		if a := all.Accounts()[0]; a.Starved != nil || a.Crowded == nil || !a.Crowded.Since.Equal(since) {
			t.Errorf("starved %+v, crowded %+v", a.Starved, a.Crowded)
		}
		time.Sleep(time.Minute)
		if a := all.Accounts()[0]; a.Crowded != nil {
			t.Errorf("a minute after the last it is still crowded: %+v", a.Crowded)
		}
		refuse()
		told(91, fmt.Sprintf(line, 1))
		synctest.Wait()
	})
	var none *Gates
	if got := none.Accounts(); got != nil {
		t.Errorf("no gates tell %v", got)
	}
}

// TestSurfacesAreAllListed: one that is made here and not listed would be in no page and in no test.
func TestSurfacesAreAllListed(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "surfaces.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]int{}
	ast.Inspect(file, func(n ast.Node) bool {
		if c, ok := n.(*ast.CompositeLit); ok {
			if of, ok := c.Type.(*ast.Ident); ok {
				made[of.Name]++
			}
		}
		return true
	})
	if made["Surface"] != len(Surfaces()) || made["Socket"] != len(Sockets()) {
		t.Errorf("made are %v; listed are %d surfaces and %d sockets", made, len(Surfaces()), len(Sockets()))
	}
	keys := map[string]bool{}
	for _, s := range Surfaces() {
		if s.Key == "" || keys[s.Key] {
			t.Errorf("the key %q of %s is empty, or another's", s.Key, s.Name)
		}
		keys[s.Key] = true
	}
}

// TestNobodyListensWhereNoAddressIsNamed: the system would take that for any port of all addresses.
func TestNobodyListensWhereNoAddressIsNamed(t *testing.T) {
	if l, err := New(RAPI, plenty, slog.New(slog.DiscardHandler)).Listen(t.Context(), ""); !fault.Is(err, fault.Invalid) {
		t.Errorf("somebody listens at %v, %v", l.Addr(), err)
	}
	if conn, err := Confd.ListenPacket(t.Context(), ""); !fault.Is(err, fault.Invalid) {
		t.Errorf("somebody hears datagrams at %v, %v", conn.LocalAddr(), err)
	}
}
