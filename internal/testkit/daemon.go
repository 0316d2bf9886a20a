package testkit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// UserOf is the user of a Debian package whose daemon refuses to run as root, or
// should not; nil, for the test's own, when the test does not run as root.
func UserOf(tb testing.TB, name string) *syscall.Credential {
	tb.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		tb.Fatal(err)
	}
	uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
	gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(errUID, errGID); err != nil {
		tb.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// StartDaemon starts a program and returns when it has said, on what out reads
// of it, that it is ready. The test fails with what it said when it ends before,
// or takes longer than the limit.
func StartDaemon(tb testing.TB, cmd *exec.Cmd, out io.Reader, isReady string, limit time.Duration) {
	tb.Helper()
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	ready := make(chan error, 1)
	go awaitWord(bufio.NewScanner(out), filepath.Base(cmd.Path), isReady, ready)
	select {
	case err := <-ready:
		if err != nil {
			tb.Fatal(err)
		}
	case <-time.After(limit):
		tb.Fatalf("%s did not start within %v", cmd.Path, limit)
	}
}

// awaitWord reads what a daemon says: when it is ready, or all it said when it
// ended before.
func awaitWord(lines *bufio.Scanner, name, isReady string, ready chan<- error) {
	var said strings.Builder
	up := false
	for lines.Scan() {
		if up {
			continue // read on, so that it can write
		}
		said.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), isReady) {
			up = true
			ready <- nil
		}
	}
	if !up {
		ready <- fmt.Errorf("%s ended:\n%s", name, said.String())
	}
}

// leastPort and beyondPorts bound the ports of daemons: below those that systems give out to whoever asks for any, which somebody else may have got
// before the daemon listens.
const leastPort, beyondPorts = 10_000, 32_000

// FreePorts returns ports that nobody listens on at this moment, for daemons that take no open one.
func FreePorts(tb testing.TB, n int) (ports []string) {
	tb.Helper()
	const tries = 1000
	for range tries {
		var listen net.ListenConfig
		port := strconv.Itoa(leastPort + rand.IntN(beyondPorts-leastPort))
		l, err := listen.Listen(tb.Context(), "tcp", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			continue // it is somebody's
		}
		defer func() { _ = l.Close() }() // all are held until all are found
		if ports = append(ports, port); len(ports) == n {
			return ports
		}
	}
	tb.Fatalf("no %d free ports were found", n)
	return nil
}
