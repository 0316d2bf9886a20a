package luxiwire

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/testkit"
)

// serve answers each request on each connection by the function; an empty
// answer closes the connection.
func serve(t *testing.T, answer func(Request) string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go talk(conn, answer)
		}
	}()
	return path
}

func talk(conn net.Conn, answer func(Request) string) {
	defer func() { _ = conn.Close() }()
	frames := NewFrameReader(conn, MaxFrame)
	for {
		frame, err := frames.Next()
		if err != nil {
			return
		}
		req, err := ParseRequest(frame)
		if err != nil {
			return
		}
		text := answer(req)
		if text == "" || WriteFrame(conn, []byte(text)) != nil {
			return
		}
	}
}

func dial(t *testing.T, path string) *Client {
	t.Helper()
	c, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestClientCall(t *testing.T) {
	c := dial(t, serve(t, func(r Request) string {
		return fmt.Sprintf(`{"success":true,"result":{"method":%q,"args":%s}}`, r.Method, r.Args)
	}))
	var got struct {
		Method string
		Args   []any
	}
	for range 3 {
		if err := c.Call(t.Context(), "Query", []any{"a<b", nil}, &got); err != nil || got.Args[0] != "a<b" {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
	if err := c.Call(t.Context(), "Nothing", nil, &got); err != nil || got.Args == nil || len(got.Args) != 0 {
		t.Fatalf("no arguments are an empty list: %+v, %v", got, err)
	}
}

func TestClientNeverRepeatsACallOnItsOwn(t *testing.T) {
	var calls atomic.Int32
	c := dial(t, serve(t, func(Request) string {
		if calls.Add(1) < 3 {
			return ""
		}
		return `{"success":true,"result":5}`
	}))
	var id int
	if err := c.Call(t.Context(), "SubmitJob", nil, &id); !fault.Is(err, fault.Unavailable) || calls.Load() != 1 {
		t.Fatalf("calls %d: %v", calls.Load(), err)
	}
	if err := c.Resend(t.Context(), 5, "SubmitJob", nil, &id); err != nil || id != 5 || calls.Load() != 3 {
		t.Fatalf("id %d, calls %d: %v", id, calls.Load(), err)
	}
}

func TestClientGoesOnAfterAnError(t *testing.T) {
	c := dial(t, serve(t, func(r Request) string {
		switch r.Method {
		case "Pair":
			return `{"success":false,"result":["GenericError",["no"]]}`
		case "Text":
			return `{"success":false,"result":"Failed to parse request: no"}`
		case "Odd":
			return `{"answer":42}`
		}
		return `{"success":true,"result":null}`
	}))
	for method, code := range map[string]fault.Code{"Pair": fault.Failed, "Text": fault.Invalid, "Odd": fault.Internal} {
		if err := c.Call(t.Context(), method, nil, nil); fault.CodeOf(err) != code {
			t.Errorf("%s: %v", method, err)
		}
		if err := c.Call(t.Context(), "Fine", nil, nil); err != nil {
			t.Errorf("after %s: %v", method, err)
		}
	}
}

func TestClientIsInterruptedByItsContext(t *testing.T) {
	stop := make(chan struct{})
	entered := make(chan struct{}, 1)
	path := serve(t, func(r Request) string {
		if r.Method == "Slow" {
			entered <- struct{}{}
			<-stop
		}
		return `{"success":true,"result":null}`
	})
	defer close(stop)
	c := dial(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Call(ctx, "Slow", nil, nil) }()
	<-entered
	cancel()
	select {
	case err := <-done:
		if !fault.Is(err, fault.Canceled) {
			t.Errorf("got %v", err)
		}
	case <-time.After(testkit.Patience()):
		t.Fatal("the call goes on after its context ended")
	}
	if err := c.Call(t.Context(), "Fine", nil, nil); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

// TestWhoLeavesIsNotToldToLookForTheController: neither before a client connects, nor between two tries.
func TestWhoLeavesIsNotToldToLookForTheController(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := &Client{path: filepath.Join(t.TempDir(), "none")}
	go cancel()
	if err := c.Resend(ctx, 1000, "Query", nil, nil); !fault.Is(err, fault.Canceled) {
		t.Errorf("asked again: %v", err)
	}
	if err := c.Call(ctx, "Query", nil, nil); !fault.Is(err, fault.Canceled) {
		t.Errorf("asked once: %v", err)
	}
}

func TestDialSaysWhatIsWrong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none")
	_, err := Dial(t.Context(), path)
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}
