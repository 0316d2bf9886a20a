package exec

import (
	"context"
	"net/netip"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/work"
)

// setAddress brings the address of the cluster up on the machine of the controller, or takes it away. Which address that is, the step reads when its turn comes.
const setAddress = "set-address"

type addressArgs struct {
	Up bool `json:"up"`
}

var addressVerbs = map[string]verb{
	setAddress: {act: func(ctx context.Context, env *Env, _ agent.Order, s *work.Step) (any, error) {
		args, err := arguments[addressArgs](s)
		if err != nil {
			return nil, err
		}
		if err := env.machine.Address(ctx, env.snapshot().Cluster(), args.Up); err != nil {
			return nil, failed(err, "Could not %s the master IP", map[bool]string{true: "activate", false: "deactivate"}[args.Up])
		}
		return nil, nil //nolint:nilnil // that it is done is all
	}},
}

// addressStep is the step that brings the address up, or takes it away.
func addressStep(up bool) work.Step {
	return work.Step{Verb: setAddress, Args: encodeArgs(addressArgs{up}),
		Text: map[bool]string{true: "bring the address of the cluster up on the machine of the controller", false: "take the address of the cluster away from the machine of the controller"}[up]}
}

// masterAddress prepares OP_CLUSTER_ACTIVATE_MASTER_IP and OP_CLUSTER_DEACTIVATE_MASTER_IP.
func masterAddress(up bool) func(context.Context, *Env) (Plan, error) {
	return func(_ context.Context, env *Env) (Plan, error) {
		if env.machine == nil {
			return Plan{}, fault.New(fault.WrongState, "The address of the cluster is not cared for")
		}
		if err := env.machine.KeepsAddress(); err != nil {
			return Plan{}, err
		}
		return again(addressStep(up)), nil
	}
}

// setMasterIP gives the cluster another address.
func setMasterIP(c *cluster.Cluster, op *opcode.Opcode, name string, _ *cluster.Snapshot) error {
	ip, err := netip.ParseAddr(op.Str(name))
	switch {
	case err != nil || ip.Zone() != "" || ip.Is4In6() || ip.IsUnspecified() || ip.IsMulticast():
		return fault.New(fault.Invalid, "%.100q is no address that a cluster could have", op.Str(name)).At(name)
	case ip.Is6() != c.PrimaryIPv6:
		return fault.New(fault.Invalid, "The address %s is of another family than those of the nodes", ip).At(name)
	}
	c.MasterIP = ip.String()
	return nil
}
