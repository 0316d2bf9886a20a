package page

import (
	"context"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
)

// opener is the program that has a browser show a file; empty where nobody would see it: without a terminal, or a screen.
func opener(sh *shell.Shell) string {
	name := "xdg-open"
	switch {
	case sh.Width == 0:
		return ""
	case runtime.GOOS == "darwin":
		name = "open"
	case sh.Getenv("DISPLAY") == "" && sh.Getenv("WAYLAND_DISPLAY") == "":
		return ""
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// opening is how long it is waited whether the program that opens a browser fails at once.
const opening = 3 * time.Second

// open has a browser go to an address that signs in, by a file that nobody else can read: what programs are called with, everybody on the machine sees.
func open(ctx context.Context, sh *shell.Shell, program, address string) error {
	door, err := writeDoor(sh, address)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, door)
	if err := cmd.Start(); err != nil {
		return fault.New(fault.Environment, "no browser can be opened: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			return fault.New(fault.Environment, "no browser was opened: %s: %w", program, err)
		}
	case <-time.After(opening): // it may be the browser itself
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// writeDoor writes a page that leads to the address on, and returns its path. Those of before lead nowhere any more, and are removed.
func writeDoor(sh *shell.Shell, address string) (path string, err error) {
	const names = "drover-web-*"
	above := sh.Getenv("XDG_RUNTIME_DIR") // the user's own, in memory
	if above == "" {
		above = os.TempDir()
	} else if old, err := filepath.Glob(filepath.Join(above, names)); err == nil {
		for _, dir := range old {
			_ = os.RemoveAll(dir) // it is in nobody's way
		}
	}
	dir, err := os.MkdirTemp(above, names) // for its owner alone
	if err != nil {
		return "", fault.New(fault.Environment, "the file for the browser cannot be written: %w", err)
	}
	text := html.EscapeString(address)
	text = "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Drover</title>\n<meta http-equiv=\"refresh\" content=\"0; url=" + text + "\">\n<a href=\"" + text + "\">Drover</a>\n"
	path = filepath.Join(dir, "drover.html")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil { //nolint:mnd // its owner alone
		return "", fault.New(fault.Environment, "the file for the browser cannot be written: %w", err)
	}
	return path, nil
}
