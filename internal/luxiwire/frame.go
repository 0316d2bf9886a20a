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

// Whole reports whether all of the next message has come, without waiting.
func (f *FrameReader) Whole() bool {
	there, _ := f.r.Peek(f.r.Buffered()) // never fails
	return bytes.IndexByte(there, Terminator) >= 0
}

// pieces are a message as far as it has come. What is there stays where it is: a
// message that grew in one piece would leave four times its size behind.
type pieces struct {
	full [][]byte
	last []byte
	size int // of all of them
}

// maxPiece is the greatest size of a piece; the first ones are smaller.
const maxPiece = 1 << 20

// add adds a part of a message; what it takes is paid for before.
func (f *FrameReader) add(p *pieces, part []byte) error {
	for len(part) > 0 {
		if len(p.last) == cap(p.last) {
			size := max(len(part), min(p.size, maxPiece))
			if err := f.pay(p.size + size); err != nil {
				return err
			}
			if p.last != nil {
				p.full = append(p.full, p.last)
			}
			p.last = make([]byte, 0, size)
		}
		n := min(len(part), cap(p.last)-len(p.last))
		p.last = append(p.last, part[:n]...)
		p.size += n
		part = part[n:]
	}
	return nil
}

// whole returns a message in one piece.
func (f *FrameReader) whole(p *pieces) ([]byte, error) {
	if len(p.full) == 0 {
		return p.last, nil
	}
	if p.size > FreeFrame {
		if err := f.pay(2 * p.size); err != nil {
			return nil, err
		}
	}
	out := make([]byte, 0, p.size)
	for _, piece := range p.full {
		out = append(out, piece...)
	}
	out = append(out, p.last...)
	if more := f.charged - int64(p.size); more > 0 && p.size > FreeFrame { // the pieces are gone
		f.memory.Give(more)
		f.charged -= more
	}
	return out, nil
}

// pay makes sure that so many bytes are paid for.
func (f *FrameReader) pay(bytes int) error {
	more := int64(bytes) - f.charged
	if f.memory == nil || bytes <= FreeFrame || more <= 0 {
		return nil
	}
	if err := f.memory.Take(more); err != nil {
		return err
	}
	f.charged += more
	return nil
}

// Next returns the next message without its terminator, in a buffer of the
// caller's own. It returns io.EOF when the stream ends between two messages,
// io.ErrUnexpectedEOF when it ends inside one, and an error with the code
// fault.TooLarge when a message exceeds the limit; after the last the stream
// is not usable any more, since the rest of the message is still on it. With
// the code fault.Busy there is no memory for it at the moment (Charge).
func (f *FrameReader) Next() ([]byte, error) {
	var frame pieces
	for {
		part, err := f.r.ReadSlice(Terminator)
		if frame.size+len(part) > f.limit+1 || (err != nil && frame.size+len(part) > f.limit) {
			return nil, fault.New(fault.TooLarge, "the message is longer than the limit of %d bytes", f.limit)
		}
		if full := f.add(&frame, part); full != nil {
			return nil, full
		}
		switch {
		case err == nil:
			message, full := f.whole(&frame)
			if full != nil {
				return nil, full
			}
			return message[:len(message)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && frame.size > 0:
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
