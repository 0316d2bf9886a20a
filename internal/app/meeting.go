package app

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/gate"
)

// How long a test of the queue may take to come, and to look at its job.
const (
	meetingComes = 20 * time.Second
	meetingStays = time.Minute
)

// Meet waits for a test at a socket beside that of LUXI, by which the test has come, too: temporary directories of services are their own. The controller's user
// and root alone may connect to it.
func (o onMachine) Meet(ctx context.Context, say func(socket string)) error {
	if o.m.gates == nil {
		return fault.New(fault.WrongState, "There is no machine here on which a test could be met")
	}
	return meet(ctx, o.m.gates.Of(gate.LUXI), o.m.sockets, meetingComes, meetingStays, say)
}

func meet(ctx context.Context, g *gate.Gate, beside string, comes, stays time.Duration, say func(socket string)) (err error) {
	dir, err := os.MkdirTemp(beside, "test-")
	if err != nil {
		return fault.New(fault.Environment, "no socket can be made for a test: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "sock")
	l, err := g.ListenUnix(path, 0o600, gate.SameGroup)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }() // it may be closed already
	coming, done := context.WithTimeout(ctx, comes)
	defer done()
	defer context.AfterFunc(coming, func() { _ = l.Close() })()
	say(path)
	conn, err := l.Accept()
	switch {
	case ctx.Err() != nil:
		err = fault.New(fault.Canceled, "the wait for a test was interrupted: %w", context.Cause(ctx))
	case err != nil:
		err = fault.New(fault.Failed, "Client didn't connect in time (%w)", err)
	}
	if err != nil {
		if conn != nil {
			_ = conn.Close()
		}
		return err
	}
	defer func() { _ = conn.Close() }() // it has hung up
	if err := conn.SetReadDeadline(time.Now().Add(stays)); err != nil {
		return fault.New(fault.Failed, "Client failed to confirm notification (%w)", err)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_, err = conn.Read(make([]byte, 1))
	switch {
	case ctx.Err() != nil:
		return fault.New(fault.Canceled, "the wait for a test was interrupted: %w", context.Cause(ctx))
	case err != nil && !errors.Is(err, io.EOF):
		return fault.New(fault.Failed, "Client failed to confirm notification (%w)", err)
	}
	return nil
}
