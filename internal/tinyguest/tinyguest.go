// Package tinyguest makes a guest that is as small as Linux gets and real all the same: Debian's kernel for clouds, its modules for
// virtio, and busybox, in two files that a hypervisor boots without a disk. It says who it is, lets root log in at its console, obeys the power button,
// asks for an address, and does of a seed (package seed) what it can.
//
// It is made by apt-get, dpkg-deb and, from Debian 13 on, xz, without rights; what the guest does stands in root/.
//
// Invariants:
//   - A guest is in its place whole or not at all, whoever was interrupted, and however (TestWhoIsInterruptedLeavesNothingHalfMade).
//   - What is in its place is what was put there and what this version would make, or it is made anew (TestAGuestIsKept, TestADamagedGuestIsMadeAnew).
//   - The same packages make the same bytes (TestTheSamePackagesAreTheSameGuest).
//   - A module is loaded after those that it needs; one that is needed and absent is an error, one that is built in is not
//     (TestModulesAreInOrder).
//   - A directory stands before what is in it, for the kernel drops files without one (TestDirectoriesStandBeforeFiles).
package tinyguest

import (
	"context"
	"os"
	"path/filepath"

	"github.com/drover-project/drover/internal/fault"
)

// Arguments is the command line that the kernel wants: the console is the first serial port, and a kernel that cannot go on starts anew.
const Arguments = "console=ttyS0 quiet panic=1"

// MinMemory is how much memory the guest needs, in MiB.
const MinMemory = 128

// Options say where a guest is made.
type Options struct {
	// Dir is a directory that holds guests, and is made if it is not there. A guest stays until somebody removes it: whoever wants a newer kernel removes
	// the directory.
	Dir string
	// Packages is a directory where packages are kept that were fetched, so that they are not fetched again; empty: none are kept.
	Packages string
	// Progress is told, in a few words for people, what is done next; nil: nobody is. It is not called when there is nothing to do.
	Progress func(text string)
}

// Guest is a guest on this machine.
type Guest struct {
	// Kernel and Initrd are the absolute paths of the two files that a hypervisor boots.
	Kernel, Initrd string
	// Version is that of the kernel, such as 6.1.0-56-cloud-amd64.
	Version string
}

// Build returns the guest that is in a directory, and makes it if there is none that fits: some seconds, 30 MB to fetch, 150 MB on disk meanwhile. Of several that
// build at one time one does, and the others wait for it. Its errors are Environment where a program, a right or room on disk is
// missing, Unavailable where packages cannot be fetched, Unsupported where they are not as expected, and Canceled.
func Build(ctx context.Context, o Options) (Guest, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return Guest{}, unwritable(o.Dir, err)
	}
	b := builder{place: place{dir}, packages: o.Packages, progress: o.Progress}
	if b.progress == nil {
		b.progress = func(string) {}
	}
	if g, ok := b.place.guest(); ok {
		return g, nil
	}
	unlock, err := lock(ctx, dir)
	if err != nil {
		return Guest{}, err
	}
	defer unlock()
	if g, ok := b.place.guest(); ok { // another has made it meanwhile
		return g, nil
	}
	return b.build(ctx)
}

// builder makes one guest.
type builder struct {
	place    place
	packages string
	progress func(string)
}

// build makes a guest in a directory beside its place, and moves it there.
func (b *builder) build(ctx context.Context) (Guest, error) {
	b.place.sweep()
	work, err := b.place.work()
	if err != nil {
		return Guest{}, unwritable(b.place.dir, err)
	}
	defer func() { _ = os.RemoveAll(work) }() // what stays is swept next time
	tree := filepath.Join(work, "tree")
	packages, err := b.unpack(ctx, work, tree)
	if err != nil {
		return Guest{}, err
	}
	b.progress("putting the guest together")
	made := filepath.Join(work, "guest")
	if err := assemble(ctx, tree, made, packages); err != nil {
		return Guest{}, err
	}
	b.progress("putting it in place")
	if err := ctx.Err(); err != nil {
		return Guest{}, canceled(ctx)
	}
	if err := b.place.put(made, filepath.Join(work, "former")); err != nil {
		return Guest{}, unwritable(b.place.dir, err)
	}
	g, ok := b.place.guest()
	if !ok {
		return Guest{}, fault.New(fault.Environment, "the guest in %s changed while it was put there", b.place.dir).WithHint("somebody else writes there; try again")
	}
	return g, nil
}

func unwritable(dir string, err error) error {
	return fault.New(fault.Environment, "cannot make the tiny guest in %s: %w", dir, err).WithHint("it needs a directory that may be written, with 200 MB free")
}

func canceled(ctx context.Context) error {
	return fault.New(fault.Canceled, "the tiny guest was not made, for that was cancelled: %w", context.Cause(ctx))
}
