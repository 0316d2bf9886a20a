package kvm

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/backoff"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/qmp"
)

// process is a QEMU that runs, or that is left behind a guest that ended.
type process struct {
	machine *machine
	pid     int
	now     atomic.Pointer[hypervisor.State]
	look    chan struct{} // there is something to ask
	changed chan struct{} // capacity 1: the state may have changed
	pulled  chan struct{} // capacity 1: the guest may have let go of a device
	jobs    chan struct{} // capacity 1: a job may have come further
	gone    chan struct{} // closed when the process is no more
	ended   error         // how a child of ours ended, when it has gone; nil for one that ended well, and for others
	killed  atomic.Bool   // we have killed it
	once    sync.Once
	memory  atomic.Int64 // MiB that the guest has by now; 0 while nobody knows
	tpm     *tpm         // nil for a machine without one
	lostTPM atomic.Bool  // it has ended, and the machine has not
	halts   atomic.Int64 // how often it was told to stand still for a snapshot, and to go on behind it

	mu     sync.Mutex
	let    bool        // the driver has let it go
	ending bool        // it was told to end
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
	return p.doWith(ctx, nil, command, arguments, out)
}

// doWith is do for a command that QEMU is handed an open file with.
func (p *process) doWith(ctx context.Context, file *os.File, command string, arguments, out any) error {
	p.mu.Lock()
	c := p.qmp
	p.mu.Unlock()
	if c == nil {
		return fault.New(fault.Unavailable, "the QEMU of instance %s (process %d) does not answer at its monitor", p.machine.record().Name, p.pid).
			WithHint("another program may be connected to it; it is asked again and again")
	}
	return c.DoWith(ctx, file, command, arguments, out)
}

// run begins the process, waits for its monitor and lets the guest go, to have so much memory in MiB.
func (m *machine) run(ctx context.Context, spec *hypervisor.Spec, memory int, args []string, files []*os.File) error {
	p, err := m.beginProcess(spec, args, files)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	err = p.connect(ctx)
	if mask := params(spec.Params).text("cpu_mask"); err == nil && mask != "" {
		err = p.pin(ctx, mask, max(1, spec.VCPUs))
	}
	if err == nil && memory < spec.Memory {
		err = p.balloon(ctx, memory)
	}
	if err == nil && spec.Snapshot != "" {
		err = p.takeSnapshot(ctx)
	}
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
	p.endBehindMonitor()
	_ = p.kill()
	<-p.gone
	p.disconnect()
	ended := p.endTPM(ctx)
	if fault.Is(err, fault.Environment) { // it is the node's, and not QEMU's to tell
		return errors.Join(err, ended)
	}
	return errors.Join(p.notStarted(err), ended)
}

// endBehindMonitor waits for the end of a process whose monitor has gone, for a moment: how it ended says more than that it does not answer.
func (p *process) endBehindMonitor() {
	p.mu.Lock()
	c := p.qmp
	p.mu.Unlock()
	if c != nil {
		select {
		case <-c.Done():
		default:
			return // it answers, and has refused something
		}
	}
	select {
	case <-p.gone:
	case <-time.After(time.Second):
	}
}

// notStarted is why a machine did not start whose process is no more: what QEMU said, or how it ended, or else the error that there was.
func (p *process) notStarted(err error) error {
	m := p.machine
	said, how := m.complaint(), ""
	if p.ended != nil && !p.killed.Load() {
		how = "it ended by itself, or by somebody else (" + p.ended.Error() + ")"
	}
	text := strings.Join(slices.DeleteFunc([]string{said, how}, func(s string) bool { return s == "" }), "; ")
	failed := fault.New(fault.Failed, "QEMU for instance %s did not start: %s", m.record().Name, cmp.Or(text, err.Error()))
	switch {
	case said != "":
		return failed.WithHint("%s has what it said", filepath.Join(m.dir, complainFile))
	case how != "":
		return failed.WithHint("it said nothing; the node's kernel says (journalctl -k) whether it ended it for want of memory")
	}
	return failed
}

// beginProcess begins QEMU, and before it the TPM of a machine that has one.
func (m *machine) beginProcess(spec *hypervisor.Spec, args []string, files []*os.File) (*process, error) {
	complaints, err := m.openComplaints()
	if err != nil {
		return nil, err
	}
	defer func() { _ = complaints.Close() }()
	var companion *tpm
	if hasTPM(spec.Params) {
		var line *os.File
		if companion, line, err = m.startTPM(complaints); err != nil {
			return nil, err
		}
		defer func() { _ = line.Close() }() // it is QEMU's alone; without a QEMU the TPM ends
		files = append(slices.Clip(files), line)
	}
	cmd := exec.Command(m.driver.qemu.path, args...) //nolint:noctx // a guest outlives who started it
	cmd.Dir, cmd.Env, cmd.ExtraFiles = "/", []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}, files
	cmd.Stdout, cmd.Stderr = complaints, complaints
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: m.driver.credential(m.record())}
	if err := cmd.Start(); err != nil {
		return nil, fault.New(fault.Environment, "cannot start QEMU for instance %s: %w", spec.Name, err)
	}
	p := m.newProcess(cmd.Process.Pid)
	p.tpm = companion
	go func() {
		p.ended = cmd.Wait()
		p.hasGone()
	}()
	return p, nil
}

// mostComplaints is how much of what QEMU complains of is kept, in bytes: a guest can have it complain without end.
const mostComplaints = 1 << 20

// openComplaints opens the file that QEMU writes its complaints at the end of, wherever that is by then (boundComplaints).
func (m *machine) openComplaints() (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(m.dir, complainFile), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot make a file in %s: %w", m.dir, err)
	}
	return f, nil
}

// boundComplaints empties the file when it has become too long.
func (m *machine) boundComplaints() error {
	path := filepath.Join(m.dir, complainFile)
	info, err := os.Stat(path)
	if err != nil || info.Size() <= mostComplaints {
		return err
	}
	return os.Truncate(path, 0)
}

// complaint is what QEMU said, in one line.
func (m *machine) complaint() string {
	data, _ := os.ReadFile(filepath.Join(m.dir, complainFile))
	return strings.ReplaceAll(strings.TrimSpace(fault.Clip(string(data), 1000)), "\n", "; ")
}

func (m *machine) newProcess(pid int) *process {
	return &process{machine: m, pid: pid, look: make(chan struct{}, 1), changed: make(chan struct{}, 1), pulled: make(chan struct{}, 1), jobs: make(chan struct{}, 1), gone: make(chan struct{})}
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
	if p.tpm != nil {
		go p.watchTPM()
	}
}

// heard is told of each event; what has changed is asked for, so that there is one meaning of a state.
func (p *process) heard(e qmp.Event) {
	switch e.Name {
	case "SHUTDOWN", "BALLOON_CHANGE", "STOP", "RESUME", "RESET", "GUEST_PANICKED", "SUSPEND", "WAKEUP":
		signal(p.look)
	case "DEVICE_DELETED":
		signal(p.pulled)
	case "JOB_STATUS_CHANGE":
		signal(p.jobs)
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

// boundEvery is the pause between two looks at how much QEMU has complained.
const boundEvery = 10 * time.Second

// follow asks for the state whenever it may have changed, until the monitor ends, and looks at how much QEMU complains.
func (p *process) follow(monitor *qmp.Client) {
	m := p.machine
	bound := time.NewTicker(boundEvery)
	defer bound.Stop()
	for {
		select {
		case <-bound.C:
			_ = m.boundComplaints() // the next time, then
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

// reconnect tries to reach a process that was silent, and that the driver has not let go: its monitor has room for one.
func (p *process) reconnect() {
	p.mu.Lock()
	let := p.let
	p.mu.Unlock()
	if let {
		return
	}
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
		p.killed.Store(true)
		return syscall.Kill(p.pid, syscall.SIGKILL)
	}
}

// refresh asks for the state.
func (p *process) refresh(ctx context.Context) error {
	var status struct{ Status string }
	halts := p.halts.Load()
	if err := p.do(ctx, "query-status", nil, &status); err != nil {
		return err
	}
	halted := halts%2 == 1 || halts != p.halts.Load()
	if err := p.askMemory(ctx); err != nil {
		return err
	}
	state := stateOf(status.Status)
	if state == hypervisor.Paused && halted {
		state = hypervisor.Running
	}
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
	p.mu.Lock()
	p.ending = true
	p.mu.Unlock()
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
	return p.endTPM(ctx)
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

// sizeOf is the size in bytes that the guest knows of the disk in a slot.
func (p *process) sizeOf(ctx context.Context, slot int) (int64, error) {
	var nodes []struct {
		Name  string `json:"node-name"`
		Image struct {
			Size int64 `json:"virtual-size"`
		} `json:"image"`
	}
	if err := p.do(ctx, "query-named-block-nodes", map[string]any{"flat": true}, &nodes); err != nil {
		return 0, err
	}
	name := named(slot).content
	for i := range nodes {
		if nodes[i].Name == name {
			return nodes[i].Image.Size, nil
		}
	}
	return 0, fault.New(fault.Environment, "QEMU of instance %s has nothing of the name %s", p.machine.record().Name, name)
}

// resize tells the guest the size of the disk in a slot in MiB, whose volume has it already.
func (p *process) resize(ctx context.Context, slot, size int) error {
	return p.do(ctx, "block_resize", map[string]any{"node-name": named(slot).content, "size": int64(size) << 20}, nil)
}
