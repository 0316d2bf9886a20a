package imagecache

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/diskimage"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qemuimg"
)

// CopyArguments is the command line that writes an image on a disk which is there, and has room. All formats are said, both paths are absolute,
// and what has been written is on disk when it ends.
func CopyArguments(program, format, image, diskFormat, disk string) []string {
	return []string{program, "convert", "-n", "-t", "writeback", "-f", format, "-O", diskFormat, "--", image, disk}
}

const (
	// askTime is how long the program may take to look at an image.
	askTime = time.Minute
	// maxTold is how much it may have to say, in bytes.
	maxTold = 1 << 20
)

// told is what the program says of an image.
type told struct {
	Format      string `json:"format"`
	VirtualSize int64  `json:"virtual-size"`
	Backing     string `json:"backing-filename"`
	Encrypted   bool   `json:"encrypted"`
	Specific    struct {
		Data struct {
			DataFile string `json:"data-file"`
		} `json:"data"`
	} `json:"format-specific"`
}

// ask has the program look at an image whose beginning is sound. Of a raw one there is nothing more to know.
func ask(ctx context.Context, path string, is diskimage.Head) error {
	if is.Format == diskimage.Raw {
		return nil
	}
	program, err := qemuimg.Program()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	out, complaints := &capped{limit: maxTold}, &capped{limit: 4 << 10}
	cmd := exec.CommandContext(ctx, program, "info", "-f", is.Format, "--output=json", "--", path)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = "/", []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}, out, complaints, time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fault.New(fault.Canceled, "it was being looked at: %w", context.Cause(ctx))
		}
		return fault.New(fault.Invalid, "it is no sound image of the format %s: %s", is.Format, strings.ToValidUTF8(lastLine(complaints.Bytes(), err), "\uFFFD"))
	}
	var t told
	if err := json.Unmarshal(out.Bytes(), &t); err != nil {
		return fault.New(fault.Invalid, "what qemu-img says of it cannot be read: %w", err)
	}
	switch {
	case t.Backing != "" || t.Specific.Data.DataFile != "":
		return fault.New(fault.Invalid, "it is no whole image: it leads to another file")
	case t.Encrypted:
		return fault.New(fault.Invalid, "it is encrypted, and there is nobody who could give the key")
	case t.Format != is.Format || t.VirtualSize != is.VirtualSize:
		return fault.New(fault.Invalid, "qemu-img says that it is of the format %.20s for a disk of %d bytes, and its beginning says %s and %d", t.Format, t.VirtualSize, is.Format, is.VirtualSize)
	}
	return nil
}

// lastLine is the last of what a program complained of, or its error if it said nothing.
func lastLine(text []byte, err error) string {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if last := lines[len(lines)-1]; len(last) > 0 {
		return string(last)
	}
	return err.Error()
}

// capped keeps so much of what is written to it, and drops the rest.
type capped struct {
	bytes.Buffer

	limit int
}

// Write never fails.
func (c *capped) Write(text []byte) (int, error) {
	c.Buffer.Write(text[:min(len(text), c.limit-c.Len())])
	return len(text), nil
}
