package cli

import (
	"context"
	"io"
	"os"

	"golang.org/x/term"
)

// input is what a command reads from: the reader beneath, until the context
// ends. A command that waits for somebody to type is interrupted like any other
// that waits.
type input struct {
	ctx     context.Context //nolint:containedctx // a reader has no other way to be told
	beneath io.Reader
}

// Read reads what there is, or fails when the context ends first. What arrives
// after that is lost: the command is over.
func (in *input) Read(p []byte) (int, error) {
	if err := context.Cause(in.ctx); err != nil {
		return 0, err
	}
	type outcome struct {
		n   int
		err error
	}
	buffer := make([]byte, len(p)) // a read that nobody waits for any more must not touch p
	done := make(chan outcome, 1)
	go func() {
		n, err := in.beneath.Read(buffer)
		done <- outcome{n, err}
	}()
	select {
	case o := <-done:
		return copy(p, buffer[:o.n]), o.err
	case <-in.ctx.Done():
		return 0, context.Cause(in.ctx)
	}
}

// Terminal returns the terminal that is read from, for commands that speak to
// it themselves; false if it is none.
func (in *input) Terminal() (*os.File, bool) {
	file, ok := in.beneath.(*os.File)
	return file, ok && term.IsTerminal(int(file.Fd()))
}
