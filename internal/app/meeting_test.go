package app

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/gate"
)

// A test is waited for until it has come and gone, and no longer than it may take; nothing is left of its socket.
func TestMeetings(t *testing.T) {
	beside := t.TempDir()
	g := gate.NewGates(gate.Files(), slog.New(slog.DiscardHandler)).Of(gate.LUXI)
	dial := func(path string) net.Conn {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", path)
		if err != nil {
			t.Error(err)
		}
		return conn
	}
	info := func(path string) (mode os.FileMode) {
		if i, err := os.Stat(path); err == nil {
			mode = i.Mode().Perm()
		}
		return mode
	}
	err := meet(t.Context(), g, beside, time.Minute, time.Minute, func(path string) {
		if own, dir := info(path), info(filepath.Dir(path)); own != 0o600 || dir != 0o700 {
			t.Errorf("the socket has the mode %o in a directory of the mode %o", own, dir)
		}
		_ = dial(path).Close()
	})
	if err != nil {
		t.Error(err)
	}
	err = meet(t.Context(), g, beside, 10*time.Millisecond, time.Minute, func(string) {})
	if !fault.Is(err, fault.Failed) || !strings.Contains(err.Error(), "Client didn't connect in time") {
		t.Errorf("nobody comes: %v", err)
	}
	var stays net.Conn
	err = meet(t.Context(), g, beside, time.Minute, 10*time.Millisecond, func(path string) { stays = dial(path) })
	if !fault.Is(err, fault.Failed) || !strings.Contains(err.Error(), "Client failed to confirm notification") {
		t.Errorf("somebody stays: %v", err)
	}
	_ = stays.Close()
	ctx, stop := context.WithCancel(t.Context())
	if err := meet(ctx, g, beside, time.Minute, time.Minute, func(string) { stop() }); !fault.Is(err, fault.Canceled) {
		t.Errorf("a job that is ended: %v", err)
	}
	if left, err := os.ReadDir(beside); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if err := (onMachine{&member{}}).Meet(t.Context(), func(string) {}); !fault.Is(err, fault.WrongState) {
		t.Errorf("where there is no machine: %v", err)
	}
}
