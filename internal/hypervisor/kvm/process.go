package kvm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/backoff"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/qmp"
)

// The names of what is in the directory of a machine that runs.
const (
	monitorFile  = "monitor"
	serialFile   = "serial"
	heldFile     = "held"
	complainFile = "complaints"
)

// process is a QEMU that runs, or that is left behind a guest that ended.
type process struct {
	machine *machine
	pid     int
	now     atomic.Pointer[hypervisor.State]
	look    chan struct{} // there is something to ask
	changed chan struct{} // capacity 1: the state may have changed
	gone    chan struct{} // closed when the process is no more
	once    sync.Once

	mu     sync.Mutex
	let    bool        // the driver has let it go
	qmp    *qmp.Client // nil while the process is silent
	serial net.Conn
}

// state is what the machine does; one that cannot be asked runs, as far as anybody can tell.
func (p *process) state() hypervisor.State {
	if s := p.now.Load(); s != nil {
		return *s
	}
	return hypervisor.Running
}

// do has a command carried out; Unavailable by a process that is silent.
func (p *process) do(ctx context.Context, command string, arguments, out any) error {
	p.mu.Lock()
	c := p.qmp
	p.mu.Unlock()
	if c == nil {
		return fault.New(fault.Unavailable, "the QEMU of instance %s (process %d) does not answer at its monitor", p.machine.record().Name, p.pid).
			WithHint("another program may be connected to it; it is asked again and again")
	}
	return c.Do(ctx, command, arguments, out)
}

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

// openFiles opens what QEMU is handed: its lines, its lock and its disks.
func (m *machine) openFiles(ctx context.Context, spec *hypervisor.Spec) (files []*os.File, err error) {
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
	for _, name := range bootFiles(params(spec.Params)) {
		f, err := m.openBoot(name, params(spec.Params).text(name))
		if err != nil {
			return files, err
		}
		files = append(files, f)
	}
	if !m.driver.cfg.Bridges {
		return files, nil
	}
	for n := range spec.NICs {
		f, err := openTap(ctx, n, &spec.NICs[n])
		if err != nil {
			return files, err
		}
		files = append(files, f)
	}
	return files, nil
}

// openBoot opens what a machine starts from. QEMU opens it once more, without the way there, so its user has to have the right to read it.
func (m *machine) openBoot(name, path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.New(fault.Environment, "what the hypervisor parameter %s names cannot be opened: %w", name, err).At("hvparams")
	}
	info, err := f.Stat()
	const all = 0o004
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fault.New(fault.Environment, "what the hypervisor parameter %s names is no file: %s", name, path).At("hvparams")
	case m.driver.user != nil && info.Mode().Perm()&all == 0:
		err = fault.New(fault.Environment, "not everybody may read %s, which the hypervisor parameter %s names, and guests run as a user without rights", path, name).At("hvparams").
			WithHint("chmod a+r %s", path)
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
	path, err := m.driver.cfg.Volumes.Path(ctx, m.record().Disks[i].Template, disk.UUID)
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
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot open disk %d of instance %s: %w", n, m.record().Name, err)
	}
	return f, nil
}

// errHeld is about a machine that has a process.
var errHeld error = fault.New(fault.Busy, "the machine has a process already, which nobody watches").
	WithHint("start the node's agent again, which looks for it")

// lockHeld takes the lock that says that a machine has a process; the process inherits it.
func lockHeld(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, heldFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot lock the machine in %s: %w", dir, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, errHeld
	}
	return f, nil
}

// run begins the process, waits for its monitor and lets the guest go.
func (m *machine) run(ctx context.Context, spec *hypervisor.Spec, args []string, files []*os.File) error {
	complaints, err := os.OpenFile(filepath.Join(m.dir, complainFile), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fault.New(fault.Environment, "cannot make a file in %s: %w", m.dir, err)
	}
	defer func() { _ = complaints.Close() }()
	cmd := exec.Command(m.driver.qemu.path, args...) //nolint:noctx // a guest outlives who started it
	cmd.Dir, cmd.Env, cmd.ExtraFiles = "/", []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}, files
	cmd.Stdout, cmd.Stderr = complaints, complaints
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: m.driver.user.asCredential()}
	if err := cmd.Start(); err != nil {
		return fault.New(fault.Environment, "cannot start QEMU for instance %s: %w", spec.Name, err)
	}
	p := m.newProcess(cmd.Process.Pid)
	go func() {
		_ = cmd.Wait() // what it complained of says more
		p.hasGone()
	}()
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	err = p.connect(ctx)
	if err == nil && !spec.StartPaused {
		err = p.do(ctx, "cont", nil, nil)
	}
	if err == nil {
		err = p.refresh(ctx)
	}
	if err == nil {
		m.have(p)
		return nil
	}
	_ = p.kill()
	<-p.gone
	p.disconnect()
	return fault.New(fault.Failed, "QEMU for instance %s did not start: %s", spec.Name, m.complaint(err)).
		WithHint("%s has what it said", filepath.Join(m.dir, complainFile))
}

// complaint is what QEMU said, or the error if it said nothing.
func (m *machine) complaint(err error) string {
	data, _ := os.ReadFile(filepath.Join(m.dir, complainFile))
	text := strings.TrimSpace(fault.Clip(string(data), 1000))
	if text == "" {
		return err.Error()
	}
	return strings.ReplaceAll(text, "\n", "; ")
}

func (m *machine) newProcess(pid int) *process {
	return &process{machine: m, pid: pid, look: make(chan struct{}, 1), changed: make(chan struct{}, 1), gone: make(chan struct{})}
}

func (p *process) hasGone() { p.once.Do(func() { close(p.gone) }) }

// connect opens the monitor and the serial line.
func (p *process) connect(ctx context.Context) error {
	conn, err := dialFreed(ctx, p.machine.dir, monitorFile)
	if err != nil {
		return fault.New(fault.Unavailable, "cannot reach QEMU: %w", err)
	}
	opened := make(chan struct{})
	defer close(opened)
	go func() { // a QEMU that ends before it greets leaves the socket to nobody
		select {
		case <-p.gone:
			_ = conn.Close()
		case <-opened:
		}
	}()
	monitor, err := qmp.Open(ctx, conn, p.heard)
	if err != nil {
		return err
	}
	serial, err := dialFreed(ctx, p.machine.dir, serialFile)
	if err != nil {
		_ = monitor.Close()
		return fault.New(fault.Unavailable, "cannot reach the serial line: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.let {
		return errors.Join(errLetGo, monitor.Close(), serial.Close())
	}
	p.qmp, p.serial = monitor, serial
	line := &p.machine.line
	line.Attach(serial)
	go func() { _, _ = io.Copy(line, serial) }()
	return nil
}

// errLetGo is about a process that the driver has let go.
var errLetGo = errors.New("the driver is closed")

// have makes the process the machine's, and watches it.
func (m *machine) have(p *process) {
	m.mu.Lock()
	m.process = p
	m.mu.Unlock()
	go p.watch()
}

// heard is told of each event; what has changed is asked for, so that there is one meaning of a state.
func (p *process) heard(e qmp.Event) {
	switch e.Name {
	case "SHUTDOWN", "STOP", "RESUME", "RESET", "GUEST_PANICKED", "SUSPEND", "WAKEUP":
		signal(p.look)
	}
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// watch follows the process until it is gone or let go. One that does not answer, for another program is at its monitor, is asked again and
// again: that nobody can ask it is no reason to end it.
func (p *process) watch() {
	pauses := backoff.Pauses{First: 100 * time.Millisecond, Longest: 5 * time.Second}
	for tries := 0; ; tries++ {
		p.mu.Lock()
		monitor, let := p.qmp, p.let
		p.mu.Unlock()
		if let {
			return
		}
		if monitor != nil {
			p.follow(monitor)
			tries = 0
		}
		select {
		case <-p.gone:
			p.bury()
			return
		case <-time.After(pauses.After(tries + 1)):
		}
		p.reconnect()
	}
}

// follow asks for the state whenever it may have changed, until the monitor ends.
func (p *process) follow(monitor *qmp.Client) {
	m := p.machine
	for {
		select {
		case <-p.look:
			ctx, cancel := context.WithTimeout(context.Background(), endTime)
			if err := p.refresh(ctx); err == nil {
				m.driver.noteChange()
			}
			cancel()
		case <-monitor.Done():
			p.disconnect()
			return
		}
	}
}

// disconnect ends the connections to the process, if there are any.
func (p *process) disconnect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.qmp == nil {
		return
	}
	p.machine.line.Detach(p.serial)
	_ = p.qmp.Close()
	_ = p.serial.Close()
	p.qmp = nil
}

// reconnect tries to reach a process that was silent.
func (p *process) reconnect() {
	ctx, cancel := context.WithTimeout(context.Background(), p.machine.driver.cfg.adopt)
	defer cancel()
	if err := p.connect(ctx); err != nil {
		return
	}
	if err := p.settle(ctx); err == nil {
		p.machine.driver.noteChange()
	}
}

// bury takes a process that is gone off its machine.
func (p *process) bury() {
	m := p.machine
	m.mu.Lock()
	if m.process == p {
		m.process = nil
	}
	m.mu.Unlock()
	signal(p.changed)
	m.driver.noteChange()
}

// kill ends the process at once. Its number is its own as long as it has not gone.
func (p *process) kill() error {
	select {
	case <-p.gone:
		return nil
	default:
		return syscall.Kill(p.pid, syscall.SIGKILL)
	}
}

// refresh asks for the state.
func (p *process) refresh(ctx context.Context) error {
	var status struct{ Status string }
	if err := p.do(ctx, "query-status", nil, &status); err != nil {
		return err
	}
	state := stateOf(status.Status)
	p.now.Store(&state)
	signal(p.changed)
	return nil
}

// stateOf is what QEMU's run state means.
func stateOf(status string) hypervisor.State {
	switch status {
	case "running":
		return hypervisor.Running
	case "shutdown":
		return hypervisor.Stopped
	}
	return hypervisor.Paused // it holds its memory, and its processors stand still, whatever the reason
}

// againTime is how long a guest may take before its power button is pressed again: one that is just starting has not heard it.
const againTime = 3 * time.Second

// askGuest presses the power button and waits until the guest has ended, or the time is over.
func (p *process) askGuest(ctx context.Context, limit time.Duration) error {
	press := func() error {
		if err := p.do(ctx, "system_powerdown", nil, nil); err != nil && !fault.Is(err, fault.Unavailable) {
			return err
		}
		return nil
	}
	if err := press(); err != nil {
		return err
	}
	over, again := time.NewTimer(limit), time.NewTicker(againTime)
	defer over.Stop()
	defer again.Stop()
	for p.state() != hypervisor.Stopped {
		select {
		case <-p.changed:
		case <-p.gone:
			return nil
		case <-again.C:
			if err := press(); err != nil {
				return err
			}
		case <-over.C:
			return nil
		case <-ctx.Done():
			return fault.New(fault.Canceled, "instance %s was asked to end, and has not yet: %w", p.machine.record().Name, context.Cause(ctx))
		}
	}
	return nil
}

// end has the process end, by its own doing or by force, and waits until it is gone.
func (p *process) end(ctx context.Context) error {
	soon, cancel := context.WithTimeout(ctx, endTime)
	_ = p.do(soon, "quit", nil, nil)
	select {
	case <-p.gone:
	case <-soon.Done():
	}
	cancel()
	if err := p.kill(); err != nil {
		return fault.New(fault.Environment, "cannot end QEMU (process %d) of instance %s: %w", p.pid, p.machine.record().Name, err)
	}
	select {
	case <-p.gone:
	case <-ctx.Done():
		return fault.New(fault.Unavailable, "QEMU (process %d) of instance %s does not end: %w", p.pid, p.machine.record().Name, context.Cause(ctx))
	}
	p.bury()
	return nil
}

// reset restarts the guest within its machine.
func (p *process) reset(ctx context.Context) error {
	for _, command := range []string{"system_reset", "cont"} {
		if err := p.do(ctx, command, nil, nil); err != nil {
			return err
		}
	}
	return p.refresh(ctx)
}

// resize tells the guest the size of a disk in MiB, whose volume has it already.
func (p *process) resize(ctx context.Context, n, size int) error {
	return p.do(ctx, "block_resize", map[string]any{"node-name": "content" + strconv.Itoa(n), "size": int64(size) << 20}, nil)
}

// adoptTime is the usual Config.adopt.
const adoptTime = 10 * time.Second

// adopt finds the process of a machine that another driver started.
func (m *machine) adopt(ctx context.Context) {
	held, err := lockHeld(m.dir)
	if err == nil { // there is none
		_ = held.Close()
		return
	}
	log := m.driver.cfg.Log.With("instance", m.rec.Name, "uuid", m.uuid)
	if !errors.Is(err, errHeld) {
		log.Warn("whether the machine runs cannot be told", "error", err)
		return
	}
	pid, err := processThatHolds(filepath.Join(m.dir, heldFile))
	if err != nil {
		log.Warn("the machine has a process that cannot be found", "error", err)
		return
	}
	p := m.newProcess(pid)
	if err := p.awaitEnd(); err != nil {
		log.Warn("the end of the machine's process cannot be watched", "process", pid, "error", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, m.driver.cfg.adopt)
	defer cancel()
	if err = p.connect(ctx); err == nil {
		err = p.settle(ctx)
	}
	if err != nil {
		log.Warn("the machine has a process that does not answer; it is left alone, and asked again", "process", pid, "error", err)
	}
	select {
	case <-p.gone: // it was ended
	default:
		m.have(p)
	}
}

// settle finds out what a process that another driver started does. One whose guest was not let go has not been started, and is ended.
func (p *process) settle(ctx context.Context) error {
	var status struct{ Status string }
	if err := p.do(ctx, "query-status", nil, &status); err != nil {
		return err
	}
	if spec := p.machine.record().Spec; status.Status == "prelaunch" && (spec == nil || !spec.StartPaused) {
		p.machine.driver.cfg.Log.Warn("the machine was being started when its agent ended; it has not run, and is ended",
			"instance", p.machine.record().Name, "uuid", p.machine.uuid, "process", p.pid)
		return p.end(ctx)
	}
	state := stateOf(status.Status)
	p.now.Store(&state)
	signal(p.changed)
	return nil
}

// letGo ends the connections and leaves the process alone.
func (m *machine) letGo() {
	p := m.running()
	if p == nil {
		return
	}
	p.mu.Lock()
	p.let = true
	p.mu.Unlock()
	p.disconnect()
}

// awaitEnd has gone closed when a process ends that is no child.
func (p *process) awaitEnd() error {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return err
	}
	go func() {
		defer func() { _ = unix.Close(fd) }()
		for {
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			if !errors.Is(err, unix.EINTR) {
				break
			}
		}
		p.hasGone()
	}()
	return nil
}

// processThatHolds finds the process that has a file open.
func processThatHolds(path string) (int, error) {
	var wanted syscall.Stat_t
	if err := syscall.Stat(path, &wanted); err != nil {
		return 0, err
	}
	all, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, e := range all {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		var is syscall.Stat_t // its place among the descriptors is always the same
		if err := syscall.Stat(fmt.Sprintf("/proc/%d/fd/%d", pid, heldFD), &is); err == nil && is.Ino == wanted.Ino && is.Dev == wanted.Dev {
			return pid, nil
		}
	}
	return 0, fault.New(fault.NotFound, "no process has %s open", path)
}
