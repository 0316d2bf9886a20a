package world

import (
	"context"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// wires are the connections among controllers: each listens at an address, which is that
// of one of its lives.
type wires struct {
	mu        sync.Mutex
	listeners map[string]*listener
	// open are in the order in which they were opened: it is that in which they end, and a set of addresses has another each time.
	open []*wire
}

// address is where a life is reached. It implements net.Addr.
type address string

func (address) Network() string  { return "simulated" }
func (a address) String() string { return string(a) }

// listener takes the connections to a life. It implements net.Listener.
type listener struct {
	life   *life
	come   chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (w *world) listen(l *life) *listener {
	const waiting = 16
	x := &listener{life: l, come: make(chan net.Conn, waiting), closed: make(chan struct{})}
	w.wires.mu.Lock()
	defer w.wires.mu.Unlock()
	w.wires.listeners[l.id] = x
	return x
}

// Accept implements net.Listener.
func (x *listener) Accept() (net.Conn, error) {
	select {
	case c := <-x.come:
		return c, nil
	case <-x.closed:
		return nil, net.ErrClosed
	case <-x.life.dead:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (x *listener) Close() error {
	x.once.Do(func() { close(x.closed) })
	return nil
}

// Addr implements net.Listener.
func (x *listener) Addr() net.Addr { return address(x.life.id) }

// errRefused is the error of a connection to where nobody listens.
var errRefused = fault.New(fault.Unavailable, "the connection is refused")

// wireTime is how long what is said takes to the other end.
const wireTime = 200 * time.Microsecond

// dial connects a life to another by its address. One that stands still takes connections
// as its kernel does: they wait.
func (l *life) dial(ctx context.Context, to string) (net.Conn, error) {
	if err := l.gate(); err != nil {
		return nil, err
	}
	if err := l.rest(ctx, 3*wireTime); err != nil {
		return nil, err
	}
	l.w.wires.mu.Lock()
	x := l.w.wires.listeners[to]
	l.w.wires.mu.Unlock()
	if x == nil || x.life.isDead() {
		return nil, errRefused
	}
	select {
	case <-x.closed:
		return nil, errRefused
	default:
	}
	near, far := connect(l, x.life)
	if !l.w.wires.keep(near) {
		<-ctx.Done() // nothing comes through
		return nil, context.Cause(ctx)
	}
	select {
	case x.come <- far:
		return near, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// keep adds a connection; false if the two are apart.
func (ws *wires) keep(c *wire) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.open = append(ws.open, c)
	return !c.apart()
}

// broken ends the connections of a life.
func (ws *wires) broken(l *life) {
	ws.mu.Lock()
	var all []*wire
	for _, c := range ws.open {
		if c.life == l || c.other.life == l {
			all = append(all, c)
		}
	}
	ws.mu.Unlock()
	for _, c := range all {
		_ = c.Close()
	}
}

// wire is one end of a connection. It implements net.Conn.
type wire struct {
	life  *life // whose end it is; nil for a client's
	other *wire
	w     *world

	mu sync.Mutex
	// in is what has come, or is on its way, each piece with when it is there.
	in             []piece
	closed, ended  bool // this end was closed, the other was
	readBy, sendBy time.Time
	changed        chan struct{} // closed and replaced when something changes
}

type piece struct {
	at   time.Time
	text []byte
}

// connect returns the two ends of a new connection.
func connect(near, far *life) (a, b *wire) {
	w := near
	if w == nil {
		w = far
	}
	a = &wire{life: near, w: w.w, changed: make(chan struct{})}
	b = &wire{life: far, w: w.w, changed: make(chan struct{})}
	a.other, b.other = b, a
	return a, b
}

// gate waits while the end's life stands still.
func (c *wire) gate() error {
	if c.life == nil {
		return nil
	}
	return c.life.gate()
}

// apart tells whether nothing comes through now.
func (c *wire) apart() bool {
	if c.life == nil || c.other.life == nil {
		return false
	}
	return c.life.isApart() || c.other.life.isApart()
}

// change changes an end, and wakes who waits for that.
func (c *wire) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	close(c.changed)
	c.changed = make(chan struct{})
}

// look is what there is to read, or how long to wait for it.
func (c *wire) look(p []byte) (n int, wait time.Duration, changed <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, wait := time.Now(), time.Hour
	if !c.readBy.IsZero() {
		wait = c.readBy.Sub(now)
	}
	switch {
	case c.closed:
		return 0, 0, nil, net.ErrClosed
	case wait <= 0:
		return 0, 0, nil, os.ErrDeadlineExceeded
	case len(c.in) == 0 && c.ended:
		return 0, 0, nil, io.EOF
	case len(c.in) == 0:
		return 0, wait, c.changed, nil
	case now.Before(c.in[0].at):
		return 0, min(wait, c.in[0].at.Sub(now)), c.changed, nil
	}
	n = copy(p, c.in[0].text)
	if c.in[0].text = c.in[0].text[n:]; len(c.in[0].text) == 0 {
		c.in = c.in[1:]
	}
	return n, 0, nil, nil
}

// apartLook is how often an end looks whether the two are together again.
const apartLook = 500 * time.Millisecond

// Read implements net.Conn.
func (c *wire) Read(p []byte) (int, error) {
	for {
		if err := c.gate(); err != nil {
			return 0, err
		}
		wait, changed := apartLook, (<-chan struct{})(nil)
		if !c.apart() {
			var n int
			var err error
			if n, wait, changed, err = c.look(p); n > 0 || err != nil {
				return n, err
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Write implements net.Conn. It takes everything: what is not read yet waits.
func (c *wire) Write(p []byte) (int, error) {
	if err := c.gate(); err != nil {
		return 0, err
	}
	c.mu.Lock()
	closed, ended, late := c.closed, c.ended, !c.sendBy.IsZero() && !time.Now().Before(c.sendBy)
	c.mu.Unlock()
	switch {
	case closed:
		return 0, net.ErrClosed
	case ended:
		return 0, io.ErrClosedPipe
	case late:
		return 0, os.ErrDeadlineExceeded
	}
	text := append([]byte(nil), p...)
	c.other.change(func() { c.other.in = append(c.other.in, piece{time.Now().Add(wireTime), text}) })
	return len(p), nil
}

// Close implements net.Conn.
func (c *wire) Close() error {
	c.change(func() { c.closed = true })
	c.other.change(func() { c.other.ended = true })
	c.w.wires.mu.Lock()
	defer c.w.wires.mu.Unlock()
	c.w.wires.open = slices.DeleteFunc(c.w.wires.open, func(x *wire) bool { return x == c })
	return nil
}

func (c *wire) end() address {
	if c.life == nil {
		return "client"
	}
	return address(c.life.id)
}

// LocalAddr implements net.Conn.
func (c *wire) LocalAddr() net.Addr { return c.end() }

// RemoteAddr implements net.Conn.
func (c *wire) RemoteAddr() net.Addr { return c.other.end() }

// SetDeadline implements net.Conn.
func (c *wire) SetDeadline(t time.Time) error {
	c.change(func() { c.readBy, c.sendBy = t, t })
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *wire) SetReadDeadline(t time.Time) error {
	c.change(func() { c.readBy = t })
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *wire) SetWriteDeadline(t time.Time) error {
	c.change(func() { c.sendBy = t })
	return nil
}
