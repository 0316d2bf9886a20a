package systemd_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/systemd"
)

// environment looks variables up in a table.
func environment(table map[string]string) func(string) string {
	return func(name string) string { return table[name] }
}

func TestTheManagerIsTold(t *testing.T) {
	dir, err := os.MkdirTemp("", "drv") //nolint:usetesting // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for what, path := range map[string]string{
		"a path": filepath.Join(dir, "notify"), "an abstract name": "@drover-test-" + strconv.Itoa(os.Getpid()),
	} {
		t.Run(what, func(t *testing.T) {
			socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = socket.Close() })
			m := systemd.FromEnvironment(environment(map[string]string{"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "3000000"}))
			if err := m.Tell(systemd.StateReady, systemd.Status("all\nwell")); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 100)
			n, err := socket.Read(got)
			if err != nil {
				t.Fatal(err)
			}
			if string(got[:n]) != "READY=1\nSTATUS=all well" || !m.Present() || m.WatchdogEvery() != 1500*time.Millisecond {
				t.Errorf("told %q, watchdog every %v", got[:n], m.WatchdogEvery())
			}
		})
	}
}

func TestWithoutAManagerNothingIsTold(t *testing.T) {
	m := systemd.FromEnvironment(environment(nil))
	if err := m.Tell(systemd.StateReady); err != nil || m.Present() || m.WatchdogEvery() != 0 {
		t.Error(err, m.Present(), m.WatchdogEvery())
	}
	other := systemd.FromEnvironment(environment(map[string]string{"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}))
	if other.WatchdogEvery() != 0 {
		t.Error("the watchdog of another process counts")
	}
	gone := systemd.FromEnvironment(environment(map[string]string{"NOTIFY_SOCKET": filepath.Join(t.TempDir(), "none")}))
	if err := gone.Tell(systemd.StateReady); err == nil {
		t.Error("a manager that is not there was told")
	}
}

func TestReloadingTellsTheTime(t *testing.T) {
	monotonic := func() int64 {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
			t.Fatal(err)
		}
		return now.Nano() / 1000
	}
	before := monotonic()
	text, err := systemd.Reloading()
	after := monotonic()
	digits, ok := strings.CutPrefix(text, "RELOADING=1\nMONOTONIC_USEC=")
	if at, wrong := strconv.ParseInt(digits, 10, 64); err != nil || !ok || wrong != nil || at < before || at > after {
		t.Errorf("%q, %v: it was told between %d and %d", text, err, before, after)
	}
}

func TestJournalLines(t *testing.T) {
	var out bytes.Buffer
	level := new(slog.LevelVar)
	log := slog.New(systemd.NewJournalHandler(&out, level, func(_ []string, a slog.Attr) slog.Attr { return a }, func(w io.Writer, o *slog.HandlerOptions) slog.Handler { return slog.NewTextHandler(w, o) }))
	log.Debug("not told")
	log.With("job", 7).Warn("it waits")
	log.WithGroup("a").Error("it failed", "b", 1)
	level.Set(slog.LevelDebug)
	log.Debug("told")
	want := "<4>msg=\"it waits\" job=7\n<3>msg=\"it failed\" a.b=1\n<7>msg=told\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestOnJournal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "stream"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	stat := info.Sys().(*syscall.Stat_t)
	for stream, want := range map[string]bool{
		fmt.Sprintf("%d:%d", stat.Dev, stat.Ino): true, fmt.Sprintf("%d:%d", stat.Dev, stat.Ino+1): false, "": false, strings.Repeat("9", 99): false,
	} {
		if got := systemd.OnJournal(f, environment(map[string]string{"JOURNAL_STREAM": stream})); got != want {
			t.Errorf("%q: %v", stream, got)
		}
	}
}
