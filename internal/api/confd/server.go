package confd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/drover-project/drover/internal/backoff"
	"github.com/drover-project/drover/internal/cluster"
)

// Server answers questions.
type Server struct {
	// Key is what questions and answers are signed with, at that moment.
	Key func() []byte
	// Inventory is what is asked about; nil while it is not known.
	Inventory func() *cluster.Snapshot
	// ConfigVersion is that of the reference's configuration.
	ConfigVersion int64
	Now           func() time.Time
	Log           *slog.Logger
}

// again is how long to wait after a datagram could not be received: the system may lack memory for a moment.
var again = backoff.Pauses{First: 5 * time.Millisecond, Longest: time.Second}

// Serve answers what comes to a socket, one question after the other, until ctx ends; it closes the socket.
func (s *Server) Serve(ctx context.Context, conn net.PacketConn) error {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	buffer := make([]byte, MaxQuestion+1) // a longer one is cut off there, and refused
	failures := 0
	for {
		n, from, err := conn.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			failures++
			select {
			case <-ctx.Done():
			case <-time.After(again.After(failures)):
			}
			continue
		}
		failures = 0
		text, err := s.Reply(buffer[:n])
		if err == nil && text != nil {
			_, err = conn.WriteTo(text, from)
		}
		if err != nil {
			s.Log.Debug("a question to confd was not answered", "from", from.String(), "why", err)
		}
	}
}

// Reply answers a datagram; with an error, or nothing, where that is left without an answer.
func (s *Server) Reply(datagram []byte) ([]byte, error) {
	if len(datagram) > MaxQuestion {
		return nil, errors.New("it is too long")
	}
	key := s.Key()
	q, err := read(datagram, key, s.Now())
	if err != nil {
		return nil, err
	}
	a := reply(s.Inventory(), s.ConfigVersion, q)
	if a == nil {
		return nil, errors.New("it is of no type that there is")
	}
	text, err := write(*a, key, q.Salt)
	if err == nil && len(text) > maxAnswer {
		text, err = write(answer{Protocol: version, Status: statusError, Answer: "the answer does not fit into a datagram"}, key, q.Salt)
	}
	return text, err
}
