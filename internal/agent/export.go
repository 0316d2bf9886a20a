package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/drover-project/drover/internal/agent/effect"
	"github.com/drover-project/drover/internal/agent/exports"
	"github.com/drover-project/drover/internal/agent/imagecache"
	"github.com/drover-project/drover/internal/agent/pieces"
	"github.com/drover-project/drover/internal/diskimage"
	"github.com/drover-project/drover/internal/export"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/qemuimg"
)

const exportsDir = "export"

// Dump says which disk of an instance is dumped, or comes from a dump, where the dump is, and what it is.
type Dump struct {
	exports.Place

	// Disk is the place of the disk among those of the instance.
	Disk int         `json:"disk"`
	Form export.Form `json:"form"`
	// OS is the operating system whose scripts make and read dumps of the form Script.
	OS string `json:"os"`
	// Snapshot says that what is dumped is what the disk had when the snapshot was made that has the id of Place, and not what it has.
	Snapshot bool `json:"snapshot,omitempty"`
}

// Piece is a part of a dump, or of an image, on its way to another node.
type Piece = pieces.Piece

// Exports lists the exports that the node keeps, by name.
func (a *Agent) Exports(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault.New(fault.Canceled, "listing exports was interrupted: %w", err)
	}
	return a.exports.List()
}

// HalfExports lists what is being made of exports on the node, or was left of some, by id.
func (a *Agent) HalfExports(ctx context.Context) ([]exports.Half, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault.New(fault.Canceled, "listing what is made of exports was interrupted: %w", err)
	}
	return a.exports.Halves()
}

// Export tells what an export says, which is meant by its name or its whole path. NotFound if there is none, Invalid if it is no sound one.
func (a *Agent) Export(_ context.Context, name string) (export.Export, error) {
	e, err := a.exports.Read(name)
	if err != nil {
		return export.Export{}, err
	}
	return *e, nil
}

// SnapshotDisks has what the disks of an instance that runs have at one moment be kept under an id, see hypervisor.Driver.
func (a *Agent) SnapshotDisks(ctx context.Context, order Order, of hypervisor.Thing, id string) error {
	return a.carryOut(ctx, order, of.Name, "snapshot the disks of", func() error {
		_, err := a.cfg.Driver.Snapshot(ctx, of, id)
		return err
	})
}

// ReleaseSnapshot ends the snapshot of an id, if there is one.
func (a *Agent) ReleaseSnapshot(ctx context.Context, order Order, of hypervisor.Thing, id string) error {
	return a.carryOut(ctx, order, of.Name, "let go of the snapshot of", func() error {
		_, err := a.cfg.Driver.Release(ctx, of, id)
		return err
	})
}

// DumpDisk dumps a disk of an instance that does not run, or that there is a snapshot of, to what is being made under an id. Once more it begins from the
// beginning.
func (a *Agent) DumpDisk(ctx context.Context, order Order, spec hypervisor.Spec, d Dump, params map[string]string, log func(line string)) error {
	const script = "export"
	path, err := a.exports.Path(d.Place)
	if err != nil {
		return err
	}
	return a.onDisk(ctx, order, &spec, &d, script, log, func(hold *effect.Hold, disk *hypervisor.Disk) error {
		switch {
		case d.Form == export.Packed:
			return a.pack(ctx, hold, &spec, &d, disk, path, tellCopy(log, d.what(script)+" "+spec.Name))
		case d.Snapshot:
			return a.dumpSnapshot(ctx, &spec, &d, disk, tellCopy(log, d.what(script)+" "+spec.Name))
		case d.Form == export.Script:
			return a.runDump(ctx, hold, &spec, &d, params, script, []string{"/bin/sh", "-c", `umask 077; exec "$0" >"$1"`}, path, disk.Path)
		case d.Form == export.Raw && disk.Kept() != diskimage.Raw:
			return a.dumpLayers(ctx, hold, &d, disk.File, path, d.what(script)+" "+spec.Name)
		case d.Form == export.Raw:
			return a.exports.Dump(ctx, d.Place, disk.Path, tellCopy(log, d.what(script)+" "+spec.Name))
		}
		return a.exports.Keep(d.Place, Piece{}) // an empty one
	})
}

// dumpSnapshot makes a dump of what a disk had.
func (a *Agent) dumpSnapshot(ctx context.Context, spec *hypervisor.Spec, d *Dump, disk *hypervisor.Disk, told func(done, size int64)) error {
	to, err := a.exports.Create(d.Place)
	if err != nil {
		return err
	}
	err = a.cfg.Driver.CopySnapshot(ctx, spec.Thing(), d.ID, disk.UUID, to, told)
	if err := to.Close(); err != nil {
		return fault.New(fault.Environment, "cannot write the dump %s: %w", d.File, err)
	}
	return err
}

// ImportDisk writes a dump on a disk of an instance that does not run. Once more it begins from the beginning. One of the form Raw that was not
// written whole leaves a disk that reads as zeros.
func (a *Agent) ImportDisk(ctx context.Context, order Order, spec hypervisor.Spec, d Dump, params map[string]string, log func(line string)) error {
	const script = "import"
	path, err := a.exports.Path(d.Place)
	if err != nil {
		return err
	}
	return a.onDisk(ctx, order, &spec, &d, script, log, func(hold *effect.Hold, disk *hypervisor.Disk) error {
		switch d.Form {
		case export.Script:
			return a.runDump(ctx, hold, &spec, &d, params, script, []string{"/bin/sh", "-c", `exec "$0" <"$1"`}, path, disk.Path)
		case export.Raw:
			if err := a.blank(ctx, spec.Thing(), disk); err != nil {
				return err
			}
			err := a.restore(ctx, hold, &spec, &d, path, disk, log)
			if err != nil { // half a disk is worse than none
				err = errors.Join(err, a.blank(context.WithoutCancel(ctx), spec.Thing(), disk))
			}
			return err
		}
		return nil
	})
}

// restore writes a dump on a disk that reads as zeros.
func (a *Agent) restore(ctx context.Context, hold *effect.Hold, spec *hypervisor.Spec, d *Dump, path string, disk *hypervisor.Disk, log func(string)) error {
	what := d.what("import") + " " + spec.Name
	if disk.Kept() == diskimage.Raw {
		return a.exports.Restore(ctx, d.Place, disk.Path, tellCopy(log, what))
	}
	if err := a.exports.Fits(d.Place, int64(spec.Disks[d.Disk].Size)<<20); err != nil {
		return err
	}
	program, err := qemuimg.Program()
	if err != nil {
		return err
	}
	return a.convert(ctx, hold, imagecache.CopyArguments(program, diskimage.Raw, path, disk.Kept(), disk.Path), what)
}

// dumpLayers makes a dump of a disk whose format is not raw: its content as it is, with holes where that has zeros.
func (a *Agent) dumpLayers(ctx context.Context, hold *effect.Hold, d *Dump, disk *qemuimg.File, path, what string) error {
	program, err := qemuimg.Program()
	if err != nil {
		return err
	}
	return a.convertTo(ctx, hold, d.Place, []string{program, "convert", "-t", "writeback", "--image-opts", "-O", diskimage.Raw, "--", disk.Options(), path}, what)
}

// pack makes a dump of a disk, or of what a snapshot has of it, that has no more than what is on the disk.
func (a *Agent) pack(ctx context.Context, hold *effect.Hold, spec *hypervisor.Spec, d *Dump, disk *hypervisor.Disk, path string, told func(done, size int64)) error {
	program, err := qemuimg.Program()
	if err != nil {
		return err
	}
	args := []string{program, "convert", "-t", "writeback", "-f", diskimage.Raw, "-O", diskimage.QCOW2, "--", disk.Path, path}
	switch {
	case d.Snapshot: // QEMU hands it out as it is
		whole := *d
		whole.File += ".raw"
		if err := a.dumpSnapshot(ctx, spec, &whole, disk, told); err != nil {
			return err
		}
		args[len(args)-2] = path + ".raw"
		defer os.Remove(path + ".raw") //nolint:errcheck // it goes with the dump, at the latest
	case disk.Kept() != diskimage.Raw:
		args = []string{program, "convert", "-t", "writeback", "--image-opts", "-O", diskimage.QCOW2, "--", disk.File.Options(), path}
	}
	return a.convertTo(ctx, hold, d.Place, args, d.what("export")+" "+spec.Name)
}

// convertTo has a program write a dump. The file is there before, for the program would have everybody read it.
func (a *Agent) convertTo(ctx context.Context, hold *effect.Hold, to exports.Place, args []string, what string) error {
	f, err := a.exports.Create(to)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return err
	}
	return a.convert(ctx, hold, args, what)
}

// onDisk has something done with a disk of an instance that does not run, by an effect that begins anew if the controller was not sure that it leads.
func (a *Agent) onDisk(ctx context.Context, order Order, spec *hypervisor.Spec, d *Dump, script string, log func(string), do func(hold *effect.Hold, disk *hypervisor.Disk) error) error {
	what := d.what(script)
	claim := effect.Claim{Order: order, Of: thing(spec.Name), What: what + " instance " + spec.Name}
	if d.Form == export.Script {
		claim.Kind, claim.Name = effect.Script, fmt.Sprintf("job %d, opcode %d: %s %s", order.Job, order.Opcode, what, spec.UUID)
	}
	return a.byEffect(ctx, claim, script, log, func(hold *effect.Hold) error {
		disk, err := a.diskOf(ctx, spec, d)
		if err != nil {
			return err
		}
		return do(hold, disk)
	})
}

// what says for people what is done with the disk.
func (d *Dump) what(script string) string { return fmt.Sprintf("%s disk %d of", script, d.Disk) }

// diskOf is a disk as the node has it; where it is pretended it has no path.
func (a *Agent) diskOf(ctx context.Context, spec *hypervisor.Spec, d *Dump) (*hypervisor.Disk, error) {
	there, err := a.cfg.Driver.Instance(ctx, spec.Thing())
	if err != nil {
		return nil, err
	}
	if there.State != hypervisor.Stopped && there.State != "" && !d.Snapshot {
		return nil, fault.New(fault.WrongState, "instance %s is %s on node %s, and its disks change meanwhile", spec.Name, there.State, a.cfg.Node)
	}
	if d.Disk < 0 || d.Disk >= len(spec.Disks) {
		return nil, fault.New(fault.Invalid, "instance %s has no disk %d", spec.Name, d.Disk).At("disks")
	}
	if d.Snapshot && d.Form == export.Script {
		return nil, fault.New(fault.Unsupported, "scripts of operating systems read disks, and no snapshots of them").At("form")
	}
	uuid := spec.Disks[d.Disk].UUID
	i := slices.IndexFunc(there.Disks, func(disk hypervisor.Disk) bool { return disk.UUID == uuid })
	switch {
	case i < 0:
		return nil, fault.New(fault.WrongState, "disk %d (%s) of instance %s does not exist on node %s", d.Disk, uuid, spec.Name, a.cfg.Node)
	case there.Disks[i].Path == "" && (d.Form == export.Raw || d.Form == export.Packed):
		return nil, fault.New(fault.Unsupported, "disk %d of %s has no content on node %s: its hypervisor, %s, only pretends to have disks", d.Disk, spec.Name, a.cfg.Node, a.cfg.Driver.Kind())
	}
	return &there.Disks[i], nil
}

// runDump runs a script of the operating system that writes or reads a dump.
func (a *Agent) runDump(ctx context.Context, hold *effect.Hold, spec *hypervisor.Spec, d *Dump, params map[string]string, script string, shell []string, dump, disk string) error {
	o, variant, err := a.withScript(ctx, d.OS, script)
	if err != nil {
		return err
	}
	env, err := a.scriptEnvironment(ctx, *spec, o.Name, variant, params)
	if err != nil {
		return err
	}
	prefix := map[string]string{"export": "EXPORT_", "import": "IMPORT_"}[script]
	env = append(env, prefix+"INDEX="+strconv.Itoa(d.Disk))
	if disk != "" {
		env = append(env, prefix+"DEVICE="+disk, prefix+"DISK_PATH="+disk)
	}
	return a.runScript(ctx, hold, script, append(shell, filepath.Join(o.Path, script), dump), o.Path, env)
}

// withScript finds an operating system that has a script which not all have.
func (a *Agent) withScript(ctx context.Context, name, script string) (o OS, variant string, err error) {
	if o, err = a.FindOS(ctx, name, true); err != nil {
		return o, "", err
	}
	if !slices.Contains(o.Scripts, script) {
		return o, "", fault.New(fault.WrongState, "OS '%s' has no %s script on node %s", o.Name, script, a.cfg.Node)
	}
	return o, variantOf(name), nil
}

// RenameSystem runs the script of the operating system that has an instance know its new name. One that has no such script needs none.
func (a *Agent) RenameSystem(ctx context.Context, order Order, spec hypervisor.Spec, os, former string, params map[string]string, log func(line string)) error {
	claim := effect.Claim{Order: order, Of: thing(spec.Name), Kind: effect.Script, What: "tell its new name to instance " + spec.Name,
		Name: fmt.Sprintf("job %d, opcode %d: rename %s", order.Job, order.Opcode, spec.UUID)}
	const script = "rename"
	return a.byEffect(ctx, claim, script, log, func(hold *effect.Hold) error {
		o, err := a.FindOS(ctx, os, true)
		if err != nil || !slices.Contains(o.Scripts, script) {
			return err
		}
		env, err := a.scriptEnvironment(ctx, spec, o.Name, variantOf(os), params)
		if err != nil {
			return err
		}
		return a.runScript(ctx, hold, script, []string{filepath.Join(o.Path, script)}, o.Path, append(env, "OLD_INSTANCE_NAME="+former))
	})
}

// ReadDump reads the first part of a dump from a place on.
func (a *Agent) ReadDump(_ context.Context, from exports.Place, at int64) (Piece, error) {
	return a.exports.Piece(from, at)
}

// KeepDump writes a part of a dump to what is being made under an id.
func (a *Agent) KeepDump(ctx context.Context, order Order, to exports.Place, piece Piece) error {
	if err := a.fence.Check(ctx, effect.Claim{Order: order, What: "keep a dump"}); err != nil {
		return err
	}
	return a.exports.Keep(to, piece)
}

// FinishExport puts what was made under an id in the place of the export of that name. Once more it does nothing.
func (a *Agent) FinishExport(ctx context.Context, order Order, id string, e export.Export) error {
	return a.onExport(ctx, order, e.Name, "finish the export of", func() error { return a.exports.Finish(id, &e) })
}

// DiscardExport removes what is being made under an id, if there is anything.
func (a *Agent) DiscardExport(ctx context.Context, order Order, id string) error {
	if err := a.fence.Check(ctx, effect.Claim{Order: order, What: "discard what was to be an export"}); err != nil {
		return err
	}
	return a.exports.Discard(id)
}

// RemoveExport removes the export of a name, if there is one.
func (a *Agent) RemoveExport(ctx context.Context, order Order, name string) error {
	return a.onExport(ctx, order, name, "remove the export of", func() error { return a.exports.Remove(name) })
}

// onExport does something to the export of a name, one at a time.
func (a *Agent) onExport(ctx context.Context, order Order, name, what string, act func() error) error {
	return a.carryOutBy(ctx, effect.Claim{Order: order, Of: "export " + name, What: what + " instance " + name}, func(*effect.Hold) error { return act() })
}

// tellEvery is the pause between two lines that tell how far a copy has come.
const tellEvery = 10 * time.Second

// tellCopy tells from time to time how far a copy has come.
func tellCopy(log func(string), what string) func(done, size int64) {
	last := time.Now()
	return func(done, size int64) {
		if time.Since(last) >= tellEvery && size > 0 {
			last = time.Now()
			log(fmt.Sprintf("%s: %d of %d MiB", what, done>>20, size>>20))
		}
	}
}
