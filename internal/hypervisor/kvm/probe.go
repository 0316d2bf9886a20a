package kvm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/hypervisor"
)

// kvmDevice is what a processor runs guests by.
const kvmDevice = "/dev/kvm"

// probeTime is how long a guest may take to come up by KVM. It takes a tenth of a second where it is worth it; there are machines where the
// device opens, and a guest takes longer than by emulation.
const probeTime = 3 * time.Second

// accelerator is what runs a machine: the driver's, unless the parameters of the machine say otherwise.
func (d *Driver) accelerator(spec *hypervisor.Spec) string {
	switch params(spec.Params).text("kvm_flag") {
	case "enabled":
		return "kvm"
	case "disabled":
		return "tcg"
	}
	return d.cfg.Accelerator
}

// probe chooses what runs guests, and says why: KVM if a guest comes up by it.
func (d *Driver) probe(ctx context.Context) (accelerator, why string) {
	if f, err := os.OpenFile(kvmDevice, os.O_RDWR, 0); err != nil {
		return "tcg", "there is no KVM: " + err.Error()
	} else if err := f.Close(); err != nil {
		return "tcg", err.Error()
	}
	began := time.Now()
	if err := d.qemu.bootOnce(ctx, "kvm", d.user.asCredential()); err != nil {
		return "tcg", "a guest does not come up by KVM: " + err.Error()
	}
	return "kvm", fmt.Sprintf("a guest came up by KVM in %d ms", time.Since(began).Milliseconds())
}

// bootOnce runs a tiny guest until it says that it is up.
func (p *program) bootOnce(ctx context.Context, accelerator string, user *syscall.Credential) error {
	ctx, cancel := context.WithTimeoutCause(ctx, probeTime, fmt.Errorf("it was not up within %v", probeTime))
	defer cancel()
	disk, err := memoryFile(TinyDisk())
	if err != nil {
		return err
	}
	defer func() { _ = disk.Close() }()
	ours, theirs, err := pair()
	if err != nil {
		return err
	}
	defer func() { _ = ours.Close() }()
	cmd := exec.CommandContext(ctx, p.path, "-nodefaults", "-no-user-config", "-machine", usualType, "-accel", accelerator, "-m", "64", "-display", "none",
		"-chardev", "socket,id=serial,fd=3", "-device", "isa-serial,chardev=serial",
		"-add-fd", "fd=4,set=1", "-blockdev", "driver=file,node-name=disk,filename=/dev/fdset/1,locking=off", "-device", "virtio-blk-pci,drive=disk,bootindex=1",
		"-sandbox", sandbox)
	var said tail
	cmd.Dir, cmd.ExtraFiles, cmd.Stdout, cmd.Stderr = "/", []*os.File{theirs, disk}, &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = ours.SetReadDeadline(time.Now()) })
	up := awaitUp(ours.Read)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	switch {
	case up == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(said) > 0:
		return errors.New(string(bytes.TrimSpace(said)))
	}
	return up
}

// awaitUp reads until a guest has said that it is up.
func awaitUp(read func([]byte) (int, error)) error {
	var heard []byte
	for chunk := make([]byte, 256); !bytes.Contains(heard, []byte("GUEST-UP")); {
		n, err := read(chunk)
		heard = append(heard, chunk[:n]...)
		if err != nil {
			return err
		}
	}
	return nil
}

// memoryFile is a file that is in memory alone.
func memoryFile(content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("disk", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "disk")
	if _, err := f.WriteAt(content, 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
