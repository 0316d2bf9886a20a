package luxi

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// lookTime is how often the server looks whether the clients are still there whose
// requests it carries out.
const lookTime = time.Second

// errHungUp is why the work for a client ends that hung up.
var errHungUp = fault.New(fault.Canceled, "the client has hung up")

// attention is what the server knows of a connection.
type attention struct {
	// mu guards resting: nothing of a request has come, so that a stop may interrupt the reading.
	mu      sync.Mutex
	resting bool
	// end ends the request that is carried out; nil while there is none.
	end atomic.Pointer[context.CancelCauseFunc]
}

// rest says whether nothing of a request has come, and until when that, or all of it, has to.
func (a *attention) rest(conn net.Conn, resting bool, until time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.resting = resting
	return conn.SetReadDeadline(until)
}

// interrupt ends the reading of a connection on which nothing of a request has come.
func (a *attention) interrupt(conn net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.resting {
		_ = conn.SetReadDeadline(time.Unix(1, 0)) // it is going away
	}
}

// request returns a context for one request that also ends soon after the
// client hung up, and what ends it in any case.
func (a *attention) request(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	a.end.Store(&cancel)
	return ctx, func() {
		a.end.Store(nil)
		cancel(nil)
	}
}

// attend adds a connection to those that the server looks after.
func (s *Server) attend(conn net.Conn) *attention {
	a := &attention{}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[conn] = a
	if !s.looking { // one timer for all: nearly all requests are answered before it ends
		s.looking = true
		time.AfterFunc(s.look, s.lookAround)
	}
	return a
}

// lookAround looks which clients have hung up, from time to time while there are any.
func (s *Server) lookAround() {
	waiting := map[net.Conn]*context.CancelCauseFunc{}
	s.mu.Lock()
	for conn, a := range s.conns {
		if end := a.end.Load(); end != nil {
			waiting[conn] = end
		}
	}
	s.looking = len(s.conns) > 0
	more := s.looking
	s.mu.Unlock()
	for conn, end := range waiting {
		if hungUp(conn) {
			(*end)(errHungUp)
		}
	}
	if more {
		time.AfterFunc(s.look, s.lookAround)
	}
}

// hungUp looks, without waiting, whether the peer has closed the connection. One
// that only closed its sending side still wants its answer, so it is not enough
// that nothing more can be read; an attempt to send nothing tells.
func hungUp(conn net.Conn) bool {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return true
	}
	var refused error
	err = raw.Control(func(fd uintptr) {
		refused = syscall.Sendto(int(fd), nil, syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, nil)
	})
	return err != nil || errors.Is(refused, syscall.EPIPE)
}
