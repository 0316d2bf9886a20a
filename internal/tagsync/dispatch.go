package tagsync

import (
	"context"
)

// Heard takes in that something happened to an instance: the servers that it may
// be are looked at, and what is found is durable when it returns. What happened is
// not taken from whoever says so, so it may be said late, twice, or out of order. A
// cluster that cannot be asked now is asked later in any case, and is no error;
// one is that ctx has ended or the engine has, before the servers were looked at.
func (e *Engine) Heard(ctx context.Context, instance string) error {
	for name := range e.cfg.Backends {
		for s := range e.Servers().Called(name, instance) {
			if err := e.Attend(ctx, s.ID); err != nil && (ctx.Err() != nil || e.ctx.Err() != nil) {
				return err
			}
		}
	}
	return nil
}
