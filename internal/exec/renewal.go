package exec

import (
	"context"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/joining"
	"github.com/drover-project/drover/internal/work"
)

// The verbs of renewals.
const (
	renewAgents  = "renew-agents"  // have agents make their keys and certificates anew, beside one another
	endFormer    = "end-former"    // have the certificates of before count no more, of those that have said that they have others
	tellRenewals = "tell-renewals" // fail, if there are agents that have not
	renewOwn     = "renew-own"     // make something of the controller anew
)

type renewAgentsArgs struct {
	Nodes []string `json:"nodes"` // by UUID
}

type renewOwnArgs struct {
	Which Secret `json:"which"`
}

// renewals are what became of the certificates of agents: the numbers of those that are new, and whose are not, by the UUIDs of their nodes.
type renewals struct {
	serials map[string]string
	failed  []string
}

var renewalVerbs = map[string]verb{
	renewAgents: {act: func(ctx context.Context, env *Env, order agent.Order, s *work.Step) (any, error) {
		args, err := arguments[renewAgentsArgs](s)
		if err != nil {
			return nil, err
		}
		return nil, env.renewAgents(ctx, order, args.Nodes)
	}},
	endFormer: changing(func(env *Env, snap *cluster.Snapshot, _ *work.Step, _ struct{}) (changes []cluster.Change, _ any, _ error) {
		for uuid, serial := range env.renewed.serials {
			node := snap.Node(uuid)
			if of := joining.Confirmed(node, serial); of != nil {
				next := node.Clone()
				next.Agent = of
				changes = append(changes, cluster.Put(next))
			}
		}
		return changes, nil, nil
	}),
	tellRenewals: {act: func(_ context.Context, env *Env, _ agent.Order, _ *work.Step) (any, error) {
		names := make([]string, 0, len(env.renewed.failed))
		for _, uuid := range env.renewed.failed {
			names = append(names, nodeName(env.snapshot(), uuid))
		}
		if len(names) == 0 {
			return nil, nil //nolint:nilnil // there is nothing to tell
		}
		slices.Sort(names)
		return nil, fault.New(fault.Failed, "The certificates of %d of the agents were not renewed, and count on: %s", len(names), fault.Clip(strings.Join(names, ", "), 500)).
			WithHint("submit another job when they can be reached")
	}},
	renewOwn: {act: func(_ context.Context, env *Env, _ agent.Order, s *work.Step) (any, error) {
		args, err := arguments[renewOwnArgs](s)
		if err != nil {
			return nil, err
		}
		return nil, env.machine.Renew(args.Which)
	}},
}

// renewAgents has agents make their certificates anew. What one of them cannot is told, and does not end the others'.
func (e *Env) renewAgents(ctx context.Context, order agent.Order, nodes []string) error {
	serials, errs := make([]string, len(nodes)), make([]error, len(nodes))
	beside(len(nodes), fewAtOnce, func(i int) { serials[i], errs[i] = e.renewAgent(ctx, order, nodes[i]) })
	e.renewed = &renewals{serials: map[string]string{}}
	for i, uuid := range nodes {
		switch err := errs[i]; {
		case err == nil:
			e.renewed.serials[uuid] = serials[i]
		case ctx.Err() != nil || e.over() || fault.Is(err, fault.Fenced):
			return err
		default:
			e.renewed.failed = append(e.renewed.failed, uuid)
			e.Warnf("The certificate of the agent of node %s was not renewed: %v", nodeName(e.snapshot(), uuid), err)
		}
	}
	return nil
}

// renewAgent has one agent do so. One that is away is not waited for.
func (e *Env) renewAgent(ctx context.Context, order agent.Order, uuid string) (serial string, err error) {
	n := e.snapshot().Node(uuid)
	if n == nil {
		return "", fault.New(fault.NotFound, "the node was removed from the cluster meanwhile")
	}
	node, err := e.nearAgent(n)
	if err != nil {
		return "", err
	}
	return node.RenewCertificate(ctx, order)
}

// renewCrypto prepares OP_CLUSTER_RENEW_CRYPTO. Agents keep going meanwhile: each has its old certificate until it has the new one, and the opcode holds no locks.
func renewCrypto(_ context.Context, env *Env) (Plan, error) {
	op := env.Op
	for _, param := range []string{"renew_ssh_keys", "ssh_key_type", "ssh_key_bits"} {
		if v := op.Params[param]; v != nil && v != false {
			return Plan{}, fault.New(fault.Unsupported, "There are no SSH keys to renew: agents of nodes and controllers know each other by certificates").At(param).
				WithHint("node_certificates renews those")
		}
	}
	var steps []work.Step
	own := func(which Secret) error {
		if env.machine == nil {
			return fault.New(fault.WrongState, "There is no controller here that has %s", which)
		}
		steps = append(steps, work.Step{Verb: renewOwn, Text: "make " + string(which) + " anew", Args: encodeArgs(renewOwnArgs{which})})
		return env.machine.Has(which)
	}
	for _, of := range []struct {
		param string
		which Secret
	}{{"rapi_certificate", RAPICertificate}, {"confd_hmac_key", ConfdKey}} {
		if !op.Bool(of.param) {
			continue
		}
		if err := own(of.which); err != nil {
			return Plan{}, err
		}
	}
	if op.Bool("node_certificates") {
		if nodes := env.renewable(); len(nodes) > 0 {
			if err := own(AgentsCertificate); err != nil {
				return Plan{}, err
			}
			steps = append(steps,
				work.Step{Verb: renewAgents, Text: "have the agents of nodes make their certificates anew", Says: []string{"Renewing Node SSL certificates"}, Args: encodeArgs(renewAgentsArgs{nodes})},
				work.Step{Verb: endFormer, Text: "have their certificates of before count no more"},
				work.Step{Verb: tellRenewals, Text: "tell whose were not renewed"})
		}
	}
	if len(steps) == 0 {
		return answer(nil), nil
	}
	return again(steps...), nil
}

// renewable are the nodes, by UUID, whose agents have certificates; what others there are is told.
func (e *Env) renewable() (nodes []string) {
	for n := range e.snapshot().Nodes() {
		switch {
		case n.Agent == nil || n.Agent.Serial == "":
			e.firstf("Node %s has no certificate: its agent lives in the controller's process, or has not joined yet", n.Name)
		case n.Offline:
			e.firstf("Node %s is marked offline, its certificate is not renewed", n.Name)
		default:
			nodes = append(nodes, n.UUID)
		}
	}
	return nodes
}
