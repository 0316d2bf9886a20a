package agent

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/hypervisor/fake"
)

// resettable is a driver whose machine is reset by a function.
type resettable struct {
	hypervisor.Driver
	reset func(context.Context) error
	err   error
}

func (d resettable) Powercycle() (func(context.Context) error, error) { return d.reset, d.err }

// logText is a log that can be read while it is written.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newResettable(t *testing.T, delay time.Duration, reset func(context.Context) error, refused error) (*Agent, *logText) {
	t.Helper()
	dir := t.TempDir()
	pretended, err := fake.Open(fake.Config{Dir: filepath.Join(dir, "fake")})
	if err != nil {
		t.Fatal(err)
	}
	log := &logText{}
	a, err := New(Config{Node: "node1", Dir: dir, Driver: resettable{pretended, reset, refused}, PowercycleDelay: delay, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a, log
}

// The machine is reset behind the answer, once for an order however often that comes.
func TestPowercycle(t *testing.T) {
	done := make(chan struct{}, 9)
	a, _ := newResettable(t, 10*time.Millisecond, func(context.Context) error { done <- struct{}{}; return nil }, nil)
	order := Order{Epoch: 1, Job: 7, Step: 1}
	for range 2 {
		if said, err := a.Powercycle(t.Context(), order); err != nil || said != "Reboot scheduled in 0 seconds" {
			t.Errorf("it says %q, %v", said, err)
		}
	}
	<-done
	a.resets.all.Wait()
	if len(done) > 0 {
		t.Error("it was reset twice")
	}
}

// What cannot be done is refused before anything is; what fails in the end is logged.
func TestPowercycleThatFails(t *testing.T) {
	a, _ := newResettable(t, time.Hour, nil, fault.New(fault.Unsupported, "nobody has said how"))
	if said, err := a.Powercycle(t.Context(), Order{Epoch: 1, Job: 7, Step: 1}); !fault.Is(err, fault.Unsupported) || said != "" {
		t.Errorf("it says %q, %v", said, err)
	}
	a, log := newResettable(t, time.Millisecond, func(context.Context) error { return errors.New("no such switch") }, nil)
	if _, err := a.Powercycle(t.Context(), Order{Epoch: 1, Job: 7, Step: 1}); err != nil {
		t.Fatal(err)
	}
	a.resets.all.Wait()
	if text := log.String(); !strings.Contains(text, "was not switched off and on") || !strings.Contains(text, "no such switch") {
		t.Errorf("the log is %s", text)
	}
}

// A reset that is to come does not when the agent ends before, or another controller leads.
func TestPowercycleIsGivenUp(t *testing.T) {
	reset := func(context.Context) error { t.Error("it was reset"); return nil }
	a, _ := newResettable(t, time.Hour, reset, nil)
	if _, err := a.Powercycle(t.Context(), Order{Epoch: 1, Job: 7, Step: 1}); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	a, log := newResettable(t, 50*time.Millisecond, reset, nil)
	if _, err := a.Powercycle(t.Context(), Order{Epoch: 1, Job: 7, Step: 1}); err != nil {
		t.Fatal(err)
	}
	if err := a.Follow(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	a.resets.all.Wait()
	if text := log.String(); !strings.Contains(text, "was not switched off and on") {
		t.Errorf("the log is %s", text)
	}
	if _, err := a.Powercycle(t.Context(), Order{Epoch: 1, Job: 8, Step: 1}); !fault.Is(err, fault.Fenced) {
		t.Errorf("for the leader of old: %v", err)
	}
}
