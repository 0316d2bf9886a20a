package image

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Compressed is the end of the name of a backup that is compressed.
const Compressed = ".zst"

// writeAs writes an image as the name of its file wants it.
func writeAs(path string, to io.Writer, img *Image, now time.Time) (count int, err error) {
	if !strings.HasSuffix(path, Compressed) {
		return write(to, img, now)
	}
	// One processor: the others are for the controller that runs beside it.
	frame, err := zstd.NewWriter(to, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return 0, err
	}
	count, err = write(frame, img, now)
	return count, errors.Join(err, frame.Close())
}

// frameMagic is how a frame of zstd begins (RFC 8878).
var frameMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// plain is a backup as it is without a frame.
type plain struct {
	io.Reader

	file  *os.File
	frame *zstd.Decoder // nil for none
}

// openPlain opens a backup, whatever it is called: how it begins says whether it is compressed.
func openPlain(path string) (*plain, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	begin := make([]byte, len(frameMagic))
	n, err := f.ReadAt(begin, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, f.Close())
	}
	if !bytes.Equal(begin[:n], frameMagic) {
		return &plain{Reader: f, file: f}, nil
	}
	frame, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &plain{Reader: frame, file: f, frame: frame}, nil
}

// Close ends the reading.
func (p *plain) Close() {
	if p.frame != nil {
		p.frame.Close()
	}
	_ = p.file.Close() // it was read only
}
