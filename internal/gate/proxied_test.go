package gate

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
)

// openBehind listens behind a gate for the proxies of 127.0.0.1, lets everybody in that may come, and hands them out.
func openBehind(t *testing.T, s Surface) (l *Listener, in <-chan net.Conn) {
	t.Helper()
	l, err := New(s, plenty, slog.New(slog.DiscardHandler)).Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Behind([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")})
	l.Refuse(func(conn net.Conn, why string) {
		_, _ = io.WriteString(conn, why)
		_ = conn.Close()
	})
	let, ended := make(chan net.Conn, 100), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			let <- conn
		}
	}()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		<-ended
	})
	return l, let
}

// v2 is a header of version 2, for a client.
func v2(t *testing.T, command proxyproto.ProtocolVersionAndCommand, client string) string {
	t.Helper()
	from, to := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(client)), &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443}
	kind := proxyproto.TCPv4
	if from.IP.To4() == nil {
		kind, to.IP = proxyproto.TCPv6, net.ParseIP("2001:db8::1")
	}
	text, err := (&proxyproto.Header{Version: 2, Command: command, TransportProtocol: kind, SourceAddr: from, DestinationAddr: to}).Format()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestProxiesTellWhoseConnectionsTheyAre: that is whom everybody sees, and nothing else is taken, neither from a proxy nor from anybody else.
func TestProxiesTellWhoseConnectionsTheyAre(t *testing.T) {
	l, in := openBehind(t, Surface{Most: 100, Share: parts, Header: patience})
	for what, c := range map[string]struct{ by, says, from string }{
		"version 1":                      {"127.0.0.1", "PROXY TCP4 198.51.100.7 192.0.2.1 4711 443\r\nhello", "198.51.100.7:4711"},
		"version 1, of IPv6":             {"127.0.0.1", "PROXY TCP6 2001:db8::7 2001:db8::1 4711 443\r\nhello", "[2001:db8::7]:4711"},
		"version 2":                      {"127.0.0.1", v2(t, proxyproto.PROXY, "198.51.100.7:4711") + "hello", "198.51.100.7:4711"},
		"version 2, of IPv6":             {"127.0.0.1", v2(t, proxyproto.PROXY, "[2001:db8::7]:4711") + "hello", "[2001:db8::7]:4711"},
		"the proxy itself":               {"127.0.0.1", v2(t, proxyproto.LOCAL, "198.51.100.7:4711") + "hello", "127.0.0.1"},
		"a proxy that does not know":     {"127.0.0.1", "PROXY UNKNOWN\r\nhello", "127.0.0.1"},
		"no header":                      {"127.0.0.1", "GET / HTTP/1.1\r\n\r\n", ""},
		"no address":                     {"127.0.0.1", "PROXY TCP4 nobody 192.0.2.1 4711 443\r\nhello", ""},
		"a header without end":           {"127.0.0.1", "PROXY " + strings.Repeat("x", 1000), ""},
		"a header of a longer length":    {"127.0.0.1", "\r\n\r\n\x00\r\nQUIT\n\x21\x11\xff\xff", ""},
		"a stranger":                     {"127.0.0.2", "PROXY TCP4 198.51.100.7 192.0.2.1 4711 443\r\nhello", "refused"},
		"a stranger who says nothing":    {"127.0.0.2", "", "refused"},
		"one who is called like a proxy": {"127.0.0.11", v2(t, proxyproto.PROXY, "127.0.0.1:1"), "refused"},
	} {
		client := dial(t, c.by, l)
		if _, err := io.WriteString(client, c.says); err != nil {
			t.Fatal(err)
		}
		if c.from == "refused" {
			if got := said(t, client); !strings.Contains(got, "from proxies alone") {
				t.Errorf("%s is told %q", what, got)
			}
			continue
		}
		conn := <-in
		if err := client.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(conn)
		if (err == nil) != (c.from != "") || err == nil && (string(text) != "hello" || !strings.HasPrefix(conn.RemoteAddr().String(), c.from)) {
			t.Errorf("%s: from %v comes %q, %v", what, conn.RemoteAddr(), text, err)
		}
		_ = conn.Close()
	}
}

// TestClientsBehindAProxyShareThePlaces: one of them has half of all, as it had without the proxy, which has no share of its own; and what is
// closed gives its place back.
func TestClientsBehindAProxyShareThePlaces(t *testing.T) {
	l, in := openBehind(t, Surface{Most: 6, Share: parts, Header: patience})
	told := &bytes.Buffer{}
	l.gate.log = slog.New(slog.NewTextHandler(told, nil))
	var all []net.Conn
	come := func(client string) (here net.Conn, err error) {
		there := dial(t, "127.0.0.1", l)
		if _, err := io.WriteString(there, "PROXY TCP4 "+client+" 192.0.2.1 4711 443\r\nx"); err != nil {
			t.Fatal(err)
		}
		here = <-in
		all = append(all, here)
		_, err = here.Read(make([]byte, 1))
		return here, err
	}
	var first net.Conn
	for i, c := range []struct {
		client string
		taken  bool
	}{{"198.51.100.1", true}, {"198.51.100.1", true}, {"198.51.100.1", true}, {"198.51.100.1", false}, {"198.51.100.2", true}} {
		conn, err := come(c.client)
		if (err == nil) != c.taken || err != nil && !strings.Contains(err.Error(), "already 3 connections from this address") {
			t.Fatalf("connection %d: %v", i, err)
		}
		if i == 0 {
			first = conn
		}
	}
	if got := l.gate.account(time.Now()); got.Open != 4 || got.Refused != 1 || got.Crowded == nil {
		t.Errorf("%+v", got)
	}
	if got := told.String(); strings.Count(got, "clients are turned away") != 1 || !strings.Contains(got, "from=198.51.100.1:4711") {
		t.Errorf("it is told as %q", got)
	}
	for range 2 {
		_ = first.Close()
	}
	if _, err := come("198.51.100.1"); err != nil {
		t.Errorf("behind one that is over: %v", err)
	}
	for _, client := range []string{"198.51.100.3", "198.51.100.4"} {
		if _, err := come(client); err != nil {
			t.Errorf("%s: %v", client, err)
		}
	}
	beyond := dial(t, "127.0.0.1", l)
	if _, err := io.WriteString(beyond, "PROXY TCP4 198.51.100.5 192.0.2.1 4711 443\r\n"); err != nil {
		t.Fatal(err)
	}
	if got := said(t, beyond); !strings.Contains(got, "already 6 connections,") {
		t.Errorf("one more is told %q", got)
	}
	for _, conn := range all {
		_ = conn.Close()
	}
	l.gate.mu.Lock()
	defer l.gate.mu.Unlock()
	if l.gate.open != 0 || len(l.gate.from) != 0 {
		t.Errorf("when all are gone %d are left, of %v", l.gate.open, l.gate.from)
	}
}

// TestOneThatWasClosedCountsNoMore: whose it was is found out too late.
func TestOneThatWasClosedCountsNoMore(t *testing.T) {
	g := New(Surface{Most: 6, Share: parts}, plenty, slog.New(slog.DiscardHandler))
	here, there := net.Pipe()
	in, _, _ := g.enter(here)
	_, _ = in.Close(), there.Close()
	if why := g.move(in, netip.MustParsePrefix("198.51.100.1/32")); why != "" || len(g.from) != 0 {
		t.Errorf("%v, %v", g.from, why)
	}
}

// TestAProxyThatSaysNothing holds up nobody else, and not for ever.
func TestAProxyThatSaysNothing(t *testing.T) {
	l, in := openBehind(t, Surface{Most: 100, Share: parts, Header: 50 * time.Millisecond})
	silent := dial(t, "127.0.0.1", l)
	held := <-in
	other := dial(t, "127.0.0.1", l)
	if _, err := io.WriteString(other, "PROXY TCP4 198.51.100.1 192.0.2.1 4711 443\r\nx"); err != nil {
		t.Fatal(err)
	}
	if _, err := (<-in).Read(make([]byte, 1)); err != nil {
		t.Errorf("one beside it: %v", err)
	}
	if _, err := held.Read(make([]byte, 1)); err == nil {
		t.Error("it is read from without a word of whose it is")
	}
	_ = silent.Close()
}

// TestAProxyHasNoShare: of connections of which is not known yet whose they are, there may be as many as there are places.
func TestAProxyHasNoShare(t *testing.T) {
	g := New(Surface{Most: 6, Share: parts}, plenty, slog.New(slog.DiscardHandler))
	for i := range g.total {
		here, there := net.Pipe()
		in, _, why := g.enter(proxyproto.NewConn(here))
		if in == nil || why != "" {
			t.Fatalf("connection %d of a proxy: %s", i, why)
		}
		t.Cleanup(func() { _, _ = in.Close(), there.Close() })
	}
}
