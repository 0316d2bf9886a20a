// Package pieces takes files apart that go from node to node through the controller, and has what is copied keep its holes.
//
// Invariants:
//   - Holes stay holes, and the pieces of a file are the file (TestPiecesAreTheFile).
//   - A piece that is none of a file of that size is refused, whoever sends it (TestWhatIsNoPiece).
package pieces

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/fault"
)

// most is how much of a file goes at once, in bytes.
const most = 1 << 20

// Piece is a part of a file on its way to another node.
type Piece struct {
	// From is where the piece begins; with the one from 0 a file begins anew.
	From int64 `json:"from"`
	// At is where Data begins. Before and behind it are zeros until Next, where the next piece begins.
	At   int64  `json:"at"`
	Data []byte `json:"data,omitempty"`
	Next int64  `json:"next"`
	// Size is how long the file is; the piece whose Next it is ends it.
	Size int64 `json:"size"`
}

// Last tells that the file ends with the piece.
func (p *Piece) Last() bool { return p.Next == p.Size }

// Check refuses what is no piece of any file: nothing that it says leads outside of the file, or back. Invalid then.
func (p *Piece) Check() error {
	end := p.At + int64(len(p.Data))
	if p.From < 0 || p.At < p.From || end < p.At || end > p.Next || len(p.Data) > most || p.Next > p.Size || p.Next <= p.From && !p.Last() {
		return fault.New(fault.Invalid, "a piece of %d bytes at %d, from %d to %d, is none of a file of %d", len(p.Data), p.At, p.From, p.Next, p.Size)
	}
	return nil
}

// Read reads the first piece of a file that is no hole, from a place on; before the beginning there is none, and it tells the size alone.
func Read(f *os.File, at int64) (Piece, error) {
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
	p.Data = make([]byte, min(most, size-p.At))
	if _, err := f.ReadAt(p.Data, p.At); err != nil {
		return p, err
	}
	p.Next = p.At + int64(len(p.Data))
	p.Data = bytes.TrimRight(p.Data, "\x00")
	return p, nil
}

// Copy copies what a file or block device has to another, but for zeros: where the other has something before it is to read as zeros. It returns when what
// was copied is on disk.
func Copy(ctx context.Context, to, from *os.File, told func(done, size int64)) error {
	for at := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return fault.New(fault.Canceled, "the copy was ended: %w", context.Cause(ctx))
		}
		p, err := Read(from, at)
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
