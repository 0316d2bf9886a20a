package kvm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// tpm is the process that is the TPM of a machine (swtpm). Its line to QEMU is a pair of open files that nobody else has, so that it ends by
// itself when QEMU does, however that ends, and when QEMU is never started.
type tpm struct {
	pid  int
	gone chan struct{} // closed when the process is no more
}

// The names of what a TPM has in its machine's directory: its state, which is the machine's user's, and the lock that says that there is a process.
const (
	tpmDir      = "tpm"
	tpmHeldFile = "tpm.held"
)

// The descriptors that a TPM finds open.
const (
	tpmStateFD = 3 + iota
	tpmLineFD
	tpmHeldFD
)

// hasTPM reports whether a machine is to have a TPM.
func hasTPM(p params) bool { return p.text("tpm") == "v2.0" }

// findTPM is where the program is. Environment when the node has none.
func findTPM() (string, error) {
	found, err := exec.LookPath("swtpm")
	if err != nil {
		return "", fault.New(fault.Environment, "the node has no swtpm, which the hypervisor parameter tpm=v2.0 takes: %w", err).At("hvparams").
			WithHint("install it there (Debian: apt-get install swtpm)")
	}
	return found, nil
}

// tpmArguments are those of the line to the TPM, which is the last file that is open.
func tpmArguments(spec *hypervisor.Spec, p params, with setup) ([]string, error) {
	if !hasTPM(p) {
		return nil, nil
	}
	fd := behindDiscs(spec, p, with)
	if with.firmware != nil {
		fd += 2
	}
	return []string{
		"-chardev", "socket,id=tpm,fd=" + strconv.Itoa(fd), "-tpmdev", "emulator,id=tpm0,chardev=tpm",
		"-device", object(map[string]any{"driver": "tpm-tis", "tpmdev": "tpm0"}),
	}, nil
}

// startTPM begins the TPM of a machine that is about to begin, and returns QEMU's end of the line between them.
func (m *machine) startTPM(complaints *os.File) (t *tpm, line *os.File, err error) {
	program, err := findTPM()
	if err != nil {
		return nil, nil, err
	}
	user := m.driver.credential(m.record())
	state, err := m.openTPM(user)
	if err != nil {
		return nil, nil, fault.New(fault.Environment, "cannot open the state of the TPM of %s: %w", m.record().Name, err)
	}
	defer func() { _ = state.Close() }()
	held, err := m.lockTPM()
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = held.Close() }()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fault.New(fault.Environment, "cannot open a line to the TPM of %s: %w", m.record().Name, err)
	}
	line, theirs := os.NewFile(uintptr(fds[0]), "tpm"), os.NewFile(uintptr(fds[1]), "tpm")
	defer func() { _ = theirs.Close() }()
	cmd := exec.Command(program, "socket", "--tpm2", "--tpmstate", "dir="+opened(tpmStateFD)+",mode=0600", //nolint:noctx // it outlives who started it
		"--ctrl", "type=unixio,clientfd="+strconv.Itoa(tpmLineFD), "--terminate")
	cmd.Dir, cmd.Env, cmd.ExtraFiles = "/", []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}, []*os.File{state, theirs, held}
	cmd.Stdout, cmd.Stderr = complaints, complaints
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: user}
	if err := cmd.Start(); err != nil {
		_ = line.Close()
		return nil, nil, fault.New(fault.Environment, "cannot start the TPM of instance %s: %w", m.record().Name, err)
	}
	t = &tpm{pid: cmd.Process.Pid, gone: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // what it complained of says more
		close(t.gone)
	}()
	return t, line, nil
}

// openTPM opens the directory of the TPM's state, which is made if the machine has none, and has it be the user's alone. The way there is the
// agent's: no other user finds it by its name.
func (m *machine) openTPM(user *syscall.Credential) (*os.File, error) {
	path := filepath.Join(m.dir, tpmDir)
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	dir, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil || user == nil {
		return dir, err
	}
	if err := handOver(dir, user); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// handOver gives a directory and the files in it to a user, the directory last, so that what was interrupted is done again. Who had it before
// may have put there what leads elsewhere, which is nobody's to be given.
func handOver(dir *os.File, user *syscall.Credential) error {
	var is unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &is); err != nil || is.Uid == user.Uid {
		return err
	}
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		var is unix.Stat_t
		err = unix.Fstat(fd, &is)
		if err == nil && (is.Mode&unix.S_IFMT != unix.S_IFREG || is.Nlink != 1) {
			err = fmt.Errorf("%s is no file of its own", filepath.Join(dir.Name(), name))
		}
		if err == nil {
			err = unix.Fchown(fd, int(user.Uid), int(user.Gid))
		}
		if err := errors.Join(err, unix.Close(fd)); err != nil {
			return err
		}
	}
	return dir.Chown(int(user.Uid), int(user.Gid))
}

// lockTPM takes the lock that says that a machine's TPM has a process; the process inherits it. One that is left of a machine that has none
// itself is ended.
func (m *machine) lockTPM() (*os.File, error) {
	path := filepath.Join(m.dir, tpmHeldFile)
	f, err := lockFile(path)
	if !errors.Is(err, errHeld) {
		return f, err
	}
	if left, err := findProcessOfTPM(path); err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), endTime)
		defer cancel()
		if err := left.end(ctx); err != nil {
			return nil, err
		}
	}
	if f, err = lockFile(path); errors.Is(err, errHeld) {
		err = fault.New(fault.Busy, "the TPM of instance %s has a process of before, which does not end", m.record().Name)
	}
	return f, err
}

// freeTPM ends what is left of a TPM whose machine has no process.
func (m *machine) freeTPM() error {
	held, err := m.lockTPM()
	if errors.Is(err, fs.ErrNotExist) { // there is not even a directory
		return nil
	}
	if err == nil {
		err = held.Close()
	}
	return err
}

// findProcessOfTPM finds the process that a driver of before started.
func findProcessOfTPM(held string) (*tpm, error) {
	pid, err := processThatHolds(held, tpmHeldFD)
	if err != nil {
		return nil, err
	}
	t := &tpm{pid: pid, gone: make(chan struct{})}
	return t, awaitEnd(pid, func() { close(t.gone) })
}

// end waits until the process is gone, for a moment by its own doing, for it may be writing, and then by force.
func (t *tpm) end(ctx context.Context) error {
	soon, cancel := context.WithTimeout(ctx, endTime/2)
	defer cancel()
	select {
	case <-t.gone:
		return nil
	case <-soon.Done():
	}
	if err := syscall.Kill(t.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fault.New(fault.Environment, "cannot end the TPM (process %d): %w", t.pid, err)
	}
	select {
	case <-t.gone:
		return nil
	case <-ctx.Done():
		return fault.New(fault.Unavailable, "the TPM (process %d) does not end: %w", t.pid, context.Cause(ctx))
	}
}

// endTPM has the TPM of a process end that is gone itself.
func (p *process) endTPM(ctx context.Context) error {
	if p.tpm == nil {
		return nil
	}
	return p.tpm.end(ctx)
}

// adoptTPM finds the TPM of a process that another driver started, nil if it has none. One that has ended is gone.
func (m *machine) adoptTPM() *tpm {
	if spec := m.record().Spec; spec == nil || !hasTPM(spec.Params) {
		return nil
	}
	t, err := findProcessOfTPM(filepath.Join(m.dir, tpmHeldFile))
	if err != nil {
		t = &tpm{gone: make(chan struct{})}
		close(t.gone)
	}
	return t
}

// watchTPM tells when a TPM ends whose machine runs on, which nothing but somebody on the node does to it.
func (p *process) watchTPM() {
	select {
	case <-p.tpm.gone:
	case <-p.gone:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	if err := p.refresh(ctx); err != nil { // it is ending itself
		select {
		case <-p.gone:
			return
		case <-ctx.Done(): // it is silent, and there
		}
	}
	p.mu.Lock()
	ends := p.let || p.ending
	p.mu.Unlock()
	if ends {
		return
	}
	p.lostTPM.Store(true)
	m := p.machine
	m.driver.cfg.Log.Warn("the TPM of a machine has ended, and the machine runs on without it", "instance", m.record().Name, "uuid", m.uuid, "process", p.tpm.pid)
	m.driver.noteChange()
}
