// Package ext has disks made by operators' scripts (disk template "ext"): providers, which are directories with the scripts and the environment that
// Ganeti's ganeti-extstorage-interface(7) describes.
//
// What a disk's volume is called, and by which provider, is written down on the node before a script runs.
//
// Invariants:
//   - A script that was ended in its midst has made no volume: what it has left is found by attaching it, and removed before the next try
//     (TestWhatAKillLeaves).
//   - A volume that was to be removed is not forgotten before the script that removes it has ended well (TestARemovalThatWasEnded).
//   - A volume that was there before it was to be made is nobody's to remove (TestAVolumeThatIsAnotherNodes).
//   - Scripts get no environment but the documented one, and no parameter that their provider does not list (TestEnvironment, TestWhatAProviderIsNot).
//   - A script that makes, grows or removes a volume and outlives its agent is waited for before another does so (TestAScriptThatOutlivesItsAgent).
package ext

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/drover-project/drover/internal/diskimage"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/storage"
	"github.com/drover-project/drover/internal/wholefile"
)

// Template is the disk template's name.
const Template = "ext"

// Driver has the volumes of a node. It implements storage.Driver.
type Driver struct {
	// dir is where is written down what volumes there are, providers where the scripts are.
	dir, providers string
	// files: volumes may be plain files, for tests where there are no block devices.
	files bool

	mu sync.Mutex
	// known are the volumes that somebody has asked about, by disk.
	known map[string]*volume
}

// volume is one volume while the driver is there. Its mutex is held while anything is done about it: scripts of others need not wait.
type volume struct {
	sync.Mutex

	// path is where it is attached; empty if this driver has not attached it.
	path string
}

// hold has a volume for a call alone, which unlocks it.
func (d *Driver) hold(id string) *volume {
	d.mu.Lock()
	v := d.known[id]
	if v == nil {
		v = &volume{}
		d.known[id] = v
	}
	d.mu.Unlock()
	v.Lock()
	return v
}

// CheckDirectory refuses what is no directory of providers.
func CheckDirectory(providers string) error {
	if info, err := os.Stat(providers); err != nil || !info.IsDir() {
		return fault.New(fault.Environment, "the directory of storage providers is not there: %s", providers).WithHint("each provider is a directory in it, with its scripts")
	}
	return nil
}

// Open opens the records of a node, whose directory is made if it is not there, and the providers that a directory has.
func Open(dir, providers string) (*Driver, error) {
	if err := CheckDirectory(providers); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.New(fault.Environment, "cannot make the directory of volumes: %w", err)
	}
	return &Driver{dir: dir, providers: providers, known: map[string]*volume{}}, nil
}

// Template returns "ext".
func (d *Driver) Template() string { return Template }

// What is being done to a volume. A record that says so was left in its midst.
const (
	making   = "making"
	removing = "removing"
)

// record is what is written down of a volume.
type record struct {
	storage.Disk

	// Doing is making or removing; empty for a volume that is whole.
	Doing string `json:"doing,omitempty"`
}

const suffix = ".json"

func (d *Driver) path(id string) string { return filepath.Join(d.dir, id+suffix) }

// read returns what is written down of a volume, nil if there is nothing.
func (d *Driver) read(id string) (*record, error) {
	text, err := os.ReadFile(d.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var r record
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err == nil && r.ID != id {
		err = errors.New("it is another one's")
	}
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot read what is known of disk %s: %w", id, err).WithHint("mend or move away %s", d.path(id))
	}
	return &r, nil
}

func (d *Driver) write(r *record) error {
	text, err := json.Marshal(r)
	if err == nil {
		err = wholefile.Write(d.path(r.ID), text)
	}
	if err != nil {
		return fault.New(fault.Environment, "cannot write down disk %s: %w", r.ID, err)
	}
	return nil
}

func (d *Driver) forget(id string) error {
	for _, path := range []string{d.path(id), d.busy(id), d.outcome(id)} { // what the script came to, last
		if err := ifThere(os.Remove(path)); err != nil {
			return fault.New(fault.Environment, "cannot forget disk %s: %w", id, err)
		}
	}
	if err := wholefile.Flush(d.dir); err != nil {
		return fault.New(fault.Environment, "cannot forget disk %s: %w", id, err)
	}
	return nil
}

// ifThere is an error, but for that something was not there.
func ifThere(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Ensure has the provider make or grow a volume.
func (d *Driver) Ensure(ctx context.Context, disk storage.Disk) (made, grown bool, err error) {
	if err := storage.Begin(ctx, disk.ID); err != nil {
		return false, false, err
	}
	v := d.hold(disk.ID)
	defer v.Unlock()
	there, err := d.read(disk.ID)
	switch {
	case err != nil:
		return false, false, err
	case there == nil:
		err = d.make(ctx, v, disk)
		return err == nil, false, err
	case there.Doing != "":
		if err = d.clear(ctx, v, there); err == nil {
			err = d.make(ctx, v, disk)
		}
		return err == nil, false, err
	case there.Size >= disk.Size:
		return false, false, nil
	}
	err = d.grow(ctx, v, there, disk.Size)
	return false, err == nil, err
}

// make makes a volume. If that fails nothing is left of it. One that is there already under its name is another node's, or was made by one whose records
// are lost: it is left alone.
func (d *Driver) make(ctx context.Context, v *volume, disk storage.Disk) error {
	r := &record{Disk: disk, Doing: making}
	p, err := d.provider(disk.Provider)
	if err == nil {
		err = p.check(&r.Disk)
	}
	if err != nil {
		return err
	}
	if err := d.vacant(ctx, p, r); err != nil {
		return err
	}
	if err := d.write(r); err != nil {
		return err
	}
	if err := d.run(ctx, p, "create", r, sizeOf(r)); err != nil {
		ctx, cancel := behind(ctx)
		defer cancel()
		return errors.Join(err, d.clear(ctx, v, r))
	}
	if _, err = d.attach(ctx, v, r); err == nil {
		err = d.run(ctx, p, "setinfo", r, "VOL_METADATA=originstname+"+disk.Owner)
	}
	if err == nil {
		r.Doing = ""
		err = d.write(r)
	}
	if err != nil {
		ctx, cancel := behind(ctx)
		defer cancel()
		return errors.Join(err, d.run(ctx, p, "detach", r), d.destroy(ctx, v, p, r))
	}
	return nil
}

// vacant refuses a volume that can be attached before it is made.
func (d *Driver) vacant(ctx context.Context, p *provider, r *record) error {
	said, err := d.output(ctx, p, "attach", r)
	switch {
	case fault.Is(err, fault.Failed), err == nil && d.usable(pathIn(said)) != nil:
		return nil //nolint:nilerr // there is none
	case err != nil:
		return err
	}
	err = fault.New(fault.Conflict, "the storage provider %s has a volume %s already, which this node knows nothing of; it is left alone", p.name, r.Name).
		WithHint("if another node has it, it is that one's; what nobody wants can be removed with the provider's own tools")
	return errors.Join(err, d.run(ctx, p, "detach", r))
}

// behind is for what is cleared though the caller may have gone.
func behind(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), patience)
}

// clear removes what may have been left of a volume in the midst of making or removing it. That something is there is seen by attaching it. Of what was
// made by half that cannot be attached there is nothing. What was to be removed is gone if the script said so, to an agent or behind its end; else
// it may be that its provider cannot be reached, and it is not forgotten before the script says that it is gone.
func (d *Driver) clear(ctx context.Context, v *volume, r *record) error {
	p, err := d.provider(r.Provider)
	if err != nil {
		return err
	}
	if err := d.await(ctx, r.ID); err != nil {
		return err
	}
	if r.Doing == removing && d.removed(r.ID) {
		return d.forget(r.ID)
	}
	_, unattached := d.attach(ctx, v, r)
	switch {
	case fault.Is(unattached, fault.Canceled):
		return unattached
	case unattached != nil && r.Doing == making: // there is none
		return d.forget(r.ID)
	case unattached == nil:
		err = d.run(ctx, p, "detach", r)
	}
	if err == nil {
		err = d.destroy(ctx, v, p, r)
	}
	if err != nil && unattached != nil && !fault.Is(err, fault.Canceled) {
		return fault.New(fault.Failed, "the storage provider %s can neither attach nor remove the volume %s, whose removal was ended in its midst, so it may be there still: %w; %w",
			p.name, r.Name, unattached, err).
			WithHint("see whether the provider works, and try again; if it is known that the volume is gone, remove %s on the node before", d.path(r.ID))
	}
	return err
}

// outcome is the file that has what the script which removes a volume came to, also where its agent was gone by then.
func (d *Driver) outcome(id string) string { return filepath.Join(d.dir, id+".removed") }

// removed reports whether the script that removes a volume has ended well.
func (d *Driver) removed(id string) bool {
	text, err := os.ReadFile(d.outcome(id))
	return err == nil && string(text) == "0\n"
}

// destroy has the provider remove a volume that is there, and forgets it.
func (d *Driver) destroy(ctx context.Context, v *volume, p *provider, r *record) error {
	v.path = ""
	if err := ifThere(os.Remove(d.outcome(r.ID))); err != nil {
		return fault.New(fault.Environment, "cannot remove disk %s: %w", r.ID, err)
	}
	if err := d.run(ctx, p, "remove", r); err != nil {
		return err
	}
	return d.forget(r.ID)
}

func (d *Driver) grow(ctx context.Context, v *volume, r *record, size int) error {
	p, err := d.provider(r.Provider)
	if err != nil {
		return err
	}
	if err := d.run(ctx, p, "grow", r, sizeOf(r), newSize(size)); err != nil {
		return err
	}
	r.Size, v.path = size, ""
	if err := d.write(r); err != nil {
		return err
	}
	_, err = d.attach(ctx, v, r) // by which the node sees its new size, with some
	return err
}

// attach has the node reach a volume, and opens it with providers that want that.
func (d *Driver) attach(ctx context.Context, v *volume, r *record) (path string, err error) {
	if v.path != "" && d.usable(v.path) == nil {
		return v.path, nil
	}
	p, err := d.provider(r.Provider)
	if err != nil {
		return "", err
	}
	said, err := d.output(ctx, p, "attach", r)
	if err != nil {
		return "", err
	}
	if path = pathIn(said); path == "" {
		return "", fault.New(fault.Unsupported, "the storage provider %s attaches the volume %s as no block device", p.name, r.Name)
	}
	if err := d.usable(path); err != nil {
		return "", fault.New(fault.Environment, "the storage provider %s attached the volume %s as %.200q: %w", p.name, r.Name, path, err)
	}
	if p.has("open") {
		if err := d.run(ctx, p, "open", r, "VOL_OPEN_EXCLUSIVE=True"); err != nil {
			return "", err
		}
	}
	v.path = path
	return path, nil
}

// pathIn is where a script says that it attached a volume. Behind it come addresses for programs that reach volumes without the kernel.
func pathIn(said string) string {
	path, _, _ := strings.Cut(said, "\n")
	return strings.TrimSpace(path)
}

// usable refuses what is no block device.
func (d *Driver) usable(path string) error {
	if !filepath.IsAbs(path) {
		return errors.New("it is no whole path")
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case d.files && info.Mode().IsRegular():
	case info.Mode()&fs.ModeDevice == 0 || info.Mode()&fs.ModeCharDevice != 0:
		return errors.New("it is no block device")
	}
	return nil
}

// Remove has the provider remove a volume.
func (d *Driver) Remove(ctx context.Context, id string) (bool, error) {
	if err := storage.Begin(ctx, id); err != nil {
		return false, err
	}
	v := d.hold(id)
	defer v.Unlock()
	r, err := d.read(id)
	if r == nil || err != nil {
		return false, err
	}
	if r.Doing != "" {
		err := d.clear(ctx, v, r)
		return err == nil, err
	}
	p, err := d.provider(r.Provider)
	if err != nil {
		return false, err
	}
	if p.has("close") {
		if err := d.run(ctx, p, "close", r); err != nil {
			return false, err
		}
	}
	v.path = ""
	if err := d.run(ctx, p, "detach", r); err != nil {
		return false, err
	}
	r.Doing = removing
	if err := d.write(r); err != nil {
		return false, err
	}
	err = d.destroy(ctx, v, p, r)
	if err != nil && !fault.Is(err, fault.Canceled) && !d.removed(id) { // else it may be gone, which the next call finds out
		r.Doing = ""
		err = errors.Join(err, d.write(r))
	}
	return err == nil, err
}

// Volume attaches a volume, and tells where it is.
func (d *Driver) Volume(ctx context.Context, id string) (storage.Volume, error) {
	if err := storage.Begin(ctx, id); err != nil {
		return storage.Volume{}, err
	}
	v := d.hold(id)
	defer v.Unlock()
	r, err := d.read(id)
	if err != nil {
		return storage.Volume{}, err
	}
	if r == nil || r.Doing != "" {
		return storage.Volume{}, fault.New(fault.NotFound, "disk %s is not on this node", id)
	}
	path, err := d.attach(ctx, v, r)
	return storage.Volume{ID: id, Size: r.Size, Path: path, Format: diskimage.Raw}, err
}

// Volumes attaches all volumes, and tells where they are.
func (d *Driver) Volumes(ctx context.Context) ([]storage.Volume, error) {
	if err := storage.Begin(ctx, "any"); err != nil {
		return nil, err
	}
	return storage.InDirectory(d.dir, suffix, func(id string) (storage.Volume, error) { return d.Volume(ctx, id) })
}

// Space is zero: providers do not tell how much room they have.
func (d *Driver) Space(ctx context.Context) (storage.Space, error) {
	return storage.Space{}, storage.Begin(ctx, "any")
}

func (d *Driver) busy(id string) string { return filepath.Join(d.dir, id+".busy") }

// await waits until no script makes, grows or removes a volume any more that an agent began which was killed: each holds a lock.
func (d *Driver) await(ctx context.Context, id string) error {
	f, err := d.lock(ctx, id)
	if err == nil {
		err = f.Close()
	}
	return err
}

func (d *Driver) lock(ctx context.Context, id string) (*os.File, error) {
	f, err := os.OpenFile(d.busy(id), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot lock disk %s: %w", id, err)
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fault.New(fault.Environment, "cannot lock disk %s: %w", id, err), f.Close())
		}
		if err := pause(ctx); err != nil {
			return nil, errors.Join(fault.New(fault.Canceled, "a script that another agent began for disk %s was waited for: %w", id, err), f.Close())
		}
	}
}
