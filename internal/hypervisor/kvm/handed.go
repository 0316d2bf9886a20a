package kvm

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/plainfile"
)

// The names of what is in the directory of a machine that runs.
const (
	monitorFile  = "monitor"
	serialFile   = "serial"
	heldFile     = "held"
	complainFile = "complaints"
	seedFile     = "seed.iso"
)

// socket opens a socket in the directory of a machine, whose path may be longer than sockets' may.
func socket(dir, name string, open func(*net.UnixAddr) error) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	return open(&net.UnixAddr{Net: "unix", Name: "/proc/self/fd/" + strconv.Itoa(int(d.Fd())) + "/" + name})
}

// listenOn opens the end of a line that QEMU is handed.
func listenOn(dir, name string) (file *os.File, err error) {
	if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return file, socket(dir, name, func(at *net.UnixAddr) error {
		l, err := net.ListenUnix("unix", at)
		if err != nil {
			return err
		}
		l.SetUnlinkOnClose(false)
		file, err = l.File()
		return errors.Join(err, l.Close())
	})
}

// dial connects to a line.
func dial(dir, name string) (conn net.Conn, err error) {
	return conn, socket(dir, name, func(at *net.UnixAddr) error {
		conn, err = net.DialUnix("unix", nil, at)
		return err
	})
}

// dialFreed connects to a line that another connection may just be leaving: until QEMU has seen that, there is no room for the next.
func dialFreed(ctx context.Context, dir, name string) (net.Conn, error) {
	const pause = 20 * time.Millisecond
	for {
		conn, err := dial(dir, name)
		if !errors.Is(err, syscall.EAGAIN) {
			return conn, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// openFiles opens what QEMU is handed: its lines, its lock, its disks, what it starts from, its taps, its seed if it has one, its discs, and its
// firmware if that is not QEMU's own. Behind them comes the line to its TPM, see startTPM.
func (m *machine) openFiles(ctx context.Context, spec *hypervisor.Spec, with setup) (files []*os.File, err error) {
	defer func() {
		if err != nil {
			closeAll(files)
		}
	}()
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return nil, fault.New(fault.Environment, "cannot make the directory of %s: %w", spec.Name, err)
	}
	held, err := lockHeld(m.dir)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{monitorFile, serialFile} { // behind the lock, for they take the place of what was there
		f, err := listenOn(m.dir, name)
		if err != nil {
			_ = held.Close()
			return files, fault.New(fault.Environment, "cannot open the %s of %s: %w", name, spec.Name, err)
		}
		files = append(files, f)
	}
	files = append(files, held)
	for n, disk := range spec.Disks {
		f, err := m.openDisk(ctx, n, disk, params(spec.Params).text("disk_cache") == "none")
		if err != nil {
			return files, err
		}
		files = append(files, f)
	}
	bases, err := openBases(spec, with)
	if files = append(files, bases...); err != nil {
		return files, err
	}
	for _, name := range bootFiles(params(spec.Params)) {
		f, err := m.openNamed(name, params(spec.Params).text(name))
		if err != nil {
			return files, err
		}
		files = append(files, f)
	}
	if m.driver.cfg.Bridges {
		for n := range spec.NICs {
			f, err := openTap(ctx, n, &spec.NICs[n])
			if err != nil {
				return files, err
			}
			files = append(files, f)
		}
	}
	if with.seed {
		f, err := os.Open(m.seedPath())
		if err != nil {
			return files, fault.New(fault.Environment, "cannot open the seed of %s: %w", spec.Name, err)
		}
		files = append(files, f)
	}
	for _, name := range cdFiles(params(spec.Params)) {
		f, err := m.openNamed(name, params(spec.Params).text(name))
		if err != nil {
			return files, err
		}
		files = append(files, f)
	}
	if with.firmware != nil {
		flash, err := m.openFirmware(with.firmware)
		if err != nil {
			return files, err
		}
		files = append(files, flash...)
	}
	return files, nil
}

// openNamed opens a file of the node that a parameter names. QEMU opens it once more, without the way there, so its user has to have the right to read it.
func (m *machine) openNamed(name, path string) (*os.File, error) {
	if !filepath.IsAbs(path) {
		return nil, refused(name, path, "the path of a file on the node")
	}
	f, err := plainfile.Open(path)
	switch {
	case errors.Is(err, plainfile.ErrNotPlain):
		return nil, fault.New(fault.Environment, "what the hypervisor parameter %s names is no file: %s", name, path).At("hvparams")
	case err != nil:
		return nil, fault.New(fault.Environment, "what the hypervisor parameter %s names cannot be opened: %w", name, err).At("hvparams")
	case m.driver.user == nil:
		return f, nil
	}
	closed, err := plainfile.Closed(f)
	switch {
	case err != nil:
		err = fault.New(fault.Environment, "who may read what the hypervisor parameter %s names cannot be told: %w", name, err).At("hvparams")
	case closed != "":
		err = fault.New(fault.Environment, "not everybody may read %s, which the hypervisor parameter %s names, and guests run as a user without rights", path, name).At("hvparams").
			WithHint("%s", plainfile.Opens(closed))
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func (m *machine) openDisk(ctx context.Context, n int, disk hypervisor.Disk, direct bool) (*os.File, error) {
	missing := fault.New(fault.WrongState, "disk %d (%s) of instance %s does not exist on this node", n, disk.UUID, m.record().Name)
	i := diskIndex(m.record().Disks, disk.UUID)
	if i < 0 {
		return nil, missing
	}
	v, err := m.driver.cfg.Volumes.Volume(ctx, m.record().Disks[i].Template, disk.UUID)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, missing
	case err != nil:
		return nil, err
	}
	flags := os.O_RDWR
	if disk.ReadOnly {
		flags = os.O_RDONLY
	}
	if direct {
		flags |= syscall.O_DIRECT
	}
	f, err := os.OpenFile(v.Path, flags, 0)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot open disk %d of instance %s: %w", n, m.record().Name, err)
	}
	return f, nil
}

// errHeld is about a machine that has a process.
var errHeld error = fault.New(fault.Busy, "the machine has a process already, which nobody watches").
	WithHint("start the node's agent again, which looks for it")

// lockHeld takes the lock that says that a machine has a process; the process inherits it.
func lockHeld(dir string) (*os.File, error) { return lockFile(filepath.Join(dir, heldFile)) }

// unwatched refuses a machine that has a process which this driver does not know of: it could not be found, or watched.
func (m *machine) unwatched() error {
	f, err := os.OpenFile(filepath.Join(m.dir, heldFile), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) { // it has never had one
		return nil
	}
	if err != nil {
		return fault.New(fault.Environment, "whether instance %s has a process cannot be told: %w", m.record().Name, err)
	}
	defer func() { _ = f.Close() }()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errHeld
	}
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // a program that is being started just now may have a copy of the descriptor
	return nil
}

func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot lock the machine in %s: %w", filepath.Dir(path), err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, errHeld
	}
	return f, nil
}
