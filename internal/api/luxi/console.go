package luxi

import (
	"context"
	"math"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
)

// maxSitting is how long the id may be of who sits before a console.
const maxSitting = 64

// sitting is who sits before a console, as a client says it.
type sitting struct {
	ID string `json:"id"`
	// Turn is the number of the turn that the client has seen.
	Turn uint64 `json:"turn"`
}

// piece is what was printed, and whose turn it is to type.
type piece struct {
	console.Piece
	Turn *console.Turn `json:"turn,omitempty"`
}

// who is somebody who sits before a console.
func (a *arguments) who(id string, by audit.By) console.Sitting {
	if len(id) > maxSitting {
		a.fail(fault.New(fault.TooLarge, "who sits before a console has a name of %d bytes, and %d are allowed", len(id), maxSitting))
	}
	return console.Sitting{ID: id, By: by}
}

// sits is the instance of a request with who sits before its console.
func (a *arguments) sits(d *Deps, id string) (inst *cluster.Instance, who console.Sitting, err error) {
	name := a.str(0)
	who = a.who(id, a.as(-1))
	if err := a.bad(); err != nil {
		return nil, who, err
	}
	inst, err = d.Querier.Picture.Load().Inventory.FindInstance(name)
	return inst, who, err
}

// readConsole tells what an instance printed on its serial line behind a position, and waits for it if that is nothing; one who sits before it is told
// when it is another one's turn, too.
func readConsole(ctx context.Context, d *Deps, a *arguments) (any, error) {
	instance, at, seconds := a.str(0), a.integer(1), a.number(2)
	if at < 0 || math.IsNaN(seconds) || seconds < 0 {
		a.fail(fault.New(fault.Invalid, "a position and a time are not negative").At("args[1]"))
	}
	if !a.has(3) {
		if err := a.bad(); err != nil {
			return nil, err
		}
		return d.Querier.ReadConsole(ctx, instance, uint64(at), job.Seconds(seconds))
	}
	var s sitting
	a.object(3, &s)
	inst, who, err := a.sits(d, s.ID)
	if err != nil {
		return nil, err
	}
	p, turn, err := d.Keyboards.Look(ctx, inst.UUID, who, s.Turn, uint64(at), func(ctx context.Context, wait bool) (console.Piece, error) {
		if !wait {
			seconds = 0
		}
		return d.Querier.ReadConsole(ctx, instance, uint64(at), job.Seconds(seconds))
	})
	return piece{p, &turn}, err
}

// typeConsole types on an instance's serial line, if it is the turn of who asks or nobody's. Who takes over need not type anything.
func typeConsole(ctx context.Context, d *Deps, a *arguments) (any, error) {
	var keys []byte
	a.decode(1, "Bytes", &keys)
	over := a.optionalBool(3)
	inst, who, err := a.sits(d, a.optionalStr(2))
	if err != nil {
		return nil, err
	}
	if err := d.Keyboards.Type(ctx, inst.UUID, inst.Name, who, over); err != nil || len(keys) == 0 {
		return nil, err
	}
	return nil, d.Querier.TypeConsole(ctx, inst.Name, keys)
}

// leaveConsole gives the keyboard of an instance back.
func leaveConsole(_ context.Context, d *Deps, a *arguments) (any, error) {
	inst, who, err := a.sits(d, a.str(1))
	if err != nil {
		return nil, err
	}
	d.Keyboards.Leave(inst.UUID, who)
	return nil, nil
}
