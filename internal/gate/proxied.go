package gate

import (
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/pires/go-proxyproto"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
)

// Behind has the listener take connections of proxies alone, each of which begins with a header of the PROXY protocol (version 1 or 2) that tells whose it is: that
// client is who asks, and whose share of the places is counted. It is called before the first Accept.
func (l *Listener) Behind(proxies []netip.Prefix) { l.proxies = proxies }

// Proxied are the surfaces that may stand behind proxies which speak the PROXY protocol: others have clients of this machine, or of our own.
func Proxied() []Surface { return []Surface{RAPI, Compute, Web} }

// behind returns the connection of a proxy as that of its client, or why it is not taken. Nothing is read yet: whoever dawdles holds up itself.
func (l *Listener) behind(conn net.Conn) (_ net.Conn, why string) {
	if l.proxies == nil {
		return conn, ""
	}
	from, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil || !slices.ContainsFunc(l.proxies, func(p netip.Prefix) bool { return p.Contains(from.Addr().Unmap()) }) {
		return conn, "connections are taken from proxies alone (trusted-proxies), which tell whose they are"
	}
	return proxyproto.NewConn(conn, proxyproto.SetReadHeaderTimeout(l.gate.surface.Header)), ""
}

// system is a connection as the operating system has it.
func system(conn net.Conn) net.Conn {
	if p, is := conn.(*proxyproto.Conn); is {
		return p.Raw()
	}
	return conn
}

// arrival is what is found out about a connection of a proxy at its first use.
type arrival struct {
	once sync.Once
	err  error
}

// arrive reads whose connection it is. That client has its share of the places, of which the proxy has none.
func (c *Conn) arrive() error {
	p, is := c.Conn.(*proxyproto.Conn)
	if !is {
		return nil
	}
	c.arrival.once.Do(func() {
		client := p.RemoteAddr()
		if why := c.gate.move(c, intake.Origin(client.String())); why != "" {
			c.gate.note(p.Raw().LocalAddr(), client, why)
			c.arrival.err = fault.New(fault.Busy, "%s", why)
		}
	})
	return c.arrival.err
}

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	if err := c.arrive(); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// RemoteAddr is the address of the client.
func (c *Conn) RemoteAddr() net.Addr {
	_ = c.arrive() // who reads is told
	return c.Conn.RemoteAddr()
}

// move counts a connection as that of its client. One over the client's share is ended, and why is returned.
func (g *Gate) move(c *Conn, origin netip.Prefix) (why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !c.in || c.from == origin:
		return ""
	case g.from[origin] >= g.each:
		g.drop(c)
		return g.overShare()
	}
	g.forget(c.from)
	c.from = origin
	g.from[origin]++
	return ""
}
