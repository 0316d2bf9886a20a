// Package qmp talks to a running QEMU in its machine protocol: one JSON object a line, commands that are answered by id, and events
// between them (docs/interop/qmp-spec of QEMU).
//
// Invariants:
//   - Commands may be under way at the same time; each gets its own answer, whatever events come between (TestAnswersFindTheirCommands).
//   - Who waits is told when QEMU goes (TestAllAreToldWhenQEMUGoes).
//   - A QEMU that sends without end, or no JSON, ends the connection and takes no more memory than MaxLine (TestLinesHaveAnEnd).
package qmp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// MaxLine is how long a line of QEMU may be, in bytes. The longest answer, that about its own schema, has 200 KB.
const MaxLine = 4 << 20

// Event is something that QEMU tells unasked.
type Event struct {
	// Name is the event's, in upper case: "SHUTDOWN", "STOP".
	Name string
	Data json.RawMessage
	// At is the time that QEMU gives.
	At time.Time
}

// Client is one connection to the monitor of a QEMU, which serves one client at a time. It is safe for concurrent use.
type Client struct {
	conn    net.Conn
	events  func(Event)
	version string

	writing sync.Mutex // a command is one write

	mu      sync.Mutex
	last    uint64
	waiting map[string]chan answer
	err     error // why there are no more answers
	done    chan struct{}
}

type answer struct {
	value json.RawMessage
	err   error
}

// message is every line that QEMU sends.
type message struct {
	Greeting *struct {
		Version struct {
			QEMU struct {
				Major int `json:"major"`
				Minor int `json:"minor"`
				Micro int `json:"micro"`
			} `json:"qemu"`
		} `json:"version"`
	} `json:"QMP"`
	ID     string          `json:"id"`
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Class string `json:"class"`
		Desc  string `json:"desc"`
	} `json:"error"`
	Event     string          `json:"event"`
	Data      json.RawMessage `json:"data"`
	Timestamp struct {
		Seconds      int64 `json:"seconds"`
		Microseconds int64 `json:"microseconds"`
	} `json:"timestamp"`
}

// Open waits for the greeting on a connection, which is the client's from now on, and opens the session. Events are told one after the
// other, in the order in which they come; who is told must not wait for an answer. Unavailable when ctx ends before, or QEMU does.
func Open(ctx context.Context, conn net.Conn, events func(Event)) (*Client, error) {
	c := &Client{conn: conn, events: events, waiting: map[string]chan answer{}, done: make(chan struct{})}
	greeted := make(chan struct{})
	go c.read(greeted)
	select {
	case <-greeted:
	case <-c.done:
		return nil, c.err
	case <-ctx.Done():
		c.end(fault.New(fault.Unavailable, "QEMU did not greet in time: %w", context.Cause(ctx)))
		return nil, c.err
	}
	if err := c.Do(ctx, "qmp_capabilities", nil, nil); err != nil {
		c.end(err)
		return nil, err
	}
	return c, nil
}

// Version is the QEMU's own, as "7.2.22".
func (c *Client) Version() string { return c.version }

// Done is closed when there will be no more answers: QEMU has gone, or the client was closed.
func (c *Client) Done() <-chan struct{} { return c.done }

// Close ends the connection and nothing else: the machine runs on.
func (c *Client) Close() error {
	c.end(fault.New(fault.Unavailable, "the connection to QEMU was closed"))
	return nil
}

// Do has a command carried out: arguments is what becomes a JSON object, nil for none, and the answer is read into out unless that is nil.
// What QEMU refuses is Failed, or NotFound where it knows no such device. Unavailable when ctx ends first, and
// then the command may still be carried out, or when QEMU goes.
func (c *Client) Do(ctx context.Context, command string, arguments, out any) error {
	return c.DoWith(ctx, nil, command, arguments, out)
}

// DoWith is Do for a command that QEMU is handed an open file with: add-fd, getfd. The file stays the caller's. It takes a connection over a
// Unix socket.
func (c *Client) DoWith(ctx context.Context, file *os.File, command string, arguments, out any) error {
	if err := ctx.Err(); err != nil { // nothing is sent
		return fault.New(fault.Unavailable, "QEMU was not asked to %s: %w", command, err)
	}
	id, answered, err := c.expect()
	if err != nil {
		return err
	}
	defer c.forget(id)
	line, err := json.Marshal(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
		ID        string `json:"id"`
	}{command, arguments, id})
	if err != nil {
		return fault.New(fault.Internal, "cannot write the command %s: %w", command, err)
	}
	c.writing.Lock()
	err = c.send(append(line, '\n'), file)
	c.writing.Unlock()
	if err != nil {
		c.end(fault.New(fault.Unavailable, "QEMU takes no command: %w", err))
	}
	select {
	case a := <-answered:
		return a.into(command, out)
	case <-c.done:
		select {
		case a := <-answered: // the last thing that it said
			return a.into(command, out)
		default:
			return c.err
		}
	case <-ctx.Done():
		return fault.New(fault.Unavailable, "QEMU did not answer %s in time: %w", command, context.Cause(ctx))
	}
}

// send writes a line, with an open file beside it unless that is nil.
func (c *Client) send(line []byte, file *os.File) error {
	if file == nil {
		_, err := c.conn.Write(line)
		return err
	}
	conn, is := c.conn.(*net.UnixConn)
	if !is {
		return errors.New("files are handed over a Unix socket only")
	}
	n, _, err := conn.WriteMsgUnix(line, syscall.UnixRights(int(file.Fd())), nil)
	if err == nil && n < len(line) { // the file has gone with the first part
		_, err = conn.Write(line[n:])
	}
	return err
}

func (a answer) into(command string, out any) error {
	if a.err != nil || out == nil {
		return a.err
	}
	if err := json.Unmarshal(a.value, out); err != nil {
		return fault.New(fault.Failed, "QEMU answers %s with what cannot be read: %w", command, err)
	}
	return nil
}

func (c *Client) expect() (string, <-chan answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return "", nil, c.err
	}
	c.last++
	id, answered := strconv.FormatUint(c.last, 10), make(chan answer, 1)
	c.waiting[id] = answered
	return id, answered, nil
}

func (c *Client) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

// end ends the session; the first reason counts.
func (c *Client) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	_ = c.conn.Close()
	close(c.done)
}

// read takes what QEMU sends until it goes.
func (c *Client) read(greeted chan<- struct{}) {
	in := bufio.NewReaderSize(c.conn, 16<<10)
	for {
		line, err := readLine(in)
		if err != nil {
			c.end(fault.New(fault.Unavailable, "QEMU has gone: %w", err))
			return
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			c.end(fault.New(fault.Unavailable, "QEMU does not speak its protocol: %w", err))
			return
		}
		switch {
		case m.Greeting != nil:
			if greeted != nil {
				v := m.Greeting.Version.QEMU
				c.version = fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Micro)
				close(greeted)
				greeted = nil
			}
		case m.Event != "":
			c.events(Event{Name: m.Event, Data: m.Data, At: time.Unix(m.Timestamp.Seconds, m.Timestamp.Microseconds*1000)})
		default:
			c.answer(&m)
		}
	}
}

func (c *Client) answer(m *message) {
	a := answer{value: m.Return}
	if m.Error != nil {
		code := fault.Failed
		if m.Error.Class == "DeviceNotFound" {
			code = fault.NotFound
		}
		a.err = fault.New(code, "QEMU: %s", m.Error.Desc)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if answered := c.waiting[m.ID]; answered != nil {
		delete(c.waiting, m.ID)
		answered <- a
	}
}

// readLine reads up to the end of a line of at most MaxLine bytes.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > MaxLine:
			return nil, fmt.Errorf("a line of more than %d bytes", MaxLine)
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}
