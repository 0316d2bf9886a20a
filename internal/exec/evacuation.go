package exec

import (
	"context"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/evacuation"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
)

// leaving is OP_NODE_EVACUATE or OP_NODE_MIGRATE: what is to leave a node does so by jobs, one for each instance.
type leaving struct {
	departure
	evacuation.Request
}

// evacuationLocks share the node, those that its instances may go to, and the instances: the plan is made while nothing of that is changed.
func evacuationLocks(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	return leavingLocks(op, "remote_node", evacuation.Mode(op.Str("mode")), snap)
}

// nodeMigrationLocks are the same for OP_NODE_MIGRATE.
func nodeMigrationLocks(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	return leavingLocks(op, "target_node", evacuation.Primaries, snap)
}

func leavingLocks(op *opcode.Opcode, to string, mode evacuation.Mode, snap *cluster.Snapshot) (lock.Request, error) {
	node, err := findNode(op, "node", snap)
	if err != nil {
		return nil, err
	}
	request := append(lock.Request{want(lock.NodeGroup, node.Group, lock.Shared)}, sharing(node.UUID)...)
	for _, inst := range evacuation.Instances(snap, node.UUID, mode) {
		request = append(request, want(lock.Instance, inst.Name, lock.Shared))
	}
	if named(op, to) {
		further, err := furtherNode(op, to, false, snap)
		return append(request, further...), err
	}
	for other := range snap.NodesIn(node.Group) {
		if other != node {
			request = append(request, sharing(other.UUID)...)
		}
	}
	return request, nil
}

func newLeaving(env *Env, r evacuation.Request) *leaving {
	return &leaving{departure{env: env, live: r.Live, ignorePolicy: r.IgnorePolicy}, r}
}

// evacuate prepares OP_NODE_EVACUATE. If anything cannot leave, nothing does.
func (n Names) evacuate(ctx context.Context, env *Env) (Plan, error) {
	l := newLeaving(env, evacuation.Request{Mode: evacuation.Mode(env.Op.Str("mode")), IgnorePolicy: env.Op.Bool("ignore_soft_errors")})
	if err := l.ask("remote_node"); err != nil {
		return Plan{}, err
	}
	switch {
	case l.To == nil:
	case l.To == l.Node:
		return Plan{}, fault.New(fault.Invalid, "Can not use evacuated node as a new secondary node").At("remote_node")
	case l.Mode != evacuation.Secondaries:
		return Plan{}, fault.New(fault.Invalid, "Without the use of an iallocator only secondary instances can be evacuated").At("remote_node").
			WithHint("leave the node out, and placement chooses one for each; or say mode=%s", evacuation.Secondaries)
	}
	l.decide(ctx, n.places)
	l.tell("evacuate", "Evacuating")
	if err := l.stuck(); err != nil {
		return Plan{}, err
	}
	return l.plan()
}

// migrateNode prepares OP_NODE_MIGRATE. What cannot be migrated stays, and the result says why.
func (n Names) migrateNode(ctx context.Context, env *Env) (Plan, error) {
	if env.Op.Has("live") && env.Op.Has("mode") {
		return Plan{}, fault.New(fault.Invalid, "Only one of the 'live' and 'mode' parameters are accepted").At("live")
	}
	l := newLeaving(env, evacuation.Request{Mode: evacuation.Primaries, Live: true, IgnorePolicy: env.Op.Bool("ignore_ipolicy")})
	if err := l.ask("target_node"); err != nil {
		return Plan{}, err
	}
	if l.To != nil && l.To == l.Node {
		return Plan{}, fault.New(fault.Invalid, "The instances are on node %s", l.Node.Name).At("target_node")
	}
	l.decide(ctx, n.places)
	l.tell("migrate", "Migrating")
	return l.plan()
}

// ask reads which node is left, and for which one.
func (l *leaving) ask(to string) (err error) {
	op, snap := l.env.Op, l.env.snapshot()
	if l.Node, err = findNode(op, "node", snap); err != nil {
		return err
	}
	switch {
	case named(op, to) && op.Has("iallocator"):
		return fault.New(fault.Invalid, "Do not specify both, iallocator and node").At("iallocator")
	case !checkAllocator(op.Str("iallocator")):
		return fault.New(fault.Exhausted, "Can't compute node evacuation using iallocator '%s': it is not there", op.Str("iallocator")).At("iallocator")
	case named(op, to):
		l.To, err = findNode(op, to, snap)
	}
	return err
}

// decide has the plan made upon what the nodes told last that instances may go to.
func (l *leaving) decide(ctx context.Context, p *places) {
	snap := l.env.snapshot()
	var asked []*cluster.Node
	for n := range snap.NodesIn(l.Node.Group) {
		if n != l.Node && !n.Offline && (l.To == nil || n != l.To) {
			asked = append(asked, n)
		}
	}
	if l.To != nil && !l.To.Offline {
		asked = append(asked, l.To)
	}
	l.courses = evacuation.Plan(p.seen(snap, l.env.reports(ctx, asked)), l.Request)
}

// tell says what is going to leave, and how; the first line is the reference's.
func (l *leaving) tell(verb, doing string) {
	if len(l.courses) == 0 {
		l.env.Infof("No instances to %s from node '%s'", verb, l.Node.Name)
		return
	}
	l.env.Infof("%s instances from node '%s': %s", doing, l.Node.Name, strings.Join(l.names(), ", "))
	l.tellCourses()
}
