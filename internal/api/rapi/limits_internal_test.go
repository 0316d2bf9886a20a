package rapi

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/testkit"
)

func TestOpenResourcesTakeNoBody(t *testing.T) {
	for _, r := range resources {
		for method, h := range r.methods {
			if h.needs == rights.None && h.body != 0 {
				t.Errorf("%s %s takes a body from anybody", method, r.path)
			}
			if h.needs == 0 {
				t.Errorf("%s %s says not what is needed of who asks: it is for nobody", method, r.path)
			}
			if h.body > queryBody {
				t.Errorf("%s %s takes a body of %d bytes", method, r.path, h.body)
			}
		}
	}
}

func TestBodiesShareTheirMemory(t *testing.T) {
	memory := intake.NewBudget(100 << 10)
	receive := func(length int64, size int) (*request, error) {
		r := &request{Request: httptest.NewRequest(http.MethodPut, "/", strings.NewReader(strings.Repeat("x", size)))}
		r.ContentLength = length
		raw, err := r.receive(80<<10, memory)
		if err == nil && len(raw) != size {
			t.Errorf("%d bytes became %d", size, len(raw))
		}
		return r, err
	}
	first, err := receive(60<<10, 60<<10)
	if err != nil || first.charged != 60<<10 {
		t.Fatalf("%d, %v", first.charged, err)
	}
	if _, err := receive(60<<10, 60<<10); asHTTP(err).status != http.StatusServiceUnavailable {
		t.Errorf("more than there is memory for: %v", err)
	}
	if _, err := receive(-1, 20<<10); asHTTP(err).status != http.StatusServiceUnavailable {
		t.Errorf("a body whose length is not known: %v", err)
	}
	if r, err := receive(freeBody, freeBody); err != nil || r.charged != 0 {
		t.Errorf("a small body: %d, %v", r.charged, err)
	}
	if _, err := receive(80<<10+1, 80<<10+1); asHTTP(err).status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: %v", err)
	}
	memory.Give(first.charged)
	if r, err := receive(-1, 20<<10); err != nil || r.charged != 80<<10 {
		t.Errorf("afterwards: %d, %v", r.charged, err)
	}
}

// bare is a server of the given routes, without a controller behind it.
func bare(t *testing.T, routes ...route) *Server {
	t.Helper()
	s := New(Config{Users: OpenUsers(filepath.Join(t.TempDir(), "users"), slog.New(slog.DiscardHandler)), Now: time.Now,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	s.routes = newRouter(routes)
	return s
}

// endless is a stream that a panic ends, if it is told to.
func endless(panics bool) iter.Seq2[*live.Update, error] {
	return func(yield func(*live.Update, error) bool) {
		u := &live.Update{Reset: true, Fields: nil}
		for yield(u, nil) {
			if panics {
				panic("a fault of ours")
			}
		}
	}
}

func TestPanicInTheMiddleOfAnAnswerEndsTheConnection(t *testing.T) {
	s := bare(t,
		route{"/late", methods{get: {needs: rights.None, serve: func(*request) (any, error) { return eventStream{updates: endless(true)}, nil }}}},
		route{"/early", methods{get: {needs: rights.None, serve: func(*request) (any, error) { panic("a fault of ours") }}}})
	server := httptest.NewServer(s)
	defer server.Close()
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	get := func(path string) (int, string, error) {
		resp, err := server.Client().Get(server.URL + path)
		if err != nil {
			return 0, "", err
		}
		text, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text), errors.Join(err, resp.Body.Close())
	}
	if status, text, err := get("/late"); !errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(text, "internal error") {
		t.Errorf("%d %q, %v; want the connection to break off", status, text, err)
	}
	if status, text, err := get("/early"); err != nil || status != http.StatusInternalServerError {
		t.Errorf("%d %q, %v", status, text, err)
	}
}

// TestPartOfTheLeadersAnswerIsNotFollowed: when the leader is lost while it answers, the
// connection ends, and no error is written after what came.
func TestPartOfTheLeadersAnswerIsNotFollowed(t *testing.T) {
	s := bare(t, route{"/half", methods{get: {}}})
	s.config.Leader = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("half"))
		panic(http.ErrAbortHandler) // as the proxy does
	})
	s.config.Querier = &live.Querier{Picture: picture.New()}
	s.config.Current = func(int64) bool { return false }
	var log bytes.Buffer
	s.config.Log = slog.New(slog.NewTextHandler(&log, nil))
	got := httptest.NewRecorder()
	defer func() {
		if p := recover(); p != http.ErrAbortHandler { //nolint:errorlint // a value that was thrown
			t.Errorf("it ended with %v", p)
		}
		if got.Body.String() != "half" || log.Len() > 0 {
			t.Errorf("answered %q, logged %q", got.Body, log.String())
		}
	}()
	s.ServeHTTP(got, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/half", http.NoBody))
}

func TestStreamThatNobodyReadsIsEnded(t *testing.T) {
	ended := make(chan struct{})
	s := bare(t, route{"/events", methods{get: {needs: rights.None, serve: func(*request) (any, error) {
		return eventStream{updates: func(yield func(*live.Update, error) bool) {
			defer close(ended)
			endless(false)(yield)
		}}, nil
	}}}})
	s.eventTime = 50 * time.Millisecond
	server := httptest.NewServer(s)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "GET /events HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(testkit.Patience()):
		t.Error("the stream goes on for a client that does not read")
	}
}

func TestWrongCredentialsAreLoggedWithoutThePassword(t *testing.T) {
	var log strings.Builder
	s := bare(t)
	s.config.Log = slog.New(slog.NewTextHandler(&log, nil))
	for range intake.FreeTries {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.SetBasicAuth("mallory", "guess-17")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != http.StatusUnauthorized {
			t.Errorf("%d", w.Code)
		}
	}
	if text := log.String(); strings.Count(text, "mallory") != intake.FreeTries || strings.Contains(text, "guess") || !strings.Contains(text, "192.0.2.1") {
		t.Errorf("logged: %s", text)
	}
}

// gated is a server behind a gate of so many places, with TLS.
func gated(t *testing.T, total int) (address string) {
	t.Helper()
	cert, err := OpenCertificate(filepath.Join(t.TempDir(), "rapi.pem"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s := bare(t, route{"/", methods{get: constant("hello")}})
	limits := gate.RAPI
	limits.Most = total
	l, err := gate.New(limits, gate.Files(), s.config.Log).Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l, cert) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Log(err) // clients that hold it up are ended
		}
	})
	return l.Addr().String()
}

// connect opens a connection from one of this machine's own addresses and sends
// a request; it returns the status, 0 if there was no answer.
func connect(t *testing.T, from, to string) (conn net.Conn, status int) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := tls.DialWithDialer(&dialer, "tcp", to, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return conn, 0
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return conn, 0
	}
	text, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != http.StatusOK && !strings.Contains(string(text), "connections") {
		t.Errorf("%s %q, %v", resp.Status, text, err)
	}
	return conn, resp.StatusCode
}

func TestClientsAreToldThatThereAreTooMany(t *testing.T) {
	address := gated(t, 4)
	for i, want := range []int{http.StatusOK, http.StatusOK, http.StatusServiceUnavailable} { // half of all is for one address
		if _, got := connect(t, "127.0.0.1", address); got != want {
			t.Errorf("connection %d: %d, want %d", i, got, want)
		}
	}
}

func TestOldCiphersAreRefused(t *testing.T) {
	address := gated(t, 4)
	for suite, want := range map[uint16]bool{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA: false, tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA: false,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: true,
	} {
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite}})
		if (err == nil) != want {
			t.Errorf("%s: %v", tls.CipherSuiteName(suite), err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
}
