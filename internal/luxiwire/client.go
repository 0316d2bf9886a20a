package luxiwire

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/backoff"
	"github.com/drover-project/drover/internal/fault"
)

// maxAnswer is the greatest answer a client reads, in bytes: a listing may be
// far longer than any request.
const maxAnswer = 1 << 30

// Client sends requests to a server, one after the other, over one connection
// that is opened when it is first needed and again when it was lost between
// two requests. Each answer shows at least what the requests before it changed
// (Request.Revision). It may be used from several goroutines.
type Client struct {
	// Stale takes answers of the controller that is asked, also if it follows the
	// one that leads: they are not older than what was told to this client before.
	// It is to be set before the first call.
	Stale bool

	path string

	mu     sync.Mutex
	conn   net.Conn
	frames *FrameReader
	last   time.Time // when the connection was last known to be good
	// revision is the newest that an answer named: no later answer is to be older.
	revision int64
}

// Dial connects to the socket at the path. The error has the code
// fault.Unavailable when nobody answers there, and fault.Denied when the user
// may not open it.
func Dial(ctx context.Context, path string) (*Client, error) {
	c := &Client{path: path}
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// On returns a client on a connection that is open. When that breaks no other is made.
func On(conn net.Conn) *Client {
	c := &Client{}
	c.use(conn)
	return c
}

func (c *Client) use(conn net.Conn) {
	c.conn, c.frames, c.last = conn, NewFrameReader(conn, maxAnswer), time.Now()
}

// Close closes the connection.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.drop()
}

// Revision is the newest that an answer named, 0 before one did: what was read is not
// older than that.
func (c *Client) Revision() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revision
}

// Call sends one request and reads its answer into result, which may be nil.
// The arguments are encoded as a list, also when there are none. An error of
// the server carries its code, and an *Error or *ProtocolError as its cause.
//
// When the connection breaks after the request was sent, nobody knows whether
// it was carried out: the error then has the code fault.Unavailable, and the
// request is not sent again.
func (c *Client) Call(ctx context.Context, method string, args []any, result any) error {
	if args == nil {
		args = []any{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	frame, err := encode(struct {
		Method   string `json:"method"`
		Args     []any  `json:"args"`
		Revision int64  `json:"revision"`
		Stale    bool   `json:"stale,omitempty"`
	}{method, args, c.revision, c.Stale})
	if err != nil {
		return fault.New(fault.Invalid, "cannot encode the arguments of %s: %w", method, err)
	}
	if err := c.ready(ctx); err != nil {
		if ctx.Err() != nil {
			return lost(ctx, method, err)
		}
		return err
	}
	answer, err := c.exchange(ctx, frame)
	if err != nil || ctx.Err() != nil { // the end of the context spoils the deadlines
		_ = c.drop() // the connection is of no more use
	}
	if err != nil {
		return lost(ctx, method, err)
	}
	return c.take(method, answer, result)
}

// Resend is Call for requests that may safely be carried out twice: questions,
// and submissions with a key. When the connection is lost it connects again
// and repeats the request, until the context ends, which is fault.Canceled, or
// the server has not come back after the given number of tries.
func (c *Client) Resend(ctx context.Context, tries int, method string, args []any, result any) error {
	pauses := backoff.Pauses{First: 100 * time.Millisecond, Longest: 5 * time.Second}
	for tried := 1; ; tried++ {
		err := c.Call(ctx, method, args, result)
		if !fault.Is(err, fault.Unavailable) || tried >= tries {
			return err
		}
		select {
		case <-ctx.Done():
			return lost(ctx, method, err)
		case <-time.After(pauses.After(tried)):
		}
	}
}

// ready makes sure that there is a connection. One that was idle for so long
// that the server may be closing it is replaced, as is one that the server has
// closed.
func (c *Client) ready(ctx context.Context) error {
	if c.conn != nil && (time.Since(c.last) > IdleTimeout/2 || !stillOpen(c.conn)) {
		_ = c.drop() // nothing is lost with an idle connection
	}
	if c.conn != nil {
		return nil
	}
	return c.connect(ctx)
}

// stillOpen looks, without waiting, whether the peer has closed an idle
// connection.
func stillOpen(conn net.Conn) bool {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	open := true
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		open = n > 0 || errors.Is(err, syscall.EAGAIN)
		return true
	})
	return err == nil && open
}

func (c *Client) connect(ctx context.Context) error {
	if c.path == "" {
		return fault.New(fault.Unavailable, "the connection is broken")
	}
	dialer := net.Dialer{Timeout: ConnectTimeout}
	conn, err := dialer.DialContext(ctx, "unix", c.path)
	if err != nil {
		return connectFault(c.path, err)
	}
	c.use(conn)
	return nil
}

func connectFault(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.New(fault.Unavailable, "there is no socket at %s: %w", path, err).WithHint("is the controller running?")
	case errors.Is(err, fs.ErrPermission):
		return fault.New(fault.Denied, "no right to open the socket %s: %w", path, err)
	default:
		return fault.New(fault.Unavailable, "nobody answers at %s: %w", path, err).WithHint("is the controller running?")
	}
}

func (c *Client) drop() error {
	if c.conn == nil {
		return nil
	}
	err := c.conn.Close()
	c.conn, c.frames = nil, nil
	return err
}

// exchange writes a request and reads the answer. The end of the context
// interrupts both.
func (c *Client) exchange(ctx context.Context, frame []byte) ([]byte, error) {
	conn := c.conn
	if err := conn.SetDeadline(time.Now().Add(SendTimeout)); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := WriteFrame(conn, frame); err != nil {
		// A server that refuses an over-long request stops reading and says why.
		if answer, readErr := c.frames.Next(); readErr == nil {
			return answer, nil
		}
		return nil, err
	}
	if err := conn.SetReadDeadline(time.Now().Add(IdleTimeout)); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return c.frames.Next()
}

func lost(ctx context.Context, method string, err error) error {
	switch {
	case ctx.Err() != nil:
		return fault.New(fault.Canceled, "%s was interrupted: %w", method, ctx.Err())
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fault.New(fault.Unavailable, "the controller did not answer %s within %s: %w", method, IdleTimeout, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fault.New(fault.Unavailable, "the controller closed the connection before it answered %s: %w", method, err)
	default:
		return fault.New(fault.Unavailable, "the connection was lost during %s: %w", method, err)
	}
}

// take reads an answer. After a plain string, and after an answer of an
// unknown form, the connection is of no use any more.
func (c *Client) take(method string, answer []byte, result any) error {
	var resp Response
	if err := json.Unmarshal(answer, &resp); err != nil || resp.Result == nil {
		_ = c.drop() // the stream is out of step
		return fault.New(fault.Internal, "the answer to %s is not of the protocol: %.200s", method, answer)
	}
	c.last = time.Now()
	c.revision = max(c.revision, resp.Revision)
	if !resp.Success {
		err := resp.asError()
		if _, protocol := errors.AsType[*ProtocolError](err); protocol {
			_ = c.drop() // the server closes it as well
		}
		return err
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(resp.Result, result); err != nil {
		return fault.New(fault.Internal, "the answer to %s has an unexpected form: %w", method, err)
	}
	return nil
}
