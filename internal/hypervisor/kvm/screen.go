package kvm

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// Where the display and the controller of a USB pointer are on the machine's bus: behind the places that ports take, so that a machine of before finds
// everything else where it was.
const (
	pointerPlace = "0x1d"
	displayPlace = "0x1e"
)

// isKeymap is what a file of QEMU's keymaps may be called.
var isKeymap = regexp.MustCompile(`^[a-z]+(-[a-z]+)?$`)

// hasScreen reports whether a machine has a display.
func hasScreen(p params) bool { return p.text("vga") != "none" }

// screenArguments are the display that the guest draws on, and the server that shows it: it listens nowhere, and shows it to those who are handed to it
// (process.show). It never lets one viewer put the others out, whatever that asks for.
func screenArguments(_ *hypervisor.Spec, p params, _ setup) ([]string, error) {
	if !hasScreen(p) {
		return nil, nil
	}
	args := []string{"-vnc", "none,share=ignore", "-device", object(map[string]any{"driver": "VGA", "id": "display", "addr": displayPlace})}
	if keymap := p.text("keymap"); keymap != "" {
		if !isKeymap.MatchString(keymap) {
			return nil, refused("keymap", keymap, "the name of a keymap")
		}
		args = append(args, "-k", keymap)
	}
	if pointer := p.text("usb_mouse"); pointer != "" {
		args = append(args,
			"-device", object(map[string]any{"driver": "qemu-xhci", "id": "usb", "addr": pointerPlace}),
			"-device", object(map[string]any{"driver": "usb-" + pointer, "id": "pointer", "bus": "usb.0"}))
	}
	return args, nil
}

// mostViewers is how many look at the screen of one machine at a time; QEMU compresses it for each of them.
const mostViewers = 16

// Screen connects to the screen of a machine.
func (d *Driver) Screen(ctx context.Context, of hypervisor.Thing) (net.Conn, error) {
	if err := of.Check(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	m, err := d.find(of, "")
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, fault.New(fault.NotFound, "instance %s is not known on this node", of.Name)
	}
	p := m.running()
	if i := m.info(); p == nil || !i.Active() {
		return nil, fault.New(fault.WrongState, "instance %s is not running", i.Name)
	}
	if r := m.record(); r.Spec != nil && !hasScreen(params(r.Spec.Params)) {
		return nil, fault.New(fault.Unsupported, "instance %s has no screen: its hypervisor parameter vga is none", r.Name).
			WithHint("drover instance modify %s -H vga=std, and start it anew", r.Name)
	}
	return p.show(ctx)
}

// viewer is the connection of somebody who looks.
type viewer struct {
	net.Conn
	once  sync.Once
	count *atomic.Int32
}

// Read implements net.Conn. A machine that ends while keys are on their way to it, which it did not read, ends the connection no otherwise than one that has read all.
func (v *viewer) Read(p []byte) (int, error) {
	n, err := v.Conn.Read(p)
	if errors.Is(err, syscall.ECONNRESET) {
		err = io.EOF
	}
	return n, err
}

// Close implements net.Conn.
func (v *viewer) Close() error {
	v.once.Do(func() { v.count.Add(-1) })
	return v.Conn.Close()
}

// show hands QEMU one end of a connection, and returns the other.
func (p *process) show(ctx context.Context) (conn net.Conn, err error) {
	count := &p.machine.viewers
	if count.Add(1) > mostViewers {
		count.Add(-1)
		return nil, fault.New(fault.Busy, "already %d look at the screen of instance %s, as many as may", mostViewers, p.machine.record().Name)
	}
	defer func() {
		if err != nil {
			count.Add(-1)
		}
	}()
	ours, theirs, err := connection()
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot make a connection to the screen of instance %s: %w", p.machine.record().Name, err)
	}
	defer func() { _ = theirs.Close() }()
	name := "viewer" + strconv.FormatUint(p.machine.shown.Add(1), 10) // two that come at once are not mixed up
	err = p.doWith(ctx, theirs, "getfd", map[string]any{"fdname": name}, nil)
	if err == nil {
		err = p.do(ctx, "add_client", map[string]any{"protocol": "vnc", "fdname": name, "skipauth": true}, nil)
	}
	if err != nil {
		_ = ours.Close()
		return nil, noScreenYet(p.machine.record().Name, err)
	}
	return &viewer{Conn: ours, count: count}, nil
}

// noScreenYet is the error of a machine that a program of before started, which gave it no display.
func noScreenYet(name string, err error) error {
	if !fault.Is(err, fault.Failed) {
		return err
	}
	return fault.New(fault.Failed, "instance %s does not show its screen: %w", name, err).
		WithHint("one that was started by an agent of before has none: stop and start it")
}

// connection is one within this system, with one end as a file.
func connection() (ours net.Conn, theirs *os.File, err error) {
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	mine := os.NewFile(uintptr(ends[0]), "screen")
	defer func() { _ = mine.Close() }()
	theirs = os.NewFile(uintptr(ends[1]), "screen")
	if ours, err = net.FileConn(mine); err != nil {
		_ = theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}
