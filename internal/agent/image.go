package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/drover-project/drover/internal/agent/effect"
	"github.com/drover-project/drover/internal/agent/imagecache"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/diskimage"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/qemuimg"
	"github.com/drover-project/drover/internal/seed"
	"github.com/drover-project/drover/internal/storage"
)

const imagesDir = "images"

// Image says which image is meant.
type Image = imagecache.Image

// ImageOS is the operating system that installs images: its variants are those that the cluster has. It lives on no node.
func ImageOS(variants []string) OS {
	o := OS{Name: cluster.ImageOS, Variants: variants, APIVersions: slices.Clone(apiVersions)}
	for _, p := range cluster.ImageParameters() {
		o.Parameters = append(o.Parameters, Parameter{Name: p[0], Doc: p[1]})
	}
	return o
}

// FirstStart is what an instance is told at its first start, by the parameters of ImageOS. Invalid or TooLarge if it cannot be told.
func FirstStart(of hypervisor.Thing, params map[string]string) (seed.Seed, error) {
	s, err := seed.Told{
		ID: of.UUID, Hostname: of.Name,
		SSHKeys: params[cluster.SSHKeys], UserData: params[cluster.UserData], NetworkConfig: params[cluster.NetworkConfig],
	}.Seed()
	if err == nil {
		err = s.Check()
	}
	return s, err
}

// FetchImage has the node keep a copy of an image, and look at it: what it returns is complete. What the image says of itself is held to.
func (a *Agent) FetchImage(ctx context.Context, order Order, image Image, log func(line string)) (Image, error) {
	if err := a.fence.Check(ctx, effect.Claim{Order: order, What: "fetch image " + image.Name}); err != nil {
		return Image{}, err
	}
	return a.images.Look(ctx, image, log)
}

// stoodOn tells which images the disks of a node stand on, by their sums. It cannot while there is something of which nobody can read what it is.
func stoodOn(d hypervisor.Driver) func() (map[string]bool, error) {
	return func() (map[string]bool, error) {
		all, err := d.Instances(context.Background())
		sums := map[string]bool{}
		for i := range all {
			if all[i].UUID == "" && err == nil {
				err = fault.New(fault.Environment, "nobody can read what %s is", all[i].Name)
			}
			for _, disk := range all[i].Disks {
				sums[disk.Image] = true
			}
		}
		return sums, err
	}
}

// ReadImage reads a part of a copy of the image with a sum from a place on, for another node, or tells its size alone, for a place before the beginning.
// NotFound where the node has no copy.
func (a *Agent) ReadImage(_ context.Context, sum string, at int64) (Piece, error) {
	return a.images.Piece(sum, at)
}

// KeepImage takes a piece of an image that another node has: the first waits until nobody else fetches the image, the last has it checked and kept. It
// returns true when the node has a whole copy, and no more has to come.
func (a *Agent) KeepImage(ctx context.Context, order Order, image Image, piece Piece, log func(line string)) (bool, error) {
	if err := a.fence.Check(ctx, effect.Claim{Order: order, What: "keep image " + image.Name}); err != nil {
		return false, err
	}
	return a.images.Keep(ctx, image, fmt.Sprintf("job %d of %s, opcode %d", order.Job, order.Life, order.Opcode), piece, log)
}

// InstallImage writes the content of an image on the first disk of an instance, and keeps what the instance is told at its first start, by the
// parameters of ImageOS. It is fetched before anything is done to the instance. If it fails the disk is empty.
func (a *Agent) InstallImage(ctx context.Context, order Order, spec hypervisor.Spec, image Image, params map[string]string, log func(line string)) error {
	if err := a.fence.Check(ctx, effect.Claim{Order: order, What: "install instance " + spec.Name}); err != nil {
		return err
	}
	told, err := FirstStart(spec.Thing(), params)
	if err != nil {
		return err
	}
	cd, err := told.ISO()
	if err != nil {
		return err
	}
	disk, err := a.firstDisk(ctx, &spec, image)
	if err != nil {
		return err
	}
	program, err := qemuimg.Program()
	if err != nil {
		return err
	}
	copied, release, err := a.images.Have(ctx, image, log)
	if err != nil {
		return err
	}
	defer release()
	return a.install(ctx, order, &spec, log, func(hold *effect.Hold) error {
		if err := a.blank(ctx, spec.Thing(), disk); err != nil {
			return err
		}
		if err := a.cfg.Driver.Seed(ctx, spec.Thing(), cd); err != nil {
			return err
		}
		err := a.putImage(ctx, hold, &spec, disk, image, copied, program, log)
		if left := a.clearHalf(ctx, err, spec.Thing(), disk); left != nil {
			err = errors.Join(err, left)
		}
		return err
	})
}

// putImage has a disk be what an image is: it stands on the copy of the image where it can, and has it written on it else.
func (a *Agent) putImage(ctx context.Context, hold *effect.Hold, spec *hypervisor.Spec, disk *hypervisor.Disk, image Image, copied, program string, log func(string)) error {
	if disk.Kept() == diskimage.QCOW2 && (disk.Template == "" || disk.Template == cluster.DiskFile) { // others are not this node's alone
		log(fmt.Sprintf("disk 0 of %s stands on image %s", spec.Name, image.Name))
		return a.cfg.Driver.Blank(ctx, spec.Thing(), disk.UUID, &storage.Base{SHA256: image.SHA256, Path: copied, Format: image.Format})
	}
	log(fmt.Sprintf("writing image %s on disk 0 of %s", image.Name, spec.Name))
	return a.convert(ctx, hold, imagecache.CopyArguments(program, image.Format, copied, disk.Kept(), disk.Path), "the writing of image "+image.Name)
}

// blank has a disk read as zeros.
func (a *Agent) blank(ctx context.Context, of hypervisor.Thing, disk *hypervisor.Disk) error {
	if disk.Kept() == diskimage.QCOW2 {
		return a.cfg.Driver.Blank(ctx, of, disk.UUID, nil)
	}
	return empty(disk.Path)
}

// clearHalf leaves neither half a disk nor what the instance was to be told, if an installation failed. What ended for its controller no longer leads is
// left to the next one, who begins it anew, and may do so by now.
func (a *Agent) clearHalf(ctx context.Context, err error, of hypervisor.Thing, disk *hypervisor.Disk) error {
	if err == nil || !fault.Is(err, fault.Failed) && !fault.Is(err, fault.Exhausted) && !fault.Is(context.Cause(ctx), fault.Canceled) {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	return errors.Join(a.blank(ctx, of, disk), a.cfg.Driver.Seed(ctx, of, nil))
}

// firstDisk is the disk that an image is installed on, as the node has it.
func (a *Agent) firstDisk(ctx context.Context, spec *hypervisor.Spec, image Image) (*hypervisor.Disk, error) {
	if len(spec.Disks) == 0 {
		return nil, fault.New(fault.Invalid, "instance %s has no disk that the image %s could be written on", spec.Name, image.Name).At("disks")
	}
	first := spec.Disks[0]
	if int64(first.Size) < image.VirtualSize {
		return nil, fault.New(fault.Invalid, "disk 0 of %s has %d MiB, and the image %s needs %d", spec.Name, first.Size, image.Name, image.VirtualSize).At("disks")
	}
	there, err := a.cfg.Driver.Instance(ctx, spec.Thing())
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(there.Disks, func(d hypervisor.Disk) bool { return d.UUID == first.UUID })
	switch {
	case i < 0:
		return nil, fault.New(fault.WrongState, "disk 0 (%s) of instance %s does not exist on node %s", first.UUID, spec.Name, a.cfg.Node)
	case there.Disks[i].Path == "":
		return nil, fault.New(fault.Unsupported, "images cannot be installed on node %s: its hypervisor, %s, only pretends to have disks", a.cfg.Node, a.cfg.Driver.Kind()).
			WithHint("a node whose agent is set to hypervisor kvm has disks; drover instance add NAME --os noop makes an instance here")
	}
	return &there.Disks[i], nil
}

// convert runs the program that writes the content of disks; what says what for.
func (a *Agent) convert(ctx context.Context, hold *effect.Hold, args []string, what string) error {
	output := &tail{limit: keptOutput}
	exit, err := hold.Run(ctx, effect.Command{Args: args, Dir: "/", Env: []string{"PATH=/sbin:/bin:/usr/sbin:/usr/bin", "LC_ALL=C"}, Output: output})
	switch {
	case ctx.Err() != nil && err != nil:
		code := fault.Canceled
		if fault.Is(context.Cause(ctx), fault.Fenced) {
			code = fault.Fenced
		}
		return fault.New(code, "%s was ended: %w", what, context.Cause(ctx))
	case err != nil:
		return err
	case !exit.Known:
		return fault.New(fault.Failed, "%s was killed on node %s", what, a.cfg.Node)
	case exit.Status != 0:
		text := output.lastLines(shownLines)
		code := fault.Failed
		if strings.Contains(text, syscall.ENOSPC.Error()) || strings.Contains(text, "No space left on device") {
			code = fault.Exhausted
		}
		return fault.New(code, "%s failed on node %s (exited with exit code %d):\n%s", what, a.cfg.Node, exit.Status, text)
	}
	return nil
}

// empty has a disk read as zeros, and keeps its size.
func empty(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fault.New(fault.Environment, "the disk cannot be emptied: %w", err)
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		const hole = 0x2 | 0x1 // FALLOC_FL_PUNCH_HOLE, which wants FALLOC_FL_KEEP_SIZE
		err = syscall.Fallocate(int(f.Fd()), hole, 0, max(1, size))
	}
	if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS) {
		err = zero(f, size)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fault.New(fault.Environment, "the disk cannot be emptied: %w", err)
	}
	return nil
}

// zero writes zeros, where there can be no holes.
func zero(f *os.File, size int64) error {
	zeros := make([]byte, 1<<20)
	for at := int64(0); at < size; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at); err != nil {
			return err
		}
	}
	return nil
}
