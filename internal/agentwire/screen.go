package agentwire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// The screen of an instance is no call with an answer: behind the line with the request come the bytes of who looks, for as long as that does, and the
// answer are the bytes of the screen. Either end ends it.

// maxScreenRequest is the size of the request's line.
const maxScreenRequest = 4 << 10

// screen serves somebody who looks at a screen; its error is why that was not begun.
func (h *Handler) screen(w http.ResponseWriter, hr *http.Request) error {
	in := bufio.NewReaderSize(hr.Body, maxScreenRequest)
	line, err := in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return fault.New(fault.TooLarge, "the request has more than %d bytes", maxScreenRequest)
	}
	var r request
	var of aThing
	if err == nil {
		err = read(line, &r)
	}
	if err == nil {
		err = read(r.Args, &of)
	}
	if err != nil {
		return fault.New(fault.Invalid, "the request cannot be read: %w", err)
	}
	if err := h.meant(&r); err != nil {
		return err
	}
	s, err := h.calls.node.OpenScreen(hr.Context(), of.Thing)
	if err != nil {
		return err
	}
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(s, in)
		_ = s.Close()
	})
	out := newStream(w)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.WriteHeader(http.StatusOK)
	out.flush()
	_, _ = io.Copy(flushing{out}, s)
	_ = s.Close()
	_ = hr.Body.Close()
	both.Wait()
	return nil
}

// flushing writes what comes at once.
type flushing struct{ *stream }

// Write implements io.Writer.
func (f flushing) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	f.flush()
	return n, err
}

// screen is the stream of somebody who looks.
type screen struct {
	from io.ReadCloser
	to   *io.PipeWriter
	end  context.CancelFunc
}

// Read implements io.Reader.
func (s *screen) Read(p []byte) (int, error) { return s.from.Read(p) }

// Write implements io.Writer.
func (s *screen) Write(p []byte) (int, error) { return s.to.Write(p) }

// Close implements io.Closer.
func (s *screen) Close() error {
	s.end()
	return s.close()
}

func (s *screen) close() error { return errors.Join(s.to.Close(), s.from.Close()) }

// OpenScreen connects to the screen of an instance, until ctx ends.
func (c *Client) OpenScreen(ctx context.Context, of hypervisor.Thing) (io.ReadWriteCloser, error) {
	args, err := json.Marshal(aThing{of}) //nolint:musttag // as it is in all calls
	if err != nil {
		return nil, fault.New(fault.Invalid, "node %s cannot be asked: %w", c.node, err)
	}
	line, err := json.Marshal(request{Node: c.node, Args: args})
	if err != nil {
		return nil, fault.New(fault.Internal, "the request cannot be written: %w", err)
	}
	ctx, end := context.WithCancel(ctx)
	late := time.AfterFunc(min(c.away, Looking), end)
	s, err := c.openScreen(ctx, append(line, '\n'))
	if err == nil && late.Stop() {
		s.end = end
		context.AfterFunc(ctx, func() { _ = s.close() }) // HTTP/2 looks at the end of a context only when a body moves
		return s, nil
	}
	end()
	if err == nil {
		err = errors.Join(fault.New(fault.Unavailable, "node %s does not show the screen in time", c.node), s.close())
	}
	return nil, c.newer(err, "screens")
}

func (c *Client) openScreen(ctx context.Context, line []byte) (*screen, error) {
	conn, err := c.conn(ctx)
	if err != nil {
		return nil, fault.New(fault.Environment, "node %s cannot be asked: %w", c.node, err).WithHint("see whether its agent runs and reaches the controller")
	}
	keys, to := io.Pipe()
	body := struct {
		io.Reader
		io.Closer // without it the transport would wait for keys for ever where the agent refuses, in a stream that others then lack
	}{io.MultiReader(bytes.NewReader(line), keys), keys}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://agent"+pathScreen, body)
	if err != nil {
		return nil, fault.New(fault.Internal, "the request cannot be made: %w", err)
	}
	res, err := conn.RoundTrip(r)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "node %s does not show the screen: %w", c.node, err)
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close() //nolint:errcheck // why it refuses was read
		return nil, refused(c.node, res)
	}
	return &screen{from: res.Body, to: to}, nil
}
