package luxiwire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// Terminator ends each message on the stream.
const Terminator = 0x03

// MaxFrame is the greatest length of one message in bytes, without its
// terminator: 64 MiB. It leaves room for a submission of some 200,000 small
// jobs or a listing of 10,000 instances with all their fields; the limit only
// keeps a broken or hostile peer from filling the memory.
const MaxFrame = 64 << 20

// Time limits of the protocol, as its clients expect them.
const (
	// IdleTimeout is how long the server waits for a complete request, and a
	// client for a complete answer.
	IdleTimeout = 180 * time.Second
	// SendTimeout is how long either side tries to write one message.
	SendTimeout = 180 * time.Second
	// ConnectTimeout is how long a client waits for a connection.
	ConnectTimeout = 30 * time.Second
	// MaxWait caps the timeout that a client gives to WaitForJobChange. It is
	// under half of IdleTimeout, so that the answer always comes in time.
	MaxWait = 89 * time.Second
)

// FrameReader reads messages from a stream.
type FrameReader struct {
	r     *bufio.Reader
	limit int
}

// NewFrameReader returns a reader of messages of at most limit bytes each.
func NewFrameReader(r io.Reader, limit int) *FrameReader {
	return &FrameReader{r: bufio.NewReaderSize(r, 16<<10), limit: limit}
}

// Next returns the next message without its terminator, in a buffer of the
// caller's own. It returns io.EOF when the stream ends between two messages,
// io.ErrUnexpectedEOF when it ends inside one, and an error with the code
// fault.TooLarge when a message exceeds the limit; after the last the stream
// is not usable any more, since the rest of the message is still on it.
func (f *FrameReader) Next() ([]byte, error) {
	var frame []byte
	for {
		part, err := f.r.ReadSlice(Terminator)
		if len(frame)+len(part) > f.limit+1 || (err != nil && len(frame)+len(part) > f.limit) {
			return nil, fault.New(fault.TooLarge, "the message is longer than the limit of %d bytes", f.limit)
		}
		frame = append(frame, part...)
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
