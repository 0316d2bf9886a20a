package exports

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/drover-project/drover/internal/agent/pieces"
	"github.com/drover-project/drover/internal/fault"
)

// Piece is a part of a dump on its way to another node.
type Piece = pieces.Piece

// Piece reads the first of a dump that is no hole, from a place on.
func (x *Exports) Piece(p Place, at int64) (Piece, error) {
	path, err := x.Path(p)
	if err != nil {
		return Piece{}, err
	}
	f, err := openDump(path)
	if err != nil {
		return Piece{}, err
	}
	defer f.Close() //nolint:errcheck // it was read
	out, err := pieces.Read(f, at)
	if err != nil {
		return out, fault.New(fault.Environment, "cannot read the dump %s: %w", p.File, err)
	}
	return out, nil
}

func openDump(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "the dump %s is not there", path)
	}
	if err == nil {
		var info fs.FileInfo
		if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
			err = errors.New("it is no file")
		}
		if err != nil {
			_ = f.Close()
		}
	}
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot open the dump %s: %w", path, err)
	}
	return f, nil
}

// Keep writes a piece of a dump that is being made. The last one has it whole, and on disk.
func (x *Exports) Keep(p Place, piece Piece) error {
	if p.ID == "" {
		return fault.New(fault.Invalid, "a dump is kept for what is being made under an id, and there is none")
	}
	if err := piece.Check(); err != nil {
		return err
	}
	path, err := x.Path(p)
	if err != nil {
		return err
	}
	flags := os.O_WRONLY | os.O_CREATE | syscall.O_NOFOLLOW
	if piece.From == 0 {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err == nil {
		_, err = f.WriteAt(piece.Data, piece.At)
		if err == nil && piece.Last() {
			err = errors.Join(f.Truncate(piece.Size), f.Sync())
		}
		err = errors.Join(err, f.Close())
	}
	if errors.Is(err, syscall.ENOSPC) {
		return fault.New(fault.Exhausted, "there is no room for the dump %s: %w", p.File, err)
	}
	if err != nil {
		return fault.New(fault.Environment, "cannot write the dump %s: %w", p.File, err)
	}
	return nil
}

// Create makes a dump that is empty, in the place of one that was begun: who may still write to that one writes to no dump.
func (x *Exports) Create(p Place) (*os.File, error) {
	if p.ID == "" {
		return nil, fault.New(fault.Invalid, "a dump is made for what is being made under an id, and there is none")
	}
	path, err := x.Path(p)
	if err != nil {
		return nil, err
	}
	if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	var f *os.File
	if err == nil {
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	}
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot make the dump %s: %w", p.File, err)
	}
	return f, nil
}

// Dump makes a dump with the content of a file or block device.
func (x *Exports) Dump(ctx context.Context, p Place, from string, told func(done, size int64)) error {
	path, err := x.Path(p)
	if err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return fault.New(fault.Environment, "cannot open the disk: %w", err)
	}
	defer in.Close() //nolint:errcheck // it was read
	out, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fault.New(fault.Environment, "cannot make the dump %s: %w", p.File, err)
	}
	size, err := in.Seek(0, io.SeekEnd)
	if err == nil {
		err = out.Truncate(size)
	}
	if err == nil {
		err = pieces.Copy(ctx, out, in, told)
	}
	return errors.Join(err, out.Close())
}

// Fits refuses a dump that is larger than a disk, in bytes.
func (x *Exports) Fits(p Place, room int64) error {
	path, err := x.Path(p)
	if err != nil {
		return err
	}
	f, err := openDump(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was looked at
	info, err := f.Stat()
	if err != nil {
		return fault.New(fault.Environment, "cannot look at the dump %s: %w", p.File, err)
	}
	return fits(p, info.Size(), room)
}

func fits(p Place, size, room int64) error {
	if size > room {
		return fault.New(fault.Invalid, "the dump %s has %d bytes, and the disk only %d", p.File, size, room).At("disks")
	}
	return nil
}

// Restore writes a dump on a disk that reads as zeros.
func (x *Exports) Restore(ctx context.Context, p Place, disk string, told func(done, size int64)) error {
	path, err := x.Path(p)
	if err != nil {
		return err
	}
	in, err := openDump(path)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was read
	out, err := os.OpenFile(disk, os.O_WRONLY, 0)
	if err != nil {
		return fault.New(fault.Environment, "cannot open the disk: %w", err)
	}
	size, err := in.Seek(0, io.SeekEnd)
	var room int64
	if err == nil {
		room, err = out.Seek(0, io.SeekEnd)
	}
	if err == nil {
		err = fits(p, size, room)
	}
	if err == nil {
		err = pieces.Copy(ctx, out, in, told)
	}
	return errors.Join(err, out.Close())
}
