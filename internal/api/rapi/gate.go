package rapi

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"github.com/drover-project/drover/internal/intake"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// gate is a listener that lets in so many connections at once, in all and from
// each address. It keeps file descriptors for the control socket and for jobs,
// and half of the places for other addresses than the busiest.
type gate struct {
	net.Listener
	total, each int
	log         *slog.Logger
	// refuse tells a client why it is not let in, and closes the connection.
	refuse func(net.Conn, string)

	mu   sync.Mutex
	open int
	from map[netip.Prefix]int
	// told is how many refusals are being told at the moment.
	told   int
	logged time.Time
}

// maxConnections is how many connections there may be, where the system allows
// the process that many files.
const maxConnections = 2048

// places returns how many connections there may be: at most half as many as the
// process may open files.
func places() int {
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) != nil {
		return maxConnections / 8
	}
	return int(min(files.Cur/2, maxConnections))
}

func newGate(l net.Listener, total int, refuse func(net.Conn, string), log *slog.Logger) *gate {
	return &gate{Listener: l, total: total, each: max(total/2, 1), refuse: refuse, log: log, from: map[netip.Prefix]int{}}
}

// maxTold is how many clients that are not let in are told so at once; the
// others find their connection closed.
const maxTold = 16

// Accept waits for a connection that may come in.
func (g *gate) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := intake.Origin(conn.RemoteAddr().String())
		why := g.enter(from)
		if why == "" {
			return &guest{Conn: conn, leave: sync.OnceFunc(func() { g.leave(from) })}, nil
		}
		g.turnAway(conn, why)
	}
}

// enter takes a place, or tells why there is none.
func (g *gate) enter(from netip.Prefix) (why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.open >= g.total:
		return "the controller has all the connections that it may have"
	case g.from[from] >= g.each:
		return "there are too many connections from this address"
	}
	g.open++
	g.from[from]++
	return ""
}

func (g *gate) leave(from netip.Prefix) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	if g.from[from]--; g.from[from] == 0 {
		delete(g.from, from)
	}
}

func (g *gate) turnAway(conn net.Conn, why string) {
	g.mu.Lock()
	tell := g.told < maxTold
	if tell {
		g.told++
	}
	log := time.Since(g.logged) > time.Second
	if log {
		g.logged = time.Now()
	}
	g.mu.Unlock()
	if log {
		g.log.Warn("clients are turned away", "at", g.Addr(), "reason", why, "from", conn.RemoteAddr(), "limit", g.total, "limit_per_address", g.each)
	}
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
		g.refuse(conn, why)
	}()
}

// guest gives its place back when it is closed.
type guest struct {
	net.Conn
	leave func()
}

// Close closes the connection.
func (c *guest) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// refusalTime is how long a client may take to hear that it is not let in.
const refusalTime = 2 * time.Second

// refusal answers the first request of a connection with 503. Without a
// configuration of TLS that is in plain text.
func refusal(config *tls.Config) func(net.Conn, string) {
	return func(conn net.Conn, why string) {
		defer func() { _ = conn.Close() }() // it is refused, whatever comes
		if conn.SetDeadline(time.Now().Add(refusalTime)) != nil {
			return
		}
		secured := conn
		if config != nil {
			secured = tls.Server(conn, config)
		}
		if _, err := http.ReadRequest(bufio.NewReader(io.LimitReader(secured, maxHeader))); err != nil {
			return
		}
		body, err := encode(failure(http.StatusServiceUnavailable, "%s", why).body())
		if err != nil {
			return
		}
		answer := http.Response{StatusCode: http.StatusServiceUnavailable, ProtoMajor: 1, ProtoMinor: 1, Close: true,
			Header: http.Header{"Content-Type": {"application/json"}, "Retry-After": {"10"}}}
		answer.ContentLength, answer.Body = int64(len(body)), io.NopCloser(bytes.NewReader(body))
		_ = answer.Write(secured) // who does not read it finds the connection closed
		if half, ok := secured.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite() // what was sent arrives before the end
		}
	}
}
