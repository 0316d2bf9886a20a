package gate

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// maxPath is the longest path of a unix socket on Linux.
const maxPath = 107

// SameGroup is the group of a socket that nobody names one for.
const SameGroup = -1

// ListenUnix makes a socket at the path with the given permissions, for example
// 0600 for the owner alone or 0660 for a group. A socket that a dead process
// left there is replaced; one that is answered on is not. The socket comes
// into being with its permissions: there is no moment in which others could
// connect. It is removed when the listener is closed. group is the id of the group that it is given; SameGroup leaves it to the process's own.
func (g *Gate) ListenUnix(path string, mode fs.FileMode, group int) (*Listener, error) {
	if err := CheckPath(path); err != nil {
		return nil, err
	}
	if err := checkFree(path); err != nil {
		return nil, err
	}
	// The socket is made in a directory that only we can enter and then moved
	// to its place.
	dir, err := os.MkdirTemp(filepath.Dir(path), ".l")
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot make a socket at %s: %w", path, err)
	}
	defer func() { _ = os.Remove(dir) }() // empty by now
	made := filepath.Join(dir, "s")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot make a socket at %s: %w", path, err)
	}
	listener.SetUnlinkOnClose(false)
	err = os.Chmod(made, mode)
	if err == nil && group != SameGroup {
		const sameOwner = -1
		err = os.Chown(made, sameOwner, group)
	}
	if err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		return nil, errors.Join(fault.New(fault.Environment, "cannot make a socket at %s: %w", path, err), listener.Close(), os.Remove(made))
	}
	return g.guard(&socket{UnixListener: listener, path: path}), nil
}

// CheckPath refuses a path at which no socket could ever be made: one that is too long, or is something else.
func CheckPath(path string) error {
	if len(path) > maxPath {
		return fault.New(fault.Invalid, "the path of the socket has %d bytes, the system allows %d: %s", len(path), maxPath, path)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return notASocket(path)
	}
	return nil
}

func notASocket(path string) error {
	return fault.New(fault.Exists, "%s exists and is not a socket", path)
}

// checkFree refuses a path where a server answers or where something other
// than a socket is.
func checkFree(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.New(fault.Environment, "cannot make a socket at %s: %w", path, err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return notASocket(path)
	}
	dialer := net.Dialer{Timeout: time.Second} // a socket on this machine answers at once or not at all
	conn, err := dialer.Dial("unix", path)
	if err == nil {
		_ = conn.Close() // it was only to see whether somebody answers
		return fault.New(fault.Exists, "another process answers on the socket %s", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fault.New(fault.Environment, "cannot replace the socket %s: %w", path, err)
	}
	return nil
}

// socket is a listener that removes its socket when it is closed.
type socket struct {
	*net.UnixListener
	path string
}

// Addr is where clients find it.
func (s *socket) Addr() net.Addr { return &net.UnixAddr{Name: s.path, Net: "unix"} }

// Close closes the listener and removes the socket.
func (s *socket) Close() error {
	err := s.UnixListener.Close()
	if gone := os.Remove(s.path); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		return errors.Join(err, gone)
	}
	return err
}
