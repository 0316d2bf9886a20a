// Package qemuimg runs qemu-img, which makes and changes what has a format, and says all of a file to it: its format, and the file beneath it.
//
// Invariants:
//   - Nothing is guessed: each file goes with its format, and one that stands on another with that one's, too (TestAllIsSaid).
//   - No path becomes an option (TestAllIsSaid).
//   - What runs for too long, or for nobody, is ended (TestRun).
package qemuimg

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// longest is how long a change of what is said of a file may take; the content of disks is copied by effects, which have no such limit.
const longest = 2 * time.Minute

// Program finds the program that reads and writes images. Environment where there is none.
func Program() (string, error) {
	path, err := exec.LookPath("qemu-img")
	if err != nil {
		return "", fault.New(fault.Environment, "the program qemu-img is not on the node").WithHint("on Debian: apt-get install --no-install-recommends qemu-utils")
	}
	return path, nil
}

// File is a file with a format, which may stand on another one.
type File struct {
	Path, Format string
	// Base is what it stands on; nil for nothing.
	Base *File
}

// Options says all of a file, as --image-opts takes it.
func (f *File) Options() string { return strings.Join(f.options(""), ",") }

func (f *File) options(prefix string) []string {
	out := []string{prefix + "driver=" + f.Format, prefix + "file.driver=file", prefix + "file.filename=" + strings.ReplaceAll(f.Path, ",", ",,")}
	if f.Base != nil {
		out = append(out, f.Base.options(prefix+"backing.")...)
	}
	return out
}

// Run has the program do something that takes no time by a file's size. Exhausted if there is no room; Failed with its last words if it fails.
func Run(ctx context.Context, args ...string) error {
	program, err := Program()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	words := &lastWords{}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = "/", []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}, words, words, time.Second
	err = cmd.Run()
	switch text := strings.ToValidUTF8(strings.TrimSpace(words.String()), "\uFFFD"); {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fault.New(fault.Failed, "qemu-img took longer than %s, and was ended", longest)
	case ctx.Err() != nil:
		return fault.New(fault.Canceled, "qemu-img was ended: %w", context.Cause(ctx))
	case strings.Contains(text, syscall.ENOSPC.Error()) || strings.Contains(text, "No space left"):
		return fault.New(fault.Exhausted, "there is no room: %s", text)
	case text == "":
		return fault.New(fault.Failed, "qemu-img failed: %w", err)
	default:
		return fault.New(fault.Failed, "%s", text)
	}
}

// lastWords keeps the beginning of what a program says, for it says little.
type lastWords struct{ bytes.Buffer }

// Write never fails.
func (w *lastWords) Write(text []byte) (int, error) {
	const most = 4 << 10
	w.Buffer.Write(text[:max(0, min(len(text), most-w.Len()))])
	return len(text), nil
}
