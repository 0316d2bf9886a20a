package tinyguesttest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/tinyguest"
)

// Machine is a guest that runs in QEMU.
type Machine struct {
	tb      testing.TB
	cmd     *exec.Cmd
	keys    io.Writer
	screen  *os.File
	said    bytes.Buffer // what nobody has waited for yet
	history bytes.Buffer
	control *json.Decoder
	orders  net.Conn
	started time.Time
}

// limit bounds how long what a test waits for may take: nothing is accelerated, and machines are busy.
func limit() time.Duration { return 4 * testkit.Patience() }

// Boot starts a machine of a type (q35, pc), with as much memory as the guest needs, no accelerator, and what else its arguments say.
func Boot(t testing.TB, g tinyguest.Guest, machine string, args ...string) *Machine {
	t.Helper()
	qemu, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		testkit.Missingf(t, "no qemu-system-x86_64 is installed (Debian's package qemu-system-x86)")
	}
	dir, err := os.MkdirTemp("", "tiny-") //nolint:usetesting // a path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "qmp")
	cmd := exec.CommandContext(t.Context(), qemu, append([]string{
		"-nodefaults", "-no-user-config", "-display", "none", "-accel", "tcg", "-machine", machine, "-m", strconv.Itoa(tinyguest.MinMemory),
		"-kernel", g.Kernel, "-initrd", g.Initrd, "-append", tinyguest.Arguments,
		"-serial", "stdio", "-qmp", "unix:" + socket + ",server=on,wait=off",
	}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	screen, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = theirs, theirs
	keys, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	m := &Machine{tb: t, cmd: cmd, keys: keys, screen: screen, started: time.Now()}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // of one that has ended, or was killed
		_ = screen.Close()
	})
	m.Await("GUEST-UP") // QEMU listens by then
	m.connect(socket)
	return m
}

// Await waits until the console shows some texts, in any order, behind what was awaited before, and returns what it showed until then.
func (m *Machine) Await(texts ...string) string {
	m.tb.Helper()
	if err := m.screen.SetReadDeadline(time.Now().Add(limit())); err != nil {
		m.tb.Fatal(err)
	}
	part := make([]byte, 4096)
	for {
		if end, all := endOf(m.said.String(), texts); all {
			m.tb.Logf("%q after %v", texts, time.Since(m.started).Round(time.Millisecond))
			return string(m.said.Next(end))
		}
		n, err := m.screen.Read(part)
		m.said.Write(part[:n])
		m.history.Write(part[:n])
		if err != nil {
			m.tb.Fatalf("waiting for %q: %v; the console showed:\n%s", texts, err, m.history.String())
		}
	}
}

// endOf is where the last of some texts ends in another, if all are in it.
func endOf(said string, texts []string) (end int, all bool) {
	for _, text := range texts {
		i := strings.Index(said, text)
		if i < 0 {
			return 0, false
		}
		end = max(end, i+len(text))
	}
	return end, true
}

// Type types a line at the console.
func (m *Machine) Type(line string) {
	m.tb.Helper()
	if _, err := io.WriteString(m.keys, line+"\r"); err != nil {
		m.tb.Fatal(err)
	}
}

// connect talks to QEMU: it greets, and takes orders when it was told that it may.
func (m *Machine) connect(socket string) {
	m.tb.Helper()
	conn, err := new(net.Dialer).DialContext(m.tb.Context(), "unix", socket)
	if err != nil {
		m.tb.Fatal(err)
	}
	m.tb.Cleanup(func() { _ = conn.Close() })
	m.orders, m.control = conn, json.NewDecoder(bufio.NewReader(conn))
	m.Order("qmp_capabilities")
}

// Order has QEMU do something that needs no arguments.
func (m *Machine) Order(command string) {
	m.tb.Helper()
	if _, err := fmt.Fprintf(m.orders, `{"execute": %q}`+"\n", command); err != nil {
		m.tb.Fatal(err)
	}
	for {
		answer := m.message()
		if answer.Error != nil {
			m.tb.Fatalf("%s: %s", command, answer.Error)
		}
		if answer.Return != nil {
			return
		}
	}
}

// message is anything that QEMU says.
type message struct {
	Event  string          `json:"event"`
	Return json.RawMessage `json:"return"`
	Error  json.RawMessage `json:"error"`
	Data   struct {
		Reason string `json:"reason"`
	} `json:"data"`
}

func (m *Machine) message() (msg message) {
	m.tb.Helper()
	if err := m.orders.SetReadDeadline(time.Now().Add(limit())); err != nil {
		m.tb.Fatal(err)
	}
	if err := m.control.Decode(&msg); err != nil {
		m.tb.Fatalf("QEMU: %v; the console showed:\n%s", err, m.history.String())
	}
	return msg
}

// Ended waits until the guest has ended by itself and returns why: guest-shutdown, or guest-reset where QEMU was told to end then.
func (m *Machine) Ended() (reason string) {
	m.tb.Helper()
	for {
		if msg := m.message(); msg.Event == "SHUTDOWN" {
			if err := m.cmd.Wait(); err != nil {
				m.tb.Errorf("QEMU: %v", err)
			}
			return msg.Data.Reason
		}
	}
}
