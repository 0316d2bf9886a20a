package app

import (
	"path/filepath"

	"github.com/drover-project/drover/internal/api/luxi"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/gate"
)

// listenLUXI opens the control socket, for its owner only.
func listenLUXI(o Options) (l *gate.Listener, path string, err error) {
	path = o.LUXI
	if path == "" {
		path = filepath.Join(o.Data, "luxi.sock")
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, path, fault.New(fault.Environment, "cannot tell where the socket is: %w", err)
	}
	const ownerOnly = 0o600
	l, err = gateOf(gate.LUXI, o).ListenUnix(path, ownerOnly)
	return l, path, err
}

// newLUXI returns the server of a controller's methods.
func (c *controller) newLUXI(s *surfaces, o Options) *luxi.Server {
	deps := luxi.Deps{Queue: c.queue, Rollout: c.rollout, Servers: c.servers, Querier: c.querier, Keyboards: c.keyboards, Log: o.Log, Observe: c.figures.observe("luxi", o.Log), NewID: c.requestIDs.Next}
	if c.keystone == nil {
		deps.Accounts = c.accountsAPI.Operate
	}
	deps.Format, deps.RaiseFormat = c.formatState, c.raiseFormat
	deps.Health, deps.Bundle = c.clusterHealth, c.bundle
	if s.ready.Web != "" {
		deps.WebLink = func(name string) string { return s.ready.Web + "/" + c.web.Link(name) }
	}
	if c.group != nil {
		deps.Masters, deps.Failover, deps.Assured = c.group.masters, c.group.failover, c.assured
	}
	return luxi.New(deps)
}
