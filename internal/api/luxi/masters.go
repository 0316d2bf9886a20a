package luxi

import (
	"context"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store/format"
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
	// Formats are those of the store that its program reads and writes.
	Formats format.Program `json:"formats"`
	// Note says why it cannot lead; empty for one that can.
	Note string `json:"note,omitempty"`
}

// ControllerDrain is what became of a controller that was to be drained, or to be no more.
type ControllerDrain struct {
	Name string `json:"name"`
	// Drained is how it is now, and Changed whether it was not so before.
	Drained bool `json:"drained"`
	Changed bool `json:"changed"`
	// Leads: it is the one that leads. To is who gets the lead from it; empty while nobody could have it.
	Leads bool   `json:"leads"`
	To    string `json:"to,omitempty"`
	// Why is by whom it is drained, since when, and why.
	Why string `json:"why,omitempty"`
}

// Forgotten is a controller that was lost.
type Forgotten struct {
	Name    string    `json:"name"`
	Address string    `json:"address"`
	Started time.Time `json:"started"`
	// Drained: it was, which is forgotten, too.
	Drained bool `json:"drained"`
}

// Format is that of the store, and what can be done about it.
type Format struct {
	// Format is the present one, Next the one that it can be raised to now (the same where it
	// cannot be), and Newest the greatest that the program of the leader knows.
	Format int `json:"format"`
	Next   int `json:"next"`
	Newest int `json:"newest"`
	// Program is that of the leader.
	Program format.Program `json:"program"`
	// Auto: the leader raises it by itself.
	Auto bool `json:"auto"`
	// Holds are those who keep it from the one behind Next.
	Holds []FormatHold `json:"holds"`
	// Brings is what the formats brought, from the present one on.
	Brings []FormatBrings `json:"brings"`
	// Copy is where the embedded store of before is, of a raise that has just been.
	Copy string `json:"copy,omitempty"`
}

// FormatHold is a controller that keeps the others from a format, why, and how long at the most.
type FormatHold struct {
	Name  string    `json:"name"`
	Why   string    `json:"why"`
	Until time.Time `json:"until"`
}

// FormatBrings is what a format brought.
type FormatBrings struct {
	Format int    `json:"format"`
	Brings string `json:"brings"`
}

func queryFormat(ctx context.Context, d *Deps, _ *arguments) (any, error) { return d.Format(ctx) }

func raiseFormat(ctx context.Context, d *Deps, a *arguments) (any, error) {
	by, noCopy := a.as(0), a.optionalBool(1)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return d.RaiseFormat(ctx, by, noCopy)
}

// QueryHealth asks how the cluster is: package health. Any controller answers it, also one that is not certain who leads.
const QueryHealth = "QueryHealth"

func queryHealth(ctx context.Context, d *Deps, _ *arguments) (any, error) { return d.Health(ctx), nil }

// MakeBundle gathers what is needed to find out what went wrong. Any controller does it, also one that is not certain who leads.
const MakeBundle = "MakeBundle"

func makeBundle(ctx context.Context, d *Deps, _ *arguments) (any, error) { return d.Bundle(ctx), nil }

// webLink makes an address of the page that signs in once, as whoever asks.
func webLink(_ context.Context, d *Deps, a *arguments) (any, error) {
	if d.WebLink == nil {
		return nil, fault.New(fault.Unsupported, "the page is not served").WithHint("the setting web says at which address it is to be")
	}
	return d.WebLink(a.by.Name), nil
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

func drainController(on bool) func(context.Context, *Deps, *arguments) (any, error) {
	return func(ctx context.Context, d *Deps, a *arguments) (any, error) {
		name, by, dry := a.str(0), a.as(1), a.optionalBool(2)
		if err := a.bad(); err != nil {
			return nil, err
		}
		if d.Drain == nil {
			return nil, errAlone
		}
		return d.Drain(ctx, name, on, by, dry)
	}
}

func forgetMaster(ctx context.Context, d *Deps, a *arguments) (any, error) {
	name, by, dry := a.str(0), a.as(1), a.optionalBool(2)
	if err := a.bad(); err != nil {
		return nil, err
	}
	if d.Forget == nil {
		return nil, errAlone
	}
	return d.Forget(ctx, name, by, dry)
}

var errAlone = fault.New(fault.WrongState, "this controller is alone").
	WithHint("several controllers share a PostgreSQL store, each with its own peer address: docs/operations.md")
