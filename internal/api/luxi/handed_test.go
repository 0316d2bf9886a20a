package luxi

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/reason"
)

// handed serves one connection until it is told to end, and returns how it was left.
type handed struct {
	left []byte
	open bool
	// next is the request that who goes on with the connection reads from it.
	next func() []byte
}

func serveOne(t *testing.T, take func(bool) (func(), bool), run func(context.Context) (any, error)) (client net.Conn, stop func(), left <-chan handed) {
	t.Helper()
	s := newServer(Deps{Log: slog.New(slog.DiscardHandler), Take: take}, []method{
		{"WaitForJobChange", 0, 0, asks, func(ctx context.Context, _ *Deps, _ *arguments) (any, error) { return run(ctx) }},
		{"SubmitJob", 0, 0, changes, func(ctx context.Context, _ *Deps, _ *arguments) (any, error) { return run(ctx) }},
	})
	client, conn := net.Pipe()
	t.Cleanup(func() { _ = client.Close() })
	ctx, end := context.WithCancel(t.Context())
	out := make(chan handed, 1)
	go func() {
		frames := luxiwire.NewFrameReader(conn, luxiwire.MaxFrame)
		text, open := s.ServeConn(ctx, conn, frames, reason.Account{})
		if !open {
			_ = conn.Close()
		}
		out <- handed{text, open, func() []byte {
			if conn.SetReadDeadline(time.Time{}) != nil {
				return nil
			}
			text, _ := frames.Next() // nil with an error
			return text
		}}
	}()
	return client, end, out
}

const (
	aQuestion = `{"method":"WaitForJobChange","args":[]}`
	aChange   = `{"method":"SubmitJob","args":[]}`
)

func sendText(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

// TestConnectionsAreHandedOver: where the server takes nothing more, somebody else can go on with a connection: with the question that the end has ended, with
// what was only half there, and with what comes next.
func TestConnectionsAreHandedOver(t *testing.T) {
	taken := func(taken bool) func(bool) (func(), bool) {
		return func(bool) (func(), bool) { return func() {}, taken }
	}
	ends := func(ctx context.Context) (any, error) {
		<-ctx.Done()
		return nil, fault.New(fault.Unavailable, "the end")
	}
	t.Run("a question", func(t *testing.T) {
		begun := make(chan struct{})
		client, stop, left := serveOne(t, taken(true), func(ctx context.Context) (any, error) {
			close(begun)
			return ends(ctx)
		})
		sendText(t, client, aQuestion+"\x03")
		<-begun
		stop()
		if got := <-left; string(got.left) != aQuestion || !got.open {
			t.Errorf("left is %q, %t", got.left, got.open)
		}
	})
	t.Run("half a request", func(t *testing.T) {
		client, stop, left := serveOne(t, taken(false), ends)
		sendText(t, client, aChange[:10])
		stop()
		go func() { _, _ = client.Write([]byte(aChange[10:] + "\x03")) }() // it ends with the connection at the latest
		got := <-left
		if got.left == nil && got.open { // the end was seen before the rest was waited for
			got.left = got.next()
		}
		if string(got.left) != aChange || !got.open {
			t.Errorf("left is %q, %t", got.left, got.open)
		}
	})
	t.Run("nothing", func(t *testing.T) {
		_, stop, left := serveOne(t, taken(false), ends)
		stop()
		if got := <-left; got.left != nil || !got.open {
			t.Errorf("left is %q, %t", got.left, got.open)
		}
	})
	for what, c := range map[string]struct {
		take func(bool) (func(), bool)
		asks string
	}{
		"a change":     {taken(true), aChange}, // nobody knows what became of it
		"who is alone": {nil, aQuestion},       // tells why
	} {
		t.Run(what, func(t *testing.T) {
			begun := make(chan struct{})
			client, stop, left := serveOne(t, c.take, func(ctx context.Context) (any, error) {
				close(begun)
				return ends(ctx)
			})
			sendText(t, client, c.asks+"\x03")
			<-begun
			stop()
			if text, err := luxiwire.NewFrameReader(client, luxiwire.MaxFrame).Next(); err != nil || len(text) == 0 {
				t.Errorf("it is answered with %q, %v", text, err)
			}
			if got := <-left; got.left != nil {
				t.Errorf("left is %q", got.left)
			}
		})
	}
}
