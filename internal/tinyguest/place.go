package tinyguest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// The files of a guest.
const (
	kernelFile = "vmlinuz"
	initrdFile = "initrd.gz"
	labelFile  = "guest.json"
)

// workMark begins the names of directories in which guests are made.
const workMark = ".new-"

// label is what stands beside a guest.
type label struct {
	// Recipe is how it was made: see recipe.
	Recipe string `json:"recipe"`
	// Kernel is the version of the kernel.
	Kernel string `json:"kernel"`
	// Packages are the files that it was made from.
	Packages []string `json:"packages"`
	// SHA256 are the sums of its files, as hexadecimal digits.
	SHA256 map[string]string `json:"sha256"`
}

// place is a directory that holds guests, each in a directory that is named after its recipe.
type place struct{ dir string }

// final is where the guest of this version is.
func (p place) final() string { return filepath.Join(p.dir, "tiny-"+recipe()) }

// guest is the guest in its place, if it is what was put there.
func (p place) guest() (Guest, bool) {
	dir := p.final()
	text, err := os.ReadFile(filepath.Join(dir, labelFile))
	if err != nil {
		return Guest{}, false
	}
	var l label
	if json.Unmarshal(text, &l) != nil || l.Recipe != recipe() {
		return Guest{}, false
	}
	for _, name := range []string{kernelFile, initrdFile} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || sum(data) != l.SHA256[name] {
			return Guest{}, false
		}
	}
	return Guest{Kernel: filepath.Join(dir, kernelFile), Initrd: filepath.Join(dir, initrdFile), Version: l.Kernel}, true
}

// work makes a directory to work in, on the same file system.
func (p place) work() (string, error) { return os.MkdirTemp(p.dir, workMark) }

// sweep removes what those left who were killed at work. Whoever calls it holds the lock, so nobody works there.
func (p place) sweep() {
	entries, _ := os.ReadDir(p.dir) // what cannot be swept now is swept next time
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), workMark) {
			_ = os.RemoveAll(filepath.Join(p.dir, e.Name()))
		}
	}
}

// put moves a guest that was made to its place. What is there is not what was put there, and is moved to former.
func (p place) put(made, former string) error {
	if err := os.Rename(p.final(), former); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(made, p.final())
}

// store writes the files of a guest into a new directory. They are not flushed: what the power takes is seen by its sum.
func store(dir string, l label, kernel, initrd []byte) error {
	l.SHA256 = map[string]string{kernelFile: sum(kernel), initrdFile: sum(initrd)}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	if err := e.Encode(l); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // hypervisors that read it may run as another user
		return err
	}
	for name, data := range map[string][]byte{kernelFile: kernel, initrdFile: initrd, labelFile: text.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// lock has a directory, which is made if it is not there, for this process alone; it waits until others have done.
func lock(ctx context.Context, dir string) (unlock func(), err error) {
	const again = 50 * time.Millisecond
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as in store
		return nil, unwritable(dir, err)
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, unwritable(dir, err)
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fault.New(fault.Environment, "cannot lock %s: %w", dir, err), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(canceled(ctx), f.Close())
		case <-time.After(again):
		}
	}
}
