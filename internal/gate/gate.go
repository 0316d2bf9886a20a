// Package gate opens every listener of the program and bounds what comes through:
// how many connections a surface has at once, in all and from one address, and how
// long its clients may take.
//
// Invariants:
//   - No listener is opened elsewhere (a test looks), and all of their limits are in one
//     table, Surfaces, which docs/limits.md shows.
//   - All surfaces together leave a quarter of the files that the process may open to
//     everything else: the store, jobs, connections to others.
//   - Running out of files, or of memory for connections, ends no listener: it waits
//     and goes on.
//   - Whoever is not let in is counted, and a time in which somebody is not is told once at its beginning and
//     once a minute while it lasts.
//   - Who has not shown that it belongs here keeps out nobody who does.
package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/drover-project/drover/internal/backoff"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
)

// Gate lets in the connections of one surface, at however many listeners it has.
type Gate struct {
	surface                Surface
	total, each, strangers int
	log                    *slog.Logger

	mu   sync.Mutex
	open int
	from map[netip.Prefix]int
	// unknown are the connections that have not shown who they are, the oldest first.
	unknown []*Conn
	// told is how many refusals are being told at the moment.
	told int
	// refused is how many connections were turned away, or ended for the sake of others, since the gate was made.
	refused int64
	// crowded are times in which it did that, and starved those in which the system had no file or memory for a connection.
	crowded, starved spell
}

// New returns the gate of a surface in a process that may open so many files.
func New(s Surface, files int, log *slog.Logger) *Gate {
	g := &Gate{surface: s, total: s.places(files), log: log, from: map[netip.Prefix]int{}}
	g.each, g.strangers = max(g.total/2, 1), min(s.Strangers, max(g.total/2, 1))
	if s.Strangers > 0 || s.Local {
		g.each = g.total // they are told apart by more than their addresses
	}
	return g
}

// errNowhere refuses to listen where no address is named.
var errNowhere error = fault.New(fault.Invalid, "there is no address to listen at")

// Listen opens a listener at a TCP address.
func (g *Gate) Listen(ctx context.Context, address string) (*Listener, error) {
	if address == "" { // which would be any port of all addresses
		return nil, errNowhere
	}
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fault.New(fault.Environment, "%w", err)
	}
	return g.guard(l), nil
}

// ListenPacket opens a socket for datagrams at a UDP address. None of them takes a place: whoever reads them answers one after the other, and the system
// drops those for which it has no room.
func (Socket) ListenPacket(ctx context.Context, address string) (net.PacketConn, error) {
	if address == "" {
		return nil, errNowhere
	}
	var listen net.ListenConfig
	conn, err := listen.ListenPacket(ctx, "udp", address)
	if err != nil {
		return nil, fault.New(fault.Environment, "%w", err)
	}
	return conn, nil
}

func (g *Gate) guard(l net.Listener) *Listener {
	return &Listener{Listener: l, gate: g, closed: make(chan struct{}), refuse: func(conn net.Conn, _ string) { _ = conn.Close() }}
}

// Listener is a listener behind a gate.
type Listener struct {
	net.Listener
	gate *Gate
	// proxies are who alone may connect, and tells whose connections those are; nil where clients connect themselves.
	proxies []netip.Prefix
	// refuse tells a client why it is not let in, and closes the connection.
	refuse func(net.Conn, string)
	once   sync.Once
	closed chan struct{}
}

// Refuse sets how clients are told that they are not let in; whoever tells them
// closes the connection. It is called before the first Accept. Without it
// connections are closed and nothing is said.
func (l *Listener) Refuse(tell func(conn net.Conn, why string)) { l.refuse = tell }

// Close closes the listener; the second time it does nothing.
func (l *Listener) Close() (err error) {
	l.once.Do(func() {
		close(l.closed)
		err = l.Listener.Close()
	})
	return err
}

// pauses are how long a listener waits before it accepts again, after it could not.
func pauses() backoff.Pauses {
	return backoff.Pauses{First: 5 * time.Millisecond, Longest: time.Second}
}

// Accept waits for a connection that may come in. That there is no file or memory
// for one is waited out; it returns an error only when the listener is closed, or
// broken for good.
func (l *Listener) Accept() (net.Conn, error) {
	failures := 0
	for {
		conn, err := l.Listener.Accept()
		switch {
		case err == nil:
			failures = 0
			conn, why := l.behind(conn)
			if why != "" {
				l.turnAway(conn, why)
				continue
			}
			in, ended, why := l.gate.enter(conn)
			if ended != nil {
				l.gate.note(l.Addr(), system(ended.Conn).RemoteAddr(), fmt.Sprintf("%d others came after it, and it had not shown who it is", l.gate.strangers))
			}
			if why == "" {
				return in, nil
			}
			l.turnAway(conn, why)
		case !isOne(err, scarce) && !isOne(err, mishaps):
			return nil, err
		default:
			if isOne(err, mishaps) {
				l.gate.log.Debug("a client was gone before it was accepted", "surface", l.gate.surface.Key, "error", err)
			} else if l.gate.starves(err) {
				l.gate.log.Warn("clients could not be accepted; it is tried again", "surface", l.gate.surface.Key, "at", l.Addr(), "error", err)
			}
			failures++
			select {
			case <-l.closed:
				return nil, net.ErrClosed
			case <-time.After(pauses().After(failures)):
			}
		}
	}
}

// scarce are the errors of accept(2) that the system has nothing for a connection, and mishaps what befell one connection before it was accepted.
var (
	scarce  = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}
	mishaps = []error{syscall.ECONNABORTED, syscall.EPROTO, syscall.EPERM, syscall.ENETDOWN, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.EHOSTUNREACH}
)

// isOne tells whether an error is one of some.
func isOne(err error, of []error) bool {
	return slices.ContainsFunc(of, func(one error) bool { return errors.Is(err, one) })
}

// enter takes a place for a connection, or tells why there is none. A stranger that was ended for its sake is returned, too.
func (g *Gate) enter(conn net.Conn) (in, ended *Conn, why string) {
	from := intake.Origin(system(conn).RemoteAddr().String())
	_, proxied := conn.(*proxyproto.Conn)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.strangers > 0 && len(g.unknown) >= g.strangers {
		ended = g.unknown[0]
		g.drop(ended) // who belongs here needs no longer than the others do to fill all these places
	}
	switch {
	case g.open >= g.total:
		return nil, ended, fmt.Sprintf("there are already %d connections, as many as there may be", g.total)
	case g.from[from] >= g.each && !proxied: // whose share it is will be told
		return nil, ended, g.overShare()
	}
	in = &Conn{Conn: conn, gate: g, from: from, in: true}
	g.open++
	g.from[from]++
	if g.strangers > 0 {
		g.unknown = append(g.unknown, in)
	}
	return in, ended, ""
}

// overShare says that an address has its share of the places.
func (g *Gate) overShare() string {
	return fmt.Sprintf("there are already %d connections from this address, as many as there may be", g.each)
}

// drop ends a connection that has not shown who it is. The caller holds mu.
func (g *Gate) drop(c *Conn) {
	g.leave(c)
	_ = c.Conn.Close() // whoever works on it notices
}

// leave gives the place of a connection back. The caller holds mu.
func (g *Gate) leave(c *Conn) {
	if !c.in {
		return
	}
	c.in = false
	g.open--
	g.forget(c.from)
	g.know(c)
}

// forget counts one connection less of an address. The caller holds mu.
func (g *Gate) forget(from netip.Prefix) {
	if g.from[from]--; g.from[from] == 0 {
		delete(g.from, from)
	}
}

// know takes a connection from those that have not shown who they are. The caller
// holds mu.
func (g *Gate) know(c *Conn) {
	for i, u := range g.unknown {
		if u == c {
			g.unknown = append(g.unknown[:i], g.unknown[i+1:]...)
			return
		}
	}
}

// maxTold is how many clients that are not let in are told so at once; the
// others find their connection closed.
const maxTold = 16

func (l *Listener) turnAway(conn net.Conn, why string) {
	g := l.gate
	g.note(l.Addr(), system(conn).RemoteAddr(), why)
	g.mu.Lock()
	tell := g.told < maxTold
	if tell {
		g.told++
	}
	g.mu.Unlock()
	if !tell {
		_ = conn.Close() // there is nothing to be said
		return
	}
	go func() {
		defer func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.told--
		}()
		l.refuse(conn, why)
	}()
}

// Conn is a connection that was let in.
type Conn struct {
	net.Conn
	gate *Gate
	from netip.Prefix // held by the gate's mutex
	in   bool         // it has a place; held by the gate's mutex

	arrival arrival
}

// Known says that the other end has shown that it belongs here: it is not ended any
// more for the sake of others.
func (c *Conn) Known() {
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	c.gate.know(c)
}

// Close closes the connection and gives its place back.
func (c *Conn) Close() error {
	c.gate.mu.Lock()
	c.gate.leave(c)
	c.gate.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite ends what is sent, where the connection has two directions.
func (c *Conn) CloseWrite() error {
	if half, ok := system(c.Conn).(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// SyscallConn implements syscall.Conn, for those who ask the system about it.
func (c *Conn) SyscallConn() (syscall.RawConn, error) {
	if of, ok := system(c.Conn).(syscall.Conn); ok {
		return of.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}
