package agent

import (
	"context"
	"io"
	"time"

	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// MaxKeys is how many bytes may be typed at once.
const MaxKeys = 4 << 10

// longestLook is how long somebody may wait for what a guest prints; who wants to see more asks again.
const longestLook = 30 * time.Second

// ReadConsole returns what an instance printed on its serial line behind a position, and waits for it for a time if that is nothing; see
// console.Line.
func (a *Agent) ReadConsole(ctx context.Context, of hypervisor.Thing, at uint64, wait time.Duration) (console.Piece, error) {
	line, err := a.cfg.Driver.Console(of)
	if err != nil {
		return console.Piece{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, min(max(wait, 0), longestLook))
	defer cancel()
	return line.Read(ctx, at), nil
}

// TypeConsole types on an instance's serial line, at most MaxKeys bytes. It is no order: nobody but who types says what the keys do.
func (a *Agent) TypeConsole(ctx context.Context, of hypervisor.Thing, keys []byte) error {
	if len(keys) > MaxKeys {
		return fault.New(fault.TooLarge, "%d bytes are typed at once, and %d are allowed", len(keys), MaxKeys)
	}
	if err := ctx.Err(); err != nil {
		return fault.New(fault.Canceled, "nothing was typed: %w", err)
	}
	line, err := a.cfg.Driver.Console(of)
	if err != nil {
		return err
	}
	return line.Type(keys)
}

// OpenScreen connects to the screen of an instance until ctx ends; see hypervisor.Driver.
func (a *Agent) OpenScreen(ctx context.Context, of hypervisor.Thing) (io.ReadWriteCloser, error) {
	s, err := a.cfg.Driver.Screen(ctx, of)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	return s, nil
}
