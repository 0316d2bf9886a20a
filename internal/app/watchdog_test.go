package app_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/store/postgres"
	"github.com/drover-project/drover/internal/systemd"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// serviceManager is one that writes down what it is told.
type serviceManager struct {
	systemd.Manager
	told chan []string
}

func newServiceManager(t *testing.T, watchdog time.Duration) *serviceManager {
	t.Helper()
	dir, err := os.MkdirTemp("", "drv") //nolint:usetesting // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	m := &serviceManager{told: make(chan []string, 100_000), Manager: systemd.FromEnvironment(func(name string) string {
		return map[string]string{"NOTIFY_SOCKET": path, "WATCHDOG_USEC": strconv.FormatInt(watchdog.Microseconds(), 10)}[name]
	})}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		defer close(m.told)
		message := make([]byte, 4096)
		for {
			n, err := conn.Read(message)
			if err != nil {
				return
			}
			m.told <- strings.Split(string(message[:n]), "\n")
		}
	}()
	return m
}

// await waits until it is told some of this at once, and returns what that was with.
func (m *serviceManager) await(t *testing.T, status string) []string {
	t.Helper()
	for limit := time.After(patience); ; {
		select {
		case told := <-m.told:
			if slices.ContainsFunc(told, func(s string) bool { return strings.HasPrefix(s, status) }) {
				return told
			}
		case <-limit:
			t.Fatalf("the service manager is never told %s", status)
		}
	}
}

// TestTheWatchdogHearsBetweenTerms: while a controller waits for its lead and begins a term, and while one ends, which what runs may hold up for longer than the
// service manager waits.
func TestTheWatchdogHearsBetweenTerms(t *testing.T) {
	url := pgserver.Start(t, false).URL("watchdog")
	kept, err := postgres.Open(t.Context(), url, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kept.Close() }()
	lease, err := kept.AcquireLease(t.Context(), "leader", "another machine", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	manager := newServiceManager(t, 20*time.Millisecond)
	waits := make(chan error, 1)
	go func() { // it is told again and again while another has the lead
		for times := 0; times < 2; {
			told, open := <-manager.told
			if !open {
				return
			}
			if told[0] == "STATUS=begins to lead" && slices.Contains(told, "WATCHDOG=1") && slices.Contains(told, systemd.MoreTime(time.Minute)) {
				times++
			}
		}
		waits <- kept.ReleaseLease(context.WithoutCancel(t.Context()), lease)
	}()
	c := startWith(t, app.Options{Data: t.TempDir(), Store: url, StopGrace: time.Minute, Manager: manager.Manager})
	if err := <-waits; err != nil {
		t.Fatal(err)
	}
	manager.await(t, "READY=1")
	// What is told of may be over when it is told, once: the stage before may be heard of behind READY=1.
	for told := manager.await(t, "STATUS=leads with epoch "); !slices.Contains(told, "WATCHDOG=1"); {
		told = manager.await(t, "STATUS=leads with epoch ")
	}
	c.awaitStatus(t, c.submitDelay(t, 2), "running")
	stopped := make(chan error, 1)
	go func() { stopped <- c.stop() }()
	if told := manager.await(t, "STATUS=ends its term"); !slices.Contains(told, "WATCHDOG=1") {
		t.Errorf("it is told %q", told)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestTheWatchdogHearsOfWhatMoves, and of nothing else: neither of a stage that stands still, nor of one that lasts too long.
func TestTheWatchdogHearsOfWhatMoves(t *testing.T) {
	manager := newServiceManager(t, 2*time.Millisecond)
	w := app.NewWatchdog(t, manager.Manager)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Keep(ctx)
	}()
	moved := func(context.Context) {}
	w.Set(moved, "one", time.Time{})
	manager.await(t, "one")
	if told := manager.await(t, "one"); !slices.Contains(told, "WATCHDOG=1") {
		t.Errorf("it is told %q", told)
	}
	asked := make(chan struct{}, 1)
	w.Set(func(ctx context.Context) {
		asked <- struct{}{}
		<-ctx.Done()
	}, "stands still", time.Time{})
	<-asked
	w.Set(moved, "too long", time.Now().Add(-time.Second))
	w.Set(moved, "two", time.Now().Add(time.Hour))
	for {
		told := manager.await(t, "")
		if slices.Contains(told, "stands still") || slices.Contains(told, "too long") {
			t.Errorf("it is told %q", told)
		}
		if slices.Contains(told, "two") {
			break
		}
	}
	w.Set(nil, "three", time.Time{}) // where nothing can be asked
	manager.await(t, "three")
	stop()
	<-ended
}
