package luxi

import (
	"context"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// Master is one of the controllers of a cluster, as the one that answers sees
// it.
type Master struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	// Role is leader, standby, or unreachable.
	Role string `json:"role"`
	// Revision is the newest that it knows; zero for one that is unreachable.
	Revision int64     `json:"revision"`
	Started  time.Time `json:"started"`
	Version  string    `json:"version"`
}

func queryMasters(ctx context.Context, d *Deps, _ *arguments) (any, error) {
	if d.Masters == nil {
		return nil, errAlone
	}
	return d.Masters(ctx)
}

func masterFailover(ctx context.Context, d *Deps, _ *arguments) (any, error) {
	if d.Failover == nil {
		return nil, errAlone
	}
	return nil, d.Failover(ctx)
}

var errAlone = fault.New(fault.WrongState, "this controller is alone").
	WithHint("several controllers share a PostgreSQL store, each with its own peer address: docs/operations.md")
