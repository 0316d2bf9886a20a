package exports

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/fault"
)

// maxPiece is how much of a dump goes at once, in bytes.
const maxPiece = 1 << 20

// Piece is a part of a dump on its way to another node.
type Piece struct {
	// From is where the piece begins; with the one from 0 a dump begins anew.
	From int64 `json:"from"`
	// At is where Data begins. Before and behind it are zeros until Next, where the next piece begins.
	At   int64  `json:"at"`
	Data []byte `json:"data,omitempty"`
	Next int64  `json:"next"`
	// Size is how long the dump is; the piece whose Next it is ends it.
	Size int64 `json:"size"`
}

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
	out, err := piece(f, at)
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

func piece(f *os.File, at int64) (Piece, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return Piece{}, err
	}
	p := Piece{From: at, At: at, Next: size, Size: size}
	if at < 0 || at >= size {
		return p, nil
	}
	p.At, err = f.Seek(at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, syscall.ENXIO): // there is none behind
		p.At = at
		return p, nil
	case err != nil: // a file system, or a device, that knows no holes
		p.At = at
	}
	p.Data = make([]byte, min(maxPiece, size-p.At))
	if _, err := f.ReadAt(p.Data, p.At); err != nil {
		return p, err
	}
	p.Next = p.At + int64(len(p.Data))
	p.Data = bytes.TrimRight(p.Data, "\x00")
	return p, nil
}

// Keep writes a piece of a dump that is being made. The last one has it whole, and on disk.
func (x *Exports) Keep(p Place, piece Piece) error {
	if p.ID == "" || piece.From < 0 || piece.At < piece.From || piece.At+int64(len(piece.Data)) > piece.Size || piece.Next > piece.Size {
		return fault.New(fault.Invalid, "a piece of %d bytes at %d is none of a dump of %d", len(piece.Data), piece.At, piece.Size)
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
		if err == nil && piece.Next == piece.Size {
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

// Copy copies what a file or block device has to another, but for zeros: where the other has something before it is to read as zeros. It returns when what
// was copied is on disk.
func Copy(ctx context.Context, to, from *os.File, told func(done, size int64)) error {
	for at := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return fault.New(fault.Canceled, "the copy was ended: %w", context.Cause(ctx))
		}
		p, err := piece(from, at)
		if err == nil {
			_, err = to.WriteAt(p.Data, p.At)
		}
		if errors.Is(err, syscall.ENOSPC) {
			return fault.New(fault.Exhausted, "there is no room: %w", err)
		}
		if err != nil {
			return fault.New(fault.Environment, "cannot copy: %w", err)
		}
		if told(p.Next, p.Size); p.Next >= p.Size {
			return to.Sync()
		}
		at = p.Next
	}
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
		err = Copy(ctx, out, in, told)
	}
	return errors.Join(err, out.Close())
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
	switch {
	case err != nil:
	case size > room:
		err = fault.New(fault.Invalid, "the dump %s has %d bytes, and the disk only %d", p.File, size, room).At("disks")
	default:
		err = Copy(ctx, out, in, told)
	}
	return errors.Join(err, out.Close())
}
