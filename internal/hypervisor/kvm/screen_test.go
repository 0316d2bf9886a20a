package kvm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/testkit"
)

// see greets a screen as a viewer does that wants it for itself, asks for a picture, and returns how wide and high the screen is.
func see(t *testing.T, conn io.ReadWriter) (width, height int) {
	t.Helper()
	var greeting [12]byte
	_, err := io.ReadFull(conn, greeting[:])
	if err != nil || string(greeting[:]) != "RFB 003.008\n" {
		t.Fatalf("it greets by %q, %v", greeting, err)
	}
	_, e1 := conn.Write(greeting[:])
	var kinds [2]byte
	_, e2 := io.ReadFull(conn, kinds[:])
	_, e3 := conn.Write([]byte{1, 0}) // no password; alone
	var begun [4 + 24]byte
	_, e4 := io.ReadFull(conn, begun[:])
	if err := errors.Join(e1, e2, e3, e4); err != nil || !bytes.Equal(kinds[:], []byte{1, 1}) || binary.BigEndian.Uint32(begun[:]) != 0 {
		t.Fatalf("it asks for %v, and begins with %v: %v", kinds, begun, err)
	}
	_, e1 = io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(begun[24:]))) // the name
	_, e2 = conn.Write([]byte{3, 0, 0, 0, 0, 0, 0, 8, 0, 8})
	var picture [4 + 12 + 8*8*4]byte
	_, e3 = io.ReadFull(conn, picture[:])
	if err := errors.Join(e1, e2, e3); err != nil || picture[0] != 0 {
		t.Fatalf("it shows %v: %v", picture[:16], err)
	}
	return int(binary.BigEndian.Uint16(begun[4:])), int(binary.BigEndian.Uint16(begun[6:]))
}

// TestScreen has two look at the screen of a guest that writes on it, one of whom wants it alone, and more than may.
func TestScreen(t *testing.T) {
	n := newNode(t)
	d := n.open()
	spec := n.guest(d)
	if _, err := d.Screen(t.Context(), one); !fault.Is(err, fault.WrongState) {
		t.Errorf("of a machine that does not run: %v", err)
	}
	spec.Params["usb_mouse"], spec.Params["keymap"] = "tablet", "de"
	n.start(d, spec)
	n.look(d).await("GUEST-UP")
	look := func() net.Conn {
		conn, err := d.Screen(t.Context(), one)
		if err == nil {
			err = conn.SetDeadline(time.Now().Add(testkit.Patience()))
		}
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	first, second := look(), look()
	if w, h := see(t, first); w != 720 || h != 400 {
		t.Errorf("the firmware writes on %d x %d", w, h)
	}
	see(t, second)
	if _, err := first.Write([]byte{3, 0, 0, 0, 0, 0, 0, 8, 0, 8}); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(first, make([]byte, 4)); err != nil {
		t.Errorf("the first was put out by the second: %v", err)
	}

	_, _ = first.Close(), second.Close()
	d = n.open() // the agent is started anew
	var all []net.Conn
	for range mostViewers {
		all = append(all, look())
	}
	if _, err := d.Screen(t.Context(), one); !fault.Is(err, fault.Busy) {
		t.Errorf("one more than may: %v", err)
	}
	_ = all[0].Close()
	_ = all[0].Close()
	see(t, look())
	if _, err := d.Screen(t.Context(), one); !fault.Is(err, fault.Busy) {
		t.Errorf("who left twice made room for two: %v", err)
	}
	if _, err := d.Stop(t.Context(), one, hypervisor.Stop{Force: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, all[1]); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("the end of the machine: %v", err)
	}
	if _, err := d.Screen(t.Context(), hypervisor.Thing{UUID: "other", Name: "other"}); !fault.Is(err, fault.NotFound) {
		t.Errorf("of what is not there: %v", err)
	}
	spec.Params = map[string]any{"kernel_path": "", "vga": "none"}
	n.start(d, spec)
	if _, err := d.Screen(t.Context(), one); !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "vga") {
		t.Errorf("of a machine without one: %v", err)
	}
}

// TestAScreenEndsWithItsMachine: whether or not that read all that was typed.
func TestAScreenEndsWithItsMachine(t *testing.T) {
	for _, keys := range []string{"", "keys"} {
		ours, theirs, err := connection()
		if err != nil {
			t.Fatal(err)
		}
		var count atomic.Int32
		v := &viewer{Conn: ours, count: &count}
		_, e1 := io.WriteString(v, keys)
		_, e2 := theirs.WriteString("drawn")
		if err := errors.Join(e1, e2, theirs.Close()); err != nil {
			t.Fatal(err)
		}
		if drawn, err := io.ReadAll(v); err != nil || keys == "" && string(drawn) != "drawn" {
			t.Errorf("with %q on their way it ends behind %q with %v", keys, drawn, err)
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
}
