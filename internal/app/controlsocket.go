package app

import (
	"context"
	"path/filepath"

	"github.com/drover-project/drover/internal/api/luxi"
	"github.com/drover-project/drover/internal/fault"
)

// listenLUXI opens the control socket, for its owner only.
func (c *controller) listenLUXI(s *surfaces, o Options) error {
	path := o.LUXI
	if path == "" {
		path = filepath.Join(o.Data, "luxi.sock")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return fault.New(fault.Environment, "cannot tell where the socket is: %w", err)
	}
	const ownerOnly = 0o600
	if s.luxiListener, err = luxi.Listen(path, ownerOnly); err != nil {
		return err
	}
	server := luxi.New(luxi.Deps{Queue: c.queue, Rollout: c.rollout, Querier: c.querier, Log: o.Log, Observe: c.figures.observe("luxi", o.Log), NewID: c.requestIDs.Next})
	s.serveLUXI = func(ctx context.Context) error { return server.Serve(ctx, s.luxiListener) }
	s.ready.LUXI = path
	return nil
}
