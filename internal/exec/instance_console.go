package exec

import (
	"context"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/query/items"
)

// console prepares OP_INSTANCE_CONSOLE. No driver has a console to reach yet,
// which clients are told in a message, as the reference tells it of its fake.
func console(_ context.Context, env *Env) (Plan, error) {
	inst, err := findInstance(env.Op, env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	if _, _, err := env.primary(inst); err != nil {
		return Plan{}, err
	}
	if inst.AdminState != cluster.AdminUp {
		return Plan{}, fault.New(fault.WrongState, "Instance %s is not running (state ADMIN_%s)", inst.Name, inst.AdminState)
	}
	return answer(items.NoConsole(inst)), nil
}
