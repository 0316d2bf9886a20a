package luxi

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// lookTime is how often the server looks whether the client is still there
// while its request takes that long.
const lookTime = time.Second

// errHungUp is why the work for a client ends that hung up.
var errHungUp = fault.New(fault.Canceled, "the client has hung up")

// attended returns a context for one request that also ends soon after the
// client hung up, and what ends it in any case.
func (s *Server) attended(ctx context.Context, conn net.Conn) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	// Nearly all requests are answered before the first look.
	looks := time.AfterFunc(s.look, func() {
		for ctx.Err() == nil {
			if hungUp(conn) {
				cancel(errHungUp)
			}
			pause(ctx, s.look)
		}
	})
	return ctx, func() {
		looks.Stop()
		cancel(nil)
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
