package luxiwire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
)

// Terminator ends each message on the stream.
const Terminator = 0x03

// The lengths of requests in bytes, without their terminator.
const (
	// MaxFrame is the greatest: some 50,000 small jobs.
	MaxFrame = 16 << 20
	// FreeFrame is up to which a request does not count as memory in flight.
	FreeFrame = 64 << 10
)

// Time limits of the protocol, as its clients expect them.
const (
	// IdleTimeout is how long the server waits for a complete request, and a
	// client for a complete answer.
	IdleTimeout = 180 * time.Second
	// SendTimeout is how long either side tries to write one message.
	SendTimeout = 180 * time.Second
	// ConnectTimeout is how long a client waits for a connection.
	ConnectTimeout = 30 * time.Second
	// FrameTimeout is how long a request may take from its first byte to its last.
	FrameTimeout = 60 * time.Second
	// MaxWait caps the timeout that a client gives to WaitForJobChange. It is
	// under half of IdleTimeout, so that the answer always comes in time.
	MaxWait = 89 * time.Second
)

// FrameReader reads messages from a stream.
type FrameReader struct {
	r     *bufio.Reader
	limit int
	// memory is what long messages pay from, charged what this one paid.
	memory  *intake.Budget
	charged int64
}

// NewFrameReader returns a reader of messages of at most limit bytes each.
func NewFrameReader(r io.Reader, limit int) *FrameReader {
	return &FrameReader{r: bufio.NewReaderSize(r, 16<<10), limit: limit}
}

// Charge makes messages of more than FreeFrame bytes take their memory from a
// budget that several readers share, until Release.
func (f *FrameReader) Charge(memory *intake.Budget) { f.memory = memory }

// Release gives back the memory of the last message, which is not used any more.
func (f *FrameReader) Release() {
	if f.charged > 0 {
		f.memory.Give(f.charged)
		f.charged = 0
	}
}

// Begun waits until there is a first byte of the next message.
func (f *FrameReader) Begun() error {
	_, err := f.r.Peek(1)
	return err
}

// grow makes room in a message for a part. It grows in steps, so that what is
// paid for is what is taken.
func (f *FrameReader) grow(frame, part []byte) ([]byte, error) {
	if len(frame)+len(part) <= cap(frame) {
		return append(frame, part...), nil
	}
	size := max(len(frame)+len(part), min(2*cap(frame), cap(frame)+f.limit/8))
	if f.memory != nil && size > FreeFrame {
		more := int64(size) - f.charged
		if err := f.memory.Take(more); err != nil {
			return nil, err
		}
		f.charged += more
	}
	grown := make([]byte, len(frame), size)
	copy(grown, frame)
	return append(grown, part...), nil
}

// Next returns the next message without its terminator, in a buffer of the
// caller's own. It returns io.EOF when the stream ends between two messages,
// io.ErrUnexpectedEOF when it ends inside one, and an error with the code
// fault.TooLarge when a message exceeds the limit; after the last the stream
// is not usable any more, since the rest of the message is still on it. With
// the code fault.Busy there is no memory for it at the moment (Charge).
func (f *FrameReader) Next() ([]byte, error) {
	var frame []byte
	for {
		part, err := f.r.ReadSlice(Terminator)
		if len(frame)+len(part) > f.limit+1 || (err != nil && len(frame)+len(part) > f.limit) {
			return nil, fault.New(fault.TooLarge, "the message is longer than the limit of %d bytes", f.limit)
		}
		grown, full := f.grow(frame, part)
		if full != nil {
			return nil, full
		}
		frame = grown
		switch {
		case err == nil:
			return frame[:len(frame)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(frame) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}

// WriteFrame writes one message and its terminator. It refuses a message that
// holds the terminator, which no JSON encoder produces.
func WriteFrame(w io.Writer, message []byte) error {
	if i := bytes.IndexByte(message, Terminator); i >= 0 {
		return fault.New(fault.Internal, "the message holds the byte 0x03 at position %d", i)
	}
	buffer := make([]byte, 0, len(message)+1)
	buffer = append(append(buffer, message...), Terminator)
	_, err := w.Write(buffer)
	return err
}
