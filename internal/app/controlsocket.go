package app

import (
	"io/fs"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/drover-project/drover/internal/api/luxi"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/gate"
)

// listenLUXI opens the control socket, for its owner only, or for a group.
func listenLUXI(o Options) (l *gate.Listener, path string, err error) {
	path = o.LUXI
	if path == "" {
		path = filepath.Join(o.Data, "luxi.sock")
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, path, fault.New(fault.Environment, "cannot tell where the socket is: %w", err)
	}
	mode, group := fs.FileMode(0o600), gate.SameGroup
	if o.LUXIGroup != "" {
		mode = 0o660
		if group, err = groupNamed(o.LUXIGroup); err != nil {
			return nil, path, err
		}
	}
	l, err = gateOf(gate.LUXI, o).ListenUnix(path, mode, group)
	return l, path, err
}

// groupNamed is the id of a group of the machine, by its name or number.
func groupNamed(name string) (int, error) {
	text := name
	if of, err := user.LookupGroup(name); err == nil {
		text = of.Gid
	}
	const bits = 31
	id, err := strconv.ParseUint(text, 10, bits)
	if err != nil {
		return 0, fault.New(fault.Invalid, "there is no group %q on this machine", fault.Clip(name, 100)).At("luxi-group").WithHint("getent group lists them; a number is taken, too")
	}
	return int(id), nil
}

// newLUXI returns the server of a controller's methods.
func (c *controller) newLUXI(s *surfaces, o Options) *luxi.Server {
	deps := luxi.Deps{Queue: c.queue, Rollout: c.rollout, Servers: c.servers, Flavors: c.flavors, Quotas: c.quotas, Querier: c.querier, Keyboards: c.keyboards, Log: o.Log, Observe: c.figures.observe("luxi", o.Log), NewID: c.requestIDs.Next}
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
		deps.Take = c.owed.take
		deps.Drain, deps.Forget = c.drain, c.forget
	}
	return luxi.New(deps)
}
