package shell

import (
	"context"
	"io"
	"os"

	"github.com/drover-project/drover/internal/fault"
	"golang.org/x/term"
)

// Input is what a command reads from: the reader beneath, until the context
// ends. A command that waits for somebody to type is interrupted like any other
// that waits.
type Input struct {
	Ctx     context.Context //nolint:containedctx // a reader has no other way to be told
	Beneath io.Reader
}

// Read reads what there is, or fails when the context ends first. What arrives
// after that is lost: the command is over.
func (in *Input) Read(p []byte) (int, error) {
	if err := context.Cause(in.Ctx); err != nil {
		return 0, err
	}
	type outcome struct {
		n   int
		err error
	}
	buffer := make([]byte, len(p)) // a read that nobody waits for any more must not touch p
	done := make(chan outcome, 1)
	go func() {
		n, err := in.Beneath.Read(buffer)
		done <- outcome{n, err}
	}()
	select {
	case o := <-done:
		return copy(p, buffer[:o.n]), o.err
	case <-in.Ctx.Done():
		return 0, context.Cause(in.Ctx)
	}
}

// Terminal returns the terminal that is read from, for commands that speak to
// it themselves; false if it is none.
func (in *Input) Terminal() (*os.File, bool) {
	file, ok := in.Beneath.(*os.File)
	return file, ok && term.IsTerminal(int(file.Fd()))
}

// Screen returns the terminal that a command may place text on, and that it reads keys
// from; false if there is none.
func (sh *Shell) Screen() (in, out *os.File, ok bool) {
	input, isInput := sh.In.(*Input)
	out, isFile := sh.rawOut.(*os.File)
	if !isInput || !isFile || sh.Width == 0 || sh.Getenv("TERM") == "dumb" {
		return nil, nil, false
	}
	in, ok = input.Terminal()
	return in, out, ok
}

// Read returns the contents of a file, or of standard input for "-".
func (sh *Shell) Read(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(sh.In)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot read %s: %w", name, err)
	}
	return text, nil
}
