package exec

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/evacuation"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
)

// leaving is OP_NODE_EVACUATE or OP_NODE_MIGRATE: what is to leave a node does so by jobs, one for each instance. Which they are is a plan
// (package evacuation); it is told before any of them is submitted, and by a dry run.
type leaving struct {
	env *Env
	evacuation.Request
	courses []evacuation.Course
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

// evacuate prepares OP_NODE_EVACUATE. If anything cannot leave, nothing does.
func (n Names) evacuate(ctx context.Context, env *Env) (Plan, error) {
	l := &leaving{env: env, Request: evacuation.Request{Mode: evacuation.Mode(env.Op.Str("mode")), IgnorePolicy: env.Op.Bool("ignore_soft_errors")}}
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
	l := &leaving{env: env, Request: evacuation.Request{Mode: evacuation.Primaries, Live: true, IgnorePolicy: env.Op.Bool("ignore_ipolicy")}}
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
	names := make([]string, len(l.courses))
	for i := range l.courses {
		names[i] = l.courses[i].Instance.Name
	}
	l.env.Infof("%s instances from node '%s': %s", doing, l.Node.Name, strings.Join(names, ", "))
	for i := range l.courses {
		if l.courses[i].Cannot != "" {
			l.env.Warnf("%s", l.courses[i].Text())
		} else {
			l.env.Infof("%s", l.courses[i].Text())
		}
	}
}

// mostNamed is how many of those that cannot leave an error names.
const mostNamed = 10

// stuck is the error if some cannot leave.
func (l *leaving) stuck() error {
	var stuck []string
	for i := range l.courses {
		if c := &l.courses[i]; c.Cannot != "" {
			stuck = append(stuck, fmt.Sprintf("%s (%s)", c.Instance.Name, c.Cannot))
		}
	}
	if len(stuck) == 0 {
		return nil
	}
	if more := len(stuck) - mostNamed; more > 0 {
		stuck = append(stuck[:mostNamed], fmt.Sprintf("and %d more", more))
	}
	return fault.New(fault.Exhausted, "Unable to evacuate instances %s", strings.Join(stuck, ", ")).
		WithHint("nothing was moved; what can be is moved one by one: drover instance migrate, failover, replace-disks")
}

// planned is a course as a dry run shows it.
type planned struct {
	Instance string        `json:"instance"`
	Moves    []plannedMove `json:"moves"`
	Cannot   string        `json:"cannot,omitempty"`
}

type plannedMove struct {
	Do  evacuation.Verb `json:"do"`
	To  string          `json:"to"`
	Why string          `json:"why"`
}

// plan submits a job for each instance that leaves. The others are in the result as jobs that were not taken.
func (l *leaving) plan() (Plan, error) {
	jobs := make([][]*opcode.Opcode, 0, len(l.courses))
	dry := make([]planned, len(l.courses))
	for i := range l.courses {
		c := &l.courses[i]
		dry[i] = planned{Instance: c.Instance.Name, Moves: []plannedMove{}, Cannot: c.Cannot}
		for _, m := range c.Moves {
			dry[i].Moves = append(dry[i].Moves, plannedMove{m.Verb, m.To.Name, m.Why})
		}
		if c.Cannot != "" {
			continue
		}
		ops, err := l.job(c)
		if err != nil {
			return Plan{}, err
		}
		jobs = append(jobs, ops)
	}
	return Plan{
		Dry: map[string]any{"jobs": []any{}, "plan": dry},
		Do: func(ctx context.Context) (any, error) {
			submitted, err := l.env.submitChildren(ctx, jobs)
			if err != nil {
				return nil, err
			}
			for i := range l.courses {
				if l.courses[i].Cannot != "" {
					submitted = slices.Insert(submitted, i, [2]any{false, l.courses[i].Text()})
				}
			}
			return map[string]any{"jobs": submitted}, nil
		},
	}, nil
}

// job are the opcodes of a course.
func (l *leaving) job(c *evacuation.Course) (ops []*opcode.Opcode, err error) {
	for _, m := range c.Moves {
		id, p := "OP_INSTANCE_REPLACE_DISKS", map[string]any{"instance_name": c.Instance.Name, "instance_uuid": c.Instance.UUID}
		if l.IgnorePolicy {
			p["ignore_ipolicy"] = true
		}
		switch m.Verb {
		case evacuation.ReplaceSecondary:
			p["mode"], p["remote_node"], p["early_release"] = replaceSecondary, m.To.Name, l.env.Op.Bool("early_release")
		default:
			id = "OP_INSTANCE_MIGRATE"
			l.migration(c, m, p)
		}
		op, err := opcode.FromMap(id, p)
		if err != nil {
			return nil, err
		}
		ops = append(ops, op)
	}
	return ops, nil
}

// migration are the parameters of a migration. That of an evacuation may stop what cannot be handed over.
func (l *leaving) migration(c *evacuation.Course, m evacuation.Move, p map[string]any) {
	if c.Instance.Mirroring() == cluster.ExternalMirror {
		p["target_node"] = m.To.Name
	}
	p["allow_failover"] = !l.Live
	if !l.Live {
		return
	}
	for _, name := range []string{"mode", "live", "allow_runtime_changes"} {
		if l.env.Op.Has(name) {
			p[name] = l.env.Op.Params[name]
		}
	}
}
