package imagecache

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	// checkTime is how long it may take to see whether all of an image is there, for which it reads the tables and not the content.
	checkTime = 10 * time.Minute
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
	out, words, err := look(ctx, askTime, program, "info", "-f", is.Format, "--output=json", "--", path)
	if err != nil {
		return unsound(ctx, is.Format, lastLine(words, err))
	}
	var t told
	if err := json.Unmarshal(out, &t); err != nil {
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
	return check(ctx, program, path, is.Format)
}

// check has the program look whether all of an image is there: of one that was cut off, or is damaged, the rest would read as zeros.
func check(ctx context.Context, program, path, format string) error {
	const leaks = 3 // room that nobody uses is lost, and no content
	_, words, err := look(ctx, checkTime, program, "check", "-q", "-f", format, "--", path)
	var ended *exec.ExitError
	if err == nil || errors.As(err, &ended) && ended.ExitCode() == leaks {
		return nil
	}
	first, _, _ := bytes.Cut(words, []byte("\n")) // the others are like it
	return unsound(ctx, format, cmp.Or(string(first), err.Error()))
}

// look runs the program, which changes nothing, and returns what it said and what it complained of.
func look(ctx context.Context, limit time.Duration, program string, args ...string) (out, complaints []byte, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("qemu-img %s took longer than %s", args[0], limit))
	defer cancel()
	said, words := &capped{limit: maxTold}, &capped{limit: 4 << 10}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = "/", []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}, said, words, time.Second
	if err = cmd.Run(); err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return said.Bytes(), words.Bytes(), err
}

// unsound is the error of an image that the program does not take for one.
func unsound(ctx context.Context, format, words string) error {
	if ctx.Err() != nil {
		return fault.New(fault.Canceled, "it was being looked at: %w", context.Cause(ctx))
	}
	return fault.New(fault.Invalid, "it is no sound image of the format %s: %s", format, strings.ToValidUTF8(words, "\uFFFD")).
		WithHint("it may have been cut off on its way: fetch it anew, or see what qemu-img check -f %s says of it", format)
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
