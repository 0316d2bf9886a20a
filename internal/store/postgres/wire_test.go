package postgres

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// wire is a line to a server that knows what is said on it. So it can be cut just where a commit has been sent and is not
// answered, or be held up in the midst of a transaction.
type wire struct {
	url string // where it begins
	to  string

	mu    sync.Mutex
	ends  map[*ends]bool
	away  bool                     // nobody gets through
	cut   *cut                     // what becomes of the next commit
	holds bool                     // the next transaction is held up
	heard map[string]chan struct{} // by what is said

	ended chan struct{} // told when the server has ended a commit whose answer goes astray
}

// ends are those of one connection.
type ends struct {
	near, far net.Conn
	deaf      atomic.Bool   // what the server says is not passed on
	over      chan struct{} // closed when the server has hung up
}

// cut is one behind a commit.
type cut struct {
	away bool // and nobody gets through afterwards
	done chan struct{}
}

// newWire makes a wire to a store.
func newWire(t *testing.T, store string) *wire {
	t.Helper()
	u, err := url.Parse(store)
	if err != nil {
		t.Fatal(err)
	}
	const socket = ".s.PGSQL.5432"
	dir, q := t.TempDir(), u.Query()
	w := &wire{to: filepath.Join(q.Get("host"), socket), ends: map[*ends]bool{}, heard: map[string]chan struct{}{}, ended: make(chan struct{}, 1000)} // more than in a test
	q.Set("host", dir)
	u.RawQuery = q.Encode()
	w.url = u.String()
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(dir, socket))
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() { w.carry(near) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		w.leave()
		open.Wait()
	})
	return w
}

// carry serves one connection.
func (w *wire) carry(near net.Conn) {
	defer func() { _ = near.Close() }()
	far, err := net.Dial("unix", w.to)
	if err != nil {
		return
	}
	defer func() { _ = far.Close() }()
	e := &ends{near: near, far: far, over: make(chan struct{})}
	if !w.keep(e) {
		return
	}
	go e.answer(w.ended)
	w.ask(e)
	if !e.deaf.Load() { // else the server goes on with what it was told
		_ = far.Close()
	}
	<-e.over
}

func (w *wire) keep(e *ends) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends[e] = true
	return !w.away
}

// idle is how the server's answer to all that it was told ends, when no transaction is open any more.
const idle = "Z\x00\x00\x00\x05I"

// answer passes on what the server says, until either end goes.
func (e *ends) answer(ended chan<- struct{}) {
	defer close(e.over)
	some := make([]byte, 32<<10)
	last := ""
	for {
		n, err := e.far.Read(some)
		if !e.deaf.Load() {
			_, _ = e.near.Write(some[:n]) // who asks notices when it is gone
		} else {
			if last += string(some[:n]); strings.HasSuffix(last, idle) {
				ended <- struct{}{}
			}
			last = last[max(len(last)-len(idle), 0):]
		}
		if err != nil {
			_ = e.near.Close()
			return
		}
	}
}

// ask passes on what the server is told, message by message.
func (w *wire) ask(e *ends) {
	r := bufio.NewReader(e.near)
	commits := false
	for kind := 0; ; kind = 1 { // the first message says of which kind it is by its place
		message, err := next(r, kind)
		if err != nil {
			return
		}
		w.listen(message)
		if kind > 0 && w.held(message) {
			<-e.over
			return
		}
		cut := w.cutAt(e, commits && message[0] == 'S')
		commits = commits && message[0] != 'S' || message[0] == 'B' && bytes.Contains(message, []byte("\x00"+commitAll.name()+"\x00"))
		if _, err := e.far.Write(message); err != nil {
			return
		}
		if cut != nil {
			_ = e.near.Close()
			close(cut.done)
			return
		}
	}
}

// next reads a message: its kind, but of the first one, and its length with itself, and the rest.
func next(r *bufio.Reader, kind int) ([]byte, error) {
	const length = 4
	head, err := r.Peek(kind + length)
	if err != nil {
		return nil, err
	}
	message := make([]byte, kind+int(binary.BigEndian.Uint32(head[kind:])))
	_, err = io.ReadFull(r, message)
	return message, err
}

// listen tells those who wait to hear something.
func (w *wire) listen(message []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for what, heard := range w.heard {
		if strings.Contains(string(message), what) {
			heard <- struct{}{}
		}
	}
}

// hears returns where it is told that something was said.
func (w *wire) hears(what string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	heard := make(chan struct{}, 1000) // more than is said in a test
	w.heard[what] = heard
	return heard
}

// held reports whether what a transaction changes is held up.
func (w *wire) held(message []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.holds || message[0] != 'B' || !bytes.Contains(message, []byte("\x00drover_")) {
		return false
	}
	w.holds = false
	return true
}

// holdNext holds up the next transaction, once it has begun, until the server has lost patience.
func (w *wire) holdNext() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holds = true
}

// cutAt takes the cut that is to be made behind a commit, and has its answer go astray.
func (w *wire) cutAt(e *ends, committed bool) *cut {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.cut
	if c == nil || !committed {
		return nil
	}
	w.cut, w.away = nil, c.away
	e.deaf.Store(true)
	return c
}

// cutNext cuts the connection of the next commit when the server has been told it all; away says that nobody gets through
// from then on. It returns what is closed when that was done.
func (w *wire) cutNext(away bool) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = &cut{away, make(chan struct{})}
	return w.cut.done
}

// leave cuts all connections, and lets nobody through.
func (w *wire) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = true
	for e := range w.ends {
		_, _ = e.near.Close(), e.far.Close()
	}
}

// back lets everybody through again.
func (w *wire) back() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = false
}
