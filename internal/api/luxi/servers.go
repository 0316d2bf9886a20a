package luxi

import (
	"context"

	"github.com/drover-project/drover/internal/fault"
)

// serverMethods are the requests of operators about servers of the Compute API.
var serverMethods = []method{
	{"ReconcileServers", 2, 2, reconcileServers}, // id or null, whether to fix what differs
}

func reconcileServers(ctx context.Context, d *Deps, a *arguments) (any, error) {
	id, fix := a.optionalStr(0), a.boolean(1)
	if err := a.bad(); err != nil {
		return nil, err
	}
	if d.Servers == nil {
		return nil, fault.New(fault.NotFound, "this controller keeps no servers")
	}
	return d.Servers.Examine(ctx, id, fix)
}
