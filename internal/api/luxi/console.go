package luxi

import (
	"context"
	"math"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
)

// readConsole tells what an instance printed on its serial line behind a position, and waits for it if that is nothing.
func readConsole(ctx context.Context, d *Deps, a *arguments) (any, error) {
	instance, at, seconds := a.str(0), a.integer(1), a.number(2)
	if at < 0 || math.IsNaN(seconds) || seconds < 0 {
		a.fail(fault.New(fault.Invalid, "a position and a time are not negative").At("args[1]"))
	}
	if err := a.bad(); err != nil {
		return nil, err
	}
	return d.Querier.ReadConsole(ctx, instance, uint64(at), job.Seconds(seconds))
}

// typeConsole types on an instance's serial line.
func typeConsole(ctx context.Context, d *Deps, a *arguments) (any, error) {
	instance := a.str(0)
	var keys []byte
	a.decode(1, "Bytes", &keys)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return nil, d.Querier.TypeConsole(ctx, instance, keys)
}
