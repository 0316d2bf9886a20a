package agentwire

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/exec/nodetest"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/testkit"
)

// shown is a node that has a screen, which says what it is told.
type shown struct {
	Served
	ends chan net.Conn
}

func (s shown) OpenScreen(_ context.Context, of hypervisor.Thing) (io.ReadWriteCloser, error) {
	if of.Name != "one" {
		return nil, fault.New(fault.Unsupported, "instance %s has no screen", of.Name)
	}
	ours, theirs := net.Pipe()
	s.ends <- theirs
	return ours, nil
}

func (s shown) Node() string { return "node1" }

// TestScreen has somebody look at a screen of a node that is elsewhere: much goes both ways at once, and either end ends it.
func TestScreen(t *testing.T) {
	n := shown{ends: make(chan net.Conn, 1)}
	h := newHandler(t, n)
	s := clientOf(t, h, "node1")
	of := hypervisor.Thing{UUID: "u", Name: "one"}
	look := func(ctx context.Context) (io.ReadWriteCloser, net.Conn) {
		t.Helper()
		mine, err := s.OpenScreen(ctx, of)
		if err != nil {
			t.Fatal(err)
		}
		its := <-n.ends
		if err := its.SetDeadline(time.Now().Add(testkit.Patience())); err != nil {
			t.Fatal(err)
		}
		return mine, its
	}
	mine, its := look(t.Context())
	const much = 4 << 20
	go func() { _, _ = io.CopyN(its, its, much) }()
	go func() { _, _ = io.CopyN(mine, endless("RFB 003.008"), much) }()
	if got, err := io.Copy(io.Discard, io.LimitReader(mine, much)); err != nil || got != much {
		t.Fatalf("%d bytes came back: %v", got, err)
	}
	if err := mine.Close(); err != nil {
		t.Error(err)
	}
	if _, err := its.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the end of who looks: %v", err)
	}

	mine, its = look(t.Context())
	_ = its.Close()
	if _, err := mine.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the end of the machine: %v", err)
	}
	_ = mine.Close()

	ctx, end := context.WithCancel(t.Context())
	mine, its = look(ctx)
	end()
	if _, err := its.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("who looks no longer: %v", err)
	}
	_ = mine.Close()

	asked := time.Now()
	if _, err := s.OpenScreen(t.Context(), hypervisor.Thing{Name: "two"}); !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "two") {
		t.Errorf("one without a screen: %v", err)
	}
	if took := time.Since(asked); took > Looking/2 { // the stream's end is waited for
		t.Errorf("it was refused after %v", took)
	}
	if _, err := clientOf(t, h, "node2").OpenScreen(t.Context(), of); !fault.Is(err, fault.Denied) {
		t.Errorf("another node: %v", err)
	}
	for _, bad := range []string{"", "{}", "{}\n", "\n", strings.Repeat("x", 2*maxScreenRequest), `{"node":"node1","args":[]}` + "\n", `{"node":"node1","args":{"x":1}}` + "\n"} {
		conn, err := s.conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://agent"+pathScreen, bufio.NewReader(strings.NewReader(bad)))
		if err != nil {
			t.Fatal(err)
		}
		res, err := conn.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := refused("node1", res); res.StatusCode < 400 || !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.TooLarge) && !fault.Is(err, fault.Denied) {
			t.Errorf("%.20q is answered with %d, %v", bad, res.StatusCode, err)
		}
		_ = res.Body.Close()
	}
}

// mum is an agent that answers nothing.
type mum struct{}

func (mum) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestNoScreen is about agents that show none.
func TestNoScreen(t *testing.T) {
	over := func(conn http.RoundTripper, err error) *Client {
		return NewClient("node1", func(context.Context) (http.RoundTripper, error) { return conn, err }, 20*time.Millisecond)
	}
	for what, c := range map[string]struct {
		client *Client
		code   fault.Code
		text   string
	}{
		"of before": {over(old{}, nil), fault.Unsupported, "knows nothing of screens"},
		"silent":    {over(mum{}, nil), fault.Unavailable, "node1"},
		"away":      {over(nil, errors.New("it is away")), fault.Environment, "it is away"},
	} {
		if _, err := c.client.OpenScreen(t.Context(), nodetest.One); !fault.Is(err, c.code) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("an agent that is %s: %v", what, err)
		}
	}
}
