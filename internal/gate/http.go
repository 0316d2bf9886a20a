package gate

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// maxHeader is the greatest size of a request's line and header, in bytes.
const maxHeader = 64 << 10

// Server returns a server of HTTP that keeps the times of the surface.
func (s Surface) Server(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, MaxHeaderBytes: maxHeader, ReadHeaderTimeout: s.Header, ReadTimeout: s.Body, WriteTimeout: s.Answer, IdleTimeout: s.Idle,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// refusalTime is how long a client may take to hear that it is not let in.
const refusalTime = 2 * time.Second

// RefusalHTTP answers the first request of a connection with 503 and a body that
// says why. Without a configuration of TLS that is in plain text.
func RefusalHTTP(config *tls.Config, contentType string, body func(why string) []byte) func(net.Conn, string) {
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
		text := body(why)
		answer := http.Response{StatusCode: http.StatusServiceUnavailable, ProtoMajor: 1, ProtoMinor: 1, Close: true,
			Header:        http.Header{"Content-Type": {contentType}, "Retry-After": {"10"}},
			ContentLength: int64(len(text)), Body: io.NopCloser(bytes.NewReader(text))}
		_ = answer.Write(secured) // who does not read it finds the connection closed
		if half, ok := secured.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite() // what was sent arrives before the end
		}
	}
}
