package history

import (
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// line is a way to somewhere; it can be cut, and it can fall silent.
type line struct {
	url     string // where it begins
	network string

	mu    sync.Mutex
	to    string
	cut   bool
	conns map[net.Conn]bool
	// held, unless it is nil, is what comes to nobody's ears until it is closed.
	held chan struct{}
}

// newLine makes a line to the database that begins with a socket in a directory of its
// own.
func newLine(t testing.TB, dir, database string) *line {
	t.Helper()
	u, err := url.Parse(database)
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	const socket = ".s.PGSQL.5432"
	q := u.Query()
	w := &line{network: "unix", to: filepath.Join(q.Get("host"), socket)}
	q.Set("host", dir)
	u.RawQuery = q.Encode()
	w.url = u.String()
	l, err := net.Listen("unix", filepath.Join(dir, socket))
	if err != nil {
		t.Fatal(err)
	}
	w.open(t, l)
	return w
}

// newPeerLine makes the line on which other controllers reach one.
func newPeerLine(t testing.TB) *line {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &line{network: "tcp", url: l.Addr().String()}
	w.open(t, l)
	return w
}

// leadTo lets the line end somewhere.
func (w *line) leadTo(address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.to = address
}

// open carries the connections that come, until the test ends.
func (w *line) open(t testing.TB, l net.Listener) {
	t.Helper()
	w.conns = map[net.Conn]bool{}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() { w.carry(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		w.set(true)
		open.Wait()
	})
}

// carry serves one connection until either end goes or the line is cut.
func (w *line) carry(near net.Conn) {
	defer func() { _ = near.Close() }()
	w.mu.Lock()
	to := w.to
	w.mu.Unlock()
	far, err := net.Dial(w.network, to)
	if err != nil {
		return
	}
	defer func() { _ = far.Close() }()
	if !w.keep(near, far) {
		return
	}
	defer w.forget(near, far)
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		go func() {
			w.pass(way[0], way[1])
			ended <- struct{}{}
		}()
	}
	<-ended
	_, _ = near.Close(), far.Close() // again, so that both ways end
	<-ended
}

// pass carries what comes one way, until either end goes.
func (w *line) pass(to io.Writer, from io.Reader) {
	some := make([]byte, 32<<10)
	for {
		n, err := from.Read(some)
		w.mu.Lock()
		held := w.held
		w.mu.Unlock()
		if held != nil {
			<-held
		}
		if _, lost := to.Write(some[:n]); err != nil || lost != nil {
			return
		}
	}
}

// silence has nothing come through until the function is called that it returns. Neither end is told, and what was on
// its way comes late.
func (w *line) silence() (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := make(chan struct{})
	w.held = held
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.held == held {
			w.speak()
		}
	}
}

// speak ends a silence. The caller holds mu.
func (w *line) speak() {
	if w.held != nil {
		close(w.held)
		w.held = nil
	}
}

func (w *line) keep(conns ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		w.conns[c] = true
	}
	return !w.cut
}

func (w *line) forget(conns ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		delete(w.conns, c)
	}
}

// set cuts the line, or mends it.
func (w *line) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	if cut {
		w.speak()
		for c := range w.conns {
			_ = c.Close()
		}
	}
}
