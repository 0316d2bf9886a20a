package luxi

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/gate"
)

func TestWorkEndsWhenItsClientHangsUp(t *testing.T) {
	ended := make(chan error, 1)
	s := newServer(Deps{Log: slog.New(slog.DiscardHandler)}, []method{
		{"Wait", 0, 0, asks, func(ctx context.Context, _ *Deps, _ *arguments) (any, error) {
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil, context.Cause(ctx)
		}},
	})
	s.look = time.Millisecond
	c := dialRaw(t, listen(t, s))
	c.send(`{"method":"Wait","args":[]}` + "\x03")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, errHungUp) || !fault.Is(err, fault.Canceled) {
		t.Errorf("it ended by %v", err)
	}
}

func TestHungUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	listener := socketAt(t, path, gate.LUXI)
	defer func() { _ = listener.Close() }()
	for _, c := range []struct {
		name string
		do   func(client *net.UnixConn) error
		want bool
	}{
		{"there", func(*net.UnixConn) error { return nil }, false},
		// It still reads, and wants its answer.
		{"closed its sending side", (*net.UnixConn).CloseWrite, false},
		{"sent more", func(c *net.UnixConn) error { _, err := c.Write([]byte("x")); return err }, false},
		{"closed", (*net.UnixConn).Close, true},
		{"sent more and closed", func(c *net.UnixConn) error {
			_, err := c.Write([]byte("x"))
			return errors.Join(err, c.Close())
		}, true},
	} {
		client, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		server, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.do(client); err != nil {
			t.Fatal(err)
		}
		if got := hungUp(server); got != c.want {
			t.Errorf("a client that %s: got %v", c.name, got)
		}
		_, _ = client.Close(), server.Close() // some are closed already
	}
	near, far := net.Pipe()
	_, _ = far.Close(), near.Close()
	if hungUp(near) {
		t.Error("a connection that is no socket cannot tell")
	}
}
