// Package systemd speaks to the service manager that started this process: it
// tells how the service is (sd_notify(3), systemd's documentation), keeps its
// watchdog quiet, and writes logs as its journal reads them (sd-daemon(3)).
//
// Invariants:
//   - Without a service manager everything here does nothing.
//   - A service manager that does not listen never holds up the service.
package systemd

import (
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/fault"
)

// Manager is the service manager; the zero value stands for none.
type Manager struct {
	address  *net.UnixAddr
	watchdog time.Duration
}

// FromEnvironment finds the service manager in the variables NOTIFY_SOCKET,
// WATCHDOG_USEC and WATCHDOG_PID.
func FromEnvironment(getenv func(string) string) Manager {
	var m Manager
	if path := getenv("NOTIFY_SOCKET"); path != "" {
		// A name that begins with @ is abstract, which package net writes the same way.
		m.address = &net.UnixAddr{Name: path, Net: "unixgram"}
	}
	if pid := getenv("WATCHDOG_PID"); pid == "" || pid == strconv.Itoa(os.Getpid()) {
		if us, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 {
			m.watchdog = time.Duration(us) * time.Microsecond
		}
	}
	return m
}

// Present tells whether there is a service manager that listens.
func (m Manager) Present() bool { return m.address != nil }

// WatchdogEvery is how often the watchdog wants to hear of the service, with
// time to spare; zero for never.
func (m Manager) WatchdogEvery() time.Duration { return m.watchdog / 2 }

// What can be told.
const (
	// StateReady: the service serves, from its start or again after reloading.
	StateReady = "READY=1"
	// StateStopping: the service is ending.
	StateStopping = "STOPPING=1"
	// StateAlive keeps the watchdog quiet.
	StateAlive = "WATCHDOG=1"
)

// Status is a line for persons who look at the service.
func Status(text string) string { return "STATUS=" + strings.ReplaceAll(text, "\n", " ") }

// MoreTime asks for more time to start, from now on.
func MoreTime(d time.Duration) string {
	return "EXTEND_TIMEOUT_USEC=" + strconv.FormatInt(d.Microseconds(), 10)
}

// Reloading tells that the service reads its configuration anew; StateReady
// follows when it has.
func Reloading() (string, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return "", fault.New(fault.Environment, "cannot read the monotonic clock: %w", err)
	}
	return "RELOADING=1\nMONOTONIC_USEC=" + strconv.FormatInt(now.Nano()/int64(time.Microsecond), 10), nil
}

// sendTime bounds how long the manager's socket may be full.
const sendTime = time.Second

// Tell sends what there is to tell, as one message. It does nothing without a
// manager.
func (m Manager) Tell(states ...string) error {
	if m.address == nil {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, m.address)
	if err != nil {
		return fault.New(fault.Environment, "cannot reach the service manager: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if err = conn.SetWriteDeadline(time.Now().Add(sendTime)); err == nil {
		_, err = conn.Write([]byte(strings.Join(states, "\n")))
	}
	if err != nil {
		return fault.New(fault.Environment, "cannot tell the service manager: %w", err)
	}
	return nil
}
